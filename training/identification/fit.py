"""Fits the map from scores to confidences, and plots the reliability of the confidences.

    python -m identification.fit --enrolled OUT [--svg FILE]

OUT is the folder of `generate.py` after `ROLLCALL_FIT=1 ROLLCALL_ENROLLED=OUT npm run bench -- identification`, which
writes voices.json into both halves. A score is the cosine similarity of two embeddings, as in
`src/voiceprint/identification.ts`. Prints the result of the map on `check`, then the parameters for the manifest
(`embedding.identification`): slope and offset of a logistic regression (Platt, 1999) with the least cross-entropy on
`fit`, all conversations with the same weight.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

BINS = 10


class Pairs:
    """All pairs of a diarized speaker and an enrolled voice: cosine, whether they are the same person, weight."""

    def __init__(self, path: Path):
        document = json.loads(path.read_text())
        prints = {name: np.array(voice["embedding"]) for name, voice in document["prints"].items()}
        rows = []
        for conversation in document["conversations"]:
            labels = [label for label in conversation["enrolled"] if label in prints]
            count = len(labels) * len(conversation["speakers"])
            for speaker in conversation["speakers"]:
                embedding = np.array(speaker["embedding"])
                rows += [(embedding @ prints[label], label == speaker["truth"], 1 / count) for label in labels]
        self.scores, self.same, self.weight = np.array(rows).T


def log_odds(scores: np.ndarray, slope: float, offset: float) -> np.ndarray:
    return np.clip(
        slope * scores + offset, -12, 12
    )  # beyond, a pair counts as certain: see src/voiceprint/identification.ts


def cross_entropy(values: np.ndarray, pairs: Pairs) -> float:
    loss = np.logaddexp(0, np.where(pairs.same > 0, -values, values))
    return float((loss * pairs.weight).sum() / pairs.weight.sum())


def fit(pairs: Pairs) -> tuple[float, float]:
    """Slope and offset."""
    start = [1 / np.std(pairs.scores), 0.0]
    options = {"maxiter": 2000}
    found = minimize(
        lambda p: cross_entropy(log_odds(pairs.scores, *p), pairs), start, method="Nelder-Mead", options=options
    )
    return float(found.x[0]), float(found.x[1])


def equal_error_rate(scores: np.ndarray, same: np.ndarray) -> float:
    order = np.argsort(scores)
    held = np.cumsum(same[order]) / same.sum()
    passed = 1 - np.cumsum(1 - same[order]) / (1 - same).sum()
    return float(100 * np.maximum(held, passed).min())


def bins_of(values: np.ndarray, pairs: Pairs) -> list[tuple[int, float, float]]:
    """Count, mean confidence and share of the same person, in percent, of the pairs in every tenth of the scale."""
    confidence = 100 / (1 + np.exp(-values))
    found = []
    for number in range(BINS):
        inside = np.minimum(BINS - 1, (confidence / 100 * BINS).astype(int)) == number
        if inside.any():
            found.append((int(inside.sum()), float(confidence[inside].mean()), float(100 * pairs.same[inside].mean())))
        else:
            found.append((0, 0.0, 0.0))
    return found


def draw(bins: list[tuple[int, float, float]], path: Path) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "rollcall"
    from matplotlib import pyplot

    figure, (upper, lower) = pyplot.subplots(2, 1, figsize=(5, 5.4), sharex=True, height_ratios=[4, 1])
    shown = [entry for entry in bins if entry[0]]
    upper.plot([0, 100], [0, 100], color="0.7", lw=1)
    upper.plot([c for _, c, _ in shown], [s for _, _, s in shown], "o-", color="#1f6f8b")
    for count, confidence, share in shown:  # one standard error of a share
        error = 100 * np.sqrt(max(share / 100 * (1 - share / 100), 0.25 / count) / count)
        upper.plot([confidence, confidence], [max(0, share - error), min(100, share + error)], color="#1f6f8b", lw=1)
    upper.set(ylabel="same person, %", xlim=(0, 100), ylim=(0, 100))
    lower.bar([10 * at + 5 for at in range(BINS)], [count for count, _, _ in bins], width=9, color="#9dc3cf")
    lower.set(yscale="log", ylabel="pairs", xlabel="confidence")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None, "Title": "Reliability of the confidence of matches"})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--enrolled", type=Path, required=True)
    parser.add_argument("--svg", type=Path)
    options = parser.parse_args()
    train, check = (Pairs(options.enrolled / half / "voices.json") for half in ("fit", "check"))
    slope, offset = fit(train)
    for name, pairs in (("fit", train), ("check", check)):
        loss = cross_entropy(log_odds(pairs.scores, slope, offset), pairs)
        rate = equal_error_rate(pairs.scores, pairs.same)
        print(f"{name}: {loss:.4f} nats, EER {rate:.2f} %, {len(pairs.scores)} pairs")
    bins = bins_of(log_odds(check.scores, slope, offset), check)
    for count, confidence, share in bins:
        print(f"  {count:5d} pairs, confidence {confidence:5.1f}, same person {share:5.1f} %")
    print(json.dumps({"slope": round(slope, 4), "offset": round(offset, 4)}))
    if options.svg:
        draw(bins, options.svg)


if __name__ == "__main__":
    main()
