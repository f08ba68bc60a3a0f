"""Packs segmentation-v8 for `wasm/networks/segmentation_v8.c`: 16-bit weights.

    python -m kernels.segmentation_v8 --model ../models/segmentation-v8.onnx --out ../models/segmentation-v8.weights

The sections have the order in which the kernel takes them. No ranges on recordings are needed: layer normalisation and
the GRU bound all activations except those of the convolutions, whose unit the kernel finds for each window.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from .initializers import read_initializers, read_layers
from .layout import SEGMENTATION_V8, floats, norm_row_steps, rounded, row_steps, tiles, write_weights

WIDTH, HEADS, UNITS, GATES, GROUP_UNITS = 128, 4, 64, 3, 4
RECURRENT_ROWS = 24
PADDED_CLASSES = 8
LARGEST, BALANCED_LIMIT = 32767, 8191
NORM_UNIT = 11.27 / LARGEST
"""Unit of normalised values: of 128 none is above the square root of 127."""
NORM = np.sqrt(WIDTH) * 1.001
"""Their norm, with some room for their rounding."""
HIDDEN_UNIT = 1 / LARGEST
VALUE_LIMIT, MIXED_LIMIT = 16383, 16500
"""Largest integers of attention's values and of their mean, whose weights may add up to slightly more than 1."""


def packed(rows: np.ndarray, steps: np.ndarray, scale: np.ndarray, offset: np.ndarray) -> list[bytes]:
    """The sections of a linear layer."""
    return [tiles(rounded(rows, steps), 8), floats(steps * scale), floats(offset)]


def linear(rows: np.ndarray, bias: np.ndarray, limit: int, *, signed: bool = False) -> list[bytes]:
    """A layer [outputs, inputs] on integers up to a limit."""
    return packed(rows, row_steps(rows, limit, signed=signed), np.ones(len(rows)), bias)


class AfterNorm:
    """A linear layer [inputs, outputs] with the gain and bias of the layer normalisation before it."""

    def __init__(self, weights: np.ndarray, bias: np.ndarray, gain: np.ndarray, offset: np.ndarray) -> None:
        self.rows, self.bias = weights.T * gain, bias + weights.T @ offset

    def limits(self) -> np.ndarray:
        """No output is above."""
        return np.linalg.norm(self.rows, axis=1) * NORM + np.abs(self.bias)

    def sections(self, units: np.ndarray | float = 1.0) -> list[bytes]:
        """With outputs in the given units."""
        rows = self.rows * NORM_UNIT
        scale = np.ones(len(rows)) / units
        return packed(rows, norm_row_steps(rows, NORM / NORM_UNIT), scale, self.bias / units)


def convolution(weights: dict[str, np.ndarray], name: str, *, signed: bool = False) -> list[bytes]:
    """Rows [outputs, taps, channels]. After a ReLU inputs are not ``signed``."""
    rows = weights[f"network.{name}.weight"].transpose(0, 2, 1)
    return linear(rows.reshape(len(rows), -1), weights[f"network.{name}.bias"], BALANCED_LIMIT, signed=signed)


def attention_sections(weights: dict[str, np.ndarray], name: str, layers: list[np.ndarray]) -> list[bytes]:
    pointwise, qkv, out, widen, narrow = layers

    def named(part: str) -> np.ndarray:
        return weights[f"network.blocks.{name}.{part}"]

    gain, bias = named("norm_conv.weight"), named("norm_conv.bias")
    taps = named("depthwise.weight")[:, 0].T
    unit = np.abs(taps).sum(0) * (np.abs(gain) * NORM_UNIT * LARGEST + np.abs(bias)) + np.abs(named("depthwise.bias"))
    unit /= LARGEST
    sections = [floats(gain, bias, taps / unit, named("depthwise.bias") / unit)]
    sections += linear(pointwise.T * unit, named("pointwise.bias"), LARGEST)

    layer = AfterNorm(qkv, named("attention.qkv.bias"), named("norm_attention.weight"), named("norm_attention.bias"))
    query, key, value = layer.limits().reshape(3, HEADS, -1)
    # The products of the units of queries and keys must be equal within a head.
    score_unit = (query * key).max(1, keepdims=True) / BALANCED_LIMIT**2
    query_unit, key_unit = np.sqrt(score_unit * query / key), np.sqrt(score_unit * key / query)
    value_unit = value / VALUE_LIMIT
    sections += layer.sections(np.stack([query_unit, key_unit, value_unit]).ravel())
    sections.append(floats(score_unit.ravel() * np.log2(np.e) / np.sqrt(WIDTH / HEADS)))
    sections += linear(out.T * value_unit.ravel(), named("attention.out.bias"), MIXED_LIMIT, signed=True)

    layer = AfterNorm(widen, named("widen.bias"), named("norm_forward.weight"), named("norm_forward.bias"))
    unit = layer.limits() / BALANCED_LIMIT
    return [*sections, *layer.sections(unit), *linear(narrow.T * unit, named("narrow.bias"), BALANCED_LIMIT)]


def gru_sections(weights: dict[str, np.ndarray], name: str, layer: list[np.ndarray]) -> list[bytes]:
    """From ONNX's rows: update, reset and new gates of all units.

    The kernel computes a sigmoid as a tangent of half of its argument.
    """
    projection, recurrent, biases = layer
    order = np.arange(GATES * UNITS).reshape(GATES, UNITS // GROUP_UNITS, GROUP_UNITS).transpose(1, 0, 2).ravel()
    half = np.repeat([0.5, 0.5, 1], UNITS)
    in_bias, recurrent_bias = biases[:, : GATES * UNITS].copy(), biases[:, GATES * UNITS :]
    in_bias[:, : 2 * UNITS] += recurrent_bias[:, : 2 * UNITS]
    rows = (projection * half[:, None])[:, order].reshape(-1, WIDTH)
    gain, bias = (weights[f"network.blocks.{name}.norm.{part}"] for part in ("weight", "bias"))
    sections = AfterNorm(rows.T, (in_bias * half)[:, order].ravel(), gain, bias).sections()
    for direction in range(2):
        rows = recurrent[direction][order] * HIDDEN_UNIT
        steps = row_steps(rows, LARGEST, signed=True)
        sections += [tiles(rounded(rows, steps), RECURRENT_ROWS), floats(steps * half[order])]
        sections.append(floats(recurrent_bias[direction, 2 * UNITS :]))
    return sections


def pack(model: Path) -> list[bytes]:
    weights = read_initializers(model)
    products = [layer[0] for layer in read_layers(model, "MatMul") if layer]
    sections = convolution(weights, "conv1", signed=True) + convolution(weights, "conv2") + convolution(weights, "down")
    for number, layer in enumerate(read_layers(model, "GRU")):
        sections += attention_sections(weights, str(2 * number), products[5 * number : 5 * number + 5])
        sections += gru_sections(weights, str(2 * number + 1), layer)
    up, out = products[-2:]
    bias, gain, offset = (weights[f"network.{name}"] for name in ("up.bias", "norm.weight", "norm.bias"))
    sections += AfterNorm(up, bias, gain, offset).sections()
    sections += convolution(weights, "skip") + convolution(weights, "conv3")
    sections.append(floats(np.pad(out, [(0, 0), (0, 1)]), np.pad(weights["network.out.bias"], (0, 1))))
    return sections


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    write_weights(args.out, SEGMENTATION_V8, pack(args.model))


if __name__ == "__main__":
    main()
