"""Training stretches, the input of the trunk: one to four voices in turn, pauses, some overlap, a channel, noise."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from . import features
from .augment import Augmenter
from .model import FRAME_STRIDE
from .prepare import SPEEDS, VARIANTS

BANDS = features.BANDS
MAX_WEIGHTED_FRAMES = 6000
VOICE_SHARES = (0.35, 0.35, 0.2, 0.1)
"""Shares of stretches with one, two, three and four voices."""
PIECE_FRAMES = (60, 400)
PAUSE_NATS = -30.0
OVERLAP_PROBABILITY = 0.15
UNIT_SHARE = 0.5
MIN_MASK_FRAMES = 10
MOST_FRAMES = 998  # features of ten seconds


@dataclass
class Pooled:
    """Embeddings to take: rows [N] of the batch, masks [N, T'], labels [N], targets [N, 192] of unit length."""

    rows: np.ndarray
    masks: np.ndarray
    labels: np.ndarray
    targets: np.ndarray


@dataclass
class Batch:
    """feats [B, T, 80] of stretches of one length, with the masks to pool: every span, and every voice."""

    feats: np.ndarray
    pieces: Pooled
    voices: Pooled


class Stretches:
    """Generates stretches from the files of `prepare.py` and `targets.py`; deterministic for a seed."""

    def __init__(self, work: Path, seed: int):
        self.rng = np.random.default_rng(seed)
        self.augment = Augmenter(work, seed + 1)
        self.voices = voices = len(json.loads((work / "voices.json").read_text()))
        speeds = [speed for speed in SPEEDS if (work / f"targets-{speed}.npy").exists()]
        self.voice_count = voices * len(speeds)
        self.mels, self.units, self.targets, self.starts, class_targets = [], [], [], [], []
        weights = np.zeros((len(speeds), voices))
        for index, speed in enumerate(speeds):
            units, targets = np.load(work / f"units-{speed}.npy"), np.load(work / f"targets-{speed}.npy")
            means = np.zeros((voices, targets.shape[1]), np.float32)
            np.add.at(means, units[:, 0], targets * np.sqrt(units[:, 2:3]))
            means /= np.linalg.norm(means, axis=1, keepdims=True) + 1e-9
            mixed = UNIT_SHARE * targets + (1 - UNIT_SHARE) * means[units[:, 0]]
            self.targets.append(mixed / np.linalg.norm(mixed, axis=1, keepdims=True))
            class_targets.append(means)
            self.units.append(units)
            self.starts.append(np.searchsorted(units[:, 0], np.arange(voices + 1)))
            files = [work / f"mels-{speed}-{variant}.f16" for variant in VARIANTS]
            self.mels.append([np.memmap(file, np.float16, "r").reshape(-1, BANDS) for file in files])
            np.add.at(weights[index], units[:, 0], units[:, 2].astype(float))
            weights[index] = np.sqrt(np.minimum(weights[index], MAX_WEIGHTED_FRAMES)) * (1.0 if speed == 1.0 else 0.5)
        self.class_targets = np.concatenate(class_targets)
        self.cumulative = np.cumsum(weights.ravel() / weights.sum())

    def _length(self) -> int:
        """Feature frames of a stretch: ten seconds for half of them, from 1.5 s to ten for the others."""
        if self.rng.random() < 0.5:
            return MOST_FRAMES
        return int(FRAME_STRIDE * self.rng.integers(150 // FRAME_STRIDE, MOST_FRAMES // FRAME_STRIDE))

    def _stretch(self, frames: int):
        """Log-mels [frames, 80], voices that speak in each frame [frames], and spans: (voice, start, end, target)."""
        rng = self.rng
        out = np.full((frames, BANDS), PAUSE_NATS, np.float32)
        spoken = np.zeros(frames, np.int32)
        most = 1 + int(np.searchsorted(np.cumsum(VOICE_SHARES), rng.random()))
        chosen = np.minimum(np.searchsorted(self.cumulative, rng.random(most)), self.voice_count - 1)
        coded = rng.random() < 0.3
        variants = {voice: 2 if coded else int(rng.random() < 0.45) for voice in chosen}
        gains = {voice: rng.normal(0, 0.7) for voice in chosen}
        pieces, at, last = [], 0, -1
        while at < frames - MIN_MASK_FRAMES * FRAME_STRIDE:
            others = [voice for voice in chosen if voice != last]
            voice = int(rng.choice(others)) if others else int(chosen[0])
            last = voice
            wanted = int(rng.integers(*PIECE_FRAMES)) if most > 1 else frames
            speed, number = divmod(voice, self.voices)
            low, high = self.starts[speed][number], self.starts[speed][number + 1]
            unit = int(rng.integers(low, high))
            _, offset, length = self.units[speed][unit]
            n = min(wanted, int(length), frames - at)
            begin = offset + int(rng.integers(0, length - n + 1))
            piece = self.mels[speed][variants[voice]][begin : begin + n].astype(np.float32) + gains[voice]
            back = int(rng.integers(20, 120)) if pieces and most > 1 and rng.random() < OVERLAP_PROBABILITY else 0
            start = max(0, at - back)
            n = min(n, frames - start)
            out[start : start + n] = np.logaddexp(out[start : start + n], piece[:n])
            spoken[start : start + n] += 1
            pieces.append((voice, start, start + n, self.targets[speed][unit]))
            at = start + n + (int(rng.integers(0, 80)) if rng.random() < 0.5 else 0)
        return out, spoken, pieces

    def draw(self, size: int) -> Batch:
        """``size`` stretches of ten seconds, or up to 4 ``size`` shorter ones with the same total length."""
        length = self._length()
        size = min(4 * size, round(size * MOST_FRAMES / length))
        drawn = [self._stretch(length) for _ in range(size)]
        feats = self.augment(np.stack([one[0] for one in drawn]))
        slots = -(-(-(-length // 2)) // 2)
        pieces, voices = ([], [], [], []), ([], [], [], [])
        for row, (_, spoken, found) in enumerate(drawn):
            alone = np.pad(spoken == 1, (0, slots * FRAME_STRIDE - length)).reshape(slots, FRAME_STRIDE).all(1)
            by_voice: dict[int, list] = {}
            for voice, start, end, target in found:
                mask = np.zeros(slots, np.float32)
                mask[-(-start // FRAME_STRIDE) : end // FRAME_STRIDE] = 1
                mask *= alone
                if mask.sum() < MIN_MASK_FRAMES:
                    continue
                by_voice.setdefault(voice, []).append((mask, target))
                for values, value in zip(pieces, (row, self._part(mask), voice, target)):
                    values.append(value)
            for voice, parts in by_voice.items():
                target = sum(mask.sum() * one for mask, one in parts)
                mask = sum(mask for mask, _ in parts)
                for values, value in zip(voices, (row, mask, voice, target / np.linalg.norm(target))):
                    values.append(value)
        pooled = [
            Pooled(np.array(rows), np.stack(masks), np.array(labels), np.stack(targets).astype(np.float32))
            for rows, masks, labels, targets in (pieces, voices)
        ]
        return Batch(feats, *pooled)

    def _part(self, mask: np.ndarray) -> np.ndarray:
        """Consecutive frames of a mask, 0.4 to 3 s, like a subsegment of a turn."""
        at = np.flatnonzero(mask)
        n = int(self.rng.integers(MIN_MASK_FRAMES, 75))
        if len(at) <= n:
            return mask
        begin = int(self.rng.integers(0, len(at) - n + 1))
        part = np.zeros_like(mask)
        part[at[begin : begin + n]] = 1
        return part
