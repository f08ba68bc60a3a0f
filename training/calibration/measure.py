"""Error rates of clustering parameters, and the calibration of confidences, on stored observations.

    python measure.py grid OBSERVATIONS RTTMS [STEP]          DER by threshold and share of the mean
    python measure.py counts OBSERVATIONS RTTMS [STEP]        automatic count, true count given, perfect clustering
    python measure.py confidence FIT FIT_RTTMS CHECK CHECK_RTTMS [STEP]

OBSERVATIONS is a folder that `observe.py` wrote; STEP is the distance of windows in seconds, 1 by default. DER has no collar, scores
overlap and is pooled over the folder, in percent: total, missed, false alarm, confusion.
"""
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment, minimize

from clustering import LEAST_WEIGHT, Items, Parameters, cluster, unit

FRAME_SECONDS = 0.02
WINDOW_FRAMES = 500
COUNT_BIAS = -0.1  # as in parameters.ts
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
        lines = [line.split() for line in Path(rttm).read_text().splitlines() if line.startswith("SPEAKER")]
        names = sorted({line[7] for line in lines})
        self.reference = np.zeros((self.frames, len(names)), bool)
        for line in lines:
            start, length = float(line[3]), float(line[4])
            first, last = round(start / FRAME_SECONDS), round((start + length) / FRAME_SECONDS)
            self.reference[first:last, names.index(line[7])] = True

    def cluster(self, parameters, minimum=1, maximum=np.inf):
        if len(self.locals) == 0:
            return np.zeros(0, int), 1
        return cluster(self.items, parameters, minimum, maximum)

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

    def rebuild(self, labels, count, posterior=None, taper=0.0):
        """Decision and, with a posterior [items, count], probability of each speaker: [frames, count] twice."""
        size = self.frames + int(self.windows[-1]) * 50 + WINDOW_FRAMES
        sums, tracks = np.zeros((size, count)), np.zeros((size, count))
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
                if posterior is not None:
                    tracks[there] += (window_weight * mine)[:, None] * posterior[item]
            sums[there] += window_weight[:, None] * largest
        weight = np.maximum(weight, 1e-9)[: self.frames]
        at_once = np.rint(expected[: self.frames] / weight)
        order = np.argsort(-sums[: self.frames], 1, kind="stable")
        decision = np.zeros((self.frames, count), bool)
        for rank in range(min(2, count)):
            rows = np.where((at_once > rank) & (sums[np.arange(self.frames), order[:, rank]] > 0))[0]
            decision[rows, order[rows, rank]] = True
        return decision, np.clip(tracks[: self.frames] / weight[:, None], 0, 1)


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
    return [Observation(path, Path(rttms) / f"{path.stem}.rttm", step) for path in paths]


def pooled(observations, solve):
    total, off = np.zeros(4), []
    for one in observations:
        labels, count = solve(one)
        total += error(one.reference, one.rebuild(labels, count)[0])
        off.append(abs(len(np.unique(labels)) - one.reference.shape[1]))
    parts = 100 * total[1:] / total[0]
    return f"{parts.sum():5.1f} ({parts[0]:.1f} / {parts[1]:.1f} / {parts[2]:.1f}), count off by {np.mean(off):.2f}"


def grid(observations):
    for share in (0.0, 0.1, 0.25, 0.4):
        for threshold in (0.5, 0.55, 0.6, 0.65, 0.7, 0.8):
            parameters = replace(Parameters(), mean_share=share, threshold=threshold)
            print(f"mean share {share:.2f} threshold {threshold:.2f}", pooled(observations, lambda one: one.cluster(parameters)))


def counts(observations):
    parameters = Parameters()
    true = lambda one: one.reference.shape[1]
    print("automatic         ", pooled(observations, lambda one: one.cluster(parameters)))
    print("true count given  ", pooled(observations, lambda one: one.cluster(parameters, true(one), true(one))))
    print("one speaker       ", pooled(observations, lambda one: (np.zeros(len(one.locals), int), 1)))
    print("perfect clustering", pooled(observations, lambda one: one.perfect()))


def posterior_of(one, labels, count, temperature):
    """Softmax of the cosines to the centroids, as in assign.ts."""
    weights = one.items.clean_seconds + LEAST_WEIGHT
    shift = Parameters().mean_share * (one.items.embeddings * weights[:, None]).sum(0) / weights.sum()
    embeddings = unit(one.items.embeddings - shift)
    sums = np.stack([(embeddings[labels == k] * weights[labels == k, None]).sum(0) for k in range(count)])
    scores = embeddings @ unit(sums).T / temperature
    scores = np.exp(scores - scores.max(1, keepdims=True))
    return scores / scores.sum(1, keepdims=True)


def confidences(observations, temperature, taper):
    """Raw probability of each frame's decision, whether it was right, weight: [frames] three times. Every fifth frame."""
    raw, right, weight = [], [], []
    for one in observations:
        if len(one.locals) == 0:
            continue
        labels, count = one.cluster(Parameters())
        decision, tracks = one.rebuild(labels, count, posterior_of(one, labels, count, temperature), taper)
        rows, columns = mapping(one.reference, decision)
        truth = np.zeros_like(decision)
        truth[:, columns] = one.reference[:, rows]
        unmapped = np.delete(one.reference, rows, 1).any(1)
        raw.append(np.where(decision, tracks, 1 - tracks).prod(1)[::5])
        right.append(((decision == truth).all(1) & ~unmapped)[::5])
        weight.append(np.full(len(raw[-1]), len(raw[-1]) ** -0.5))
    return np.concatenate(raw), np.concatenate(right), np.concatenate(weight)


def log_odds(raw):
    clipped = np.clip(raw, 1e-4, 1 - 1e-4)
    return np.log(clipped / (1 - clipped))


def fit_confidence(fit, check, taper):
    for temperature in (0.05, 0.1, 0.15, 0.2, 0.3):
        raw, right, weight = confidences(fit, temperature, taper)
        loss = lambda p: np.average(np.logaddexp(0, -(2 * right - 1) * (p[0] * log_odds(raw) + p[1])), weights=weight)
        slope, offset = minimize(loss, [0.5, 0.0], method="Nelder-Mead").x
        raw, right, weight = confidences(check, temperature, taper)
        calibrated = 1 / (1 + np.exp(-(slope * log_odds(raw) + offset)))
        bins = np.minimum((calibrated * 10).astype(int), 9)
        gaps = [
            weight[bins == b].sum() * abs(np.average(calibrated[bins == b] - right[bins == b], weights=weight[bins == b]))
            for b in np.unique(bins)
        ]
        print(f"temperature {temperature:.2f}: slope {slope:.3f} offset {offset:.3f}; on the other side: right", end=" ")
        print(f"{np.average(right, weights=weight):.3f} confidence {np.average(calibrated, weights=weight):.3f}", end=" ")
        print(f"calibration error {sum(gaps) / weight.sum():.3f}")


def main(what, *arguments):
    folders = 4 if what == "confidence" else 2
    step = int(arguments[folders]) if len(arguments) > folders else 1
    sides = [load(arguments[i], arguments[i + 1], step) for i in range(0, folders, 2)]
    if what == "confidence":
        fit_confidence(*sides, taper=0.5 if step == 5 else 0.0)
    else:
        {"grid": grid, "counts": counts}[what](*sides)


if __name__ == "__main__":
    main(*sys.argv[1:])
