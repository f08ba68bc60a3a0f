"""Equal error rate and its interval by a bootstrap over voices."""

from __future__ import annotations

import numpy as np

RESAMPLES = 300


def weighted_eer(scores: np.ndarray, is_same: np.ndarray, weights: np.ndarray) -> float:
    """Rate in % at which the shares of refused same-speaker pairs and of accepted others are equal.

    All arguments are [pairs], scores ascending.
    """
    ends = np.append(np.diff(scores) > 0, True)  # equal scores are refused together
    refused = np.concatenate([[0], np.cumsum(weights * is_same)[ends]])
    rejected = np.concatenate([[0], np.cumsum(weights * ~is_same)[ends]])
    if refused[-1] == 0 or rejected[-1] == 0:
        return float("nan")
    misses, false_alarms = refused / refused[-1], 1 - rejected / rejected[-1]
    k = int(np.argmax(misses >= false_alarms))
    before, after = false_alarms[k - 1] - misses[k - 1], misses[k] - false_alarms[k]
    share = before / (before + after) if before + after > 0 else 0.0
    return float(100 * (misses[k - 1] + share * (misses[k] - misses[k - 1])))


def against_strangers(vectors: np.ndarray, cohort: np.ndarray, top: int) -> np.ndarray:
    """[n] mean of each unit vector's highest cosines to the unit vectors of a cohort."""
    return np.sort(vectors @ cohort.T, axis=1)[:, -top:].mean(1)


def eer(
    vectors: np.ndarray, voices: list[str], pairs: dict, seed: int, strangers: np.ndarray | None = None
) -> tuple[float, np.ndarray]:
    """EER in % of unit vectors [n, D], and of every resample of the voices with replacement.

    The weight of a pair of two voices is the product of their numbers of draws, that of a pair of one voice its number.

    strangers [n], of `against_strangers`: the mean of a pair's two values is subtracted from its cosine.
    pairs: {same, different}, lists of index pairs. The resamples depend only on voices, pairs and seed.
    """
    index = np.array(pairs["same"] + pairs["different"])
    is_same = np.arange(len(index)) < len(pairs["same"])
    scores = np.einsum("nd,nd->n", vectors[index[:, 0]], vectors[index[:, 1]])
    names, number = np.unique(np.array(voices)[index], return_inverse=True)
    number = number.reshape(index.shape)
    if strangers is not None:
        scores = scores - strangers[index].mean(1)
    order = np.argsort(scores, kind="stable")
    scores, is_same, number = scores[order], is_same[order], number[order]
    rng = np.random.default_rng(seed)
    draws = []
    for _ in range(RESAMPLES):
        counts = np.bincount(rng.integers(len(names), size=len(names)), minlength=len(names))
        weights = np.where(is_same, counts[number[:, 0]], counts[number[:, 0]] * counts[number[:, 1]])
        draws.append(weighted_eer(scores, is_same, weights))
    return weighted_eer(scores, is_same, np.ones(len(scores))), np.array(draws)


def interval(draws: np.ndarray) -> tuple[float, float]:
    """Interval with 95 % of the resamples."""
    low, high = np.nanpercentile(draws, [2.5, 97.5])
    return float(low), float(high)
