"""Speaker clustering of the pipeline, as `src/diarization/clustering` computes it.

The reference that the parameters were chosen with. `write_golden.py` stores what it gives on a small example, and a test holds the
TypeScript to that. Items are local speakers: what segmentation calls one speaker within one window.
"""
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import linear_sum_assignment

from .vbx import vbx

LEAST_WEIGHT = 0.01
MAX_LEVELS = 400
MAX_TRIES = 50
MAX_ROUNDS = 6
MIN_RISE = 1.1
GROWTH_EXPONENT = 2
WANTED_FALL = 1.5
MIN_REGULARISATION = 0.05


@dataclass(frozen=True)
class Items:
    """Local speakers: unit embeddings [n, d], window index [n] ascending, seconds of speech alone [n], and the window grid."""

    embeddings: np.ndarray
    windows: np.ndarray
    clean_seconds: np.ndarray
    step_seconds: float
    window_seconds: float = 10.0


@dataclass(frozen=True)
class Subsegments:
    """Short pieces of speech: grid indices [m] and unit embeddings [m, d]; one in `every` of the grid, 0.5 s apart, is there."""

    indices: np.ndarray
    embeddings: np.ndarray
    every: int = 1


@dataclass(frozen=True)
class Bayesian:
    """Named as in `BayesianParameters` of the TypeScript."""

    brief_subsegment_share: float = 0.8
    brief_speech_seconds: float = 25.0
    long_subsegment_share: float = 0.6
    long_speech_seconds: float = 240.0
    initial_threshold: float = 0.65
    wanted_initial_threshold: float = 0.5
    max_clusters: int = 100
    statistics_scale: float = 0.5
    speaker_regularisation: float = 1.6
    plain_seconds_per_speaker: float = 30.0
    max_regularisation: float = 12.0
    max_evidence_seconds: float = 1800.0
    min_prior_share: float = 0.02
    min_speaker_seconds: float = 1.0
    wanted_min_speaker_seconds: float = 0.3
    brief_seconds_per_speaker: float = 10.0
    split_similarity: float = 0.4
    split_slope: float = 10.0
    merge_similarity: float = 0.55
    merge_item_similarity: float = 0.3
    same_item_similarity: float = 0.12
    same_item_similarity_growth: float = 0.088


@dataclass(frozen=True)
class Parameters:
    """Named as in `ClusteringParameters` of the TypeScript, where they are explained."""

    mean_share: float = 0.25
    threshold: float = 0.6
    min_clean_seconds: float = 1.0
    min_clean_seconds_wanted: float = 0.3
    same_window_distance: float = 1.2
    coarse_distance: float = 0.5
    min_cluster_seconds: float = 1.0
    min_cluster_share: float = 0.06
    bayesian: Bayesian = field(default_factory=Bayesian)


@dataclass(frozen=True)
class Plda:
    """mean [d], offset [d], transform [k, d], phi [k]: see `plda.py`."""

    mean: np.ndarray
    offset: np.ndarray
    transform: np.ndarray
    phi: np.ndarray

    def project(self, embeddings):
        centred = embeddings - self.mean
        centred = centred / np.linalg.norm(centred, axis=1, keepdims=True) * np.sqrt(embeddings.shape[1])
        return (centred - self.offset) @ self.transform.T


def unit(rows):
    return rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-12)


def distinct_seconds(items):
    """[n] seconds that each item adds to the recording: what several windows hear is shared out among them."""
    cells = max(1, round(items.window_seconds / items.step_seconds))
    last = items.windows.max()
    cell = items.windows[:, None] + np.arange(cells)
    coverage = np.minimum(cell, last) - np.maximum(0, cell - cells + 1) + 1
    return items.clean_seconds * (1 / np.maximum(1, coverage)).mean(1)


def tree_of(embeddings, weights, windows, parameters):
    """Weighted average linkage: merges as (height, kept slot, absorbed slot)."""
    n = len(weights)
    distance = np.maximum(0, 1 - embeddings @ embeddings.T)
    same = windows[:, None] == windows[None]
    distance[same] = np.maximum(distance[same], parameters.same_window_distance)
    np.fill_diagonal(distance, np.inf)
    weight = weights.astype(float).copy()
    merges = []
    for _ in range(n - 1):
        i, j = divmod(int(distance.argmin()), n)
        merges.append((distance[i, j], i, j))
        row = (weight[i] * distance[i] + weight[j] * distance[j]) / (weight[i] + weight[j])
        row[i] = row[j] = np.inf
        weight[i] += weight[j]
        distance[i] = distance[:, i] = row
        distance[j] = distance[:, j] = np.inf
    return merges


def at_level(n, merges, clusters):
    """Members of each cluster once so many are left, by first member."""
    members = [[i] for i in range(n)]
    for _, i, j in merges[: n - clusters]:
        members[i] = members[i] + members[j]
        members[j] = None
    return sorted((sorted(m) for m in members if m), key=lambda m: m[0])


def large(members, seconds, parameters, scale=1.0):
    """The clusters with enough speech, most first, at least one."""
    sums = [seconds[m].sum() for m in members]
    needed = scale * max(parameters.min_cluster_seconds, parameters.min_cluster_share * max(sums))
    kept = [k for k, s in enumerate(sums) if s >= needed] or [int(np.argmax(sums))]
    return [members[k] for k in sorted(kept, key=lambda k: (-sums[k], k))]


def wanted_clusters(n, merges, seconds, parameters, wanted):
    """Ways to have `wanted` clusters, best first: small clusters are taken before large ones are split further."""
    most = min(n, wanted + MAX_LEVELS)
    coarse = min(most, max(wanted, n - sum(height <= parameters.coarse_distance for height, _, _ in merges)))
    for first, last, scales in ((wanted, coarse, (1, 0.5, 0.25, 0.1)), (coarse + 1, most, (1, 0.5, 0.25, 0)), (wanted, most, (0,))):
        for scale in scales:
            for clusters in range(first, last + 1):
                kept = large(at_level(n, merges, clusters), seconds, parameters, scale)
                if len(kept) >= wanted:
                    yield kept[:wanted]
    yield at_level(n, merges, min(n, wanted))


def assign(windows, scores):
    """Best cluster of each item such that two of one window never share one, as far as there are enough clusters."""
    result = np.full(len(windows), -1)
    for window in np.unique(windows):
        rows = np.where(windows == window)[0]
        for row, column in zip(*linear_sum_assignment(-scores[rows])):
            result[rows[row]] = column
        for row in rows:
            if result[row] < 0:
                result[row] = scores[row].argmax()
    return result


def centroids_of(embeddings, weights, members):
    return np.stack([unit((embeddings[m] * weights[m, None]).sum(0)) for m in members])


def training_rows(items, min_clean_seconds, wanted):
    """Those with enough speech alone; where they are too few, the cleanest."""
    rows = np.where(items.clean_seconds >= min_clean_seconds)[0]
    return rows if len(rows) >= wanted else np.sort(np.argsort(-items.clean_seconds, kind="stable")[:wanted])


def starting_clusters(embeddings, weights, seconds, merges, threshold, most):
    """The cluster of every item to start VBx from: those of a low cut with most speech, and the nearest of them for the rest."""
    n = len(weights)
    members = at_level(n, merges, n - sum(height <= threshold for height, _, _ in merges))
    sums = [seconds[m].sum() for m in members]
    largest = [members[k] for k in sorted(range(len(members)), key=lambda k: (-sums[k], k))[:most]]
    return (embeddings @ centroids_of(embeddings, weights, largest).T).argmax(1)


def speakers_of(gamma, pi, seconds, min_prior_share, min_speaker_seconds):
    """Which of VBx's speakers remain, most speech first; at least one."""
    order = sorted(range(len(pi)), key=lambda k: (-pi[k], k))
    least = min_prior_share * pi[order[0]]
    return [k for k in order if pi[k] >= least and (seconds * gamma[:, k]).sum() >= min_speaker_seconds] or order[:1]


def speakers_within(embeddings, weights, gamma, kept, parameters, fewest, most):
    shares = [weights * gamma[:, k] for k in kept]
    sums = [((embeddings * share[:, None]).sum(0), share.sum()) for share in shares]
    return join_down(join_alike(sums, parameters, fewest), most)


def centroids_of_sums(speakers):
    return unit(np.stack([total for total, _ in speakers]))


def bayesian_speakers(embeddings, weights, seconds, features, phi, merges, parameters, fewest, most):
    """Speakers by VBx from a low cut of the tree, alike ones joined down to the fewest wanted, then any down to the most; sums of embeddings and seconds, most speech first."""
    initial = starting_clusters(embeddings, weights, seconds, merges, parameters.initial_threshold, parameters.max_clusters)
    total = seconds.sum()
    evidence = min(1.0, parameters.max_evidence_seconds / total) * seconds
    regularisation = parameters.speaker_regularisation
    for _ in range(MAX_ROUNDS):
        gamma, pi = vbx(features, phi, initial, evidence, parameters.statistics_scale, regularisation)
        kept = speakers_of(gamma, pi, seconds, parameters.min_prior_share, parameters.min_speaker_seconds)
        growth = (total / len(kept) / parameters.plain_seconds_per_speaker) ** GROWTH_EXPONENT
        wanted = min(parameters.max_regularisation, parameters.speaker_regularisation * growth)
        if wanted <= MIN_RISE * regularisation:
            break
        regularisation, initial = wanted, gamma[:, kept].argmax(1)
    return speakers_within(embeddings, weights, gamma, kept, parameters, fewest, most)


def more_speakers(embeddings, weights, seconds, features, phi, merges, parameters, fewest, most):
    """The same where more are wanted: a lower cut, ever less regularisation, people who say little; None where there are not enough."""
    initial = starting_clusters(embeddings, weights, seconds, merges, parameters.wanted_initial_threshold, parameters.max_clusters)
    evidence = min(1.0, parameters.max_evidence_seconds / seconds.sum()) * seconds
    regularisation = parameters.speaker_regularisation
    while regularisation > MIN_REGULARISATION:
        gamma, pi = vbx(features, phi, initial, evidence, parameters.statistics_scale, regularisation)
        kept = speakers_of(gamma, pi, seconds, 0.0, parameters.wanted_min_speaker_seconds)
        if len(kept) >= fewest:
            return speakers_within(embeddings, weights, gamma, kept, parameters, fewest, most)
        regularisation /= WANTED_FALL
    return None


def split_off(found, embeddings, weights, windows, merges, parameters, wanted):
    """As many as are wanted, of too few: pieces of what a speaker says become speakers of their own, those first that are worth the most; None where there are not enough."""
    n = len(weights)
    cut = at_level(n, merges, n - sum(height <= parameters.wanted_initial_threshold for height, _, _ in merges))
    cluster_of = np.zeros(n, int)
    for number, members in enumerate(cut):
        cluster_of[members] = number
    speaker_of = assign(windows, embeddings @ centroids_of_sums(found).T)
    _, firsts, piece_of = np.unique(cluster_of * len(found) + speaker_of, return_index=True, return_inverse=True)
    order = np.argsort(firsts)
    owner = speaker_of[firsts[order]]
    sums = [((embeddings * (weights * (piece_of == piece))[:, None]).sum(0), weights[piece_of == piece].sum()) for piece in order]
    speakers = []
    for speaker, plain in enumerate(found):
        own = [sums[piece] for piece in np.where(owner == speaker)[0]]
        speakers.append(tuple(sum(values[1:], values[0]) for values in zip(*own)) if own else plain)
    while len(speakers) < wanted:
        worth = [worth_of(piece, speakers[owner[number]], parameters) for number, piece in enumerate(sums)]
        best = int(np.argmax(worth))
        if worth[best] == -np.inf:
            return None
        speakers[owner[best]] = tuple(a - b for a, b in zip(speakers[owner[best]], sums[best]))
        owner[best] = len(speakers)
        speakers.append(sums[best])
    return speakers


def worth_of(piece, speaker, parameters):
    """Seconds, times the probability that the piece is somebody else's less the probability that it is not."""
    rest, seconds = speaker[0] - piece[0], min(piece[1], speaker[1] - piece[1])
    if seconds < parameters.wanted_min_speaker_seconds:
        return -np.inf
    cosine = rest @ piece[0] / np.sqrt((rest @ rest) * (piece[0] @ piece[0]))
    return seconds * np.tanh(parameters.split_slope * (parameters.split_similarity - cosine) / 2)


def join_alike(speakers, parameters, fewest):
    """Sums of the speakers' embeddings, those added up that are more alike than two people are; most speech first."""
    while len(speakers) > max(1, fewest):
        totals, weights = np.stack([total for total, _ in speakers]), np.array([weight for _, weight in speakers])
        products, centroids = totals @ totals.T, unit(totals)
        of_items, cosines = products / np.outer(weights, weights), centroids @ centroids.T
        same = of_items >= parameters.same_item_similarity + parameters.same_item_similarity_growth * np.log(len(speakers))
        alike = same | (cosines >= parameters.merge_similarity) & (of_items >= parameters.merge_item_similarity)
        cosines = np.where(np.tril(alike, -1), cosines, -np.inf)
        second, first = divmod(int(cosines.argmax()), len(speakers))
        if cosines[second, first] == -np.inf:
            break
        speakers = with_joined(speakers, first, second)
    return sorted(speakers, key=lambda speaker: -speaker[1])


def join_down(speakers, most):
    """Sums of the speakers' embeddings, those first whose joining costs the least, until so many are left; most speech first."""
    while len(speakers) > max(1, most):
        centroids, weights = unit(np.stack([total for total, _ in speakers])), np.array([weight for _, weight in speakers])
        together = np.outer(weights, weights) / np.add.outer(weights, weights)
        costs = (1 - centroids @ centroids.T) * np.log1p(together)
        costs = np.where(np.tril(np.ones_like(costs), -1) > 0, costs, np.inf)
        second, first = divmod(int(costs.argmin()), len(speakers))
        speakers = with_joined(speakers, first, second)
    return sorted(speakers, key=lambda speaker: -speaker[1])


def with_joined(speakers, first, second):
    joined = tuple(a + b for a, b in zip(speakers[first], speakers[second]))
    return [speaker for number, speaker in enumerate(speakers) if number not in (first, second)] + [joined]


def subsegment_share_of(speech_seconds, parameters):
    """Share of the evidence that lies in the subsegments of so much speech: falling with its logarithm."""
    brief, long = parameters.brief_speech_seconds, parameters.long_speech_seconds
    way = np.clip(np.log(speech_seconds / brief) / np.log(long / brief), 0, 1)
    return parameters.brief_subsegment_share + way * (parameters.long_subsegment_share - parameters.brief_subsegment_share)


def joined(items, rows, seconds, subsegments, parameters):
    """Embeddings, windows and evidence of the rows and the subsegments; each of the latter is a window of its own."""
    alone = np.maximum(seconds[rows], LEAST_WEIGHT)
    if subsegments is None or len(subsegments.indices) == 0:
        return items.embeddings[rows], items.windows[rows], alone
    share = subsegment_share_of(alone.sum(), parameters)
    each = 0.5 * subsegments.every
    evidence = np.concatenate([(1 - share) * alone, np.full(len(subsegments.indices), share * each)])
    windows = np.concatenate([items.windows[rows], -1 - subsegments.indices])
    return np.concatenate([items.embeddings[rows], subsegments.embeddings]), windows, evidence


def cluster(items, parameters=Parameters(), minimum=1, maximum=np.inf, plda=None, subsegments=None):
    """Speaker of every item [n] and the number of speakers."""
    labels, centroids, _ = cluster_model(items, parameters, minimum, maximum, plda, subsegments)
    return labels, len(centroids)


def cluster_model(items, parameters=Parameters(), minimum=1, maximum=np.inf, plda=None, subsegments=None):
    """Speaker of every item [n], unit centroids of the shifted embeddings, and the shift."""
    weights = items.clean_seconds + LEAST_WEIGHT
    shift = parameters.mean_share * (items.embeddings * weights[:, None]).sum(0) / weights.sum()
    everybody = unit(items.embeddings - shift)
    seconds = distinct_seconds(items)

    def candidates(least, wanted):
        rows = training_rows(items, least, wanted)
        if plda is None:
            return items.embeddings[rows], items.windows[rows], weights[rows], seconds[rows]
        vectors, windows, evidence = joined(items, rows, seconds, subsegments, parameters.bayesian)
        return vectors, windows, evidence, evidence

    vectors, windows, counts, evidence = candidates(parameters.min_clean_seconds, 1)
    shifted = unit(vectors - shift)
    merges = tree_of(shifted, counts, windows, parameters)
    found = None
    if plda is not None:
        features = plda.project(vectors)
        found = bayesian_speakers(shifted, counts, evidence, features, plda.phi, merges, parameters.bayesian, minimum, maximum)
        centroids = centroids_of_sums(found)
    else:
        merged = sum(height <= parameters.threshold for height, _, _ in merges)
        kept = large(at_level(len(shifted), merges, len(shifted) - merged), evidence, parameters)
        centroids = centroids_of(shifted, counts, kept)
    if not minimum <= len(centroids) <= maximum:
        wanted, most = int(minimum if len(centroids) < minimum else maximum), 0
        if len(centroids) < minimum:
            vectors, windows, counts, evidence = candidates(parameters.min_clean_seconds_wanted, wanted)
            shifted = unit(vectors - shift)
            merges = tree_of(shifted, counts, windows, parameters)
            if found is not None:
                more = None
                if counts.sum() / wanted < parameters.bayesian.brief_seconds_per_speaker:
                    more = split_off(found, shifted, counts, windows, merges, parameters.bayesian, wanted)
                if more is None:
                    features = plda.project(vectors)
                    more = more_speakers(shifted, counts, evidence, features, plda.phi, merges, parameters.bayesian, minimum, maximum)
                if more is not None:
                    centroids = centroids_of_sums(more)
                    return assign(items.windows, everybody @ centroids.T), centroids, shift
        for tried, candidate in enumerate(wanted_clusters(len(shifted), merges, evidence, parameters, wanted), 1):
            tentative = centroids_of(shifted, counts, candidate)
            used = len(np.unique(assign(items.windows, everybody @ tentative.T)))
            if used > most:
                centroids, most = tentative, used
            if used >= min(wanted, len(items.windows)) or tried >= MAX_TRIES:
                break
    return assign(items.windows, everybody @ centroids.T), centroids, shift
