"""Fits the PLDA of a pack's embedder on degraded pieces of held-out voices.

    python -m calibration.plda OBSERVED.npz ID OUT.json [--dimensions 128] [--cohort OTHERS.npz]

Two-covariance model (Brümmer and de Villiers, "The speaker partitioning problem", Odyssey 2010): a unit embedding, centred and
scaled to length sqrt(D), is its speaker's mean plus noise. A linear map turns the covariance within speakers into the identity
and that between speakers into a diagonal, ``phi``, the form VBx works in (Landini et al., 2022). Covariances are moment estimates
over pieces of at least a second, shrunk towards their mean eigenvalue. Also prints how well scores tell speakers apart, cosine and PLDA, with the
logistic calibration that turns each into a log-likelihood ratio, on voices that the fit did not see.

OTHERS.npz, observed likewise, are voices that nobody will ask about. A piece of each of COHORT_SIZE of them goes along, in the PLDA space and in bytes: what a
voice scores against those of them that it is most like is what it scores against strangers, and is taken off its scores
(adaptive score normalisation: Matějka et al., "Analysis of score normalization in multilingual speaker recognition", Interspeech 2017).
"""
import argparse
import base64
import json
from pathlib import Path

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import minimize

SHRINKAGE = 0.3
MIN_SECONDS = 1.0
COHORT_SIZE = 1500
COHORT_MIN_SECONDS = 3.0
COHORT_SEED = 5


def length_normalised(embeddings, mean):
    """[n, d] rows of length sqrt(d) around the mean."""
    centred = embeddings - mean
    return centred / np.linalg.norm(centred, axis=1, keepdims=True) * np.sqrt(embeddings.shape[1])


def covariances(vectors, voice):
    """Covariance within and between voices by moments; the spread of the estimated means is taken off the latter."""
    voices, index = np.unique(voice, return_inverse=True)
    counts = np.bincount(index)
    means = np.stack([np.bincount(index, column) for column in vectors.T], 1) / counts[:, None]
    deviations = vectors - means[index]
    within = deviations.T @ deviations / (len(vectors) - len(voices))
    spread = np.cov(means.T)
    between = spread - within * (1 / counts).mean()
    return shrunk(within), between


def shrunk(covariance):
    return (1 - SHRINKAGE) * covariance + SHRINKAGE * np.trace(covariance) / len(covariance) * np.eye(len(covariance))


def fit(embeddings, voice, dimensions, session=None):
    """mean [d], offset [d], transform [dimensions, d], phi [dimensions], largest first.

    With sessions, the mean of each is taken from its vectors before the covariances are: what people who share a room and a
    channel have in common tells nothing of who they are there. Between voices the spread is then of n - 1 in n.
    """
    mean = embeddings.mean(0)
    vectors = length_normalised(embeddings, mean)
    offset = vectors.mean(0)
    if session is None:
        within, between = covariances(vectors, voice)
    else:
        _, index = np.unique(session, return_inverse=True)
        counts = np.bincount(index)
        people = np.array([len(np.unique(voice[index == s])) for s in range(len(counts))])
        # The mean of a session is that of its voices, each once, or whoever says most would be at the centre.
        pairs = np.stack([index, voice], 1)
        keys, member = np.unique(pairs, axis=0, return_inverse=True)
        member = member.ravel()
        size = np.bincount(member)
        means = np.stack([np.bincount(member, column) for column in vectors.T], 1) / size[:, None]
        centres = np.stack([np.bincount(keys[:, 0], column) for column in means.T], 1) / people[:, None]
        deviations = vectors - means[member]
        within = shrunk(deviations.T @ deviations / (len(vectors) - len(keys)))
        offsets = (means - centres[keys[:, 0]]) * np.sqrt(people / np.maximum(people - 1, 1))[keys[:, 0]][:, None]
        between = shrunk(offsets.T @ offsets / len(offsets) - (deviations.T @ deviations / (len(vectors) - len(keys))) * (1 / size).mean())
    phi, basis = eigh(between, within)
    order = np.argsort(-phi)[:dimensions]
    return mean, offset, basis[:, order].T, np.maximum(phi[order], 1e-3)


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
    """Indices of as many same-voice as different-voice pairs."""
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
    cost = lambda p: 0.5 * (np.logaddexp(0, -(p[0] * same + p[1])).mean() + np.logaddexp(0, p[0] * other + p[1]).mean()) / np.log(2)
    best = minimize(cost, [1.0, 0.0], method="Nelder-Mead")
    return *best.x, best.fun


def read(path, least_seconds):
    """Unit embeddings, voices and seconds of the pieces that are long enough."""
    data = np.load(path)
    keep = data["seconds"] >= least_seconds
    embeddings = data["embeddings"].astype(float)[keep]
    session = data["session"][keep] if "session" in data else None
    return embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True), data["voice"][keep], data["seconds"][keep], session


def cohort(model, path):
    """{scale, values}: COHORT_SIZE pieces of as many voices, [n, dimensions] signed bytes in base64 that times scale are in the PLDA space."""
    embeddings, voice, _, _ = read(path, COHORT_MIN_SECONDS)
    order = np.random.default_rng(COHORT_SEED).permutation(len(voice))
    _, first = np.unique(voice[order], return_index=True)
    projected = project(model, embeddings[order[np.sort(first)[:COHORT_SIZE]]])
    scale = float(np.round(np.abs(projected).max() / 127, 6))
    values = np.clip(np.rint(projected / scale), -127, 127).astype(np.int8)
    return {"scale": scale, "values": base64.b64encode(values.tobytes()).decode()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("observed", type=Path)
    parser.add_argument("identity", metavar="ID")
    parser.add_argument("out", type=Path)
    parser.add_argument("--dimensions", type=int, default=128)
    parser.add_argument("--cohort", type=Path)
    options = parser.parse_args()
    embeddings, voice, seconds, session = read(options.observed, MIN_SECONDS)
    rng = np.random.default_rng(3)
    half = rng.permutation(np.unique(voice))
    is_fit = np.isin(voice, half[: len(half) // 2])
    model = fit(embeddings[is_fit], voice[is_fit], options.dimensions, session[is_fit] if session is not None else None)
    for low, high in ((1, 1.4), (1.4, 2.4), (2.4, 9)):
        rows = np.flatnonzero(~is_fit & (seconds >= low) & (seconds < high))
        same, other = pairs(voice[rows], rng)
        unit = embeddings[rows]
        projected = project(model, embeddings[rows])
        for name, score in (
            ("cosine", lambda p: (unit[p[:, 0]] * unit[p[:, 1]]).sum(1)),
            ("PLDA", lambda p: log_ratio(projected[p[:, 0]], projected[p[:, 1]], model[3])),
        ):
            slope, shift, cost = logistic(score(same), score(other))
            print(f"{low}-{high} s {name}: EER {100 * equal_error(score(same), score(other)):.1f} %, slope {slope:.3f} offset {shift:.3f} Cllr {cost:.3f}")
    model = fit(embeddings, voice, options.dimensions, session)
    arrays = {key: np.round(value, 6).tolist() for key, value in zip(("mean", "offset", "transform", "phi"), model)}
    document = {"embedding": options.identity, **arrays}
    if options.cohort:
        document["cohort"] = cohort(model, options.cohort)
    options.out.write_text(json.dumps(document, separators=(",", ":")) + "\n")
    phi = model[3]
    print(f"phi {phi[:5].round(2)} ... {phi[-3:].round(3)}, {options.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
