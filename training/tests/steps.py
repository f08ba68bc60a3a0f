"""Runs the steps of the training like their commands."""

import contextlib
import importlib
import io
import os
import subprocess
import sys
import tempfile
import unittest
import warnings
from pathlib import Path
from unittest import mock

TRAINING = Path(__file__).parents[1]
MODELS = TRAINING.parent / "models"


def run(module: str, *arguments: object) -> str:
    """Runs `python -m MODULE ARGUMENTS` in this process, which avoids importing PyTorch again. Returns its output."""
    printed = io.StringIO()
    command = mock.patch.object(sys, "argv", [module, *map(str, arguments)])
    with command, contextlib.redirect_stdout(printed), warnings.catch_warnings(action="ignore"):
        importlib.import_module(module).main()
    return printed.getvalue()


def run_apart(module: str, *arguments: object) -> str:
    """Runs the module in a separate process, for steps that fork workers: a process with threads must not fork."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=TRAINING, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(f"{module} failed:\n{done.stderr}")
    return done.stdout


class InFolder(unittest.TestCase):
    """A test case whose tests share one temporary folder; they run in the order of their names."""

    folder: Path

    @classmethod
    def setUpClass(cls) -> None:
        held = tempfile.TemporaryDirectory()
        cls.addClassCleanup(held.cleanup)
        cls.folder = Path(held.name)
