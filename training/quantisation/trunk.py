"""The embedder's trunk in 8 bits, frames as rows: feats [B, T, 80] -> frames, logits [B, ceil(T / 2), 512]."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from embedder.model import BANDS, FRAME_CHANNELS

from .graph import Eight, Graph, Range, taps

FRONT_CHANNELS = 16
CONSTANTS = "trunk."


class Trunk:
    """Reads the floating-point graph and writes the other."""

    def __init__(self, source: Path, seen: dict[str, Range]) -> None:
        self.model = onnx.load(source)
        self.stored = {one.name.removeprefix(CONSTANTS): numpy_helper.to_array(one) for one in self.model.graph.initializer}
        self.convolutions = {node.name: node for node in self.model.graph.node if node.op_type == "Conv"}
        self.seen, self.graph = seen, Graph()

    def weights(self, place: str) -> tuple[np.ndarray, np.ndarray]:
        """[out, in of the group, bands, frames] and [out]"""
        return self.stored[f"{place}.weight"], self.stored[f"{place}.bias"]

    def into(self, place: str, tensor: str) -> Eight:
        """A tensor rounded to the range that goes into a convolution. All come from a ReLU, which rounding to a range that begins at zero is."""
        return self.graph.quantise(tensor, self.seen[node_of(place)].positive())

    def pointwise(self, place: str, tensor: Eight, output: str = "") -> str:
        kernel, bias = self.weights(place)
        return self.graph.product(tensor, kernel[:, :, 0, 0].T, bias, output)

    def picture(self, place: str, tensor: Eight) -> str:
        """A convolution over bands and frames, of bands that lie side by side: [B, T, F, 3 C] -> [B, T, F, C]."""
        kernel, bias = self.weights(place)
        matrix = kernel.transpose(3, 2, 1, 0).reshape(-1, kernel.shape[0])
        return self.graph.product(taps(self.graph, tensor, 4, 3), matrix, bias)

    def plus(self, tensor: Eight, change: str) -> str:
        return self.graph.op("Add", [change, self.graph.dequantise(tensor)])

    def front_end(self) -> Eight:
        """feats [B, T, 80] -> [B, ceil(T / 2), 160]: in every frame ten bands of 16 channels."""
        graph = self.graph
        kernel, bias = self.weights("front.conv1")
        # A product of nine numbers is no work for 8 bits: this one stays in floating point.
        picture = graph.op("Unsqueeze", ["feats", graph.constant(np.array([1], np.int64))])
        weights = [graph.constant(one) for one in (kernel.transpose(0, 1, 3, 2).copy(), bias)]
        x = graph.transpose(self.into("front.conv2", graph.op("Conv", [picture, *weights], strides=[2, 2], pads=[1, 1, 1, 1])), [0, 2, 3, 1])
        x = self.into("front.conv3", self.picture("front.conv2", every_second_band(graph, x, BANDS // 2)))
        x = self.into("front.conv4", self.plus(x, self.picture("front.conv3", every_band(graph, x))))
        x = self.into("stem", self.picture("front.conv4", every_second_band(graph, x, BANDS // 4)))
        return graph.reshape(x, [0, 0, FRONT_CHANNELS * BANDS // 8])

    def stem(self, x: Eight) -> str:
        kernel, bias = self.weights("stem")
        # The exporter counts channel by channel what is here band by band.
        by_band = kernel[:, :, 0].reshape(len(bias), FRONT_CHANNELS, -1, 3).transpose(3, 2, 1, 0)
        return self.graph.product(taps(self.graph, x, 3, 3), by_band.reshape(-1, len(bias)), bias)

    def grouped(self, place: str, x: Eight) -> str:
        """A grouped, dilated convolution over time as one product a group: [B, T, C] -> [B, groups, T, C of the group]."""
        kernel, bias = self.weights(place)
        node = self.convolutions[node_of(place)]
        options = {one.name: helper.get_attribute_value(one) for one in node.attribute}
        groups, width, dilation = options["group"], kernel.shape[1], options["dilations"][1]
        reach = [0, dilation, 0]
        padded = self.graph.pad(x, reach, reach)
        shifted = [self.graph.cut(padded, 1, tap * dilation, (2 - tap) * dilation) for tap in range(3)]
        beside = self.graph.beside([self.graph.reshape(one, [0, 0, groups, width]) for one in shifted])
        # [out, in, tap] -> [group, tap and in, out of the group]
        matrices = kernel[:, :, 0].reshape(groups, -1, width, 3).transpose(0, 3, 2, 1).reshape(groups, 3 * width, -1)
        return self.graph.product(self.graph.transpose(beside, [0, 2, 1, 3]), matrices, bias.reshape(groups, 1, -1))

    def block(self, place: str, x: Eight) -> str:
        y = self.into(f"{place}.conv2", self.pointwise(f"{place}.conv1", x))
        y = self.graph.transpose(self.into(f"{place}.conv3", self.grouped(f"{place}.conv2", y)), [0, 2, 1, 3])
        channels = len(self.weights(f"{place}.conv2")[1])
        return self.plus(x, self.pointwise(f"{place}.conv3", self.graph.reshape(y, [0, 0, channels])))

    def build(self) -> Graph:
        x = self.stem(self.front_end())
        blocks = sum(name.endswith("conv2/Conv") and "blocks" in name for name in self.convolutions)
        for number in range(blocks):
            x = self.block(f"blocks.{number}", self.into(f"blocks.{number}.conv1", x))
        frames = self.pointwise("expand", self.into("expand", x))
        self.graph.op("Relu", [frames], output="frames")
        hidden = self.graph.op("Tanh", [self.pointwise("attention1", self.into("attention1", frames))])
        self.pointwise("attention2", self.graph.quantise(hidden, Range(-1.0, 1.0)), output="logits")
        return self.graph


def node_of(place: str) -> str:
    """Name of a convolution's node: `blocks.0.conv1` is `/trunk/blocks.0/conv1/Conv`."""
    return "/".join(["/trunk", *place.replace("blocks.", "blocks#").split("."), "Conv"]).replace("#", ".")


def every_band(graph: Graph, x: Eight) -> Eight:
    """[B, T, F, C] -> [B, T, F, 3 C]: with the bands below and above."""
    padded = graph.pad(x, [0, 0, 1, 0], [0, 0, 1, 0])
    return graph.beside([graph.cut(padded, 2, band, 2 - band) for band in range(3)])


def every_second_band(graph: Graph, x: Eight, bands: int) -> Eight:
    """[B, T, F, C] -> [B, T, F / 2, 3 C]: bands 2 f - 1, 2 f and 2 f + 1, taken as pairs because longer pieces are copied faster."""
    pairs = graph.reshape(graph.pad(x, [0, 0, 1, 0], [0, 0, 1, 0]), [0, 0, bands // 2 + 1, -1])
    above = graph.cut(graph.cut(pairs, 2, 1, 0), 3, 0, FRONT_CHANNELS)
    return graph.beside([graph.cut(pairs, 2, 0, 1), above])


def build(source: Path, target: Path, seen: dict[str, Range]) -> None:
    """@param seen: from `ranges.measure`"""
    trunk = Trunk(source, seen)
    trunk.build().save(
        target,
        [helper.make_tensor_value_info("feats", TensorProto.FLOAT, ["B", "T", BANDS])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["B", "F", FRAME_CHANNELS]) for name in ("frames", "logits")],
        {one.key: one.value for one in trunk.model.metadata_props},
    )
