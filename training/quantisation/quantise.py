"""Writes the segmentation network in 8 bits and measures the difference.

    python -m quantisation.quantise NETWORK.onnx RECORDINGS OUT.onnx

Post-training quantisation (Jacob et al., "Quantization and Training of Neural Networks for Efficient
Integer-Arithmetic-Only Inference", CVPR 2018): weights symmetric per output channel, activations asymmetric per tensor,
ranges from a high percentile of the activations on three of four recordings. The differences are measured on the other
recordings.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnxruntime
import soundfile

from segmentation.frontend import mel_power

from . import network
from .ranges import measure

RATE = 16_000
WINDOW = 10 * RATE
CALIBRATION_WINDOWS, TEST_WINDOWS = 64, 80
PERCENTILE = 99.997
"""The value from 99.9 to 100 with the smallest difference on recordings outside the calibration."""
SEED = 0


def powers(samples: np.ndarray) -> np.ndarray:
    """10 s of samples -> mel powers [1, 1000, 64]."""
    return mel_power(samples)[None].astype(np.float32)


def divided(folder: Path) -> tuple[list[Path], list[Path]]:
    """Three of four recordings of a folder, for the ranges, and the others."""
    paths = sorted(folder.glob("*.flac"))
    if not paths:
        raise SystemExit(f"no FLAC file in {folder}: name a folder of FLAC at 16 kHz")
    return [path for index, path in enumerate(paths) if index % 4], paths[::4]


def begun(windows: list[np.ndarray]) -> list[np.ndarray]:
    """The windows, every third with digital silence up to a random moment, as at the beginning of a live stream.

    Features of silence are far outside the range of all others.
    """
    rng = np.random.default_rng(SEED + 1)
    found = [window.copy() for window in windows]
    for window in found[::3]:
        window[: int(rng.uniform(0.1, 0.95) * WINDOW)] = 0
    return found


def windows(paths: list[Path], count: int) -> Iterator[np.ndarray]:
    """`count` random windows of 10 s of all recordings, in their order."""
    pieces = []
    for path in paths:
        samples, rate = soundfile.read(path, dtype="float32")
        if rate != RATE or samples.ndim != 1:
            raise ValueError(f"{path} is not mono at {RATE} Hz")
        pieces += [samples[at : at + WINDOW] for at in range(0, len(samples) - WINDOW + 1, WINDOW)]
    chosen = np.sort(np.random.default_rng(SEED).permutation(len(pieces))[:count])
    return (pieces[index] for index in chosen)


def outputs(path: Path, inputs: list[np.ndarray]) -> np.ndarray:
    """Log-probabilities of the frames of all inputs, [frames, classes]."""
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return np.concatenate([session.run(None, {name: one})[0][0] for one in inputs])


def compare(source: Path, target: Path, inputs: list[np.ndarray]) -> str:
    before, after = outputs(source, inputs), outputs(target, inputs)
    moved = np.abs(np.exp(before) - np.exp(after)).sum(1).mean() / 2
    changed = (before.argmax(1) != after.argmax(1)).mean()
    return f"{100 * moved:.2f} % of the probability moved, {100 * changed:.2f} % of the frames decided otherwise"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("recordings", type=Path, help="folder of FLAC at 16 kHz")
    parser.add_argument("target", type=Path)
    args = parser.parse_args()
    seen, unseen = divided(args.recordings)
    inputs = [powers(window) for window in begun(list(windows(seen, CALIBRATION_WINDOWS)))]
    network.build(args.source, args.target, measure(args.source, inputs, PERCENTILE))
    digest = hashlib.sha256(args.target.read_bytes()).hexdigest()
    print(f"{args.target}: {args.target.stat().st_size} bytes, sha256 {digest}")
    whole = list(windows(unseen, TEST_WINDOWS))
    print(compare(args.source, args.target, [powers(window) for window in whole]))
    with_silence = compare(args.source, args.target, [powers(window) for window in begun(whole)])
    print("a third of them with initial silence:", with_silence)


if __name__ == "__main__":
    main()
