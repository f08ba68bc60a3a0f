"""Gives the channels of a trunk's outputs equal ranges before it is quantised.

One scale for all 512 channels of an activation leaves little of the quiet ones. Every channel of ``frames`` and of ``logits`` is divided by its
own range inside the network and multiplied by it behind, in floating point; convolutions that read the frames inside take the factor into
their weights (Nagel et al., "Data-Free Quantization Through Weight Equalization and Bias Correction", ICCV 2019). What the network computes in floating point stays the same.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper, numpy_helper

PERCENTILE = 99.99


def ranges(values: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Activations [1, T, C] of several windows -> the middle and half the width of what each channel does, [C] each."""
    rows = np.concatenate([one[0] for one in values])
    low, high = np.percentile(rows, [100 - PERCENTILE, PERCENTILE], axis=0)
    return ((high + low) / 2).astype(np.float32), np.maximum((high - low) / 2, 1e-3).astype(np.float32)


def equalise(model: onnx.ModelProto, frames: list[np.ndarray], logits: list[np.ndarray]) -> None:
    """Changes a trunk in place; its outputs over calibration windows are given."""
    makers = {output: node for node in model.graph.node for output in node.output}
    centre, width = ranges(logits)
    source = convolution_behind(makers, "logits")
    scale_rows(model, source, width, centre)
    append(model, "logits", width, centre)
    _, width = ranges(frames)
    source = convolution_behind(makers, "frames")
    scale_rows(model, source, width, np.zeros_like(width))
    for reader in readers(model, source.output[0]):
        scale_columns(model, reader, width)
    append(model, "frames", width, None)


def convolution_behind(makers: dict[str, onnx.NodeProto], name: str) -> onnx.NodeProto:
    """The convolution whose channels an output has; between them are only functions that keep the channels apart and a factor."""
    node = makers[name]
    while node.op_type != "Conv":
        if node.op_type not in ("Transpose", "Squeeze", "Relu"):
            raise ValueError(f"{node.op_type} before {name}")
        node = makers[node.input[0]]
    return node


def readers(model: onnx.ModelProto, name: str) -> list[onnx.NodeProto]:
    """Convolutions that read an activation, directly or through ReLU."""
    found = []
    for node in model.graph.node:
        if name not in node.input:
            continue
        if node.op_type == "Conv":
            found.append(node)
        elif node.op_type == "Relu":
            found += readers(model, node.output[0])
    return found


def weight(model: onnx.ModelProto, name: str) -> onnx.TensorProto:
    return next(one for one in model.graph.initializer if one.name == name)


def scale_rows(model: onnx.ModelProto, node: onnx.NodeProto, width: np.ndarray, centre: np.ndarray) -> None:
    """Output channel c becomes (what it was - centre[c]) / width[c]."""
    kernel, bias = (weight(model, name) for name in node.input[1:3])
    kernel.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(kernel) / width[:, None, None, None], kernel.name))
    bias.CopyFrom(numpy_helper.from_array((numpy_helper.to_array(bias) - centre) / width, bias.name))


def scale_columns(model: onnx.ModelProto, node: onnx.NodeProto, width: np.ndarray) -> None:
    """Takes input channel c for 1 / width[c] of what it was."""
    kernel = weight(model, node.input[1])
    kernel.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(kernel) * width[None, :, None, None], kernel.name))


def append(model: onnx.ModelProto, name: str, width: np.ndarray, centre: np.ndarray | None) -> None:
    """Undoes `scale_rows` in an output [B, T, C]."""
    graph = model.graph
    maker = next(node for node in graph.node if name in node.output)
    inner = f"{name}_in_range"
    maker.output[list(maker.output).index(name)] = inner
    graph.initializer.append(numpy_helper.from_array(width, f"{name}_width"))
    if centre is None:
        graph.node.append(helper.make_node("Mul", [inner, f"{name}_width"], [name], name=f"{name}_scaled"))
        return
    graph.initializer.append(numpy_helper.from_array(centre, f"{name}_centre"))
    graph.node.append(helper.make_node("Mul", [inner, f"{name}_width"], [f"{name}_spread"], name=f"{name}_scaled"))
    graph.node.append(helper.make_node("Add", [f"{name}_spread", f"{name}_centre"], [name], name=f"{name}_moved"))
