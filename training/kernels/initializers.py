"""The weights of an ONNX file, by name or by layer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

HALF = ".half"
"""Suffix of tensors that are stored in 16-bit floating point and cast when the file is loaded."""


def _named(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    tensors = model.graph.initializer
    return {tensor.name.removesuffix(HALF): numpy_helper.to_array(tensor).astype(np.float64) for tensor in tensors}


def read_initializers(path: Path) -> dict[str, np.ndarray]:
    """Every initializer in double precision, also those that the file stores in 16 bits."""
    return _named(onnx.load(path))


def read_layers(path: Path, operator: str) -> list[list[np.ndarray]]:
    """The weights of each node with this operator, in the order of the graph: exporters invent their names."""
    model = onnx.load(path)
    named = _named(model)
    nodes = [node for node in model.graph.node if node.op_type == operator]
    return [[named[name] for name in node.input if name in named] for node in nodes]
