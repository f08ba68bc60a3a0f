"""Writes a network of the service in 8 bits and says what that changes.

    python -m quantisation.quantise segmentation NETWORK.onnx RECORDINGS OUT.onnx
    python -m quantisation.quantise trunk TRUNK.onnx RECORDINGS OUT.onnx --head HEAD.onnx

Post-training quantisation (Jacob et al., "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only
Inference", CVPR 2018): weights symmetric per output channel, activations asymmetric per tensor, ranges from a high percentile of what
the network does on three of four recordings. The fourth ones, which it has not seen, are what the differences are taken on.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnxruntime
import soundfile

from calibration.observe import pool
from embedder.features import log_mels, raise_floor
from segmentation.frontend import mel_power

from . import network, trunk
from .ranges import measure

RATE = 16_000
WINDOW = 10 * RATE
CALIBRATION_WINDOWS, TEST_WINDOWS = 64, 80
POOLED_FRAMES = 75  # 1.5 s, what a subsegment is pooled from
PERCENTILES = {"segmentation": 99.997, "trunk": 99.999}
"""Chosen among 99.9 to 100 by what changes on recordings that were not calibrated on."""
SEED = 0


def powers(samples: np.ndarray) -> np.ndarray:
    """10 s of samples -> mel powers [1, 1000, 64]."""
    return mel_power(samples)[None].astype(np.float32)


def feats(samples: np.ndarray) -> np.ndarray:
    """10 s of samples -> filterbank [1, 998, 80] with floor and mean as the service has them."""
    raised = raise_floor(log_mels(samples))
    return (raised - raised.mean(0))[None].astype(np.float32)


def begun(windows: list[np.ndarray]) -> list[np.ndarray]:
    """The same with digital silence before a random moment in every third: what a live stream has at its beginning, and far from everything else."""
    rng = np.random.default_rng(SEED + 1)
    found = [window.copy() for window in windows]
    for window in found[::3]:
        window[: int(rng.uniform(0.1, 0.95) * WINDOW)] = 0
    return found


def windows(paths: list[Path], count: int) -> Iterator[np.ndarray]:
    """`count` windows of 10 s drawn from all that the recordings have, in their order."""
    pieces = []
    for path in paths:
        samples, rate = soundfile.read(path, dtype="float32")
        if rate != RATE or samples.ndim != 1:
            raise ValueError(f"{path} is not mono at {RATE} Hz")
        pieces += [samples[at : at + WINDOW] for at in range(0, len(samples) - WINDOW + 1, WINDOW)]
    chosen = np.sort(np.random.default_rng(SEED).permutation(len(pieces))[:count])
    return (pieces[index] for index in chosen)


def session(path: Path) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def outputs(path: Path, inputs: list[np.ndarray]) -> list[list[np.ndarray]]:
    model = session(path)
    name = model.get_inputs()[0].name
    return [model.run(None, {name: one}) for one in inputs]


def compare_segmentation(source: Path, target: Path, inputs: list[np.ndarray]) -> str:
    before, after = (np.concatenate([out[0][0] for out in outputs(path, inputs)]) for path in (source, target))
    moved = np.abs(np.exp(before) - np.exp(after)).sum(1).mean() / 2
    return f"{100 * moved:.2f} % of the probability moved, {100 * (before.argmax(1) != after.argmax(1)).mean():.2f} % of the frames decided otherwise"


def compare_trunk(head: Path) -> Callable[[Path, Path, list[np.ndarray]], str]:
    last = session(head)

    def embeddings(path: Path, inputs: list[np.ndarray]) -> np.ndarray:
        pieces = [
            pool(frames[0][at : at + POOLED_FRAMES], logits[0][at : at + POOLED_FRAMES])
            for frames, logits in outputs(path, inputs)
            for at in range(0, frames.shape[1] - POOLED_FRAMES + 1, POOLED_FRAMES)
        ]
        vectors = last.run(None, {"pooled": np.array(pieces, np.float32)})[0]
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def compare(source: Path, target: Path, inputs: list[np.ndarray]) -> str:
        before, after = embeddings(source, inputs), embeddings(target, inputs)
        cosines, pairs = (before * after).sum(1), np.triu_indices(len(before), 1)
        change = (after @ after.T - before @ before.T)[pairs]
        return (
            f"embeddings of 1.5 s before and after: mean cosine {cosines.mean():.4f}, first percentile {np.quantile(cosines, 0.01):.4f}; "
            f"scores between two: {change.mean():+.4f} on average, standard deviation {change.std():.4f}"
        )

    return compare


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("segmentation", "trunk"))
    parser.add_argument("source", type=Path)
    parser.add_argument("recordings", type=Path, help="folder of FLAC at 16 kHz")
    parser.add_argument("target", type=Path)
    parser.add_argument("--head", type=Path, help="with a trunk: the head, to compare embeddings")
    args = parser.parse_args()
    if args.what == "trunk" and args.head is None:
        parser.error("a trunk needs --head")
    paths = sorted(args.recordings.glob("*.flac"))
    if not paths:
        parser.error(f"no FLAC file in {args.recordings}: name a folder of FLAC at 16 kHz")
    seen, unseen = [path for index, path in enumerate(paths) if index % 4], paths[::4]
    of, form, compare = (powers, network, compare_segmentation) if args.what == "segmentation" else (feats, trunk, compare_trunk(args.head))
    material = list(windows(seen, CALIBRATION_WINDOWS))
    inputs = [of(window) for window in (begun(material) if args.what == "segmentation" else material)]
    form.build(args.source, args.target, measure(args.source, inputs, PERCENTILES[args.what]))
    print(f"{args.target}: {args.target.stat().st_size} bytes, sha256 {hashlib.sha256(args.target.read_bytes()).hexdigest()}")
    material = list(windows(unseen, TEST_WINDOWS))
    print(compare(args.source, args.target, [of(window) for window in material]))
    if args.what == "segmentation":
        print("a third of them with silence before:", compare(args.source, args.target, [of(window) for window in begun(material)]))


if __name__ == "__main__":
    main()
