"""Speech labels of single-speaker recordings: a speech detector (a powerset segmentation model), cut by an energy
gate."""

from pathlib import Path

import numpy as np
import onnxruntime

from .frontend import FRAMES_PER_SECOND, RATE_HZ

WINDOW_SECONDS = 10
MAX_GAP_FRAMES = 20
MIN_ISLAND_FRAMES = 8
MIN_SNR_DB = 12.0
GATE_DB = 35.0
FLOOR_GATE_DB, FLOOR_GATE_FROM_DB = 4.0, 20.0
"""Frames less than the first value above the quietest ones are not speech, if those are the second value below
speech."""
MAX_OVERLAP = 0.2


class Teacher:
    """A powerset segmentation model ([N,1,T] -> [N,F,7] log-probabilities), such as that of `pyannote.py`."""

    def __init__(self, path: Path):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        meta = self.session.get_modelmeta().custom_metadata_map
        self.frame_samples = int(meta["receptive_field_size"])
        self.shift_samples = int(meta["receptive_field_shift"])

    def probabilities(self, samples: np.ndarray) -> np.ndarray:
        """Samples of one window -> [frames, 7] probabilities."""
        return np.exp(self.session.run(None, {"x": samples[None, None].astype(np.float32)})[0][0])

    def resampled(self, samples: np.ndarray, frames_per_second: int) -> np.ndarray:
        """Probabilities [frames, 7] at the given rate by nearest frame; frame i is centred on (i + 0.5) / rate
        seconds."""
        probabilities = self.probabilities(samples)
        frames = len(samples) * frames_per_second // RATE_HZ
        centres = (np.arange(frames) + 0.5) * RATE_HZ / frames_per_second
        index = np.round((centres - self.frame_samples / 2) / self.shift_samples).astype(int)
        return probabilities[np.clip(index, 0, len(probabilities) - 1)]

    def speech_and_overlap(self, samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Samples of any length -> probability of speech and of overlap at 100 Hz, from consecutive 10 s windows."""
        size = WINDOW_SECONDS * RATE_HZ
        parts = []
        for start in range(0, len(samples), size):
            window = np.zeros(size, np.float32)
            window[: len(samples) - start] = samples[start : start + size]
            parts.append(self.resampled(window, FRAMES_PER_SECOND))
        joined = np.concatenate(parts)[: len(samples) * FRAMES_PER_SECOND // RATE_HZ]
        return 1 - joined[:, 0], joined[:, 4:].sum(1)


def runs(mask: np.ndarray) -> list[tuple[int, int]]:
    """[start, end) of every run of true values."""
    edges = np.diff(np.r_[0, mask.astype(np.int8), 0])
    return list(zip(np.where(edges == 1)[0].tolist(), np.where(edges == -1)[0].tolist()))


def label_clips(
    energy: np.ndarray, speech: np.ndarray, overlap: np.ndarray, clips: list[tuple[float, float]]
) -> tuple[np.ndarray, np.ndarray, list[tuple[int, int]]]:
    """Labels, gains and usable clips of one file.

    energy, speech, overlap: [frames] at 100 Hz; clips in seconds. Returns labels uint8 [frames], power gain [frames]
    that normalises the speech of every clip to a mean power of 1 (0 outside usable clips), and the usable clips in
    frames. A clip is dropped if it is short, noisy (speech less than 12 dB above its quietest frames) or seems to have
    two voices.
    """
    frames = len(energy)
    active = speech[:frames] > 0.5
    for start, end in runs(~active):
        if end - start < MAX_GAP_FRAMES and 0 < start and end < frames:
            active[start:end] = True
    for start, end in runs(active):
        if end - start < MIN_ISLAND_FRAMES:
            active[start:end] = False
    labels = np.zeros(frames, np.uint8)
    gains = np.zeros(frames, np.float32)
    usable = []
    for begin, finish in clips:
        a, b = int(begin * FRAMES_PER_SECOND), min(frames, int(finish * FRAMES_PER_SECOND))
        here = active[a:b].copy()
        if b - a < 30 or here.sum() < 25:
            continue
        level = energy[a:b][here].mean()
        snr_db = 10 * np.log10(level / (np.percentile(energy[a:b], 5) + 1e-9))
        if snr_db < MIN_SNR_DB or level < 1e-4 or overlap[a:b][here].mean() > MAX_OVERLAP:
            continue
        smooth = np.convolve(energy[a:b], np.ones(5) / 5, "same")
        gate, floor = level * 10 ** (-GATE_DB / 10), np.percentile(smooth, 5)
        if level > floor * 10 ** (FLOOR_GATE_FROM_DB / 10):
            gate = max(gate, floor * 10 ** (FLOOR_GATE_DB / 10))
        here &= smooth > gate
        labels[a:b] = here
        gains[a:b] = 1 / level
        usable.append((a, b))
    return labels, gains, usable
