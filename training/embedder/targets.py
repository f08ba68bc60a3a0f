"""Step 2: the teacher's embedding of every unit of speech, the soft targets of the distillation.

    python -m embedder.targets --work WORK --teacher FOLDER [--speeds 1.0 0.88 1.12]

Writes ``targets-<speed>.npy`` [units, 192], unit length, from the dry features. Units are cut to a multiple of 0.5 s so
that equal lengths share a batch.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch

from . import features, teacher
from .prepare import SPEEDS

STEP_FRAMES = 50
BATCH_FRAMES = 4800


def embed_units(model: torch.nn.Module, mels: np.ndarray, units: np.ndarray) -> np.ndarray:
    """[units, 192] unit-length teacher embeddings; ``units`` rows are (voice, offset, frames)."""
    lengths = np.maximum(units[:, 2] // STEP_FRAMES, 1) * STEP_FRAMES
    out = np.zeros((len(units), teacher.EMBEDDING_SIZE), np.float32)
    done, started = 0, time.time()
    for length in np.unique(lengths):
        members = np.where(lengths == length)[0]
        size = max(1, BATCH_FRAMES // int(length))
        for begin in range(0, len(members), size):
            chosen = members[begin : begin + size]
            batch = np.zeros((len(chosen), length, features.BANDS), np.float32)
            for row, unit in enumerate(chosen):
                _, offset, frames = units[unit]
                skip = max(0, (frames - length) // 2)
                piece = mels[offset + skip : offset + min(frames, skip + length)].astype(np.float32)
                batch[row] = np.resize(piece, (length, features.BANDS))
            batch -= batch.mean(1, keepdims=True)
            with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
                embedding = model(torch.from_numpy(batch)).float().numpy()
            out[chosen] = embedding / np.linalg.norm(embedding, axis=1, keepdims=True)
            done += len(chosen)
        print(f"{done} of {len(units)} units, {time.time() - started:.0f} s", flush=True)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--teacher", type=Path, required=True)
    parser.add_argument("--speeds", type=float, nargs="+", default=list(SPEEDS))
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    model = teacher.load(args.teacher)
    for speed in args.speeds:
        file = args.work / f"targets-{speed}.npy"
        if file.exists():
            continue
        mels = np.memmap(args.work / f"mels-{speed}-dry.f16", np.float16, "r").reshape(-1, features.BANDS)
        np.save(file, embed_units(model, mels, np.load(args.work / f"units-{speed}.npy")))


if __name__ == "__main__":
    main()
