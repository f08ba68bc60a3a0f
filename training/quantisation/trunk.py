"""The embedder's trunk in 8 bits, frames as rows: feats [B, T, 80] -> frames [B, ceil(ceil(T / 2) / 2), 512]."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch
from onnx import TensorProto, helper

from embedder.model import BANDS, FRAME_CHANNELS, FRONT_CHANNELS, SEGMENT_FRAMES, DenseLayer, Embedder, Residual

from .graph import Eight, Graph, Range, taps

VALUES_A_WINDOW = 20_000


def measure(model: Embedder, windows: Iterable[np.ndarray], percentile: float) -> dict[str, Range]:
    """Ranges of the inputs of every convolution and product of a folded trunk, by the module's name.

    Rounded inputs are outputs of a ReLU: the ranges begin at 0.
    """
    kept: dict[str, list[np.ndarray]] = {}
    draw = np.random.default_rng(0)

    def keep(name: str):
        def hook(_module, inputs) -> None:
            values = inputs[0].detach().numpy().ravel()
            kept.setdefault(name, []).append(values[draw.integers(0, len(values), VALUES_A_WINDOW)])
            kept[name].append(values.max(keepdims=True))

        return hook

    kinds = (torch.nn.Conv2d, torch.nn.Linear)
    places = [(name, module) for name, module in model.trunk.named_modules() if isinstance(module, kinds)]
    hooks = [module.register_forward_pre_hook(keep(name)) for name, module in places]
    with torch.inference_mode():
        for window in windows:
            model.trunk(torch.from_numpy(window))
    for hook in hooks:
        hook.remove()
    return {name: Range(0.0, float(np.percentile(np.concatenate(values), percentile))) for name, values in kept.items()}


class Trunk:
    """Writes the graph of a `folded` trunk with known ranges."""

    def __init__(self, model: Embedder, seen: dict[str, Range]) -> None:
        self.model, self.seen, self.graph = model.trunk, seen, Graph()

    def into(self, place: str, tensor: str) -> Eight:
        """A tensor rounded to a module's input range; the rounding performs the ReLU."""
        return self.graph.quantise(tensor, self.seen[place])

    def floats(self, parameter: torch.Tensor) -> str:
        return self.graph.constant(parameter.detach().numpy())

    def linear(self, tensor: Eight, module: torch.nn.Linear) -> str:
        bias = np.zeros(module.out_features, np.float32) if module.bias is None else module.bias.detach().numpy()
        return self.graph.product(tensor, module.weight.detach().numpy().T, bias)

    def picture(self, tensor: Eight, module: torch.nn.Conv2d) -> str:
        """A convolution over bands and frames, of concatenated bands: [B, T, F, 3 C] -> [B, T, F, C]."""
        kernel, bias = module.weight.detach().numpy(), module.bias.detach().numpy()
        matrix = kernel.transpose(3, 2, 1, 0).reshape(-1, kernel.shape[0])
        return self.graph.product(taps(self.graph, tensor, 4, 3), matrix, bias)

    def residual(self, place: str, block: Residual, tensor: str, bands: int) -> str:
        """[B, T, F, C] before its ReLU -> [B, T, F / stride, C] before its ReLU."""
        graph, x = self.graph, self.into(f"{place}.conv1", tensor)
        if block.conv1.stride[0] == 1:
            y, rest = self.picture(every_band(graph, x), block.conv1), graph.dequantise(x)
        else:
            y = self.picture(every_second_band(graph, x, bands), block.conv1)
            weight = block.shortcut.weight.detach().numpy()[:, :, 0, 0].T
            rest = graph.product(graph.cut(x, 2, 0, 0, step=2), weight, block.shortcut.bias.detach().numpy())
        y = self.picture(every_band(graph, self.into(f"{place}.conv2", y)), block.conv2)
        return graph.op("Add", [y, rest])

    def front_end(self) -> Eight:
        """feats [B, T, 80] -> [B, ceil(T / 2), 320]: in every frame ten bands of 32 channels."""
        graph, front = self.graph, self.model.front
        # A product of nine numbers gains nothing from 8 bits: it stays in floating point.
        picture = graph.op("Unsqueeze", ["feats", graph.constant(np.array([1], np.int64))])
        kernel = graph.constant(front.conv1.weight.detach().numpy().transpose(0, 1, 3, 2).copy())
        x = graph.op("Conv", [picture, kernel, self.floats(front.conv1.bias)], strides=[2, 1], pads=[1, 1, 1, 1])
        first = graph.transpose(self.into("front.blocks.0.conv1", x), [0, 2, 3, 1])
        x, bands = graph.dequantise(first), BANDS
        for number, block in enumerate(front.blocks):
            x = self.residual(f"front.blocks.{number}", block, x, bands)
            bands //= block.conv1.stride[0]
        x = self.picture(every_second_band(graph, self.into("front.conv2", x), bands), front.conv2)
        return graph.reshape(self.into("stem", x), [0, 0, FRONT_CHANNELS * BANDS // 8])

    def stem(self, x: Eight) -> str:
        weight = self.model.stem.weight.detach().numpy()
        # The network is channel-major, this graph band-major.
        by_band = weight.reshape(len(weight), 5, FRONT_CHANNELS, -1).transpose(1, 3, 2, 0).reshape(-1, len(weight))
        padded = self.graph.pad(x, [0, 2, 0], [0, 2, 0])
        shifted = [self.graph.cut(padded, 1, tap, 4 - tap, step=2) for tap in range(5)]
        return self.graph.product(self.graph.beside(shifted), by_band, self.model.stem.bias.detach().numpy())

    def averaging(self, frames: str) -> None:
        """Sets `averages` and `segment_of`, the two results of `embedder.model.averaging`."""
        graph = self.graph
        whole = lambda value: graph.constant(np.array(value, np.int64))  # noqa: E731
        count = graph.op("Gather", [graph.op("Shape", [frames]), whole(1)])
        self.segment_of = graph.op("Div", [graph.op("Range", [whole(0), count, whole(1)]), whole(SEGMENT_FRAMES)])
        last = graph.op("Div", [graph.op("Sub", [count, whole(1)]), whole(SEGMENT_FRAMES)])
        segments = graph.op("Range", [whole(0), graph.op("Add", [last, whole(1)]), whole(1)])
        column = graph.op("Unsqueeze", [segments, whole([1])])
        one = graph.op("Cast", [graph.op("Equal", [column, self.segment_of])], to=TensorProto.FLOAT)
        share = graph.op("Div", [one, graph.op("ReduceSum", [one, whole([1])], keepdims=1)])
        total = graph.op("Cast", [count], to=TensorProto.FLOAT)
        self.averages = graph.op("Add", [share, graph.op("Reciprocal", [total])])

    def context(self, layer: DenseLayer, relu: str) -> str:
        """[B, T, GROWTH] gates."""
        graph = self.graph
        x = graph.op("MatMul", [self.averages, relu])
        for module, activation in ((layer.context1, "Relu"), (layer.context2, "Sigmoid")):
            x = graph.op("MatMul", [x, self.floats(module.weight.T.contiguous())])
            x = graph.op("Add", [x, self.floats(module.bias)])
            x = graph.op(activation, [x])
        return graph.op("Gather", [x, self.segment_of], axis=1)

    def affine(self, norm: torch.nn.Module, x: str) -> str:
        return self.graph.op("Add", [self.graph.op("Mul", [x, self.floats(norm.gain)]), self.floats(norm.offset)])

    def dense(self, place: str, layer: DenseLayer, x: str) -> str:
        graph = self.graph
        narrow = self.linear(self.into(f"{place}.linear1", self.affine(layer.norm, x)), layer.linear1)
        local = taps(graph, self.into(f"{place}.local", narrow), 3, 3)
        gate = self.context(layer, graph.op("Relu", [narrow]))
        grown = graph.op("Mul", [self.linear(local, layer.local), gate])
        return graph.op("Concat", [x, grown], axis=-1)

    def build(self) -> Graph:
        x = self.graph.op("Relu", [self.stem(self.front_end())])
        self.averaging(x)
        trunk = self.model
        for number, block in enumerate(trunk.blocks):
            for index, layer in enumerate(block):
                x = self.dense(f"blocks.{number}.{index}", layer, x)
            normalised = self.affine(trunk.transit_norms[number], x)
            x = self.linear(self.into(f"transits.{number}", normalised), trunk.transits[number])
        self.graph.op("Relu", [x], output="frames")
        return self.graph


def every_band(graph: Graph, x: Eight) -> Eight:
    """[B, T, F, C] -> [B, T, F, 3 C]: each band with its neighbours."""
    padded = graph.pad(x, [0, 0, 1, 0], [0, 0, 1, 0])
    return graph.beside([graph.cut(padded, 2, band, 2 - band) for band in range(3)])


def every_second_band(graph: Graph, x: Eight, bands: int) -> Eight:
    """[B, T, F, C] -> [B, T, F / 2, 3 C]: bands 2 f - 1, 2 f and 2 f + 1.

    Bands are copied in pairs: long runs of memory are copied faster.
    """
    pairs = graph.reshape(graph.pad(x, [0, 0, 1, 0], [0, 0, 1, 0]), [0, 0, bands // 2 + 1, -1])
    above = graph.cut(graph.cut(pairs, 2, 1, 0), 3, 0, FRONT_CHANNELS)
    return graph.beside([graph.cut(pairs, 2, 0, 1), above])


def build(model: Embedder, target: Path, seen: dict[str, Range], properties: dict[str, str]) -> None:
    """@param seen: from `measure`"""
    Trunk(model, seen).build().save(
        target,
        [helper.make_tensor_value_info("feats", TensorProto.FLOAT, ["B", "T", BANDS])],
        [helper.make_tensor_value_info("frames", TensorProto.FLOAT, ["B", "F", FRAME_CHANNELS])],
        properties,
    )
