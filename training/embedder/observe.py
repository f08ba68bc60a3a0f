"""Step 5: embeddings of degraded pieces of voices: held-out ones for the score calibration, others for its cohort.

    python -m embedder.prepare --split dev --speeds 1.0 ... --work DEV
    python -m embedder.observe --work DEV --model FOLDER/embedder-v4.onnx --out DEV/observed.npz [--pieces 16]

Every voice gives ``--pieces`` pieces of 0.6 to 8 s, each degraded on its own as in training (room, noise, other talkers, band,
codec), so that the spread within a voice is that of a recording's, and more. Stores embeddings [n, 192], voice [n], seconds [n].
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import onnxruntime

from . import features
from .augment import Augmenter
from .prepare import VARIANTS

LENGTHS_FRAMES = (60, 100, 150, 200, 300, 400, 600, 800)
MAX_ROWS = 48  # degraded together


class _WholePieces(Augmenter):
    """No masking: nothing in the service masks."""

    def _mask(self, x: np.ndarray) -> np.ndarray:
        return x


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--pieces", type=int, default=16)
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()
    rng = np.random.default_rng(args.seed)
    augment = _WholePieces(args.work, args.seed + 1)
    units = np.load(args.work / "units-1.0.npy")
    mels = [np.memmap(args.work / f"mels-1.0-{v}.f16", np.float16, "r").reshape(-1, features.BANDS) for v in VARIANTS]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(args.model), options, providers=["CPUExecutionProvider"])
    voices = np.unique(units[:, 0])
    starts = np.searchsorted(units[:, 0], np.append(voices, voices[-1] + 1))
    found: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for _ in range(args.pieces):
        for length in LENGTHS_FRAMES:
            chosen = rng.permutation(len(voices))[: -(-len(voices) // len(LENGTHS_FRAMES))]
            batch = np.zeros((len(chosen), length, features.BANDS), np.float32)
            for row, voice in enumerate(chosen):
                filled, variant = 0, mels[rng.integers(len(VARIANTS))]
                while filled < length:
                    _, offset, frames = units[rng.integers(starts[voice], starts[voice + 1])]
                    n = min(length - filled, int(frames))
                    begin = offset + int(rng.integers(0, frames - n + 1))
                    batch[row, filled : filled + n] = variant[begin : begin + n]
                    filled += n
            embeddings = np.concatenate(
                [session.run(None, {"feats": augment(batch[at : at + MAX_ROWS])})[0] for at in range(0, len(batch), MAX_ROWS)]
            )
            found.append((embeddings, voices[chosen], np.full(len(chosen), length / 100)))
    embeddings, voice, seconds = (np.concatenate(parts) for parts in zip(*found))
    np.savez(args.out, embeddings=embeddings.astype(np.float32), voice=voice, seconds=seconds)
    print(f"{len(voice)} pieces of {len(voices)} voices")


if __name__ == "__main__":
    main()
