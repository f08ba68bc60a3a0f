"""A small builder of ONNX graphs whose matrix products run on 8 bits.

A product is ``MatMulIntegerToFloat`` (ONNX Runtime's contrib operators): unsigned activations times signed weights,
summed in 32 bits and scaled to floating point in one vectorised pass. ``QLinearConv`` and ``QLinearMatMul`` round to 8
bits in the same step, number by number in WebAssembly, which takes as long as the product. Convolutions over time are
products over concatenated frames.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

CONTRIB = "com.microsoft"
OPSET = 17
LARGEST_WEIGHT = 127
LARGEST_ACTIVATION = 255
END = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Range:
    """Range of an activation; values outside are clipped."""

    low: float
    high: float

    @property
    def scale(self) -> np.float32:
        return np.float32(max(self.high, 0) - min(self.low, 0)) / np.float32(LARGEST_ACTIVATION)

    @property
    def zero_point(self) -> np.uint8:
        return np.uint8(np.clip(np.rint(-min(self.low, 0) / self.scale), 0, LARGEST_ACTIVATION))


@dataclass(frozen=True)
class Eight:
    """A tensor in 8 bits and its range."""

    name: str
    scale: str
    zero_point: str


class Graph:
    """Collects nodes and constants; every method returns the name of its result."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}

    def constant(self, value: np.ndarray | float) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants[name] = np.asarray(value)
        return name

    def op(self, kind: str, inputs: list[str], domain: str = "", output: str = "", **attributes) -> str:
        output = output or f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [output], name=f"{output}_node", domain=domain, **attributes))
        return output

    def quantise(self, tensor: str, seen: Range) -> Eight:
        scale, zero_point = self.constant(seen.scale), self.constant(seen.zero_point)
        return Eight(self.op("QuantizeLinear", [tensor, scale, zero_point]), scale, zero_point)

    def dequantise(self, tensor: Eight) -> str:
        return self.op("DequantizeLinear", [tensor.name, tensor.scale, tensor.zero_point])

    def product(self, tensor: Eight, weight: np.ndarray, bias: np.ndarray) -> str:
        """[..., K] times `weight` [K, N], plus `bias` [N] -> floating point."""
        largest = np.maximum(np.abs(weight).max(-2, keepdims=True), 1e-12).astype(np.float32) / LARGEST_WEIGHT
        rounded = np.clip(np.rint(weight / largest), -LARGEST_WEIGHT, LARGEST_WEIGHT).astype(np.int8)
        scales = largest[0]
        inputs = [
            tensor.name,
            self.constant(rounded),
            tensor.scale,
            self.constant(scales),
            tensor.zero_point,
            self.constant(np.zeros(scales.shape, np.int8)),
        ]
        offset = self.constant(bias.astype(np.float32))
        return self.op("MatMulIntegerToFloat", [*inputs, offset], CONTRIB)

    def pad(self, tensor: Eight, before: list[int], after: list[int]) -> Eight:
        """Pads with the value zero, the zero point."""
        amounts = self.constant(np.array([*before, *after], np.int64))
        return Eight(self.op("Pad", [tensor.name, amounts, tensor.zero_point]), tensor.scale, tensor.zero_point)

    def cut(self, tensor: Eight, axis: int, start: int, missing: int, step: int = 1) -> Eight:
        """Without the first `start` and the last `missing` along an axis."""
        limits = [self.constant(np.array([one], np.int64)) for one in (start, -missing if missing else END, axis, step)]
        return Eight(self.op("Slice", [tensor.name, *limits]), tensor.scale, tensor.zero_point)

    def beside(self, tensors: list[Eight]) -> Eight:
        return Eight(self.op("Concat", [one.name for one in tensors], axis=-1), tensors[0].scale, tensors[0].zero_point)

    def save(
        self,
        path: Path,
        inputs: list[onnx.ValueInfoProto],
        outputs: list[onnx.ValueInfoProto],
        properties: dict[str, str],
    ) -> None:
        weights = [numpy_helper.from_array(value, name) for name, value in self.constants.items()]
        graph = helper.make_graph(self.nodes, "eight_bits", inputs, outputs, weights)
        imports = [helper.make_opsetid("", OPSET), helper.make_opsetid(CONTRIB, 1)]
        model = helper.make_model(graph, opset_imports=imports, ir_version=8)
        helper.set_model_props(model, properties)
        onnx.checker.check_model(model)
        onnx.save(model, path)


def taps(graph: Graph, tensor: Eight, axes: int, width: int) -> Eight:
    """Concatenated frames of a convolution over time, earliest first; time is axis 1 of `axes`, ends padded with
    zeros."""
    edge = [0] * axes
    edge[1] = width // 2
    padded = graph.pad(tensor, edge, edge)
    return graph.beside([graph.cut(padded, 1, tap, width - 1 - tap) for tap in range(width)])
