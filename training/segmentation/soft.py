"""Windows with soft labels of a teacher, as `distil.py` writes them, in random order."""

from pathlib import Path

import numpy as np
import torch


class SoftWindows:
    """A file with features float16 [K,1000,64], labels uint8 [K,3,500], mask uint8 [K,500] and soft labels float16
    [K,500,7]."""

    NAMES = ("features", "labels", "mask", "soft")

    def __init__(self, path: Path, seed: int):
        with np.load(path) as stored:
            self.parts = [stored[name] for name in self.NAMES]
        self.rng = np.random.default_rng(seed)

    def batch(self, size: int) -> list[torch.Tensor]:
        """`size` windows as float32 (labels stay uint8): features, labels, mask, soft labels."""
        chosen = self.rng.integers(len(self.parts[0]), size=size)
        features, labels, mask, soft = (torch.from_numpy(part[chosen]) for part in self.parts)
        return [features.float(), labels, mask.float(), soft.float()]
