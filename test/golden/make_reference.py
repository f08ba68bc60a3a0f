"""Makes data/ref_*: random inputs and the results of the reference implementations.

    pip install -r test/golden/requirements.txt && python test/golden/make_reference.py

Powerset, aggregation, speaker counts, reconstruction, turns and VBx by pyannote.audio, hierarchical clustering and
assignment by scipy. The inputs are random with a fixed seed; they are no speech.
"""

import json
from pathlib import Path

import numpy as np
import torch
from pyannote.audio.pipelines.speaker_diarization import SpeakerDiarization
from pyannote.audio.pipelines.utils.diarization import SpeakerDiarizationMixin
from pyannote.audio.utils.powerset import Powerset
from pyannote.audio.utils.vbx import cluster_vbx
from pyannote.core import SlidingWindow, SlidingWindowFeature
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import pdist

DATA = Path(__file__).parent / "data"
RATE = 16000
rng = np.random.default_rng(20)


def save(name: str, array: np.ndarray) -> None:
    np.save(DATA / f"ref_{name}.npy", np.ascontiguousarray(array))


def powerset() -> None:
    logits = torch.from_numpy(rng.normal(0, 2, (1, 200, 7)).astype(np.float32))
    log_probabilities = torch.log_softmax(logits, -1)
    reference = Powerset(3, 2)
    save("powerset_log_probabilities", log_probabilities[0].numpy())
    save("powerset_soft", reference.to_multilabel(log_probabilities, soft=True)[0].numpy())
    save("powerset_hard", reference.to_multilabel(log_probabilities)[0].numpy().astype(np.uint8))


def runs(frames: int, mean_run: float) -> np.ndarray:
    """0/1 sequence of alternating runs."""
    out = np.zeros(frames, np.uint8)
    position, value = 0, int(rng.integers(2))
    while position < frames:
        length = 1 + int(rng.exponential(mean_run))
        out[position : position + length] = value
        position, value = position + length, 1 - value
    return out


def reconstruction(name: str, shift: int, size: int, frames: int, step: int) -> dict:
    windows, locals_, clusters = 6, 3, 4
    segmentation = np.zeros((windows, frames, locals_), np.uint8)
    for window in range(windows):
        for local in range(locals_):
            segmentation[window, :, local] = runs(frames, 60)
        crowded = segmentation[window].sum(1) > 2  # a powerset of two at once has no such frames
        segmentation[window, crowded, 2] = 0
    segmentation[3, :, 1] = 0  # a local speaker who never speaks
    hard_clusters = np.stack([rng.permutation(clusters)[:locals_] for _ in range(windows)]).astype(np.int8)
    hard_clusters[segmentation.sum(1) == 0] = -2
    window = SlidingWindow(start=0.0, duration=10.0, step=step / RATE)
    scores = SlidingWindowFeature(segmentation.astype(np.float32), window)
    resolution = SlidingWindow(start=0.0, duration=size / RATE, step=shift / RATE)
    count = SpeakerDiarizationMixin.speaker_count(scores, resolution, warm_up=(0.0, 0.0))
    counts = count.data.copy()
    discrete = SpeakerDiarization.reconstruct(SpeakerDiarizationMixin(), scores, hard_clusters, count)
    save(f"{name}_segmentation", segmentation)
    save(f"{name}_hard_clusters", hard_clusters)
    save(f"{name}_counts", counts[:, 0].astype(np.uint8))
    save(f"{name}_discrete", discrete.data.astype(np.uint8))
    turns = {}
    for off, on in ((0.0, 0.0), (0.31, 0.0), (0.0, 0.23), (0.51, 0.47)):
        annotation = SpeakerDiarizationMixin.to_annotation(discrete, min_duration_on=on, min_duration_off=off)
        turns[f"{off},{on}"] = [
            [int(label), round(segment.start, 6), round(segment.end, 6)]
            for segment, _, label in annotation.itertracks(yield_label=True)
        ]
    return {"shift": shift, "size": size, "frames": frames, "step": step, "windows": windows, "turns": turns}


def clustering() -> dict:
    centres = rng.normal(0, 1, (5, 24))
    points = centres[rng.integers(5, size=60)] + rng.normal(0, 0.9, (60, 24))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    points = points.astype(np.float32)
    save("points", points)
    result = {}
    for method, metric, thresholds in (("average", "cosine", (0.3, 0.5, 0.7)),):
        tree = linkage(pdist(points.astype(np.float64), metric), method)
        result[method] = {
            "heights": tree[:, 2].round(9).tolist(),
            "sizes": tree[:, 3].astype(int).tolist(),
            "cuts": {str(t): fcluster(tree, t, "distance").tolist() for t in thresholds},
        }
    return result


def vbx() -> dict:
    dimension, items = 16, 48
    phi = np.sort(rng.gamma(2, 3, dimension))[::-1].copy()
    speakers = rng.normal(0, 1, (3, dimension)) * np.sqrt(phi)
    features = speakers[rng.integers(3, size=items)] + rng.normal(0, 1, (items, dimension))
    initial = rng.integers(6, size=items)
    initial[:6] = np.arange(6)
    save("vbx_features", features)
    save("vbx_phi", phi)
    result = {"initial": initial.tolist(), "cases": []}
    for fa, fb in ((0.07, 0.8), (0.3, 2.0)):
        gamma, pi = cluster_vbx(initial, features, phi, Fa=fa, Fb=fb, maxIters=20)
        result["cases"].append(
            {"fa": fa, "fb": fb, "gamma": gamma.round(12).ravel().tolist(), "pi": pi.round(12).tolist()}
        )
    return result


def assignment() -> list:
    cases = []
    for rows, columns in ((1, 1), (3, 3), (3, 5), (5, 3), (8, 8), (2, 9), (12, 7)):
        scores = rng.normal(0, 1, (rows, columns)).round(6)
        picked_rows, picked_columns = linear_sum_assignment(scores, maximize=True)
        columns_of = [-1] * rows
        for row, column in zip(picked_rows, picked_columns):
            columns_of[row] = int(column)
        cases.append({"rows": rows, "columns": columns, "scores": scores.ravel().tolist(), "columns_of": columns_of})
    return cases


def main() -> None:
    DATA.mkdir(exist_ok=True)
    powerset()
    reference = {
        "reconstruction": {
            "coarse": reconstruction("coarse", 270, 991, 589, 40000),
            "fine": reconstruction("fine", 320, 320, 500, 24000),
        },
        "clustering": clustering(),
        "vbx": vbx(),
        "assignment": assignment(),
    }
    (DATA / "ref_reference.json").write_text(json.dumps(reference) + "\n")


if __name__ == "__main__":
    main()
