"""Packing of weights for the WebAssembly kernels."""

import struct
import tempfile
import unittest
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from kernels.halve import halved
from kernels.initializers import read_initializers, read_layers
from kernels.layout import SEGMENTATION, VERSION, norm_row_steps, rounded, row_steps, tiles, write_weights
from kernels.segmentation import FILTER_TAPS, HALF_TAPS, shaped
from kernels.segmentation_v8 import NORM_UNIT, WIDTH, AfterNorm


class Layout(unittest.TestCase):
    def test_no_input_overflows_a_sum(self) -> None:
        rows = np.random.default_rng(0).normal(0, 1, (40, 400)) * np.logspace(-6, 6, 40)[:, None]
        rows[3] = 0
        steps = row_steps(rows, 32767, signed=True)
        integers = rounded(rows, steps).astype(np.int64)
        self.assertLess(np.abs(integers).sum(1).max() * 32767, 2**31)
        self.assertTrue(np.all(np.abs(integers * steps[:, None] - rows) <= steps[:, None] / 2 * 1.001))

    def test_no_input_of_a_limited_norm_overflows_a_sum(self) -> None:
        rows = np.random.default_rng(0).normal(0, 1, (40, 400)) * np.logspace(-6, 6, 40)[:, None]
        rows[3, 1:] = 0
        steps = norm_row_steps(rows, 32767)
        integers = rounded(rows, steps).astype(np.int64)
        self.assertLess(np.linalg.norm(integers, axis=1).max() * 32767, 2**31)
        self.assertTrue(np.all(np.abs(integers * steps[:, None] - rows) <= steps[:, None] / 2 * 1.001))

    def test_tiles_hold_pairs_of_all_rows(self) -> None:
        rows = np.arange(16 * 6).reshape(16, 6)
        packed = np.frombuffer(tiles(rows, 8), "<i2").reshape(2, 3, 8, 2)
        self.assertEqual(packed[1, 2, 3].tolist(), rows[11, 4:].tolist())

    def test_header(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "weights"
            write_weights(path, SEGMENTATION, [bytes(32), bytes(16)])
            self.assertEqual(struct.unpack("<4sIII", path.read_bytes()[:16]), (b"RCNW", VERSION, SEGMENTATION, 48))
            self.assertRaises(ValueError, write_weights, path, SEGMENTATION, [bytes(7)])


class Filters(unittest.TestCase):
    def test_shaped_rounding_has_less_error_at_low_frequencies(self) -> None:
        halves = np.zeros((8, HALF_TAPS))
        halves[:, : FILTER_TAPS // 2 + 1] = np.random.default_rng(0).normal(0, 1, (8, FILTER_TAPS // 2 + 1))
        steps = np.full(8, 0.01)
        low = np.cos(np.pi * 0.02 * np.arange(HALF_TAPS))
        plain, noise_shaped = (
            np.abs((q * steps[:, None] - halves) @ low).mean() for q in (rounded(halves, steps), shaped(halves, steps))
        )
        self.assertLess(noise_shaped, plain / 3)
        self.assertEqual(np.abs(shaped(halves, steps)[:, FILTER_TAPS // 2 + 1 :]).max(), 0)


class Normalisation(unittest.TestCase):
    def test_layer_after_a_normalisation(self) -> None:
        rng = np.random.default_rng(0)
        weights, bias = rng.normal(0, 1, (WIDTH, 24)), rng.normal(0, 1, 24)
        gain, offset = rng.normal(1, 0.3, WIDTH), rng.normal(0, 0.3, WIDTH)
        layer = AfterNorm(weights, bias, gain, offset)
        values = rng.normal(0, 1, WIDTH) ** 3
        values = (values - values.mean()) / values.std()
        expected = (values * gain + offset) @ weights + bias
        packed, scale, bias_of_kernel = layer.sections()
        rows = np.frombuffer(packed, "<i2").reshape(3, WIDTH // 2, 8, 2).transpose(0, 2, 1, 3).reshape(24, WIDTH)
        sums = rows.astype(np.int64) @ np.rint(values / NORM_UNIT).astype(np.int64)
        got = sums * np.frombuffer(scale, "<f4") + np.frombuffer(bias_of_kernel, "<f4")
        np.testing.assert_allclose(got, expected, atol=0.005)
        self.assertTrue(np.all(np.abs(expected) <= layer.limits()))
        self.assertLess(np.abs(values / NORM_UNIT).max(), 32767)


class Models(unittest.TestCase):
    def test_halved_weights_keep_their_names(self) -> None:
        values = np.random.default_rng(0).normal(0, 1, (40, 20)).astype(np.float32)
        tensors = [numpy_helper.from_array(values, "large"), numpy_helper.from_array(values[:20] / 3, "kept")]
        nodes = [helper.make_node("MatMul", ["x", "kept"], ["h"]), helper.make_node("MatMul", ["large", "h"], ["y"])]
        ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, None]) for name in ("x", "y")]
        graph = helper.make_graph(nodes, "made-up", ports[:1], ports[1:], tensors)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            onnx.save(halved(model, ["kept"]), path)
            weights = read_initializers(path)
            self.assertEqual(set(weights), {"large", "kept"})
            np.testing.assert_array_equal(weights["large"], values.astype(np.float16))
            np.testing.assert_array_equal(weights["kept"], values[:20] / np.float32(3))
            self.assertEqual([len(layer) for layer in read_layers(path, "MatMul")], [1, 1])


if __name__ == "__main__":
    unittest.main()
