"""Runs the models over recordings and stores what clustering sees.

    python -m calibration.observe SEGMENTATION.onnx TRUNK.onnx HEAD.onnx FOLDER OUT [--from FOLDER]

For every FLAC in FOLDER, with an RTTM of the same name beside it, OUT/<name>.npz holds at a step of one second: the powerset
probabilities of every window, the local speakers (window, number, seconds alone, seconds active) and their embeddings, and the
subsegments (1.5 s every half second) with theirs. `--from FOLDER` takes the probabilities of an earlier run: then only the embedder is run.
The same windows, stretches, feature floor and masks as `src/diarization`; ONNX sessions use one thread.
"""
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import onnxruntime
import soundfile

from embedder.features import log_mels, raise_floor

RATE = 16000
WINDOW = 10 * RATE
TRUNK_FRAME_SECONDS = 0.02
FRAMES_PER_STRETCH = 500
MIN_CLEAN_FRAMES = 20  # of the trunk: below, the embedding takes the overlapped frames too
MIN_ACTIVE_FRAMES = 5
SUBSEGMENT_SHIFT = RATE // 2
SUBSEGMENT_HALF = 12000
MIN_SUBSEGMENT_FRAMES = 20
POWERSET = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1], [0, 1, 1]], bool)


def session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def trunk_frames(trunk, samples):
    """Frames and logits [n, channels] on a grid of 20 ms, and which of them exist. A short last stretch sees the last 10 s."""
    stretches = int(np.ceil(len(samples) / WINDOW))
    frames = logits = None
    exists = np.zeros(stretches * FRAMES_PER_STRETCH, bool)
    for k in range(stretches):
        start = k * WINDOW
        end = min(len(samples), start + WINDOW)
        first = max(0, end - WINDOW) if end - start < WINDOW // 2 else start
        if end - first < 400:
            continue
        feats = raise_floor(log_mels(samples[first:end]))
        out = [part[0] for part in trunk.run(None, {"feats": (feats - feats.mean(0))[None]})]
        if frames is None:
            frames, logits = (np.zeros((len(exists), part.shape[1]), np.float32) for part in out)
        offset = round((first - start) / RATE / TRUNK_FRAME_SECONDS)
        at = np.arange(len(out[0])) + offset
        own = (at >= 0) & (at < FRAMES_PER_STRETCH)
        rows = k * FRAMES_PER_STRETCH + at[own]
        frames[rows], logits[rows], exists[rows] = out[0][own], out[1][own], True
    return frames, logits, exists


def pool(frames, logits):
    """Attentive statistics: weighted mean and standard deviation per channel."""
    weights = np.exp(logits - logits.max(0))
    weights /= weights.sum(0)
    mean = (weights * frames).sum(0)
    variance = (weights * frames * frames).sum(0) - mean * mean
    return np.concatenate([mean, np.sqrt(np.maximum(variance, 1e-5))])


def kept_frames(centres, exists, window, shift, size, count):
    """Trunk frames of a window that exist, and the window's own frame closest to each."""
    at = np.arange(window * 50, min(window * 50 + FRAMES_PER_STRETCH, len(exists)))
    at = at[exists[at]]
    return at, np.round(((centres[at] - window) * RATE - size / 2) / shift).astype(int).clip(0, count - 1)


def subsegments(probabilities, frames, logits, exists, shift, size, samples):
    """Grid indices and pooled statistics: each from the window in which it is most central, frames with one speaker."""
    centres = np.arange(len(exists)) * TRUNK_FRAME_SECONDS + 0.0125
    indices, pooled = [], []
    for index in range(int(np.ceil(samples / SUBSEGMENT_SHIFT))):
        window = min(len(probabilities) - 1, max(0, int(np.floor((index * SUBSEGMENT_SHIFT - WINDOW / 2) / RATE + 0.5))))
        active = POWERSET[probabilities[window].astype(np.float32).argmax(1)]
        at, inside = kept_frames(centres, exists, window, shift, size, len(active))
        near = np.abs(centres[at] * RATE - index * SUBSEGMENT_SHIFT) <= SUBSEGMENT_HALF
        mine = at[near & (active[inside].sum(1) == 1)]
        if len(mine) >= MIN_SUBSEGMENT_FRAMES:
            indices.append(index)
            pooled.append(pool(frames[mine], logits[mine]))
    return indices, pooled


def observe(paths, flac, out, earlier):
    segmentation, trunk, head = (session(path) for path in paths)
    meta = segmentation.get_modelmeta().custom_metadata_map
    shift, size = int(meta["receptive_field_shift"]), int(meta["receptive_field_size"])
    samples, rate = soundfile.read(flac, dtype="float32")
    assert rate == RATE and samples.ndim == 1, flac
    windows = max(0, int(np.ceil((len(samples) - WINDOW) / RATE))) + 1
    padded = np.pad(samples, (0, windows * RATE + WINDOW - len(samples)))
    if earlier:
        probabilities = np.load(Path(earlier) / f"{flac.stem}.npz")["probabilities"]
    else:
        inputs = (padded[window * RATE : window * RATE + WINDOW][None, None] for window in range(windows))
        probabilities = np.array([np.exp(segmentation.run(None, {"x": x})[0][0]).astype(np.float16) for x in inputs])
    frames, logits, exists = trunk_frames(trunk, samples)
    centres = np.arange(len(exists)) * TRUNK_FRAME_SECONDS + 0.0125
    items, pooled = [], []
    for window in range(windows):
        active = POWERSET[probabilities[window].astype(np.float32).argmax(1)]
        at, inside = kept_frames(centres, exists, window, shift, size, len(active))
        alone = active[inside].sum(1) == 1
        for local in range(3):
            mine = active[inside, local]
            if mine.sum() < MIN_ACTIVE_FRAMES:
                continue
            clean = at[mine & alone]
            used = clean if len(clean) >= MIN_CLEAN_FRAMES else at[mine]
            items.append((window, local, len(clean) * TRUNK_FRAME_SECONDS, mine.sum() * TRUNK_FRAME_SECONDS))
            pooled.append(pool(frames[used], logits[used]))
    indices, pieces = subsegments(probabilities, frames, logits, exists, shift, size, len(samples))
    embed = lambda rows: head.run(None, {"pooled": np.array(rows, np.float32)})[0] if rows else np.zeros((0, 1), np.float32)
    np.savez(
        out,
        seconds=len(samples) / RATE,
        shift=shift,
        size=size,
        probabilities=probabilities,
        items=np.array(items, float).reshape(-1, 4),
        embeddings=embed(pooled),
        subsegments=np.array(indices, int),
        subsegment_embeddings=embed(pieces),
    )


def main(segmentation, trunk, head, folder, out, *options):
    earlier = options[1] if options[:1] == ("--from",) else None
    recordings = sorted(Path(folder).glob("*.flac"))
    if not recordings:
        raise SystemExit(f"no FLAC file in {folder}: name a folder of FLAC")
    Path(out).mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor() as workers:
        jobs = [workers.submit(observe, (segmentation, trunk, head), flac, Path(out) / f"{flac.stem}.npz", earlier) for flac in recordings]
        for job in jobs:
            job.result()


if __name__ == "__main__":
    main(*sys.argv[1:])
