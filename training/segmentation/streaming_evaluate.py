"""Step 7 for the streaming form: its error beside that of rolling windows (`stream.py`), scored in the same way.

Lives of a state begin every half of their length; what one says between the half and the end of its life is taken. At every hop the mapping of
local speakers to the reference is the best one over the last ten seconds that the state has spoken of, and the newest hop counts.
"""

import argparse
import time
from collections import Counter
from pathlib import Path

import numpy as np
import onnxruntime
import soundfile

from .evaluate import CLASS_SPEAKERS, FRAMES_PER_SECOND, best_order, percentages, read_rttm, recordings, score_mapped
from .frontend import RATE_HZ
from .stream import WINDOW_SECONDS
from .streaming_export import GRID_SAMPLES, run
from .streaming_model import LIFE_SECONDS

HOP_SAMPLES = 5 * GRID_SAMPLES


def lives(session: onnxruntime.InferenceSession, samples: np.ndarray, life_seconds: float) -> list[tuple[int, np.ndarray]]:
    """First frame at 100 Hz and activity uint8 [3,T] at 100 Hz of every life, over samples with silence behind them."""
    life = int(life_seconds * RATE_HZ) // GRID_SAMPLES * GRID_SAMPLES
    padded = np.concatenate([samples, np.zeros(life, np.float32)])
    out = []
    for start in range(0, len(samples), life // 2):
        said = run(session, padded[start : start + life], (HOP_SAMPLES,))
        classes = CLASS_SPEAKERS[said.argmax(-1)].T
        out.append((start * FRAMES_PER_SECOND // RATE_HZ, np.repeat(classes, 2, axis=1)))
    return out


def score_lives(said: list[tuple[int, np.ndarray]], reference: np.ndarray, hop_frames: int) -> Counter:
    """Counts over a recording; reference uint8 [R,T] at 100 Hz."""
    counts: Counter = Counter()
    frames, history = reference.shape[1], int(WINDOW_SECONDS * FRAMES_PER_SECOND)
    for number, (first, guess) in enumerate(said):
        own = first + guess.shape[1]
        begin = 0 if number == 0 else said[number - 1][0] + said[number - 1][1].shape[1]
        for end in range(begin + hop_frames, own + 1, hop_frames):
            stop = min(end, frames)
            if stop <= end - hop_frames:
                break
            low = max(first, end - history)
            past, truth = guess[:, low - first : stop - first], reference[:, low:stop]
            newest = slice(end - hop_frames - low, stop - low)
            counts += score_mapped(truth[:, newest], past[:, newest], best_order(truth, past))
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", action="append", required=True, metavar="NAME=FILE")
    parser.add_argument("--hop", type=float, default=0.5, help="seconds")
    parser.add_argument("--life", type=float, default=LIFE_SECONDS, help="seconds")
    parser.add_argument("--minutes", type=float, default=10.0, help="at most this much of every folder")
    parser.add_argument("folders", type=Path, nargs="+")
    args = parser.parse_args()
    material = {folder: recordings(folder) for folder in args.folders}
    print("| test | model | DER | missed | false alarm | confusion | overlap found | compute per second of audio |")
    print("|---|---|---|---|---|---|---|---|")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    for folder, files in material.items():
        for spec in args.model:
            name, file = spec.split("=", 1)
            session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
            pooled, seconds, spent = Counter(), 0.0, 0.0
            for audio in files:
                if seconds >= args.minutes * 60:
                    break
                samples = soundfile.read(audio, dtype="float32", always_2d=True)[0].mean(1)
                samples = samples[: int((args.minutes * 60 - seconds) * RATE_HZ)]
                reference = read_rttm(audio.with_suffix(".rttm"), len(samples) * FRAMES_PER_SECOND // RATE_HZ)
                began = time.process_time()
                said = lives(session, samples, args.life)
                spent += time.process_time() - began
                pooled += score_lives(said, reference, int(args.hop * FRAMES_PER_SECOND))
                seconds += len(samples) / RATE_HZ
            rates = percentages(pooled)
            shown = " | ".join(f"{rates[key]:.1f}" for key in ("der", "missed", "false_alarm", "confusion", "overlap_found"))
            print(f"| {folder.name} | {name} | {shown} | {1000 * spent / seconds:.0f} ms |", flush=True)


if __name__ == "__main__":
    main()
