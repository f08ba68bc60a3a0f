"""Input ranges of the convolutions and products of a floating-point network, over windows of recordings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

from .graph import Range


def weighted(model: onnx.ModelProto) -> dict[str, str]:
    """The convolutions and products with a weight: name of the node -> name of its input."""
    weights = {one.name for one in model.graph.initializer}
    return {
        node.name: node.input[0]
        for node in model.graph.node
        if node.op_type in ("Conv", "MatMul") and node.input[1] in weights
    }


def normalised(model: onnx.ModelProto) -> list[str]:
    """Results of layer norms, which the exporter decomposes, before gain and offset."""
    return [node.output[0] for node in model.graph.node if node.op_type == "Div" and "norm" in node.name]


def measure(path: Path, windows: list[np.ndarray], percentile: float) -> dict[str, Range]:
    """
    Input ranges by name of the node; those of layer norms before their gain by name of the tensor.

    @param percentile: of the values inside the range on either side; outliers would reduce the resolution of all others
    """
    model = onnx.load(path)
    places = weighted(model) | {one: one for one in normalised(model)}
    inputs = {one.name for one in model.graph.input}
    tensors = sorted(set(places.values()) - inputs)
    for tensor in tensors:
        model.graph.output.append(helper.make_tensor_value_info(tensor, TensorProto.FLOAT, None))
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (fed,) = inputs
    values: dict[str, list[np.ndarray]] = {tensor: [] for tensor in tensors}
    for window in windows:
        for tensor, value in zip(tensors, session.run(tensors, {fed: window}), strict=True):
            values[tensor].append(value.ravel())
    seen = {}
    for tensor in tensors:
        low, high = np.percentile(np.concatenate(values.pop(tensor)), [100 - percentile, percentile])
        seen[tensor] = Range(float(low), float(high))
    return {place: seen[tensor] for place, tensor in places.items() if tensor in seen}
