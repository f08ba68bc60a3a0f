"""Step 6: diarization error of segmentation models on folders of FLAC + RTTM, without clustering.

Recordings are cut into consecutive 10 s windows (the last one padded); every window uses the best mapping of the
model's three local speakers to the reference's speakers. No collar, overlapped speech is scored; pooled over a folder,
in percent of reference speech.
"""

import argparse
import itertools
from collections import Counter
from pathlib import Path

import numpy as np
import soundfile

from .frontend import RATE_HZ
from .labels import Teacher

WINDOW_SECONDS = 10
FRAMES_PER_SECOND = 100
CLASS_SPEAKERS = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1], [0, 1, 1]], np.uint8)


def read_rttm(path: Path, frames: int) -> np.ndarray:
    """Reference activity uint8 [speakers, frames] at 100 Hz."""
    rows: dict[str, np.ndarray] = {}
    for line in path.read_text().splitlines():
        part = line.split()
        if part and part[0] == "SPEAKER":
            start, end = float(part[3]), float(part[3]) + float(part[4])
            row = rows.setdefault(part[7], np.zeros(frames, np.uint8))
            row[int(round(start * FRAMES_PER_SECOND)) : int(round(end * FRAMES_PER_SECOND))] = 1
    return np.stack(list(rows.values())) if rows else np.zeros((1, frames), np.uint8)


def best_order(reference: np.ndarray, guess: np.ndarray) -> tuple[int, ...]:
    """Reference speaker of each of the three local speakers (a higher index: none) with the most correct frames."""
    agree = np.zeros((3, max(len(reference), 3)), int)
    agree[:, : len(reference)] = guess.astype(int) @ reference.astype(int).T
    orders = itertools.permutations(range(agree.shape[1]), 3)
    return max(orders, key=lambda order: sum(agree[local, to] for local, to in enumerate(order)))


def score_mapped(reference: np.ndarray, guess: np.ndarray, order: tuple[int, ...]) -> Counter:
    """Frames of every kind of error under a mapping: reference [R,T], guess [3,T] -> counts."""
    spoken, claimed = reference.sum(0).astype(int), guess.sum(0).astype(int)
    right = sum(int((guess[local] & reference[to]).sum()) for local, to in enumerate(order) if to < len(reference))
    return Counter(
        total=int(spoken.sum()),
        missed=int((spoken - claimed).clip(0).sum()),
        false_alarm=int((claimed - spoken).clip(0).sum()),
        confusion=int(np.minimum(spoken, claimed).sum()) - right,
        speech_missed=int(((spoken > 0) & (claimed == 0)).sum()),
        speech_invented=int(((spoken == 0) & (claimed > 0)).sum()),
        overlap=int((spoken > 1).sum()),
        overlap_found=int(((spoken > 1) & (claimed > 1)).sum()),
    )


def score(reference: np.ndarray, guess: np.ndarray) -> Counter:
    """Counts with the best mapping."""
    return score_mapped(reference, guess, best_order(reference, guess))


def recordings(folder: Path) -> list[Path]:
    """The FLAC files of a folder, in the order of their names."""
    found = sorted(folder.glob("*.flac"))
    if not found:
        raise SystemExit(f"no FLAC file in {folder}: name a folder of FLAC files, each with an RTTM of the same name")
    return found


def activity(model: Teacher, window: np.ndarray) -> np.ndarray:
    """Local speakers' activity uint8 [3, frames at 100 Hz] of one window."""
    return CLASS_SPEAKERS[model.resampled(window, FRAMES_PER_SECOND).argmax(1)].T


def evaluate(model: Teacher, audio: Path) -> Counter:
    """Counts of one recording and its RTTM."""
    samples, rate_hz = soundfile.read(audio, dtype="float32", always_2d=True)
    if rate_hz != RATE_HZ:
        raise ValueError(f"{audio}: {rate_hz} Hz, expected {RATE_HZ}")
    samples = samples.mean(1)
    reference = read_rttm(audio.with_suffix(".rttm"), len(samples) * FRAMES_PER_SECOND // RATE_HZ)
    counts: Counter = Counter()
    size = WINDOW_SECONDS * RATE_HZ
    for start in range(0, len(samples), size):
        window = np.zeros(size, np.float32)
        window[: len(samples) - start] = samples[start : start + size]
        truth = reference[:, start // 160 : (start + size) // 160]
        counts += score(truth, activity(model, window)[:, : truth.shape[1]])
    return counts


def percentages(counts: Counter) -> dict[str, float]:
    """Shares of reference speech in percent; overlap found as a share of overlapped frames."""
    names = ("missed", "false_alarm", "confusion", "speech_missed", "speech_invented")
    rates = {name: 100 * counts[name] / max(1, counts["total"]) for name in names}
    der = rates["missed"] + rates["false_alarm"] + rates["confusion"]
    return {"der": der, **rates, "overlap_found": 100 * counts["overlap_found"] / max(1, counts["overlap"])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--model", action="append", required=True, metavar="NAME=FILE", help="repeat for several models"
    )
    parser.add_argument("--files", action="store_true", help="also print every recording")
    parser.add_argument("folders", type=Path, nargs="+")
    args = parser.parse_args()
    material = {folder: recordings(folder) for folder in args.folders}
    print(
        "| test | model | DER | missed | false alarm | confusion "
        "| VAD missed | VAD false alarm | overlap frames found |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for folder, files in material.items():
        for spec in args.model:
            name, file = spec.split("=", 1)
            model, pooled = Teacher(Path(file)), Counter()
            for audio in files:
                counts = evaluate(model, audio)
                pooled += counts
                if args.files:
                    print(
                        f"| {audio.stem} | {name} | "
                        + " | ".join(f"{v:.1f}" for v in percentages(counts).values())
                        + " |"
                    )
            print(
                f"| {folder.name} | {name} | " + " | ".join(f"{v:.1f}" for v in percentages(pooled).values()) + " |",
                flush=True,
            )


if __name__ == "__main__":
    main()
