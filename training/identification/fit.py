"""Fits the map from scores to confidences, and draws how far the confidences are right.

    python -m identification.fit --enrolled OUT --plda PLDA.json [--svg FILE]

OUT is the folder of `generate.py` after `ROLLCALL_FIT=1 ROLLCALL_ENROLLED=OUT npm run bench -- identification`, which writes voices.json into
both halves. Prints the parameters for the manifest (`embedding.identification`): of a grid over the observations that speech counts as and how many of the PLDA's cohort count, the
slope and offset of a logistic regression (Platt, 1999) with the least cross-entropy on `fit`, every conversation weighing the same. The
same arithmetic as `src/voiceprint/score.ts`.
"""

from __future__ import annotations

import argparse
import base64
import itertools
import json
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

SECONDS_PER_OBSERVATION = (1.0, 2.0, 4.0, 8.0, 16.0)
MAX_OBSERVATIONS = (1.0, 1.5, 2.0, 3.0, 5.0, 8.0)
COHORT_TOPS = (0, 3, 10, 30)
BINS = 10


class Plda:
    def __init__(self, path: Path):
        raw = json.loads(path.read_text())
        self.mean, self.offset, self.phi = (np.array(raw[key]) for key in ("mean", "offset", "phi"))
        self.transform = np.array(raw["transform"])
        values = np.frombuffer(base64.b64decode(raw["cohort"]["values"]), np.int8) if "cohort" in raw else np.zeros(0)
        self.cohort = values.reshape(-1, len(self.phi)) * (raw["cohort"]["scale"] if "cohort" in raw else 1.0)

    def project(self, embedding: np.ndarray) -> np.ndarray:
        """Unit embedding [D] -> [outputs]."""
        vector = embedding - self.mean
        vector = vector * np.sqrt(len(vector) / (vector**2).sum()) - self.offset
        return self.transform @ vector

    def ratio(self, x: np.ndarray, y: np.ndarray, n: float, m: float) -> np.ndarray:
        """Log-likelihood ratios a dimension of means of n observations, [..., outputs], and of m."""
        a, b = self.phi + 1 / n, self.phi + 1 / m
        determinant = a * b - self.phi**2
        joint = (b * x**2 - 2 * self.phi * x * y + a * y**2) / determinant
        return 0.5 * (x**2 / a + y**2 / b - joint + np.log(a * b / determinant)).mean(-1)

    def against_cohort(self, x: np.ndarray, n: float, top: int) -> float:
        """Mean of the highest ratios of a mean of n observations to the pieces of the cohort, one observation each."""
        return float(np.sort(self.ratio(x, self.cohort, n, 1))[-top:].mean()) if top else 0.0


class Pairs:
    """All pairs of a diarized speaker and a submitted voice: projected voices, seconds, whether they are one person, weights."""

    def __init__(self, path: Path, plda: Plda):
        document = json.loads(path.read_text())
        self.plda, rows = plda, []
        prints = {name: (plda.project(np.array(v["embedding"])), v["secondsAlone"]) for name, v in document["prints"].items()}
        for conversation in document["conversations"]:
            labels = [label for label in conversation["enrolled"] if label in prints]
            pairs = len(labels) * len(conversation["speakers"])
            for speaker in conversation["speakers"]:
                voice = plda.project(np.array(speaker["embedding"]))
                rows += [(voice, speaker["secondsAlone"], *prints[label], label == speaker["truth"], 1 / pairs) for label in labels]
        self.rows = rows
        self.same = np.array([row[4] for row in rows], float)
        self.weight = np.array([row[5] for row in rows])

    def scores(self, per_observation: float, most: float, top: int) -> np.ndarray:
        strangers: dict[int, float] = {}

        def count(seconds: float) -> float:
            return min(most, 1 + seconds / per_observation)

        def against_strangers(voice: np.ndarray, seconds: float) -> float:
            if id(voice) not in strangers:
                strangers[id(voice)] = self.plda.against_cohort(voice, count(seconds), top)
            return strangers[id(voice)]

        return np.array(
            [
                self.plda.ratio(x, y, count(s), count(t)) - (against_strangers(x, s) + against_strangers(y, t)) / 2
                for x, s, y, t, _, _ in self.rows
            ]
        )


def log_odds(scores: np.ndarray, slope: float, offset: float) -> np.ndarray:
    return np.clip(slope * scores + offset, -12, 12)  # beyond, a pair is as good as certain: see src/voiceprint/match.ts


def cross_entropy(values: np.ndarray, pairs: Pairs) -> float:
    loss = np.logaddexp(0, np.where(pairs.same > 0, -values, values))
    return float((loss * pairs.weight).sum() / pairs.weight.sum())


def fit(scores: np.ndarray, pairs: Pairs) -> tuple[float, float, float]:
    """Slope, offset and cross-entropy in nats."""
    start = [10 / (np.std(scores) * 10 + 1e-9), 0.0]
    found = minimize(lambda p: cross_entropy(log_odds(scores, *p), pairs), start, method="Nelder-Mead", options={"maxiter": 2000})
    return float(found.x[0]), float(found.x[1]), float(found.fun)


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
        found.append((int(inside.sum()), float(confidence[inside].mean()) if inside.any() else 0, float(100 * pairs.same[inside].mean()) if inside.any() else 0))
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
    parser.add_argument("--plda", type=Path, required=True)
    parser.add_argument("--svg", type=Path)
    options = parser.parse_args()
    plda = Plda(options.plda)
    train, check = (Pairs(options.enrolled / half / "voices.json", plda) for half in ("fit", "check"))
    best = None
    tops = COHORT_TOPS if len(plda.cohort) else (0,)
    for top, per_observation, most in itertools.product(tops, SECONDS_PER_OBSERVATION, MAX_OBSERVATIONS):
        scores = train.scores(per_observation, most, top)
        slope, offset, loss = fit(scores, train)
        shown = f"cohort {top:2d}, {per_observation:4.1f} s an observation, at most {most:3.1f}"
        print(f"{shown}: {loss:.4f} nats, EER {equal_error_rate(scores, train.same):.2f} %")
        if best is None or loss < best[0] - 1e-4:
            best = (loss, top, per_observation, most, slope, offset)
    assert best is not None
    _, top, per_observation, most, slope, offset = best
    scores = check.scores(per_observation, most, top)
    values = log_odds(scores, slope, offset)
    print(f"check: {cross_entropy(values, check):.4f} nats, EER {equal_error_rate(scores, check.same):.2f} %, {len(check.rows)} pairs")
    for count, confidence, share in bins_of(values, check):
        print(f"  {count:5d} pairs, confidence {confidence:5.1f}, same person {share:5.1f} %")
    parameters = dict(slope=slope, offset=offset, secondsPerObservation=per_observation, maxObservations=most, **({"cohortTop": top} if top else {}))
    print(json.dumps({"score": "plda", **{key: round(value, 4) for key, value in parameters.items()}}))
    if options.svg:
        draw(bins_of(values, check), options.svg)


if __name__ == "__main__":
    main()
