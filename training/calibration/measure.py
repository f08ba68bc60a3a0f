"""Error rates of clustering parameters, on stored observations.

    python -m calibration.measure grid PLDA OBSERVATIONS RTTMS [STEP]      DER by where VBx starts from and what a speaker costs
    python -m calibration.measure counts PLDA OBSERVATIONS RTTMS [STEP]    automatic count, true count given, perfect clustering

OBSERVATIONS is a folder that `observe.py` wrote, PLDA a file that `plda.py` wrote (or "none"); STEP is the distance of windows in seconds, 1 by
default. DER has no collar, scores overlap and is pooled over the folder, in percent: total, missed, false alarm, confusion.
"""
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment

from .clustering import Items, Parameters, Plda, Subsegments, cluster_model, unit

FRAME_SECONDS = 0.02
WINDOW_FRAMES = 500
COUNT_BIAS = -0.15  # as in parameters.ts
SUBSEGMENT_FRAMES = 25
SUBSEGMENT_WEIGHT = 0.95  # as in parameters.ts; here a subsegment is heard without its neighbours
SUBSEGMENT_TEMPERATURE = 0.1
MAX_SUBSEGMENTS = 800
TAPERS = {1: 0.0, 2: 0.0, 5: 0.5}
MARGINALS = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1], [0, 1, 1]], float)


class Observation:
    def __init__(self, path, rttm, step):
        stored = np.load(path)
        self.step = step
        self.frames = int(stored["seconds"] / FRAME_SECONDS)
        self.windows = np.arange(0, len(stored["probabilities"]), step)
        centres = (np.arange(WINDOW_FRAMES) + 0.5) * FRAME_SECONDS * 16000
        rows = np.round((centres - stored["size"] / 2) / stored["shift"]).astype(int)
        probabilities = stored["probabilities"][self.windows].astype(float)
        self.probabilities = probabilities[:, rows.clip(0, probabilities.shape[1] - 1)]
        chosen = np.isin(stored["items"][:, 0].astype(int), self.windows)
        table = stored["items"][chosen]
        self.locals = table[:, 1].astype(int)
        self.items = Items(unit(stored["embeddings"][chosen].astype(float)), table[:, 0].astype(int) // step, table[:, 2], step)
        self.pieces = Subsegments(stored["subsegments"], unit(stored["subsegment_embeddings"].astype(float)))
        lines = [line.split() for line in Path(rttm).read_text().splitlines() if line.startswith("SPEAKER")]
        names = sorted({line[7] for line in lines})
        self.reference = np.zeros((self.frames, len(names)), bool)
        for line in lines:
            start, length = float(line[3]), float(line[4])
            first, last = round(start / FRAME_SECONDS), round((start + length) / FRAME_SECONDS)
            self.reference[first:last, names.index(line[7])] = True

    def cluster(self, parameters, minimum=1, maximum=np.inf, plda=None):
        """Labels [items], unit centroids, shift."""
        if len(self.locals) == 0:
            return np.zeros(0, int), np.ones((1, 1)), 0
        every = max(1, int(np.ceil(len(self.pieces.indices) / MAX_SUBSEGMENTS)))
        kept = self.pieces.indices % every == 0
        thinned = Subsegments(self.pieces.indices[kept], self.pieces.embeddings[kept], every)
        return cluster_model(self.items, parameters, minimum, maximum, plda, thinned if plda else None)

    def say(self, centroids, shift, temperature=SUBSEGMENT_TEMPERATURE):
        """Posterior of the speakers by the subsegments around each frame [frames, count], and where there are any [frames]."""
        position = (np.arange(self.frames) + 0.5) / SUBSEGMENT_FRAMES
        before = position.astype(int)
        size = before.max(initial=0) + 3
        table, there = np.zeros((size, len(centroids))), np.zeros(size, bool)
        inside = self.pieces.indices < size
        scores = unit(self.pieces.embeddings - shift) @ centroids.T / temperature
        scores = np.exp(scores - scores.max(1, keepdims=True, initial=-np.inf))
        table[self.pieces.indices[inside]] = (scores / scores.sum(1, keepdims=True))[inside]
        there[self.pieces.indices[inside]] = True
        left, right = there[before], there[before + 1]
        towards = np.where(left & right, position - before, np.where(right, 1.0, 0.0))[:, None]
        return (1 - towards) * table[before] + towards * table[before + 1], left | right

    def perfect(self):
        """Every local speaker to the reference speaker heard most, one to one within a window; the others to one extra."""
        speakers = self.reference.shape[1]
        padded = np.vstack([self.reference, np.zeros((WINDOW_FRAMES, speakers), bool)])
        labels = np.full(len(self.locals), speakers)
        for row, window in enumerate(self.windows):
            mine = np.where(self.items.windows == row)[0]
            active = (self.probabilities[row] @ MARGINALS > 0.5)[:, self.locals[mine]]
            there = padded[window * 50 : window * 50 + WINDOW_FRAMES]
            shared = active[: len(there)].T.astype(float) @ there
            for item, speaker in zip(*linear_sum_assignment(-shared)):
                if shared[item, speaker] > 0:
                    labels[mine[item]] = speaker
        return labels, speakers + 1

    def rebuild(self, labels, count, taper=0.0, say=None):
        """Decision [frames, count]. `say`: of the subsegments."""
        size = self.frames + int(self.windows[-1]) * 50 + WINDOW_FRAMES
        sums = np.zeros((size, count))
        expected, weight = np.zeros(size), np.zeros(size)
        window_weight = 1 - taper * np.abs((2 * np.arange(WINDOW_FRAMES) + 1) / WINDOW_FRAMES - 1)
        for row, window in enumerate(self.windows):
            there = slice(window * 50, window * 50 + WINDOW_FRAMES)
            local = self.probabilities[row] @ MARGINALS
            weight[there] += window_weight
            expected[there] += window_weight * (local.sum(1) + COUNT_BIAS)
            largest = np.zeros((WINDOW_FRAMES, count))
            for item in np.where(self.items.windows == row)[0]:
                mine = local[:, self.locals[item]]
                largest[:, labels[item]] = np.maximum(largest[:, labels[item]], mine)
            sums[there] += window_weight[:, None] * largest
        weight = np.maximum(weight, 1e-9)[: self.frames]
        activations = sums[: self.frames] / weight[:, None]
        expected = expected[: self.frames] / weight
        if say is not None:
            certainty = (SUBSEGMENT_WEIGHT * np.clip(1.5 - expected, 0, 1) * say[1])[:, None]
            activations = (1 - certainty) * activations + certainty * np.minimum(1, activations.sum(1, keepdims=True)) * say[0]
        at_once = np.rint(expected)
        order = np.argsort(-activations, 1, kind="stable")
        decision = np.zeros((self.frames, count), bool)
        for rank in range(min(2, count)):
            rows = np.where((at_once > rank) & (activations[np.arange(self.frames), order[:, rank]] > 0))[0]
            decision[rows, order[rows, rank]] = True
        return decision


def mapping(reference, decision):
    return linear_sum_assignment(-(reference.T.astype(float) @ decision))


def error(reference, decision):
    """Frames of speech, missed, false alarm, confusion."""
    rows, columns = mapping(reference, decision)
    right = (reference.T.astype(float) @ decision)[rows, columns].sum()
    there, found = reference.sum(1), decision.sum(1)
    missed, extra = np.maximum(there - found, 0).sum(), np.maximum(found - there, 0).sum()
    return np.array([there.sum(), missed, extra, np.minimum(there, found).sum() - right], float)


def load(folder, rttms, step):
    paths = sorted(Path(folder).glob("*.npz"))
    if not paths:
        raise SystemExit(f"no observation (.npz) in {folder}: name a folder that calibration.observe wrote")
    return [Observation(path, Path(rttms) / f"{path.stem}.rttm", step) for path in paths]


def read_plda(path):
    if path == "none":
        return None
    stored = json.loads(Path(path).read_text())
    return Plda(*(np.array(stored[key]) for key in ("mean", "offset", "transform", "phi")))


def solution(one, parameters, plda, minimum=1, maximum=np.inf):
    """Decision [frames, speakers] of the whole pipeline."""
    labels, centroids, shift = one.cluster(parameters, minimum, maximum, plda)
    say = one.say(centroids, shift) if len(one.locals) else None
    return one.rebuild(labels, len(centroids), say=say, taper=TAPERS[one.step])


def pooled(observations, decide):
    total, right = np.zeros(4), 0
    for one in observations:
        decision = decide(one)
        total += error(one.reference, decision)
        right += int(decision.any(0).sum() == one.reference.shape[1])
    parts = 100 * total[1:] / total[0]
    return f"{parts.sum():5.1f} ({parts[0]:.1f} / {parts[1]:.1f} / {parts[2]:.1f}), count right in {right} of {len(observations)}"


def grid(plda, observations):
    for threshold in (0.5, 0.6, 0.65, 0.7, 0.8):
        for regularisation in (1.0, 2.0, 4.0):
            bayesian = replace(Parameters().bayesian, initial_threshold=threshold, speaker_regularisation=regularisation)
            parameters = replace(Parameters(), bayesian=bayesian)
            print(f"start {threshold:.2f} regularisation {regularisation:.0f}", pooled(observations, lambda one: solution(one, parameters, plda)))


def counts(plda, observations):
    parameters = Parameters()
    true = lambda one: one.reference.shape[1]
    print("automatic         ", pooled(observations, lambda one: solution(one, parameters, plda)))
    print("true count given  ", pooled(observations, lambda one: solution(one, parameters, plda, true(one), true(one))))
    print("one speaker       ", pooled(observations, lambda one: one.rebuild(np.zeros(len(one.locals), int), 1)))
    print("perfect clustering", pooled(observations, lambda one: one.rebuild(*one.perfect())))


def main(what, plda, folder, rttms, step="1"):
    {"grid": grid, "counts": counts}[what](read_plda(plda), load(folder, rttms, int(step)))


if __name__ == "__main__":
    main(*sys.argv[1:])
