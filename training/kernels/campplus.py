"""Packs CAM++'s trunk for `wasm/networks/campplus.c`: 16-bit weights, Winograd transforms, scales of activations.

    python -m kernels.ranges   --trunk ../models/embedder-v6-trunk.onnx --recordings FOLDER --out ranges.npz
    python -m kernels.campplus --trunk ../models/embedder-v6-trunk.onnx --ranges ranges.npz \\
        --out ../models/embedder-v6-trunk.weights

The sections have the order of the structures in `wasm/networks/campplus.h`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from .initializers import read_initializers
from .layout import CAMPPLUS, floats, integers, rounded, row_steps, tiles, write_weights
from .ranges import BLOCKS, RESIDUALS, residual

ACTIVATION_LIMIT, WIDE_LIMIT = 8191, 32767
HEADROOM, WIDE_HEADROOM = 8, 16
"""The limit is this many times the largest magnitude on recordings: clipping costs more than rounding."""
SMALLEST_RANGE = 0.03
"""Ranges of quiet channels are raised to this share of the loudest one's."""
FEATURE_SCALE = 512
NORM_EPSILON = 1e-5
STEM_TAPS, OUT_BANDS, CHANNELS = 5, 10, 32
WINOGRAD = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])
"""The weights' transform of F(2, 3)."""


class Packer:
    """Appends sections in the order of the file. Units are the values of one integer step of each channel."""

    def __init__(self, weights: dict[str, np.ndarray], ranges: dict[str, np.ndarray]):
        self.weights, self.ranges = weights, ranges
        self.sections: list[bytes] = []

    def units(self, tensor: str) -> np.ndarray:
        """Units of a tensor after a ReLU."""
        return self._units(tensor, HEADROOM / ACTIVATION_LIMIT)

    def wide_units(self, tensor: str) -> np.ndarray:
        """Units of a tensor that is stored in all 16 bits."""
        return self._units(tensor, WIDE_HEADROOM / WIDE_LIMIT)

    def _units(self, tensor: str, step: float) -> np.ndarray:
        largest = self.ranges[tensor].astype(np.float64)
        return np.maximum(largest, SMALLEST_RANGE * largest.max()) * step

    def product(
        self, rows: np.ndarray, bias: np.ndarray, out: np.ndarray, height: int, limit: int = ACTIVATION_LIMIT
    ) -> tuple[bytes, bytes]:
        """Rows [outputs, inputs] in units of their inputs -> tiles, scales and offsets in units of the outputs."""
        steps = row_steps(rows, limit, signed=limit == WIDE_LIMIT)
        return tiles(rounded(rows, steps), height), floats(steps / out, bias / out)

    def first_convolution(self, name: str, out: np.ndarray) -> None:
        """Each row: three frames of three bands and a zero."""
        rows = np.pad(self.weights[f"{name}.weight"][:, 0].transpose(0, 2, 1), ((0, 0), (0, 0), (0, 1)))
        rows = rows.reshape(CHANNELS, -1) / FEATURE_SCALE
        self.sections += self.product(rows, self.weights[f"{name}.bias"], out, 16, WIDE_LIMIT)

    def shortcut(self, name: str, units: np.ndarray, out: np.ndarray) -> None:
        rows = self.weights[f"{name}.weight"][:, :, 0, 0] * units
        self.sections += self.product(rows, self.weights[f"{name}.bias"], out, 16)

    def _over_time(self, name: str, units: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights [out, position in time, band, in] of a 3 x 3 convolution, and the steps of its rows."""
        rows = self.weights[f"{name}.weight"].transpose(0, 3, 2, 1) * units
        steps = row_steps(rows.reshape(CHANNELS, -1), ACTIVATION_LIMIT, signed=False)
        return np.einsum("pt,otbi->opbi", WINOGRAD, rows), steps

    def strided_convolution(self, name: str, units: np.ndarray, out: np.ndarray) -> None:
        """F(2, 3) over time. The last position is negated, so that the kernel only adds."""
        rows, steps = self._over_time(name, units)
        rows[:, 3] *= -1
        steps = np.maximum(steps, np.abs(rows).max((1, 2, 3)) / 32767)
        rows = rounded(rows, steps).reshape(2, 16, 4, -1)
        self.sections += [tiles(rows[half, :, position], 16) for half in range(2) for position in range(4)]
        self.sections.append(floats(steps / out, self.weights[f"{name}.bias"] / out))

    def square_convolution(
        self, name: str, units: np.ndarray, out: np.ndarray, residual_units: np.ndarray | None = None
    ) -> None:
        """F(2 x 2, 3 x 3). The scale of the residual is zero where there is none."""
        rows, steps = self._over_time(name, units)
        rows = np.einsum("qb,opbi->opqi", WINOGRAD, rows)
        steps = np.maximum(steps, np.abs(rows).max((1, 2, 3)) / 32767)
        rows = rounded(rows, steps).reshape(4, 8, 16, CHANNELS)
        self.sections += [tiles(rows[quarter, :, position], 8) for quarter in range(4) for position in range(16)]
        scale = np.zeros(CHANNELS) if residual_units is None else residual_units / out
        self.sections.append(floats(steps / out, self.weights[f"{name}.bias"] / out, scale))

    def front_end(self) -> np.ndarray:
        """Returns the units of the output's channels."""
        units = self.units("/head/Relu_output_0")
        self.first_convolution("head.conv1", units)
        for block in RESIDUALS:
            name, graph = f"head.{block}", residual(block)
            middle, out = self.units(f"{graph}/Relu_output_0"), self.units(f"{graph}/Relu_1_output_0")
            kept = units
            if block.endswith(".0"):
                kept = self.wide_units(f"{graph}/shortcut/shortcut.0/Conv_output_0")
                self.shortcut(f"{name}.shortcut.0", units, kept)
                self.strided_convolution(f"{name}.conv1", units, middle)
            else:
                self.square_convolution(f"{name}.conv1", units, middle)
            self.square_convolution(f"{name}.conv2", middle, out, kept)
            units = out
        out = self.units("/head/Relu_1_output_0")
        self.strided_convolution("head.conv2", units, out)
        return out

    def stem(self, units: np.ndarray) -> np.ndarray:
        """Rows over taps, bands and channels; the network has channels before bands."""
        out = self.wide_units("/xvector/tdnn/nonlinear/relu/Relu_output_0")
        rows = self.weights["xvector.tdnn.linear.weight"].reshape(-1, CHANNELS, OUT_BANDS, STEM_TAPS)
        rows = (rows.transpose(0, 3, 2, 1) * units).reshape(len(rows), -1)
        self.sections += self.product(rows, self.weights["xvector.tdnn.linear.bias"], out, 16)
        return out

    def norm(self, name: str, units: np.ndarray, tensor: str) -> tuple[bytes, np.ndarray]:
        """Batch normalisation as a gain in Q15 and an offset -> their bytes, and units of its output."""
        weight, bias, mean, variance = (
            self.weights[f"{name}.{part}"] for part in ("weight", "bias", "running_mean", "running_var")
        )
        gain = weight / np.sqrt(variance + NORM_EPSILON)
        out = np.maximum(self.units(tensor), np.abs(gain) * units / 0.9999)
        offset = np.rint((bias - mean * gain) / out).clip(-WIDE_LIMIT, WIDE_LIMIT)
        return integers(np.rint(gain * units / out * 32768).clip(-WIDE_LIMIT, WIDE_LIMIT), offset), out

    def dense_layer(self, name: str, units: np.ndarray) -> np.ndarray:
        """Returns the units of the channels that the layer appends."""
        graph = "/" + name.replace(".", "/")
        norm, normed = self.norm(f"{name}.nonlinear1.batchnorm", units, f"{graph}/nonlinear1/relu/Relu_output_0")
        bottleneck = self.units(f"{graph}/nonlinear2/relu/Relu_output_0")
        out = self.wide_units(f"{graph}/cam_layer/Mul_output_0")
        rows = self.weights[f"{name}.linear1.weight"][:, :, 0] * normed
        linear, scales = self.product(rows, self.weights[f"{name}.linear1.bias"], bottleneck, 8)
        context = [self.weights[f"{name}.cam_layer.linear{i}.{part}"] for i in (1, 2) for part in ("weight", "bias")]
        context[0], context[2] = (context[0][:, :, 0] * bottleneck).T, context[2][:, :, 0].T
        local = self.weights[f"{name}.cam_layer.linear_local.weight"].transpose(0, 2, 1) * bottleneck
        local = local.reshape(len(local), -1)
        steps = row_steps(local, ACTIVATION_LIMIT, signed=False)
        self.sections += [scales, floats(*context), tiles(rounded(local, steps), 16), floats(steps / out), norm, linear]
        return out

    def transit(self, number: int, units: np.ndarray) -> np.ndarray:
        """Returns the units of the next block's channels. The last transit gives floats, and has a bias."""
        graph, name = f"/xvector/transit{number}", f"xvector.transit{number}"
        norm, normed = self.norm(f"{name}.nonlinear.batchnorm", units, f"{graph}/nonlinear/relu/Relu_output_0")
        rows = self.weights[f"{name}.linear.weight"][:, :, 0] * normed
        last = number == len(BLOCKS)
        out = np.ones(len(rows)) if last else self.wide_units(f"{graph}/linear/Conv_output_0")
        bias = self.weights[f"{name}.linear.bias"] if last else np.zeros(len(rows))
        linear, scales = self.product(rows, bias, out, 8)
        self.sections += [scales, norm, linear]
        return out

    def pack(self) -> list[bytes]:
        units = self.stem(self.front_end())
        for number, (block, layers) in enumerate(BLOCKS.items(), 1):
            for layer in range(1, layers + 1):
                units = np.concatenate([units, self.dense_layer(f"xvector.{block}.tdnnd{layer}", units)])
            units = self.transit(number, units)
        return self.sections


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trunk", type=Path, required=True)
    parser.add_argument("--ranges", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    write_weights(args.out, CAMPPLUS, Packer(read_initializers(args.trunk), dict(np.load(args.ranges))).pack())


if __name__ == "__main__":
    main()
