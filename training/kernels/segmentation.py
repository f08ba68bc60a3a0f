"""Packs segmentation-3.0 for `wasm/networks/segmentation.c`: 16-bit weights.

    python -m kernels.segmentation --model ../models/segmentation-3.0.onnx --out ../models/segmentation-3.0.weights

The sections have the order of the structures in `wasm/networks/segmentation.h`. No ranges on recordings are needed:
instance normalisation and the LSTM bound all activations.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from .initializers import read_initializers, read_layers
from .layout import SEGMENTATION, floats, rounded, row_steps, tiles, write_weights

INPUT_LIMIT = 32767
HIDDEN_UNIT = 1 / 32767
FILTERS, FILTER_TAPS, HALF_TAPS = 80, 251, 128
CHANNELS, PADDED_CHANNELS = 60, 64
UNITS, GATES, GROUP_UNITS = 128, 4, 4
RECURRENT_ROWS = 32
PADDED_CLASSES = 8
MAX_POSITIONS = (5325, 1773, 589)
"""Positions over which each instance normalisation is computed, at most."""


def padded(values: np.ndarray, *shape: int) -> np.ndarray:
    """Appends zeros up to a shape."""
    return np.pad(values, [(0, size - old) for size, old in zip(shape, values.shape, strict=True)])


def product(rows: np.ndarray, height: int) -> tuple[bytes, np.ndarray]:
    """Rows [outputs, inputs] in units of their inputs -> tiles, and the scale of each row's sums."""
    steps = row_steps(rows, INPUT_LIMIT, signed=True)
    return tiles(rounded(rows, steps), height), steps


def norm_units(weights: dict[str, np.ndarray], number: int) -> np.ndarray:
    """Units of the channels after an instance normalisation: of n values none is above the square root of n."""
    gain, offset = weights[f"norms.{number}.weight"], weights[f"norms.{number}.bias"]
    return (np.abs(gain) * np.sqrt(MAX_POSITIONS[number]) + np.abs(offset)) / INPUT_LIMIT


def norm_section(weights: dict[str, np.ndarray], number: int, channels: int) -> bytes:
    """Gain and offset in units of the output, padded to a number of channels."""
    units = norm_units(weights, number)
    return floats(*(padded(weights[f"norms.{number}.{part}"] / units, channels) for part in ("weight", "bias")))


def shaped(halves: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Rounds halves of filters such that the error has little power at low frequencies, where speech has most.

    Second-order error feedback from the middle to the end: white errors would let low frequencies pass the filters of
    high bands.
    """
    result, errors = np.zeros(halves.shape), np.zeros((2, len(halves)))
    for tap in range(FILTER_TAPS // 2 + 1):
        wanted = halves[:, tap] / steps - 2 * errors[0] + errors[1]
        result[:, tap] = np.rint(wanted)
        errors = np.stack([result[:, tap] - wanted, errors[0]])
    return result.astype(np.int16)


def filter_sections(weights: dict[str, np.ndarray]) -> list[bytes]:
    """The second halves of the filters: even ones with half of the middle, which folding doubles, then odd ones."""
    filters = weights["filters"][:, 0]
    even, odd = filters[: FILTERS // 2], filters[FILTERS // 2 :]
    if not (np.array_equal(even, even[:, ::-1]) and np.array_equal(odd, -odd[:, ::-1])):
        raise ValueError("the first half of the filters must be even, the second one odd")
    halves = padded(filters[:, FILTER_TAPS // 2 :], FILTERS, HALF_TAPS)
    halves[: FILTERS // 2, 0] /= 2
    steps = row_steps(halves, INPUT_LIMIT, signed=True)
    norm = [weights["waveform_norm.weight"], weights["waveform_norm.bias"], np.zeros(2)]
    rows = tiles(shaped(halves, steps), 8)
    return [floats(*norm), rows, floats(steps, filters.sum(1)), norm_section(weights, 0, FILTERS)]


def convolution_sections(weights: dict[str, np.ndarray], number: int) -> list[bytes]:
    """Instance normalisation cancels the bias of a convolution."""
    rows = weights[f"convolutions.{number}.weight"].transpose(0, 2, 1) * norm_units(weights, number)
    rows = rows.reshape(CHANNELS, -1)
    inputs = -(-rows.shape[1] // 8) * 8
    packed, scale = product(padded(rows, PADDED_CHANNELS, inputs), 8)
    return [packed, floats(scale), norm_section(weights, number + 1, PADDED_CHANNELS)]


def lstm_sections(projection: np.ndarray, recurrent: np.ndarray, biases: np.ndarray) -> list[bytes]:
    """One direction of a layer, from ONNX's rows: input, output, forget and cell gates of all units. The projection is
    in units of its inputs.

    The kernel computes a sigmoid as a tangent of half of its argument.
    """
    order = np.arange(GATES * UNITS).reshape(GATES, UNITS // GROUP_UNITS, GROUP_UNITS).transpose(1, 0, 2).ravel()
    half = np.repeat([0.5, 0.5, 0.5, 1], UNITS)[order]
    bias = (biases[: GATES * UNITS] + biases[GATES * UNITS :])[order] * half
    inputs = -(-projection.shape[1] // 8) * 8
    in_rows, in_scale = product(padded(projection[order], GATES * UNITS, inputs), 8)
    rows, scale = product(recurrent[order] * HIDDEN_UNIT, RECURRENT_ROWS)
    return [in_rows, floats(in_scale * half, bias), rows, floats(scale * half)]


def classifier_sections(weights: dict[str, np.ndarray], layers: list[list[np.ndarray]]) -> list[bytes]:
    """The first linear layer in 16 bits, the others in floating point."""
    (linear0,), (linear1,), (classifier,) = layers
    rows, scale = product(linear0.T * HIDDEN_UNIT, 8)
    return [
        rows,
        floats(scale, weights["linear.0.bias"]),
        floats(linear1, weights["linear.1.bias"]),
        floats(padded(classifier, UNITS, PADDED_CLASSES), padded(weights["classifier.bias"], PADDED_CLASSES)),
    ]


def pack(model: Path) -> list[bytes]:
    weights = read_initializers(model)
    sections = filter_sections(weights) + convolution_sections(weights, 0) + convolution_sections(weights, 1)
    for number, (projection, recurrent, biases) in enumerate(read_layers(model, "LSTM")):
        units = norm_units(weights, 2) if number == 0 else HIDDEN_UNIT
        for direction in range(2):
            sections += lstm_sections(projection[direction] * units, recurrent[direction], biases[direction])
    return sections + classifier_sections(weights, read_layers(model, "MatMul"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    write_weights(args.out, SEGMENTATION, pack(args.model))


if __name__ == "__main__":
    main()
