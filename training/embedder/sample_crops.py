"""Random crops of training speech out of samples on the GPU: which voice, which speed, which variant, spliced now and then.

All of a voice is one stretch of samples and is read round it: a crop may run over the joint of two clips and from the end to the beginning.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from .crops import SPLICE_PROBABILITY
from .samples import SPEEDS, VARIANTS

SPEED_SHARES = {1.0: 0.36, 0.8: 0.14, 0.89: 0.18, 1.12: 0.18, 1.25: 0.14}
CODED_SHARE = 0.3
MAX_WEIGHTED_SECONDS = 60.0
BLOCK_SAMPLES = 1600
ANCHORS = (0.15, 0.4, 0.6, 0.85)
"""Where in a crop it is looked up which unit it is of."""
RATE = 16_000


@dataclass
class Crop:
    """samples [B, N]; coded [B] whether they went through a codec; label [B] voice-and-speed class; target [B, 192]."""

    samples: Tensor
    coded: Tensor
    label: Tensor
    target: Tensor


class SampleCrops:
    """Draws crops from every speed that has targets; deterministic for a seed and a device."""

    def __init__(self, work: Path, seed: int, device: torch.device, unit_share: float = 0.5):
        self.device = device
        self.random = torch.Generator(device).manual_seed(seed)
        self.speeds = [s for s in SPEEDS if (work / f"sample-targets-{s}.npy").exists()]
        voices = len(json.loads((work / "voices.json").read_text()))
        self.class_count = voices * len(self.speeds)
        begins, lengths, weights, classes, unit_of_block, targets = [], [], [], [], [], []
        self.bank = torch.empty(sum(self._room(np.load(work / f"sample-units-{s}.npy")) for s in self.speeds) * len(VARIANTS), dtype=torch.int16, device=device)
        offset = unit_count = 0
        for speed in self.speeds:
            units, own = np.load(work / f"sample-units-{speed}.npy"), np.load(work / f"sample-targets-{speed}.npy")
            room = self._room(units)
            for number, variant in enumerate(VARIANTS):
                samples = torch.from_numpy(np.fromfile(work / f"samples-{speed}-{variant}.i16", np.int16))
                place = offset + number * room
                self.bank[place : place + len(samples)] = samples.to(device)
            first = np.full(voices, -1)
            seen, where = np.unique(units[:, 0], return_index=True)
            first[seen] = units[where, 1]
            size = np.zeros(voices, np.int64)
            np.add.at(size, units[:, 0], units[:, 2])
            begins.append(np.maximum(first, 0) + offset)
            lengths.append(np.maximum(size, 1))
            weights.append(np.sqrt(np.minimum(size / RATE, MAX_WEIGHTED_SECONDS)) * SPEED_SHARES[speed])
            middles = np.arange(room // BLOCK_SAMPLES) * BLOCK_SAMPLES + BLOCK_SAMPLES // 2
            found = np.searchsorted(units[:, 1], middles, "right") - 1
            unit_of_block.append(found + unit_count)
            unit_count += len(units)
            means = np.zeros((voices, own.shape[1]), np.float32)
            np.add.at(means, units[:, 0], own * np.sqrt(units[:, 2:3]))
            means /= np.linalg.norm(means, axis=1, keepdims=True) + 1e-9
            mixed = unit_share * own + (1 - unit_share) * means[units[:, 0]]
            targets.append(mixed / np.linalg.norm(mixed, axis=1, keepdims=True))
            classes.append(means)
            # Blocks of the coded variant have no entries of their own: it lies exactly `room` behind.
            unit_of_block.append(unit_of_block[-1])
            offset += room * len(VARIANTS)
        self.room = torch.from_numpy(np.repeat([len(u) * BLOCK_SAMPLES for u in unit_of_block[::2]], voices)).to(device)
        self.begins = torch.from_numpy(np.concatenate(begins)).to(device)
        self.lengths = torch.from_numpy(np.concatenate(lengths)).to(device)
        self.cumulative = torch.from_numpy(np.cumsum(np.concatenate(weights) / np.sum(weights))).to(device)
        self.unit_of_block = torch.from_numpy(np.concatenate(unit_of_block)).to(device)
        self.unit_targets = torch.from_numpy(np.concatenate(targets).astype(np.float32)).to(device)
        self.class_targets = torch.from_numpy(np.concatenate(classes)).to(device)

    @staticmethod
    def _room(units: np.ndarray) -> int:
        """Samples that one variant takes in the bank: whole blocks."""
        return -(-int(units[-1, 1] + units[-1, 2]) // BLOCK_SAMPLES) * BLOCK_SAMPLES

    def uniform(self, *shape: int) -> Tensor:
        """Numbers in [0, 1) on the device."""
        return torch.rand(shape, generator=self.random, device=self.device)

    def draw(self, size: int, samples: int, lead: int) -> Crop:
        """``size`` crops of ``samples`` samples, behind ``lead`` more for what a room keeps of the past."""
        label = torch.searchsorted(self.cumulative, self.uniform(size).double()).clamp(max=self.class_count - 1)
        begin, length = self.begins[label, None], self.lengths[label, None]
        starts = (self.uniform(size, 2) * length).long()
        split = (self.uniform(size, 1) * 0.5 + 0.25) * samples
        split = torch.where(self.uniform(size, 1) < SPLICE_PROBABILITY, split, samples + 1.0)
        coded = self.uniform(size) < CODED_SHARE
        time = torch.arange(-lead, samples, device=self.device)[None]
        start = torch.where(time < split, starts[:, :1], starts[:, 1:])
        position = begin + (start + time).remainder(length)
        values = self.bank[position + torch.where(coded[:, None], self.room[label, None], 0)]
        anchors = lead + (torch.tensor(ANCHORS, device=self.device) * samples).long()
        units = self.unit_of_block[position[:, anchors] // BLOCK_SAMPLES]
        target = torch.nn.functional.normalize(self.unit_targets[units].mean(1), dim=1)
        return Crop(values.float() / 32768, coded, label, target)
