"""Atomic replacement of files: an interrupted step leaves the previous files, or none that look complete."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(*paths: Path) -> Iterator[list[BinaryIO]]:
    """Temporary files that replace `paths` at the end.

    The last one is the index of the others: it is deleted before and written after them, so that all are of one run if
    it exists.
    """
    unfinished = [path.with_name(f"{path.name}.partial") for path in paths]
    with ExitStack() as stack:
        yield [stack.enter_context(open(path, "wb")) for path in unfinished]
    if len(paths) > 1:
        paths[-1].unlink(missing_ok=True)
    for source, target in zip(unfinished, paths):
        os.replace(source, target)
