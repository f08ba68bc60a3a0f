"""Runs the models over recordings and stores what clustering sees.

    python observe.py SEGMENTATION.onnx TRUNK.onnx HEAD.onnx FOLDER OUT

For every FLAC in FOLDER, with an RTTM of the same name beside it, OUT/<name>.npz holds at a step of one second: the powerset
probabilities of every window, the local speakers (window, number, seconds alone, seconds active) and their embeddings.
The same windows, stretches, feature floor and masks as `src/diarization`; ONNX sessions use one thread.
"""
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import onnxruntime
import soundfile
from scipy.fft import rfft

RATE = 16000
WINDOW = 10 * RATE
BANDS = 80
FLOOR_NATS = 10.0
TRUNK_FRAME_SECONDS = 0.02
FRAMES_PER_STRETCH = 500
MIN_CLEAN_FRAMES = 20  # of the trunk: below, the embedding takes the overlapped frames too
MIN_ACTIVE_FRAMES = 5
POWERSET = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1], [0, 1, 1]], bool)


def mel(hertz):
    return 1127 * np.log1p(np.asarray(hertz, float) / 700)


def mel_bank():
    """Kaldi's triangles between 20 Hz and 8 kHz on the mel scale; [257, 80]."""
    low, high = mel(20), mel(RATE / 2)
    width = (high - low) / (BANDS + 1)
    bins = mel(np.arange(256) * RATE / 512)
    left = low + np.arange(BANDS)[:, None] * width
    bank = np.maximum(0, np.minimum((bins - left) / width, (left + 2 * width - bins) / width))
    return np.concatenate([bank, np.zeros((BANDS, 1))], 1).astype(np.float32).T.copy()


MEL_BANK = mel_bank()
HAMMING = (0.54 - 0.46 * np.cos(2 * np.pi * np.arange(400) / 399)).astype(np.float32)


def filterbank(samples):
    """Kaldi log-mel energies [frames, 80] of samples in −1…1: 25 ms / 10 ms, pre-emphasis 0.97, DC removed, no dither."""
    frames = np.lib.stride_tricks.sliding_window_view(samples.astype(np.float32) * 32768, 400)[::160].copy()
    frames -= frames.mean(1, keepdims=True)
    frames[:, 1:] -= 0.97 * frames[:, :-1]
    frames[:, 0] *= 0.03
    spectrum = rfft(frames * HAMMING, 512, axis=1)
    return np.log(np.maximum((spectrum.real**2 + spectrum.imag**2) @ MEL_BANK, 1.1920929e-7)).astype(np.float32)


def raise_floor(feats):
    peaks = np.sort(feats.max(1))
    return np.maximum(feats, peaks[int(0.95 * (len(peaks) - 1))] - FLOOR_NATS)


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
        feats = raise_floor(filterbank(samples[first:end]))
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


def observe(paths, flac, out):
    segmentation, trunk, head = (session(path) for path in paths)
    meta = segmentation.get_modelmeta().custom_metadata_map
    shift, size = int(meta["receptive_field_shift"]), int(meta["receptive_field_size"])
    samples, rate = soundfile.read(flac, dtype="float32")
    assert rate == RATE and samples.ndim == 1, flac
    windows = max(0, int(np.ceil((len(samples) - WINDOW) / RATE))) + 1
    padded = np.pad(samples, (0, windows * RATE + WINDOW - len(samples)))
    frames, logits, exists = trunk_frames(trunk, samples)
    centres = np.arange(len(exists)) * TRUNK_FRAME_SECONDS + 0.0125
    probabilities, items, pooled = [], [], []
    for window in range(windows):
        scores = segmentation.run(None, {"x": padded[window * RATE : window * RATE + WINDOW][None, None]})[0][0]
        probabilities.append(np.exp(scores).astype(np.float16))
        active = POWERSET[scores.argmax(1)]
        at = np.arange(window * 50, min(window * 50 + FRAMES_PER_STRETCH, len(exists)))
        at = at[exists[at]]
        inside = np.round(((centres[at] - window) * RATE - size / 2) / shift).astype(int).clip(0, len(active) - 1)
        alone = active[inside].sum(1) == 1
        for local in range(3):
            mine = active[inside, local]
            if mine.sum() < MIN_ACTIVE_FRAMES:
                continue
            clean = at[mine & alone]
            used = clean if len(clean) >= MIN_CLEAN_FRAMES else at[mine]
            items.append((window, local, len(clean) * TRUNK_FRAME_SECONDS, mine.sum() * TRUNK_FRAME_SECONDS))
            pooled.append(pool(frames[used], logits[used]))
    embeddings = head.run(None, {"pooled": np.array(pooled, np.float32)})[0] if pooled else np.zeros((0, 1), np.float32)
    np.savez(
        out,
        seconds=len(samples) / RATE,
        shift=shift,
        size=size,
        probabilities=np.array(probabilities),
        items=np.array(items, float).reshape(-1, 4),
        embeddings=embeddings,
    )


def main(segmentation, trunk, head, folder, out):
    Path(out).mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor() as workers:
        jobs = [
            workers.submit(observe, (segmentation, trunk, head), flac, Path(out) / f"{flac.stem}.npz")
            for flac in sorted(Path(folder).glob("*.flac"))
        ]
        for job in jobs:
            job.result()


if __name__ == "__main__":
    main(*sys.argv[1:])
