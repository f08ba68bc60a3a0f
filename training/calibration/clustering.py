"""Speaker clustering of the pipeline, as `src/diarization/clustering` computes it.

This is the reference that the parameters were fitted with; `write_golden.py` stores what it gives on a small example, and a test
holds the TypeScript port to that. Items are local speakers: what segmentation calls one speaker within one 10 s window.
"""
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

FEATURES = ("cross", "within_smaller", "within_larger", "log_smaller_seconds", "log_larger_seconds", "shared_windows")
DEFAULT_WITHIN = 0.75  # mean cosine within a cluster of one item, about that of one speaker's local speakers
EPSILON_WEIGHT = 0.01
MAX_LEVELS = 400  # of the tree that are searched for a wanted number of speakers


@dataclass(frozen=True)
class Items:
    """Local speakers of a recording: unit embeddings [n, d], window index [n], seconds of speech alone [n], window grid."""

    embeddings: np.ndarray
    windows: np.ndarray
    clean_seconds: np.ndarray
    step_seconds: float
    window_seconds: float = 10.0

    def __len__(self):
        return len(self.windows)


@dataclass(frozen=True)
class Parameters:
    mean_share: float = 0.25
    min_clean_seconds: float = 1.0
    max_weight_seconds: float = 6.0
    same_window_distance: float = 1.2
    min_tested_seconds: float = 0.3
    max_distance: float = 1.1
    min_log_odds: float = -0.25
    weights: tuple = (0.0,) * len(FEATURES)
    offset: float = 0.0
    min_cluster_seconds: float = 1.0
    min_cluster_share: float = 0.06
    refinements: int = 6
    coarse_distance: float = 0.5


def unit(rows):
    return rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-12)


def seconds_weight(items):
    """[n] share of a window's time that no other window sees: turns sums over overlapping windows into time."""
    if len(items) == 0:
        return np.zeros(0)
    cells = max(1, round(items.window_seconds / items.step_seconds))
    last = items.windows.max()
    cell = items.windows[:, None] + np.arange(cells)
    coverage = np.minimum(cell, last) - np.maximum(0, cell - cells + 1) + 1
    return np.where(items.windows < 0, 1 / cells, (1 / np.maximum(1, coverage)).mean(1))


def embedding_weights(items, parameters):
    """[n] how much an item counts in means. Representatives of long recordings (negative windows) count in full."""
    capped = np.where(items.windows < 0, items.clean_seconds, np.minimum(items.clean_seconds, parameters.max_weight_seconds))
    return capped + EPSILON_WEIGHT


def centred(items, parameters):
    """Unit embeddings less a share of the recording's weighted mean, and what was taken away."""
    weight = embedding_weights(items, parameters)
    shift = parameters.mean_share * (items.embeddings * weight[:, None]).sum(0) / weight.sum()
    return unit(items.embeddings - shift), shift


class Cluster:
    """Sums over the items of a cluster: enough for the features of the merge test."""

    def __init__(self, total, weight, squares, seconds, windows):
        self.total, self.weight, self.squares, self.seconds, self.windows = total, weight, squares, seconds, windows

    def joined(self, other):
        return Cluster(self.total + other.total, self.weight + other.weight, self.squares + other.squares,
                       self.seconds + other.seconds, self.windows | other.windows)

    def within(self):
        """Mean cosine between its items, each pair of different ones weighted by the product of their weights."""
        pairs = self.weight * self.weight - self.squares
        return (self.total @ self.total - self.squares) / pairs if pairs > 1e-6 else DEFAULT_WITHIN


def features(a, b):
    """What tells whether clusters a and b are one person, in the order of FEATURES."""
    small, large = (a, b) if a.seconds <= b.seconds else (b, a)
    return np.array([
        a.total @ b.total / (a.weight * b.weight),
        small.within(),
        large.within(),
        np.log(small.seconds + 0.1),
        np.log(large.seconds + 0.1),
        len(small.windows & large.windows) / len(small.windows),
    ])


def start(embeddings, weights, seconds, windows):
    return [Cluster(w * e, w, w * w, s, {int(k)}) for e, w, s, k in zip(embeddings, weights, seconds, windows)]


def linkage(embeddings, weights, seconds, windows, parameters, test=None, observe=None):
    """Weighted average linkage. Merges the closest pair again and again until the closest is beyond max_distance.

    test(a, b) → bool may refuse a pair of clusters that both hold min_tested_seconds; the pair is tried again when either grows.
    observe(i_members, j_members, a, b) sees every such pair before it is merged.
    Returns members per cluster, and the list of (height, kept index, absorbed index).
    """
    n = len(weights)
    clusters = start(embeddings, weights, seconds, windows)
    members = [[i] for i in range(n)]
    distance = np.maximum(0, 1 - embeddings @ embeddings.T)
    same = windows[:, None] == windows[None]
    distance[same] = np.maximum(distance[same], parameters.same_window_distance)
    np.fill_diagonal(distance, np.inf)
    mean = distance.copy()  # without refusals
    weight = weights.astype(float).copy()
    merges = []
    while True:
        i, j = divmod(int(distance.argmin()), n)
        if n < 2 or distance[i, j] > parameters.max_distance:
            break
        i, j = min(i, j), max(i, j)
        if min(clusters[i].seconds, clusters[j].seconds) >= parameters.min_tested_seconds:
            if observe is not None:
                observe(members[i], members[j], clusters[i], clusters[j])
            if test is not None and not test(clusters[i], clusters[j]):
                distance[i, j] = distance[j, i] = np.inf
                continue
        merges.append((distance[i, j], i, j))
        row = (weight[i] * mean[i] + weight[j] * mean[j]) / (weight[i] + weight[j])
        row[i] = np.inf
        weight[i] += weight[j]
        clusters[i] = clusters[i].joined(clusters[j])
        members[i] += members[j]
        members[j] = None
        mean[i] = mean[:, i] = distance[i] = distance[:, i] = row
        mean[j] = mean[:, j] = distance[j] = distance[:, j] = np.inf
    return [m for m in members if m is not None], merges


def assign(items, scores):
    """Best cluster of each item such that two of one window never share one, as far as there are enough clusters."""
    result = np.full(len(items), -1)
    for window in np.unique(items.windows):
        rows = np.where(items.windows == window)[0]
        for row, column in zip(*linear_sum_assignment(-scores[rows])):
            result[rows[row]] = column
        for row in rows:
            if result[row] < 0:
                result[row] = scores[row].argmax()
    return result


def refine(items, embeddings, weights, centroids, rounds):
    """k-means on the sphere under the rule of `assign`."""
    clusters = None
    for _ in range(rounds):
        found = assign(items, embeddings @ centroids.T)
        if clusters is not None and (found == clusters).all():
            break
        clusters = found
        if len(np.unique(clusters)) < len(centroids):
            break  # the number of speakers stays
        centroids = np.stack([unit((embeddings[clusters == k] * weights[clusters == k, None]).sum(0)) for k in range(len(centroids))])
    return assign(items, embeddings @ centroids.T), centroids


def log_odds(parameters, a, b):
    return float(np.dot(parameters.weights, features(a, b)) + parameters.offset)


def training_rows(items, parameters, wanted=1):
    good = np.where(items.clean_seconds >= parameters.min_clean_seconds)[0]
    if len(good) >= max(1, wanted):
        return good
    return np.sort(np.argsort(-items.clean_seconds, kind="stable")[: max(1, wanted)])


def prepare(items, parameters, wanted=1):
    """Embeddings, weights [n], seconds [n] and the rows that clusters are found with."""
    embeddings, _ = centred(items, parameters)
    weights = embedding_weights(items, parameters)
    return embeddings, weights, items.clean_seconds * seconds_weight(items), training_rows(items, parameters, wanted)


def large_enough(members, seconds, parameters, scale=1.0):
    sums = np.array([seconds[m].sum() for m in members])
    needed = scale * max(parameters.min_cluster_seconds, parameters.min_cluster_share * sums.max())
    kept = [k for k in range(len(members)) if sums[k] >= needed]
    return sorted(kept or [int(sums.argmax())], key=lambda k: (-sums[k], min(members[k])))


def at_level(n, merges, count):
    """Members after the first `count` merges."""
    members = [[i] for i in range(n)]
    for _, i, j in merges[:count]:
        members[i] = members[i] + members[j]
        members[j] = None
    return [m for m in members if m is not None]


def exactly(n, merges, seconds, parameters, wanted):
    """The coarsest level of the tree with enough clusters that are large enough.

    Small clusters are taken before large ones are split further: at the usual coarseness the size asked for falls, and only
    then the levels become finer.
    """
    coarsest = n - wanted
    fine = max(0, min(coarsest, sum(height <= parameters.coarse_distance for height, _, _ in merges)))
    finest = max(0, coarsest - MAX_LEVELS)
    for first, last, scales in ((coarsest, fine, (1, 0.5, 0.25)), (fine - 1, finest, (1, 0.5, 0.25, 0)), (coarsest, finest, (0,))):
        for scale in scales:
            for count in range(first, last - 1, -1):
                members = at_level(n, merges, count)
                kept = large_enough(members, seconds, parameters, scale)
                if len(kept) >= wanted:
                    return [members[k] for k in kept[:wanted]]
    return at_level(n, merges, max(0, coarsest))


def cluster(items, parameters, minimum=1, maximum=np.inf):
    """Speaker of every item [n], and how many speakers."""
    if len(items) == 0:
        return np.zeros(0, int), 0
    embeddings, weights, seconds, rows = prepare(items, parameters, minimum)
    chosen = (embeddings[rows], weights[rows], seconds[rows], items.windows[rows])
    members, _ = linkage(*chosen, parameters, test=lambda a, b: log_odds(parameters, a, b) >= parameters.min_log_odds)
    kept = [members[k] for k in large_enough(members, seconds[rows], parameters)]
    if len(kept) < minimum or len(kept) > maximum:
        whole = Parameters(**{**parameters.__dict__, "max_distance": np.finfo(float).max})
        _, merges = linkage(*chosen, whole)
        kept = exactly(len(rows), merges, seconds[rows], parameters, int(minimum if len(kept) < minimum else maximum))
    centroids = np.stack([unit((chosen[0][m] * chosen[1][m, None]).sum(0)) for m in kept])
    return refine(items, embeddings, weights, centroids, parameters.refinements)[0], len(kept)
