"""The segmentation network in 8 bits, frames as rows: powers [N, T, 64] -> log-probabilities [N, 2 (T // 4), 7].

Layer norms, attention's products and the GRUs stay in floating point, as do the log features.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from segmentation.frontend import BANDS, FEATURE_SCALE, POWER_FLOOR
from segmentation.model import GRU_UNITS, HEADS, SKIP, TAPS, WIDTH

from .graph import Eight, Graph, Range, taps

LAYER_NORM_FLOOR = 1e-5
HEAD = WIDTH // HEADS


class Network:
    """Reads the floating-point graph and writes the 8-bit one."""

    def __init__(self, source: Path, seen: dict[str, Range]) -> None:
        self.model = onnx.load(source)
        self.stored = {one.name: numpy_helper.to_array(one) for one in self.model.graph.initializer}
        self.by_name = {node.name: node for node in self.model.graph.node}
        self.seen, self.graph = seen, Graph()

    def blocks(self) -> int:
        return 1 + max(int(name.split(".")[2]) for name in self.stored if name.startswith("network.blocks."))

    def bias(self, place: str) -> np.ndarray:
        return self.stored[f"network.{place}.bias"]

    def kernel(self, place: str) -> np.ndarray:
        """[out, in, taps]"""
        return self.stored[f"network.{place}.weight"]

    def matrix(self, place: str) -> np.ndarray:
        """[in, out]"""
        return self.stored[self.by_name[node_of(place, "MatMul")].input[1]]

    def into(self, place: str, tensor: str, kind: str = "MatMul") -> Eight:
        """A tensor rounded to a layer's input range."""
        return self.graph.quantise(tensor, self.seen[node_of(place, kind)])

    def linear(self, place: str, tensor: str) -> str:
        return self.graph.product(self.into(place, tensor), self.matrix(place), self.bias(place))

    def linear_of_norm(self, place: str, norm: str, tensor: str, factor: np.ndarray | float = 1.0) -> str:
        """A layer norm and the following product, whose weights include the norm's gain and offset.

        factor: scales the columns
        """
        gain, offset = self.affine(norm)
        matrix = self.matrix(place)
        bias = offset @ matrix + self.bias(place)
        rounded = self.graph.quantise(self.normalised(tensor), self.seen[normalised_in(norm)])
        return self.graph.product(rounded, gain[:, None] * matrix * factor, bias * factor)

    def convolution(self, place: str, frames: Eight) -> str:
        """Over the concatenated frames of `taps`."""
        kernel = self.kernel(place)
        return self.graph.product(frames, kernel.transpose(2, 1, 0).reshape(-1, kernel.shape[0]), self.bias(place))

    def affine(self, norm: str) -> tuple[np.ndarray, np.ndarray]:
        return self.stored[f"network.{norm}.weight"], self.stored[f"network.{norm}.bias"]

    def normalised(self, x: str) -> str:
        """Mean 0 and variance 1 in every frame.

        Single operations are vectorised in WebAssembly; the runtime's layer norm is not, and takes twice as long.
        """
        graph = self.graph
        centred = graph.op("Sub", [x, graph.op("ReduceMean", [x], axes=[-1], keepdims=1)])
        variance = graph.op("ReduceMean", [graph.op("Mul", [centred, centred])], axes=[-1], keepdims=1)
        deviation = graph.op("Sqrt", [graph.op("Add", [variance, graph.constant(np.float32(LAYER_NORM_FLOOR))])])
        return graph.op("Mul", [centred, graph.op("Reciprocal", [deviation])])

    def features(self) -> str:
        """Equals `segmentation.model.features_of`, frames first."""
        graph = self.graph
        mean = graph.op("ReduceMean", ["powers"], axes=[1, 2], keepdims=1)
        floor = graph.constant(np.float32(POWER_FLOOR))
        relative = graph.op("Div", ["powers", graph.op("Add", [mean, floor])])
        logs = graph.op("Log", [graph.op("Add", [relative, floor])])
        centred = graph.op("Sub", [logs, graph.op("ReduceMean", [logs], axes=[1], keepdims=1)])
        return graph.op("Mul", [centred, graph.constant(np.float32(FEATURE_SCALE))])

    def attention_block(self, place: str, x: str) -> str:
        graph = self.graph
        x = graph.op("Add", [x, self.linear(f"{place}.pointwise", self.depthwise(place, x))])
        x = graph.op("Add", [x, self.attention(place, x)])
        # Rounding to a range that begins at zero is the ReLU.
        wide = self.linear_of_norm(f"{place}.widen", f"{place}.norm_forward", x)
        return graph.op("Add", [x, self.linear(f"{place}.narrow", wide)])

    def depthwise(self, place: str, x: str) -> str:
        """A layer norm and a depthwise convolution, which is as fast in floating point as in 8 bits."""
        graph = self.graph
        gain, offset = (graph.constant(one) for one in self.affine(f"{place}.norm_conv"))
        normed = graph.op("Add", [graph.op("Mul", [self.normalised(x), gain]), offset])
        weights = [graph.constant(one) for one in (self.kernel(f"{place}.depthwise"), self.bias(f"{place}.depthwise"))]
        channels = graph.op("Transpose", [normed], perm=[0, 2, 1])
        return graph.op(
            "Transpose", [graph.op("Conv", [channels, *weights], group=WIDTH, pads=[TAPS // 2] * 2)], perm=[0, 2, 1]
        )

    def attention(self, block: str, x: str) -> str:
        graph = self.graph
        factor = np.ones(3 * WIDTH, np.float32)
        factor[:WIDTH] = HEAD**-0.5
        together = self.linear_of_norm(f"{block}.attention.qkv", f"{block}.norm_attention", x, factor)
        heads = []
        for part, order in enumerate(([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])):
            limits = [graph.constant(np.array([one], np.int64)) for one in (part * WIDTH, (part + 1) * WIDTH, 2)]
            cut = graph.op("Slice", [together, *limits])
            heads.append(
                graph.op(
                    "Transpose",
                    [graph.op("Reshape", [cut, graph.constant(np.array([0, 0, HEADS, HEAD], np.int64))])],
                    perm=order,
                )
            )
        weights = graph.op("Softmax", [graph.op("MatMul", heads[:2])], axis=-1)
        mixed = graph.op("Transpose", [graph.op("MatMul", [weights, heads[2]])], perm=[0, 2, 1, 3])
        return self.linear(
            f"{block}.attention.out", graph.op("Reshape", [mixed, graph.constant(np.array([0, 0, WIDTH], np.int64))])
        )

    def gru_block(self, place: str, x: str) -> str:
        graph = self.graph
        gain, offset = self.affine(f"{place}.norm")
        # [directions, 3 units, in], [directions, 3 units, units], [directions, 6 units]
        into, back, bias = (
            self.stored[name].copy() for name in self.by_name[node_of(f"{place}.gru", "GRU")].input[1:4]
        )
        bias[:, : 3 * GRU_UNITS] += into @ offset
        weights = [graph.constant(one) for one in (into * gain, back, bias)]
        frames = graph.op("Transpose", [self.normalised(x)], perm=[1, 0, 2])
        y = graph.op("GRU", [frames, *weights], direction="bidirectional", hidden_size=GRU_UNITS, linear_before_reset=1)
        rows = graph.op(
            "Reshape",
            [graph.op("Transpose", [y], perm=[2, 0, 1, 3]), graph.constant(np.array([0, 0, WIDTH], np.int64))],
        )
        return graph.op("Add", [x, rows])

    def build(self) -> Graph:
        graph = self.graph
        first = self.convolution("conv1", strided(graph, self.into("conv1", self.features(), "Conv")))
        fine = self.into("conv2", first, "Conv")
        second = graph.op("Relu", [self.convolution("conv2", taps(graph, fine, 3, 3))])
        fine = self.into("down", graph.op("Add", [graph.dequantise(fine), second]), "Conv")
        pairs = graph.beside([graph.cut(fine, 1, 0, 1, 2), graph.cut(fine, 1, 1, 0, 2)])
        x = self.convolution("down", pairs)
        for number in range(self.blocks()):
            x = (self.gru_block if number % 2 else self.attention_block)(f"blocks.{number}", x)
        up = graph.op(
            "Reshape", [self.linear_of_norm("up", "norm", x), graph.constant(np.array([0, -1, SKIP], np.int64))]
        )
        # An odd number of frames leaves one without a pair.
        frames = graph.op(
            "Slice", [graph.op("Shape", [up]), *(graph.constant(np.array([one], np.int64)) for one in (1, 2))]
        )
        skip = graph.op(
            "Slice",
            [
                self.convolution("skip", fine),
                graph.constant(np.array([0], np.int64)),
                frames,
                graph.constant(np.array([1], np.int64)),
            ],
        )
        wide = self.into("conv3", graph.op("Add", [up, skip]), "Conv")
        wide = self.convolution("conv3", taps(graph, wide, 3, 3))
        graph.op("LogSoftmax", [self.linear("out", wide)], output="y", axis=-1)
        return graph


def strided(graph: Graph, x: Eight) -> Eight:
    """The six frames, padded by two, that `conv1` reads at every second one."""
    padded = graph.pad(x, [0, 2, 0], [0, 2, 0])
    return graph.beside([graph.cut(padded, 1, tap, 5 - tap, 2) for tap in range(6)])


def node_of(place: str, kind: str) -> str:
    """Name of a layer's node: `blocks.0.attention.qkv` is `/network/blocks.0/attention/qkv/MatMul`."""
    return "/".join(["/network", *place.replace("blocks.", "blocks#").split("."), kind]).replace("#", ".")


def normalised_in(norm: str) -> str:
    """Name of a layer norm's result before gain and offset."""
    return "/".join(["/network", *norm.replace("blocks.", "blocks#").split("."), "Div_output_0"]).replace("#", ".")


def build(source: Path, target: Path, seen: dict[str, Range]) -> None:
    """@param seen: from `ranges.measure`"""
    network = Network(source, seen)
    network.build().save(
        target,
        [helper.make_tensor_value_info("powers", TensorProto.FLOAT, ["N", "T", BANDS])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", "F", 7])],
        {one.key: one.value for one in network.model.metadata_props},
    )
