"""The weights of an ONNX file, by their names in the published checkpoint."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

HALF = ".half"
"""Suffix of tensors that are stored in 16-bit floating point and cast when the file is loaded."""


def read_initializers(path: Path) -> dict[str, np.ndarray]:
    """Every initializer in double precision, also those that the file stores in 16 bits."""
    tensors = onnx.load(path).graph.initializer
    return {tensor.name.removesuffix(HALF): numpy_helper.to_array(tensor).astype(np.float64) for tensor in tensors}
