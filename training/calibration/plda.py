"""Fits the PLDA of a pack's embedder on the embeddings of `sessions.py`.

    python -m calibration.plda OBSERVED.npz ID OUT.json [--dimensions 128]

Two-covariance model (Brümmer and de Villiers, "The speaker partitioning problem", Odyssey 2010): a unit embedding,
centred and scaled to length sqrt(D), is its speaker's mean plus noise. A linear map turns the covariance within
speakers into the identity and that between speakers into a diagonal, ``phi``, the form that VBx works in (Landini et
al., 2022). Covariances are moment estimates over spans of at least a second, shrunk towards their mean eigenvalue. Also
prints, for held-out voices, the equal error rates of cosine and PLDA scores, and the logistic calibration that turns
each score into a log-likelihood ratio.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import minimize

SHRINKAGE = 0.3
MIN_SECONDS = 1.0


def length_normalised(embeddings, mean):
    """[n, d] rows of length sqrt(d) around the mean."""
    centred = embeddings - mean
    return centred / np.linalg.norm(centred, axis=1, keepdims=True) * np.sqrt(embeddings.shape[1])


def shrunk(covariance):
    mean_eigenvalue = np.trace(covariance) / len(covariance)
    return (1 - SHRINKAGE) * covariance + SHRINKAGE * mean_eigenvalue * np.eye(len(covariance))


def means_of(vectors, group):
    """[groups, d] means of the vectors of every group, numbered from 0."""
    return np.stack([np.bincount(group, column) for column in vectors.T], 1) / np.bincount(group)[:, None]


def covariances(vectors, voice, session):
    """Covariances within and between voices, [d, d] each, about the mean of each session.

    Properties that all voices of a session share (room, channel) do not distinguish them, so the mean of the session is
    removed. It has the same weight for every voice of the session. Deviations of n voices from their own mean
    have (n - 1) / n of the variance: they are scaled up. The variance of the voices' estimated means is subtracted.
    """
    _, session = np.unique(session, return_inverse=True)
    # A speaker is a voice in a session.
    speakers, speaker = np.unique(np.stack([session, voice], 1), axis=0, return_inverse=True)
    speaker, session_of = speaker.ravel(), speakers[:, 0]
    means = means_of(vectors, speaker)
    deviations = vectors - means[speaker]
    within = deviations.T @ deviations / (len(vectors) - len(speakers))
    counts = np.bincount(session_of)
    scales = np.sqrt(counts / np.maximum(counts - 1, 1))
    offsets = (means - means_of(means, session_of)[session_of]) * scales[session_of][:, None]
    between = offsets.T @ offsets / len(offsets) - within * (1 / np.bincount(speaker)).mean()
    return shrunk(within), shrunk(between)


def fit(embeddings, voice, session, dimensions):
    """mean [d], offset [d], transform [dimensions, d], phi [dimensions], largest first."""
    mean = embeddings.mean(0)
    vectors = length_normalised(embeddings, mean)
    within, between = covariances(vectors, voice, session)
    phi, basis = eigh(between, within)
    order = np.argsort(-phi)[:dimensions]
    return mean, vectors.mean(0), basis[:, order].T, np.maximum(phi[order], 1e-3)


def project(model, embeddings):
    mean, offset, transform, _ = model
    return (length_normalised(embeddings, mean) - offset) @ transform.T


def log_ratio(a, b, phi):
    """Log-likelihood ratio of one speaker against two, rows of a and b in the PLDA space."""
    total, shared = 1 + phi, 1 + 2 * phi
    together = -0.5 * (np.log(shared) + (a * a + b * b - phi / shared * (a + b) ** 2)).sum(1)
    apart = -0.5 * (2 * np.log(total) + (a * a + b * b) / total).sum(1)
    return together - apart


def pairs(voice, rng, count=40000):
    """Indices of the same number of same-voice and different-voice pairs."""
    order = np.argsort(voice, kind="stable")
    blocks = [b for b in np.split(order, np.flatnonzero(np.diff(voice[order])) + 1) if len(b) > 1]
    same = np.array([rng.choice(blocks[k], 2, replace=False) for k in rng.integers(0, len(blocks), count)])
    other = rng.integers(0, len(voice), (2 * count, 2))
    return same, other[voice[other[:, 0]] != voice[other[:, 1]]][:count]


def equal_error(same, other):
    thresholds = np.sort(np.concatenate([same, other]))
    missed = np.searchsorted(np.sort(same), thresholds) / len(same)
    accepted = 1 - np.searchsorted(np.sort(other), thresholds) / len(other)
    at = np.argmin(np.abs(missed - accepted))
    return (missed[at] + accepted[at]) / 2


def logistic(same, other):
    """Slope and offset of the log-likelihood ratio, and its cost Cllr in bits."""

    def cost(p):
        missed, accepted = np.logaddexp(0, -(p[0] * same + p[1])), np.logaddexp(0, p[0] * other + p[1])
        return 0.5 * (missed.mean() + accepted.mean()) / np.log(2)

    best = minimize(cost, [1.0, 0.0], method="Nelder-Mead")
    return *best.x, best.fun


def read(path):
    """Unit embeddings, voices, sessions and seconds of spans of at least `MIN_SECONDS`."""
    data = np.load(path)
    keep = data["seconds"] >= MIN_SECONDS
    embeddings = data["embeddings"].astype(float)[keep]
    unit = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    return unit, *(data[name][keep] for name in ("voice", "session", "seconds"))


def report(model, embeddings, voice, seconds, rng):
    """Prints the equal error rates of cosine and PLDA, by length of the spans."""
    projected = project(model, embeddings)
    scores = {
        "cosine": lambda p: (embeddings[p[:, 0]] * embeddings[p[:, 1]]).sum(1),
        "PLDA": lambda p: log_ratio(projected[p[:, 0]], projected[p[:, 1]], model[3]),
    }
    for low, high in ((1, 1.4), (1.4, 2.4), (2.4, 9)):
        rows = np.flatnonzero((seconds >= low) & (seconds < high))
        same, other = (rows[indices] for indices in pairs(voice[rows], rng))
        for name, score in scores.items():
            rate = equal_error(score(same), score(other))
            slope, offset, cost = logistic(score(same), score(other))
            calibration = f"slope {slope:.3f} offset {offset:.3f} Cllr {cost:.3f}"
            print(f"{low}-{high} s {name}: EER {100 * rate:.1f} %, {calibration}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("observed", type=Path)
    parser.add_argument("identity", metavar="ID")
    parser.add_argument("out", type=Path)
    parser.add_argument("--dimensions", type=int, default=128)
    options = parser.parse_args()
    embeddings, voice, session, seconds = read(options.observed)
    rng = np.random.default_rng(3)
    voices = rng.permutation(np.unique(voice))
    fitted = np.isin(voice, voices[: len(voices) // 2])
    model = fit(embeddings[fitted], voice[fitted], session[fitted], options.dimensions)
    report(model, embeddings[~fitted], voice[~fitted], seconds[~fitted], rng)
    model = fit(embeddings, voice, session, options.dimensions)
    arrays = {key: np.round(value, 6).tolist() for key, value in zip(("mean", "offset", "transform", "phi"), model)}
    document = {"embedding": options.identity, **arrays}
    options.out.write_text(json.dumps(document, separators=(",", ":")) + "\n")
    phi = model[3]
    print(f"phi {phi[:5].round(2)} ... {phi[-3:].round(3)}, {options.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
