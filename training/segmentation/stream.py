"""Step 7: accuracy and time of live use with rolling windows.

A 10 s window that ends "now" advances by a hop; every window contributes only the frames of one hop, `lookahead`
seconds before its right edge. They are compared with the output of the same windows with full context (frames in the
middle of a window), with the best mapping of each window to the reference, so that clustering errors have no influence.
"""

import argparse
import time
from collections import Counter
from pathlib import Path

import numpy as np
import soundfile

from .evaluate import FRAMES_PER_SECOND, activity, best_order, percentages, read_rttm, recordings, score_mapped
from .frontend import RATE_HZ
from .labels import Teacher

WINDOW_SECONDS = 10.0
FULL_CONTEXT_SECONDS = 4.75
"""Lookahead of frames in the middle of the window."""


def window_at(samples: np.ndarray, end: int) -> np.ndarray:
    """The 10 s that end at sample `end`, padded with zeros."""
    size = int(WINDOW_SECONDS * RATE_HZ)
    out = np.zeros(size, np.float32)
    first, last = max(0, end - size), min(len(samples), end)
    if last > first:
        out[size - (end - first) : size - (end - last)] = samples[first:last]
    return out


def stream(
    model: Teacher, samples: np.ndarray, reference: np.ndarray, hop_seconds: float, lookaheads: list[float]
) -> tuple[dict[float, Counter], float]:
    """Counts per lookahead over one recording, and the model's processor time in seconds; reference uint8 [R,T] at
    100 Hz."""
    frames, hop = reference.shape[1], int(hop_seconds * FRAMES_PER_SECOND)
    size = int(WINDOW_SECONDS * FRAMES_PER_SECOND)
    counts: dict[float, Counter] = {lookahead: Counter() for lookahead in lookaheads}
    spent = 0.0
    for end in range(hop, frames + int(max(lookaheads) * FRAMES_PER_SECOND) + 1, hop):
        window = window_at(samples, end * RATE_HZ // FRAMES_PER_SECOND)
        began = time.process_time()
        guess = activity(model, window)
        spent += time.process_time() - began
        truth = np.zeros((len(reference), size), np.uint8)
        first, last = max(0, end - size), min(frames, end)
        if last > first:
            truth[:, size - (end - first) : size - (end - last)] = reference[:, first:last]
        order = best_order(truth, guess)
        for lookahead in lookaheads:
            stop = size - int(lookahead * FRAMES_PER_SECOND)
            if 0 <= end - size + stop - hop and end - size + stop <= frames:
                counts[lookahead] += score_mapped(truth[:, stop - hop : stop], guess[:, stop - hop : stop], order)
    return counts, spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", action="append", required=True, metavar="NAME=FILE")
    parser.add_argument("--hop", type=float, default=0.5, help="seconds")
    parser.add_argument("--lookahead", type=float, nargs="+", default=[0.0, 0.25, 0.5, 1.0, 2.0])
    parser.add_argument("--minutes", type=float, default=10.0, help="maximum of every folder")
    parser.add_argument("folders", type=Path, nargs="+")
    args = parser.parse_args()
    lookaheads = [*args.lookahead, FULL_CONTEXT_SECONDS]
    material = {folder: recordings(folder) for folder in args.folders}
    print(
        "| test | model | "
        + " | ".join(f"{value:g} s" for value in args.lookahead)
        + " | full context | compute per second of audio |"
    )
    print("|---|---|" + "---|" * (len(lookaheads) + 1))
    for folder, files in material.items():
        for spec in args.model:
            name, file = spec.split("=", 1)
            model, seconds, spent = Teacher(Path(file)), 0.0, 0.0
            pooled: dict[float, Counter] = {lookahead: Counter() for lookahead in lookaheads}
            for audio in files:
                if seconds >= args.minutes * 60:
                    break
                samples = soundfile.read(audio, dtype="float32", always_2d=True)[0].mean(1)
                samples = samples[: int((args.minutes * 60 - seconds) * RATE_HZ)]
                reference = read_rttm(audio.with_suffix(".rttm"), len(samples) * FRAMES_PER_SECOND // RATE_HZ)
                counts, model_seconds = stream(model, samples, reference, args.hop, lookaheads)
                for lookahead in lookaheads:
                    pooled[lookahead] += counts[lookahead]
                spent += model_seconds
                seconds += len(samples) / RATE_HZ
            rates = " | ".join(f"{percentages(pooled[value])['der']:.1f}" for value in lookaheads)
            print(f"| {folder.name} | {name} | {rates} | {1000 * spent / seconds:.0f} ms |", flush=True)


if __name__ == "__main__":
    main()
