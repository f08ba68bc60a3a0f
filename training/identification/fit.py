"""Fits the map from cosines to log-odds, and plots the reliability of the confidences.

    python -m identification.fit OBSERVED.npz [--svg FILE] [--enrolled OUT]

OBSERVED.npz is the file of `observe.py`. A pair is a voice of an enrolment recording and one of a conversation. Its
log-odds are those of `src/voiceprint/identification.ts`:

    reliability = sqrt(a / (a + noiseSeconds) * b / (b + noiseSeconds)), a and b the seconds of speech of both
    log-odds = reliability * (slope * cosine + offset * reliability)

The parameters have the least cross-entropy on the train voices. One half of the weight is on pairs of one person, all
people with the same weight; a quarter is on pairs of two people with similar voices (one set, pitch within three
semitones), and a quarter on other pairs. Prints the results on the dev voices and, with the folder of `generate.py`
after `npm run bench -- identification`, on the voices that the service found; last, the parameters for
`models/manifest.json` (`embedding.identification`).
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

BINS = 10
SIMILAR_SEMITONES = 3
MAX_DIFFERENT = 200_000
"""Pairs of two people that are used, drawn at random."""
MIN_SECONDS = 0.5
"""As in `src/voiceprint/identification.ts`."""
START = (20.0, -8.0, 1.0)


@dataclass(frozen=True)
class Pairs:
    cosine: np.ndarray
    same: np.ndarray
    """Whether both are one person."""
    seconds: np.ndarray
    """[2, n] seconds of speech, of the enrolment and of the conversation."""
    weight: np.ndarray


def observed_pairs(path: Path, is_dev: bool) -> Pairs:
    """Pairs of the voices of one split."""
    data = np.load(path)
    speaker, rng = data["speaker"], np.random.default_rng(0)
    _, group = np.unique(data["sets"], return_inverse=True)
    chosen = data["is_dev"][speaker] == is_dev
    sides = (np.flatnonzero(chosen & data["is_enrolment"]), np.flatnonzero(chosen & ~data["is_enrolment"]))
    enrolment, talk = (side.ravel() for side in np.meshgrid(*sides, indexing="ij"))
    a, b = speaker[enrolment], speaker[talk]
    same = a == b
    similar = ~same & (group[a] == group[b]) & (np.abs(data["pitch"][a] - data["pitch"][b]) <= SIMILAR_SEMITONES)
    kinds = (same, similar, ~same & ~similar)
    rows = np.concatenate(
        [np.flatnonzero(same)]
        + [rng.permutation(np.flatnonzero(kind))[: MAX_DIFFERENT // 2] for kind in kinds[1:]]
    )
    enrolment, talk = enrolment[rows], talk[rows]
    weight = np.zeros(len(rows))
    for kind, share in zip(kinds, (0.5, 0.25, 0.25)):
        inside = kind[rows]
        each = 1 / np.bincount(a[rows][inside])[a[rows][inside]] if kind is same else np.ones(inside.sum())
        weight[inside] = share * each / each.sum()
    cosine = np.einsum("nd,nd->n", data["embedding"][enrolment], data["embedding"][talk])
    seconds = np.stack([data["seconds"][enrolment], data["seconds"][talk]])
    return Pairs(cosine, same[rows], seconds, weight)


def service_pairs(path: Path) -> Pairs:
    """Pairs of the diarized speakers and voiceprints of voices.json, all with the same weight."""
    document = json.loads(path.read_text())
    rows = [
        (np.dot(speaker["embedding"], voice["embedding"]), name == speaker["truth"], voice["secondsAlone"],
         speaker["secondsAlone"])
        for conversation in document["conversations"]
        for speaker in conversation["speakers"]
        for name, voice in document["prints"].items()
        if name in conversation["enrolled"]
    ]  # fmt: skip
    cosine, same, *seconds = np.array(rows, float).T
    return Pairs(cosine, same > 0, np.array(seconds), np.full(len(rows), 1 / len(rows)))


def log_odds(parameters: np.ndarray, pairs: Pairs) -> np.ndarray:
    slope, offset, noise_seconds = parameters
    seconds = np.maximum(MIN_SECONDS, pairs.seconds)
    reliability = np.sqrt((seconds / (seconds + abs(noise_seconds))).prod(0))
    return reliability * (slope * pairs.cosine + offset * reliability)


def cross_entropy(values: np.ndarray, pairs: Pairs) -> float:
    return float((np.logaddexp(0, np.where(pairs.same, -values, values)) * pairs.weight).sum())


def fit(pairs: Pairs) -> np.ndarray:
    """Slope, offset and noise seconds."""
    found = minimize(lambda p: cross_entropy(log_odds(p, pairs), pairs), START, method="Nelder-Mead").x
    return np.array([found[0], found[1], abs(found[2])])


def equal_error_rate(scores: np.ndarray, pairs: Pairs) -> float:
    order = np.argsort(scores)
    same, weight = pairs.same[order], pairs.weight[order]
    held = np.cumsum(weight * same) / (weight * same).sum()
    passed = 1 - np.cumsum(weight * ~same) / (weight * ~same).sum()
    return float(100 * np.maximum(held, passed).min())


def shares_above_one_half(values: np.ndarray, pairs: Pairs) -> tuple[float, float]:
    """Percent of the pairs of two people, and of one person, that have a confidence above 50."""
    kinds = (~pairs.same, pairs.same)
    return tuple(100 * float((pairs.weight * (values > 0))[kind].sum() / pairs.weight[kind].sum()) for kind in kinds)


def bins_of(values: np.ndarray, pairs: Pairs) -> list[tuple[int, float, float]]:
    """Count, mean confidence and share of one person, in percent, of the pairs in every tenth of the scale."""
    confidence = 100 / (1 + np.exp(-values))
    found = []
    for number in range(BINS):
        inside = np.minimum(BINS - 1, (confidence / 100 * BINS).astype(int)) == number
        weight = pairs.weight[inside]
        if weight.sum() > 0:
            means = (float((weight * each).sum() / weight.sum()) for each in (confidence[inside], pairs.same[inside]))
            mean, share = means
            found.append((int(inside.sum()), mean, 100 * share))
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
    upper.set(ylabel="same person, %", xlim=(0, 100), ylim=(0, 100))
    lower.bar([10 * at + 5 for at in range(BINS)], [count for count, _, _ in bins], width=9, color="#9dc3cf")
    lower.set(yscale="log", ylabel="pairs", xlabel="confidence")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None, "Title": "Reliability of the confidence of matches"})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("observed", type=Path)
    parser.add_argument("--svg", type=Path)
    parser.add_argument("--enrolled", type=Path)
    options = parser.parse_args()
    parameters = fit(observed_pairs(options.observed, False))
    dev = observed_pairs(options.observed, True)
    for name, pairs in [("dev", dev)] + (
        [("service", service_pairs(options.enrolled / "check" / "voices.json"))] if options.enrolled else []
    ):
        values = log_odds(parameters, pairs)
        accepted, found = shares_above_one_half(values, pairs)
        rates = f"EER {equal_error_rate(values, pairs):.2f} %, above 50: {accepted:.1f} % of two people, {found:.1f} %"
        print(f"{name}: {cross_entropy(values, pairs):.4f} nats, {rates} of one, {len(values)} pairs")
    bins = bins_of(log_odds(parameters, dev), dev)
    for count, confidence, share in bins:
        print(f"  {count:5d} pairs, confidence {confidence:5.1f}, same person {share:5.1f} %")
    slope, offset, noise_seconds = (round(float(value), 4) for value in parameters)
    print(json.dumps({"slope": slope, "offset": offset, "noiseSeconds": noise_seconds}))
    if options.svg:
        draw(bins, options.svg)


if __name__ == "__main__":
    main()
