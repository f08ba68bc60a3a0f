"""Random crops of training speech: which voice, which speed, which recording condition, spliced now and then."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from . import features
from .prepare import SPEEDS, VARIANTS

MAX_WEIGHTED_FRAMES = 6000
SPEED_SHARES = {1.0: 0.44, 0.88: 0.28, 1.12: 0.28}
VARIANT_SHARES = (0.4, 0.35, 0.25)
SPLICE_PROBABILITY = 0.25


@dataclass
class Batch:
    """mels [B, L, 80] natural-log energies; label [B] voice-and-speed class; target [B, 192] teacher embedding."""

    mels: np.ndarray
    label: np.ndarray
    target: np.ndarray


class Crops:
    """Draws crops from the prepared features of every finished speed; deterministic for a seed."""

    def __init__(self, work: Path, seed: int, unit_share: float = 0.5):
        self.rng = np.random.default_rng(seed)
        self.voice_count = len(json.loads((work / "voices.json").read_text()))
        self.class_count = self.voice_count * len(SPEEDS)
        self.speeds = [s for s in SPEEDS if (work / f"targets-{s}.npy").exists()]
        self.mels, self.units, self.starts, self.targets = [], [], [], []
        self.class_targets = np.zeros((self.class_count, 192), np.float32)
        weights = np.zeros(self.voice_count)
        for speed in self.speeds:
            units = np.load(work / f"units-{speed}.npy")
            targets = np.load(work / f"targets-{speed}.npy")
            starts = np.searchsorted(units[:, 0], np.arange(self.voice_count + 1))
            means = np.zeros((self.voice_count, 192), np.float32)
            np.add.at(means, units[:, 0], targets * np.sqrt(units[:, 2:3]))
            means /= np.linalg.norm(means, axis=1, keepdims=True) + 1e-9
            mixed = unit_share * targets + (1 - unit_share) * means[units[:, 0]]
            self.targets.append(mixed / np.linalg.norm(mixed, axis=1, keepdims=True))
            self.class_targets[np.arange(self.voice_count) * len(SPEEDS) + SPEEDS.index(speed)] = means
            self.mels.append(
                [np.memmap(work / f"mels-{speed}-{v}.f16", np.float16, "r").reshape(-1, features.BANDS) for v in VARIANTS]
            )
            self.units.append(units)
            self.starts.append(starts)
            if speed == 1.0:
                np.add.at(weights, units[:, 0], units[:, 2].astype(float))
        weights = np.sqrt(np.minimum(weights, MAX_WEIGHTED_FRAMES))
        self.cumulative = np.cumsum(weights / weights.sum())
        shares = np.array([SPEED_SHARES[s] for s in self.speeds])
        self.speed_cumulative = np.cumsum(shares / shares.sum())
        self.variant_cumulative = np.cumsum(VARIANT_SHARES)

    def _fill(self, out: np.ndarray, speed: int, voice: int) -> int:
        """Fill [n, 80] from one random unit of the voice; returns the frames written and leaves the unit's index."""
        low, high = self.starts[speed][voice], self.starts[speed][voice + 1]
        unit = int(self.rng.integers(low, high))
        _, offset, frames = self.units[speed][unit]
        variant = min(int(np.searchsorted(self.variant_cumulative, self.rng.random())), len(VARIANTS) - 1)
        n = min(len(out), int(frames))
        begin = offset + int(self.rng.integers(0, frames - n + 1))
        out[:n] = self.mels[speed][variant][begin : begin + n]
        self._unit = unit
        return n

    def draw(self, size: int, frames: int) -> Batch:
        """``size`` crops of ``frames`` frames each."""
        rng = self.rng
        mels = np.empty((size, frames, features.BANDS), np.float32)
        label = np.empty(size, np.int64)
        target = np.zeros((size, 192), np.float32)
        voices = np.minimum(np.searchsorted(self.cumulative, rng.random(size)), self.voice_count - 1)
        speeds = np.minimum(np.searchsorted(self.speed_cumulative, rng.random(size)), len(self.speeds) - 1)
        for row in range(size):
            voice, speed = int(voices[row]), int(speeds[row])
            if self.starts[speed][voice] == self.starts[speed][voice + 1]:
                speed = 0
                while self.starts[0][voice] == self.starts[0][voice + 1]:
                    voice = int(rng.integers(self.voice_count))
            split = frames if rng.random() > SPLICE_PROBABILITY else int(rng.integers(frames // 4, 3 * frames // 4))
            filled = 0
            while filled < frames:
                stop = split if filled < split else frames
                n = self._fill(mels[row, filled:stop], speed, voice)
                target[row] += n * self.targets[speed][self._unit]
                filled += n
            label[row] = voice * len(SPEEDS) + SPEEDS.index(self.speeds[speed])
        target /= np.linalg.norm(target, axis=1, keepdims=True)
        return Batch(mels, label, target)
