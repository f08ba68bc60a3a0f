"""Makes test/golden/data/clustering_*: a drawn recording and what `clustering.py` makes of it.

    python -m calibration.write_golden     # in training/

Five voices, two local speakers in most windows, a voice that says little and embeddings that are noisier the shorter the speech.
Drawn with a fixed seed; nothing here is speech.
"""
import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from .clustering import Bayesian, Items, Parameters, Plda, Subsegments, cluster, unit

DATA = Path(__file__).parents[2] / "test" / "golden" / "data"
DIMENSION = 24
SEED = 5
PLDA_DIMENSION = 16
# Drawn voices are nearer to each other than people's.
BAYESIAN = Parameters(bayesian=Bayesian(speaker_regularisation=1.0, initial_threshold=0.45))

FOUND_TWICE = 0.02
"""Regularisation so small that some voices are found more than once."""


def draw(step_seconds, windows, rng):
    voices = unit(rng.normal(size=(5, DIMENSION)) + 0.5)
    rows = []
    for window in range(windows):
        for voice in rng.choice(5, int(rng.integers(1, 4)), replace=False, p=[0.35, 0.3, 0.2, 0.12, 0.03]):
            clean = float(np.float32(rng.uniform(0, 6) ** 1.2 / 6**0.2))
            noise = rng.normal(size=DIMENSION) * 0.16 * np.sqrt(1 + 1 / (clean + 0.2))
            rows.append((window, clean, unit(voices[voice] + noise)))
    embeddings = np.array([row[2] for row in rows], np.float32)
    return Items(embeddings.astype(float), np.array([row[0] for row in rows]), np.array([row[1] for row in rows]), step_seconds)


def read(name, recording):
    embeddings = np.load(DATA / f"clustering_{name}_embeddings.npy").astype(float)
    return Items(embeddings, np.array(recording["windows"]), np.array(recording["cleanSeconds"]), recording["stepSeconds"])


def draw_subsegments(items, rng):
    """Noisy copies of local speakers' embeddings, a few a window; float32, as they are stored."""
    rows = np.sort(rng.choice(len(items.windows), len(items.windows), replace=True))
    noise = rng.normal(size=(len(rows), DIMENSION)) * 0.2
    embeddings = unit(items.embeddings[rows] + noise).astype(np.float32).astype(float)
    return Subsegments(2 * np.arange(len(rows)), embeddings, 2)


def draw_plda(rng):
    basis, _ = np.linalg.qr(rng.normal(size=(DIMENSION, DIMENSION)))
    phi = np.sort(rng.uniform(0.2, 6, PLDA_DIMENSION))[::-1]
    return Plda(rng.normal(size=DIMENSION) * 0.02, rng.normal(size=DIMENSION) * 0.1, basis[:PLDA_DIMENSION] * 1.4, phi)


def main():
    rng = np.random.default_rng(SEED)
    recordings, runs = {}, []
    for name, step, windows in (("fine", 1.0, 50), ("coarse", 5.0, 30), ("short", 1.0, 4)):
        items = draw(step, windows, rng)
        np.save(DATA / f"clustering_{name}_embeddings.npy", items.embeddings.astype(np.float32))
        recordings[name] = {"windows": items.windows.tolist(), "cleanSeconds": items.clean_seconds.tolist(), "stepSeconds": step}
        for minimum, maximum in ((1, None), (2, 2), (3, 3), (4, 4), (5, 5), (7, 7), (1, 2), (6, None)):
            labels, count = cluster(items, minimum=minimum, maximum=np.inf if maximum is None else maximum)
            runs.append({"recording": name, "min": minimum, "max": maximum, "count": count, "labels": labels.tolist()})
    plda = draw_plda(rng)
    for name in recordings:
        items = read(name, recordings[name])
        pieces = draw_subsegments(items, rng)
        np.save(DATA / f"clustering_{name}_subsegments.npy", pieces.embeddings.astype(np.float32))
        recordings[name]["subsegments"] = {"indices": pieces.indices.tolist(), "every": pieces.every}
        for with_pieces, minimum, maximum in ((p, a, b) for p in (False, True) for a, b in ((1, None), (4, 4), (1, 2))):
            labels, count = cluster(
                items, BAYESIAN, minimum, np.inf if maximum is None else maximum, plda, pieces if with_pieces else None
            )
            runs.append({"recording": name, "bayesian": True, "subsegments": with_pieces, "min": minimum, "max": maximum, "count": count, "labels": labels.tolist()})
        for *merging, minimum in (
            (2.0, 0.0, 2.0, 1), (0.65, 0.3, 2.0, 1), (0.3, 0.3, 2.0, 1), (0.3, 0.0, 2.0, 1), (0.3, 0.0, 2.0, 4), (2.0, 0.0, 0.12, 1), (0.65, 0.3, 0.18, 1),
        ):  # fmt: skip
            names = ("merge_similarity", "merge_item_similarity", "same_item_similarity")
            changes = {"speaker_regularisation": FOUND_TWICE, "max_regularisation": FOUND_TWICE, **dict(zip(names, merging))}
            joining = replace(BAYESIAN, bayesian=replace(BAYESIAN.bayesian, **changes))
            labels, count = cluster(items, joining, minimum, np.inf, plda, pieces)
            run = {"recording": name, "bayesian": True, "subsegments": True, "regularisation": FOUND_TWICE, "merging": merging}
            runs.append({**run, "min": minimum, "max": None, "count": count, "labels": labels.tolist()})
    document = {"embedding": "drawn", **{key: np.asarray(value).tolist() for key, value in vars(plda).items()}}
    (DATA / "clustering.json").write_text(json.dumps({"recordings": recordings, "runs": runs, "plda": document}))


if __name__ == "__main__":
    main()
