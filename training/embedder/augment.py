"""Augmentation in the log-mel domain: channel, room tail, noise, other talkers, band limits, level of the floor.

Works on whole batches of natural-log energies [B, L, 80]; sounds are added as energies. What the service
does to its features (the floor, the mean of a 10 s stretch with other speakers) is imitated at the end.
SpecAugment: Park et al., Interspeech 2019.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.signal

from . import features

BANDS = features.BANDS
OFFSET_NATS = 10.0  # keeps energies well inside float32
JITTER_FRAMES = 60_000
_BAND_AXIS = np.linspace(-1, 1, BANDS, dtype=np.float32)


class Augmenter:
    """Deterministic for a seed and a sequence of calls."""

    def __init__(self, work: Path, seed: int):
        self.rng = np.random.default_rng(seed)
        self.noise = np.memmap(work / "noise.f16", np.float16, "r").reshape(-1, BANDS)
        self.noise_index = np.load(work / "noise.npy")
        self._gaussian = self.rng.standard_normal((JITTER_FRAMES, BANDS), np.float32)

    def _jitter(self, frames: int) -> np.ndarray:
        """[frames, 80] normal values from a fixed pool: new ones would take as long as all the rest."""
        start = int(self.rng.integers(0, JITTER_FRAMES - frames))
        return self._gaussian[start : start + frames]

    def smooth_curves(self, count: int, amplitude: float) -> np.ndarray:
        """[count, 80] smooth random spectral tilts and bumps in nats."""
        rng = self.rng
        order = np.arange(1, 5, dtype=np.float32)
        phase = rng.uniform(0, 2 * np.pi, (count, 4, 1))
        scale = rng.normal(0, 1, (count, 4, 1)) * amplitude / order[:, None]
        waves = np.cos(np.pi * order[:, None] * (_BAND_AXIS + 1) / 2 + phase)
        tilt = rng.normal(0, amplitude, (count, 1)) * _BAND_AXIS
        return ((scale * waves).sum(1) + tilt).astype(np.float32)

    def _noises(self, energies: np.ndarray) -> np.ndarray:
        """[B, L, 80] energies of one interfering sound per stretch.

        Recorded noise, babble of four, one talker, or coloured noise.
        """
        rng = self.rng
        size, frames, _ = energies.shape
        out = np.empty_like(energies)
        for row, kind in enumerate(rng.integers(0, 8, size)):
            if kind < 3:
                offset, length = self.noise_index[rng.integers(len(self.noise_index))]
                begin = offset + int(rng.integers(0, max(1, length - frames)))
                piece = np.exp(self.noise[begin : begin + min(frames, length)].astype(np.float32) - OFFSET_NATS)
                out[row] = np.resize(piece, (frames, BANDS))
            elif kind < 5:
                out[row] = energies[rng.integers(0, size, 4)].sum(0)
            elif kind < 6:
                out[row] = energies[rng.integers(size)]
                if rng.random() < 0.5:
                    out[row, int(rng.integers(frames // 4, frames)) :] = 0
            else:
                spread = np.linspace(1.0, 0.35, BANDS, dtype=np.float32)
                out[row] = np.exp(self.smooth_curves(1, 2.0) + self._jitter(frames) * spread)
        return out

    def _add_room_tails(self, energies: np.ndarray) -> None:
        """An exponential tail on the energies of a third of the stretches, reverberation time 0.15-1.0 s."""
        rng = self.rng
        for row in np.where(rng.random(len(energies)) < 0.33)[0]:
            decay = 10 ** (-6.0 * 0.01 / rng.uniform(0.15, 1.0))
            ratio = 10 ** (-rng.uniform(0, 12) / 10)
            energies[row] += scipy.signal.lfilter([0.0, (1 - decay) * ratio], [1.0, -decay], energies[row], axis=0)

    def __call__(self, mels: np.ndarray) -> np.ndarray:
        """[B, L, 80] raw log-mels -> what the model is trained on, float32."""
        rng = self.rng
        size, frames, _ = mels.shape
        energies = np.exp(mels + (self.smooth_curves(size, 1.0) - OFFSET_NATS)[:, None])
        self._add_room_tails(energies)
        noise = self._noises(energies)
        level = energies.sum((1, 2)) / (noise.sum((1, 2)) + 1e-12)
        gain = level * 10 ** (-rng.uniform(0, 22, size) / 10) * (rng.random(size) < 0.6)
        energies += noise * gain[:, None, None].astype(np.float32)
        x = self._as_the_service(np.log(self._channel(energies)))
        return self._mask(x)

    def _channel(self, energies: np.ndarray) -> np.ndarray:
        """Telephone or narrow codec bands for 35 %, and a random floor for all, as from quantisation."""
        rng = self.rng
        size, frames, _ = energies.shape
        draw = rng.random(size)
        high = np.where(draw < 0.2, rng.uniform(52, 62, size), np.where(draw < 0.35, rng.uniform(62, 78, size), 80.0))
        low = np.where(draw < 0.1, rng.uniform(4, 12, size), -5.0)
        band = np.arange(BANDS)
        cut = np.exp(-2.5 * (np.maximum(band - high[:, None], 0) + np.maximum(low[:, None] - band, 0)))
        loud = np.percentile(energies.max(2), 95, axis=1) + 1e-12
        floor = (loud * np.exp(-rng.uniform(7, 18, size))).astype(np.float32)
        hiss = np.exp(0.5 * self._jitter(size * frames)).reshape(size, frames, BANDS)
        return energies * cut[:, None].astype(np.float32) + floor[:, None, None] * hiss

    def _as_the_service(self, x: np.ndarray) -> np.ndarray:
        """The feature floor, sometimes a lower one, and the mean of the stretch."""
        rng = self.rng
        size = len(x)
        floor = np.percentile(x.max(2), features.FEATURE_FLOOR_PERCENTILE, axis=1) - features.FEATURE_FLOOR_NATS
        lowered = floor - rng.uniform(0, 10.0, size) * (rng.random(size) < 0.15)
        x = np.maximum(x, lowered.astype(np.float32)[:, None, None])
        return x - x.mean(1, keepdims=True)

    def _mask(self, x: np.ndarray) -> np.ndarray:
        """SpecAugment: fewer than 10 bands in half of the stretches, fewer than 20 frames in 40 % of them."""
        rng = self.rng
        size, frames, _ = x.shape
        band, time = np.arange(BANDS)[None], np.arange(frames)[None]
        start = rng.integers(0, BANDS, (size, 1))
        width = rng.integers(0, 10, (size, 1)) * (rng.random((size, 1)) < 0.5)
        masked_bands = (band >= start) & (band < start + width)
        start = rng.integers(0, frames, (size, 1))
        width = rng.integers(0, 20, (size, 1)) * (rng.random((size, 1)) < 0.4)
        masked_frames = (time >= start) & (time < start + width)
        x[np.broadcast_to(masked_bands[:, None], x.shape)] = 0
        x[np.broadcast_to(masked_frames[:, :, None], x.shape)] = 0
        return x
