"""Ranges of CAM++'s activations: the largest magnitude of every channel on recordings.

    python -m kernels.ranges --trunk ../models/embedder-v6-trunk.onnx --recordings FOLDER --out ranges.npz

Runs the trunk in floating point on one stretch of ten seconds of each FLAC recording (16 kHz) in FOLDER, prepared as in
the service. The file maps the name of a tensor in the ONNX graph to its ranges [channels].
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import soundfile
from embedder.features import log_mels, raise_floor

STRETCH_SAMPLES = 160_000
BLOCKS = {"block1": 12, "block2": 24, "block3": 16}
RESIDUALS = ("layer1.0", "layer1.1", "layer2.0", "layer2.1")


def residual(name: str) -> str:
    """The graph's prefix of a residual block of the front end, for example of `layer1.0`."""
    return f"/head/{name.split('.')[0]}/{name}"


def tensors() -> list[str]:
    """The tensors that the kernel stores in 16 bits, [B, channels, ...]."""
    names = ["/head/Relu_output_0", "/head/Relu_1_output_0", "/xvector/tdnn/nonlinear/relu/Relu_output_0"]
    for block in RESIDUALS:
        names += [f"{residual(block)}/Relu_output_0", f"{residual(block)}/Relu_1_output_0"]
        if block.endswith(".0"):
            names.append(f"{residual(block)}/shortcut/shortcut.0/Conv_output_0")
    for number, (block, layers) in enumerate(BLOCKS.items(), 1):
        for layer in range(1, layers + 1):
            prefix = f"/xvector/{block}/tdnnd{layer}"
            names += [f"{prefix}/nonlinear{i}/relu/Relu_output_0" for i in (1, 2)]
            names.append(f"{prefix}/cam_layer/Mul_output_0")
        names.append(f"/xvector/transit{number}/nonlinear/relu/Relu_output_0")
        if number < len(BLOCKS):
            names.append(f"/xvector/transit{number}/linear/Conv_output_0")
    return names


def stretches(folder: Path) -> Iterator[np.ndarray]:
    """Features [T, 80] of one stretch of each recording; its place moves from recording to recording."""
    for index, path in enumerate(sorted(folder.glob("*.flac"))):
        samples = soundfile.read(path, dtype="float32")[0]
        start = (index * 7 % 10) * max(0, len(samples) - STRETCH_SAMPLES) // 10
        features = raise_floor(log_mels(samples[start : start + STRETCH_SAMPLES]))
        yield (features - features.mean(0)).astype(np.float32)


def measure(trunk: Path, folder: Path) -> dict[str, np.ndarray]:
    """Ranges of `tensors` and of the features, which the graph calls `feats` (one range)."""
    model, names = onnx.load(trunk), tensors()
    model.graph.output.extend(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in names)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    ranges: dict[str, np.ndarray] = {}
    for features in stretches(folder):
        values = session.run(names, {"feats": features[None]})
        found = {name: np.abs(value[0]).reshape(value.shape[1], -1).max(1) for name, value in zip(names, values)}
        found["feats"] = np.abs(features).max(keepdims=True)[0]
        ranges = {name: np.maximum(value, ranges.get(name, 0)) for name, value in found.items()}
    return ranges


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trunk", type=Path, required=True)
    parser.add_argument("--recordings", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    np.savez(args.out, **measure(args.trunk, args.recordings))


if __name__ == "__main__":
    main()
