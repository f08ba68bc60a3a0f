"""Compares what runs on a GPU with its counterparts in numpy; needs no data and no GPU.

    python -m embedder.check
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
import torch

from . import features
from .feeds import SampleFeed
from .sample_crops import SampleCrops
from .sample_features import LogMels
from .samples import DIRECT_SAMPLE, ROOM_SAMPLES, VARIANTS

RATE = features.SAMPLE_RATE
CPU = torch.device("cpu")


def check_features() -> None:
    """The filterbank on tensors is the one of ``features.py``."""
    samples = np.random.default_rng(0).normal(0, 0.1, 40_000).astype(np.float32)
    worst = np.abs(features.log_mels(samples) - LogMels()(torch.from_numpy(samples[None]))[0].numpy()).max()
    assert worst < 1e-3, worst


def invent(work: Path) -> None:
    """Two voices of two units each at one speed; every sample says whose it is, the coded variant is the negative of the dry one."""
    units = np.array([(0, 0, 30_000), (0, 30_000, 25_000), (1, 55_000, 20_000), (1, 75_000, 40_000)])
    dry = np.concatenate([np.full(count, 100 * (unit + 1), np.int16) for unit, (_, _, count) in enumerate(units)])
    for variant, sign in zip(VARIANTS, (1, -1)):
        (sign * dry).astype(np.int16).tofile(work / f"samples-1.0-{variant}.i16")
    np.save(work / "sample-units-1.0.npy", units)
    np.save(work / "sample-targets-1.0.npy", np.eye(4, 192, dtype=np.float32))
    np.save(work / "sample-noise.npy", np.array([[0, 20_000]]))
    np.random.default_rng(1).integers(-3000, 3000, 20_000).astype(np.int16).tofile(work / "noise.i16")
    rooms = np.zeros((2, ROOM_SAMPLES), np.float32)
    rooms[:, DIRECT_SAMPLE] = 1
    np.save(work / "rooms.npy", rooms)
    (work / "voices.json").write_text(json.dumps([{}, {}]))


def check_crops(work: Path) -> None:
    """A crop holds its voice alone, in the variant that it names, and its target is made of the units that it lies in."""
    crops = SampleCrops(work, 3, CPU, unit_share=1.0)
    crop = crops.draw(400, 24_000, 800)
    values = (crop.samples * 32768).round().long()
    assert ((values < 0) == crop.coded[:, None]).all()
    voice = (values.abs() // 100 - 1) // 2
    assert (voice == crop.label[:, None]).all()
    inside = values[:, 800:].abs() // 100 - 1
    alone = (inside == inside[:, :1]).all(1)
    assert 50 < int(alone.sum()) < 400
    assert (crop.target[alone].argmax(1) == inside[alone, 0]).all()
    again = SampleCrops(work, 3, CPU, unit_share=1.0).draw(400, 24_000, 800)
    assert torch.equal(crop.samples, again.samples) and torch.equal(crop.target, again.target)


def check_feed(work: Path) -> None:
    """Batches are finite, of the shape asked for, and the same for the same seed."""
    feats, label, target = SampleFeed(work, 5, CPU).draw(48, 120)
    assert feats.shape == (48, 120, features.BANDS) and torch.isfinite(feats).all()
    assert torch.allclose(target.norm(dim=1), torch.ones(48), atol=1e-5)
    again = SampleFeed(work, 5, CPU).draw(48, 120)
    assert torch.equal(feats, again[0]) and torch.equal(label, again[1])


def main() -> None:
    check_features()
    with tempfile.TemporaryDirectory() as folder:
        invent(Path(folder))
        check_crops(Path(folder))
        check_feed(Path(folder))
    print("filterbank, crops and batches as they should be")


if __name__ == "__main__":
    main()
