"""Where batches come from: log-mels prepared on disk and degraded on a CPU, or samples drawn and degraded on the device."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from .augment import Augmenter
from .crops import Crops
from .sample_augment import LEAD_SAMPLES, SampleAugmenter
from .sample_crops import SampleCrops
from .sample_targets import crop_samples

Batch = tuple[Tensor, Tensor, Tensor]
"""feats [B, T, 80], label [B], target [B, 192], on the device."""


class MelFeed:
    """Crops of 1 to 3 s out of the features of ``prepare.py``."""

    frames, shares = (100, 150, 200, 300), (0.2, 0.3, 0.35, 0.15)

    def __init__(self, work: Path, seed: int, device: torch.device):
        self.crops, self.augment, self.device = Crops(work, seed), Augmenter(work, seed + 1), device
        self.class_targets, self.speeds = torch.from_numpy(self.crops.class_targets).to(device), self.crops.speeds

    def draw(self, size: int, frames: int) -> Batch:
        batch = self.crops.draw(size, frames)
        feats = torch.from_numpy(self.augment(batch.mels)).to(self.device)
        return feats, torch.from_numpy(batch.label).to(self.device), torch.from_numpy(batch.target).to(self.device)


class SampleFeed:
    """Crops of 0.8 to 4 s out of the samples of ``samples.py``."""

    frames, shares = (80, 120, 160, 200, 300, 400), (0.12, 0.2, 0.26, 0.2, 0.14, 0.08)

    def __init__(self, work: Path, seed: int, device: torch.device):
        self.crops, self.augment = SampleCrops(work, seed, device), SampleAugmenter(work, seed + 1, device)
        self.class_targets, self.speeds = self.crops.class_targets, self.crops.speeds

    def draw(self, size: int, frames: int) -> Batch:
        crop = self.crops.draw(size, crop_samples(frames), LEAD_SAMPLES)
        return self.augment(crop), crop.label, crop.target


class Lengths:
    """How long the crops of the next batch are; deterministic for a seed."""

    def __init__(self, feed: MelFeed | SampleFeed, seed: int):
        self.feed, self.rng = feed, np.random.default_rng(seed)

    def next(self) -> int:
        return int(self.rng.choice(self.feed.frames, p=self.feed.shares))
