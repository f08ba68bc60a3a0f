"""Fits how sure the number of speakers is, on the service's answers.

    node --import tsx bench/confidences.ts FOLDER ... --output counts.json
    python -m calibration.counts counts.json

The file has, for every folder, the true number of speakers of each recording and the `speakerCount` of its answer. The
log-odds of fewer and of more speakers against the number found are linear in the margins of the count
(`src/diarization/speaker-count.ts`), so that a linear map of the stated log-odds fits both lines again. Prints the
cross-entropy and the reliability of each folder with a map that was fitted on the others, then the maps of all
folders: new offset = intercept + slope * offset, new step = slope * step.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

ONE_FEWER, ONE_MORE = 0.64, 0.85
"""Shares of wrong numbers that are wrong by one, as in the service."""
IMPOSSIBLE = -30.0


def rows_of(answers: list[dict]) -> np.ndarray:
    """[n, 3]: stated log-odds of fewer and of more speakers, and 0, 1 or 2 for fewer, right, more."""
    rows = []
    for answer in answers:
        count, truth = answer["speakerCount"], answer["speakers"]
        stated = {one["count"]: one["confidence"] for one in count["alternatives"]}
        odds = [
            stated.get(count["estimate"] + step, 0) / share / max(1, count["confidence"])
            for step, share in ((-1, ONE_FEWER), (1, ONE_MORE))
        ]
        outcome = 1 + int(np.sign(truth - count["estimate"]))
        rows.append([*(np.log(one) if one > 0 else IMPOSSIBLE for one in odds), outcome])
    return np.array(rows)


def probabilities(maps: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """[n, 3] of fewer, right and more; maps: intercept and slope of fewer, then of more."""
    stated = rows[:, :2]
    mapped = np.where(stated > IMPOSSIBLE, maps[[0, 2]] + maps[[1, 3]] * stated, IMPOSSIBLE)
    logits = np.stack([mapped[:, 0], np.zeros(len(rows)), mapped[:, 1]], 1)
    shares = np.exp(logits - logits.max(1, keepdims=True))
    return shares / shares.sum(1, keepdims=True)


def cross_entropy(maps: np.ndarray, rows: np.ndarray) -> float:
    chosen = probabilities(maps, rows)[np.arange(len(rows)), rows[:, 2].astype(int)]
    return float(-np.log(np.maximum(chosen, 1e-9)).mean())


def fit(rows: np.ndarray) -> np.ndarray:
    return minimize(cross_entropy, np.array([0.0, 1, 0, 1]), args=(rows,), method="Nelder-Mead").x


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("answers", type=Path)
    sets = {one["folder"]: rows_of(one["counts"]) for one in json.loads(parser.parse_args().answers.read_text())["sets"]}
    for folder, rows in sets.items():
        others = [other for name, other in sets.items() if name != folder]
        maps = fit(np.concatenate(others)) if others else np.array([0.0, 1, 0, 1])
        stated, right = probabilities(maps, rows)[:, 1].mean(), (rows[:, 2] == 1).mean()
        print(f"{folder}: {cross_entropy(maps, rows):.3f} nats, confidence {stated:.2f}, right {right:.2f}")
    maps = fit(np.concatenate(list(sets.values())))
    print(f"fewer: intercept {maps[0]:.2f}, slope {maps[1]:.2f}; more: intercept {maps[2]:.2f}, slope {maps[3]:.2f}")


if __name__ == "__main__":
    main()
