"""What may happen to speech between a mouth and the embedder, on whole batches of samples on the GPU.

In the order of a recording: a room, noise or other talkers, the level, a line (band limits, mu-law), then the filterbank; there a smooth equaliser, a noise floor, what the service
does to its features (the floor, the mean of a stretch that holds more than this speaker), SpecAugment (Park et al., Interspeech 2019).
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from . import features
from .sample_crops import Crop
from .sample_features import LogMels
from .samples import DIRECT_SAMPLE, ROOM_SAMPLES

RATE, BANDS = features.SAMPLE_RATE, features.BANDS
LEAD_SAMPLES = 4800
ROOM_SHARE, STORED_ROOM_SHARE, DRAWN_ROOMS = 0.6, 0.5, 3000
NOISE_SHARE, NOISE_BELOW_SPEECH_DB = 0.7, (0.0, 22.0)
LEVEL_DB = (-35.0, 0.0)
BAND_SHARE, LOW_CUT_SHARE, MU_LAW_SHARE = 0.4, 0.2, 0.12
EQUALISER_NATS = 0.8


def drawn_rooms(count: int, random: torch.Generator, device: torch.device) -> Tensor:
    """[count, 9600] responses: a direct sound, then noise that decays exponentially, higher frequencies faster (RT60 0.1-1.2 s)."""

    def uniform(low: float, high: float) -> Tensor:
        return low + (high - low) * torch.rand((count, 1), generator=random, device=device)

    time = torch.arange(ROOM_SAMPLES, device=device)[None] / RATE
    spectrum = torch.fft.rfft(torch.randn((count, ROOM_SAMPLES), generator=random, device=device))
    hertz = torch.fft.rfftfreq(ROOM_SAMPLES, 1 / RATE, device=device)[None]
    rt60, damping = 0.1 * 12 ** uniform(0, 1), uniform(0.35, 1.0)
    tail = torch.zeros((count, ROOM_SAMPLES), device=device)
    for low, high, share in ((0, 700, 0.0), (700, 2500, 0.5), (2500, 8001, 1.0)):
        band = torch.fft.irfft(spectrum * ((hertz >= low) & (hertz < high)), ROOM_SAMPLES)
        tail += band * 10 ** (-3 * time / (rt60 * (1 - share * (1 - damping))))
    gap = (uniform(0.001, 0.012) * RATE).long() + DIRECT_SAMPLE
    tail = tail * (torch.arange(ROOM_SAMPLES, device=device)[None] >= gap)
    tail = tail / tail.square().sum(1, keepdim=True).sqrt()
    rooms = tail * 10 ** (uniform(-14, 6) / 20)
    rooms[:, DIRECT_SAMPLE] += 1
    return rooms / rooms.square().sum(1, keepdim=True).sqrt()


class SampleAugmenter:
    """Crops to feature batches [B, frames, 80]; deterministic for a seed, a device and a sequence of calls."""

    def __init__(self, work: Path, seed: int, device: torch.device):
        self.device, self.random = device, torch.Generator(device).manual_seed(seed)
        self.noise = torch.from_numpy(np.fromfile(work / "noise.i16", np.int16)).to(device)
        self.noise_index = torch.from_numpy(np.load(work / "sample-noise.npy")).to(device)
        stored = torch.from_numpy(np.load(work / "rooms.npy").astype(np.float32)).to(device)
        drawn = drawn_rooms(DRAWN_ROOMS, self.random, device)
        self.rooms, self.stored_rooms = torch.cat([stored, drawn]), len(stored)
        self.log_mels = LogMels().to(device)
        self.axis = torch.linspace(-1, 1, BANDS, device=device)

    def uniform(self, *shape: int, low: float = 0.0, high: float = 1.0) -> Tensor:
        return low + (high - low) * torch.rand(shape, generator=self.random, device=self.device)

    def chosen(self, size: int, share: float) -> Tensor:
        """Indices of a share of a batch, always as many: nothing has to wait for the GPU to know how many."""
        return torch.randperm(size, generator=self.random, device=self.device)[: round(share * size)]

    def integers(self, bound: int | Tensor, *shape: int) -> Tensor:
        return (self.uniform(*shape) * bound).long()

    def in_rooms(self, crop: Crop) -> Tensor:
        """Samples without their lead, a share of those that went through no codec in rooms."""
        samples = crop.samples
        size, length = samples.shape
        rows = self.chosen(size, ROOM_SHARE)
        which = torch.where(
            self.uniform(len(rows)) < STORED_ROOM_SHARE,
            self.integers(self.stored_rooms, len(rows)),
            self.stored_rooms + self.integers(DRAWN_ROOMS, len(rows)),
        )
        points = 1 << (length + ROOM_SAMPLES - 1).bit_length()
        wet = torch.fft.irfft(torch.fft.rfft(samples[rows], points) * torch.fft.rfft(self.rooms[which], points), points)
        wet = torch.where(crop.coded[rows, None], samples[rows], wet[:, DIRECT_SAMPLE : DIRECT_SAMPLE + length])
        out = samples[:, LEAD_SAMPLES:].clone()
        out[rows] = wet[:, LEAD_SAMPLES:]
        return out

    def coloured(self, count: int, length: int) -> Tensor:
        """[count, length] noise with a random slope and three random bumps, its level swelling slowly."""
        spectrum = torch.fft.rfft(torch.randn((count, length), generator=self.random, device=self.device))
        octaves = torch.log2(torch.fft.rfftfreq(length, 1 / RATE, device=self.device).clamp_min(60) / 1000)[None]
        decibels = self.uniform(count, 1, low=-9, high=2) * octaves
        for _ in range(3):
            centre, width = self.uniform(count, 1, low=-4, high=3), self.uniform(count, 1, low=0.3, high=1.5)
            decibels = decibels + self.uniform(count, 1, low=-10, high=15) * torch.exp(-((octaves - centre) / width).square())
        return torch.fft.irfft(spectrum * 10 ** (decibels / 20), length)

    def add_noise(self, samples: Tensor) -> None:
        """Recorded noise, babble, one other talker or coloured noise, 0 to 22 dB below most of the crops, in place."""
        size, length = samples.shape
        rows = self.chosen(size, NOISE_SHARE)
        count = len(rows)
        ends = [round(count * share) for share in (0.38, 0.6, 0.76, 1.0)]
        entry = self.noise_index[self.integers(len(self.noise_index), ends[0])]
        start = self.integers(entry[:, 1:], ends[0], 1)
        place = entry[:, :1] + (start + torch.arange(length, device=self.device)).remainder(entry[:, 1:])
        noise = torch.empty((count, length), device=self.device)
        noise[: ends[0]] = self.noise[place].float() / 32768
        noise[ends[0] : ends[1]] = samples[self.integers(size, ends[1] - ends[0], 4)].sum(1)
        talker = samples[self.integers(size, ends[2] - ends[1])]
        begin = torch.where(self.uniform(len(talker), 1) < 0.5, self.uniform(len(talker), 1, low=0.2, high=0.9) * length, 0)
        noise[ends[1] : ends[2]] = talker * (torch.arange(length, device=self.device)[None] >= begin)
        noise[ends[2] :] = self.coloured(count - ends[2], length)
        below = 10 ** (-self.uniform(count, 1, low=NOISE_BELOW_SPEECH_DB[0], high=NOISE_BELOW_SPEECH_DB[1]) / 20)
        speech = samples[rows]
        level = (speech.square().mean(1, keepdim=True) / (noise.square().mean(1, keepdim=True) + 1e-10)).sqrt()
        samples[rows] = speech + noise * level * below

    def through_lines(self, samples: Tensor) -> Tensor:
        """Band limits of a share, mu-law of some of them, and the rounding of a quiet recording."""
        size, length = samples.shape
        rows = self.chosen(size, BAND_SHARE)
        count = len(rows)
        hertz = torch.fft.rfftfreq(length, 1 / RATE, device=self.device)[None]
        high = torch.where(self.uniform(count, 1) < 0.5, self.uniform(count, 1, low=3200, high=4000), self.uniform(count, 1, low=4000, high=7600))
        low = torch.where(self.uniform(count, 1) < LOW_CUT_SHARE / BAND_SHARE, self.uniform(count, 1, low=150, high=400), -1000.0)
        gain = torch.sigmoid((high - hertz) / 40) * torch.sigmoid((hertz - low) / 20)
        limited = torch.fft.irfft(torch.fft.rfft(samples[rows]) * gain, length)
        coded = round(MU_LAW_SHARE * size)
        peak = limited[:coded].abs().amax(1, keepdim=True) + 1e-6
        unit = (limited[:coded] / peak * self.uniform(coded, 1, low=0.05, high=1.0)).clamp(-1, 1)
        companded = torch.sign(unit) * torch.log1p(255 * unit.abs()) / math.log(256)
        companded = torch.round(companded * 127) / 127
        limited[:coded] = torch.sign(companded) * (torch.pow(256.0, companded.abs()) - 1) / 255
        samples[rows] = limited
        peak = samples.abs().amax(1, keepdim=True) + 1e-6
        gain = 10 ** (self.uniform(size, 1, low=LEVEL_DB[0], high=LEVEL_DB[1]) / 20)
        return torch.round(samples / peak * gain * 32767) / 32768

    def equalisers(self, count: int, nats: float) -> Tensor:
        """[count, 80] smooth random spectral tilts and bumps in nats."""
        order = torch.arange(1, 5, device=self.device)[None, :, None]
        phase = self.uniform(count, 4, 1, high=2 * math.pi)
        scale = torch.randn((count, 4, 1), generator=self.random, device=self.device) * nats / order
        waves = torch.cos(math.pi * order * (self.axis + 1) / 2 + phase)
        tilt = torch.randn((count, 1), generator=self.random, device=self.device) * nats
        return (scale * waves).sum(1) + tilt * self.axis

    def _loud(self, mels: Tensor) -> Tensor:
        """[B] natural-log energy of the loudest band, 95th percentile over time."""
        return torch.quantile(mels.amax(2), features.FEATURE_FLOOR_PERCENTILE / 100, dim=1)

    def as_the_service(self, mels: Tensor) -> Tensor:
        """The feature floor, and a mean that was partly taken over somebody else and over silence."""
        size = len(mels)
        floor = self._loud(mels) - features.FEATURE_FLOOR_NATS
        floor = floor - self.uniform(size, high=10) * (self.uniform(size) < 0.15)
        mels = torch.maximum(mels, floor[:, None, None])
        mean = mels.mean(1)
        other = self.uniform(size, 1, high=0.8) * (self.uniform(size, 1) < 0.5)
        silence = self.uniform(size, 1, high=0.5) * (self.uniform(size, 1) < 0.5)
        order = torch.randperm(size, generator=self.random, device=self.device)
        reference = mean + other * (mean[order] - mean) * 0.7
        reference = reference + silence * (floor[:, None] - reference)
        return mels - reference[:, None]

    def mask(self, mels: Tensor) -> Tensor:
        """Up to 10 bands of half of the crops, up to 20 frames of four in ten."""
        size, frames, _ = mels.shape
        out = mels
        for axis, length, width, share in ((2, BANDS, 10, 0.5), (1, frames, 20, 0.4)):
            start = self.integers(length, size, 1)
            stop = start + self.integers(width, size, 1) * (self.uniform(size, 1) < share)
            place = torch.arange(length, device=self.device)[None]
            masked = (place >= start) & (place < stop)
            out = out.masked_fill(masked[:, None] if axis == 2 else masked[:, :, None], 0)
        return out

    @torch.no_grad()
    def __call__(self, crop: Crop) -> Tensor:
        samples = self.in_rooms(crop)
        self.add_noise(samples)
        mels = self.log_mels(self.through_lines(samples))
        size = len(mels)
        mels = mels + self.equalisers(size, EQUALISER_NATS)[:, None]
        hiss = self._loud(mels)[:, None, None] - self.uniform(size, 1, 1, low=7, high=18)
        hiss = hiss + 0.5 * torch.randn(mels.shape, generator=self.random, device=self.device)
        mels = torch.where((self.uniform(size) < 0.7)[:, None, None], torch.logaddexp(mels, hiss), mels)
        return self.mask(self.as_the_service(mels))
