"""Replacing files whole: a step that is broken off leaves what was there before, or nothing that could be taken for whole."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(*paths: Path) -> Iterator[list[BinaryIO]]:
    """Files to write beside `paths`, whose places they take at the end.

    The last one tells what the others hold: it goes before they come and comes after them, so that where it is all are of one run.
    """
    unfinished = [path.with_name(f"{path.name}.partial") for path in paths]
    with ExitStack() as stack:
        yield [stack.enter_context(open(path, "wb")) for path in unfinished]
    if len(paths) > 1:
        paths[-1].unlink(missing_ok=True)
    for source, target in zip(unfinished, paths):
        os.replace(source, target)
