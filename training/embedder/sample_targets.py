"""Step 2 for training on a GPU: the teacher's embedding of every unit at every speed, from the dry samples.

    python -m embedder.sample_targets --work WORK --teacher FOLDER

Writes ``sample-targets-<speed>.npy`` [units, 192], unit length; as ``targets.py``, units are cut to a multiple of 0.5 s so that equal lengths share a batch.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch

from . import features, teacher
from .sample_features import LogMels
from .samples import SPEEDS
from .targets import STEP_FRAMES

BATCH_FRAMES = {"cuda": 48_000, "cpu": 4800}


def crop_samples(frames: int) -> int:
    """How many samples give so many frames."""
    return features.FRAME_LENGTH_SAMPLES + (frames - 1) * features.FRAME_SHIFT_SAMPLES


@torch.inference_mode()
def embed_units(model: torch.nn.Module, samples: np.ndarray, units: np.ndarray, device: torch.device) -> np.ndarray:
    """[units, 192] unit-length teacher embeddings of int16 samples; ``units`` rows are (voice, offset, samples)."""
    log_mels = LogMels().to(device)
    frames = 1 + (units[:, 2] - features.FRAME_LENGTH_SAMPLES) // features.FRAME_SHIFT_SAMPLES
    lengths = np.maximum(frames // STEP_FRAMES, 1) * STEP_FRAMES
    out = np.zeros((len(units), teacher.EMBEDDING_SIZE), np.float32)
    for length in np.unique(lengths):
        members, wanted = np.where(lengths == length)[0], crop_samples(int(length))
        size = max(1, BATCH_FRAMES[device.type] // int(length))
        for begin in range(0, len(members), size):
            chosen = members[begin : begin + size]
            batch = np.zeros((len(chosen), wanted), np.float32)
            for row, unit in enumerate(chosen):
                _, offset, count = units[unit]
                skip = max(0, (count - wanted) // 2)
                batch[row] = np.resize(samples[offset + skip : offset + min(count, skip + wanted)], wanted)
            mels = log_mels(torch.from_numpy(batch).to(device) / 32768)
            embedding = model(mels - mels.mean(1, keepdim=True)).float()
            out[chosen] = torch.nn.functional.normalize(embedding).cpu().numpy()
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--teacher", type=Path, required=True)
    parser.add_argument("--speeds", type=float, nargs="+", default=list(SPEEDS))
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args()
    device = torch.device(args.device)
    model = teacher.load(args.teacher).to(device)
    for speed in args.speeds:
        file = args.work / f"sample-targets-{speed}.npy"
        if file.exists():
            continue
        started = time.time()
        samples = np.memmap(args.work / f"samples-{speed}-dry.i16", np.int16, "r")
        np.save(file, embed_units(model, samples, np.load(args.work / f"sample-units-{speed}.npy"), device))
        print(f"speed {speed}: {time.time() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
