"""Checks generated meetings against their manifest.

    python -m meetings.check OUT

Labels lie within the audio, the number of speakers is the planned one, overlap measured from the RTTM is that of the
manifest and 5 to 20 %, there is no digital silence, speech is louder than pauses, and every file has its SHA-256.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import numpy as np
import soundfile

from .plans import LONG_PLANS, PLANS

LONGEST_CONSTANT_SECONDS = 0.02
_SECONDS_OF_SPEECH = 3.0


def read_rttm(path: Path) -> list[tuple[float, float, str]]:
    """(start, end, speaker) in seconds."""
    fields = [line.split() for line in path.read_text(encoding="utf8").splitlines() if line.startswith("SPEAKER")]
    return [(float(row[3]), float(row[3]) + float(row[4]), row[7]) for row in fields]


def grid(turns: list[tuple[float, float, str]], seconds: float) -> tuple[list[str], np.ndarray]:
    """Names and bool [names, frames of 10 ms]."""
    names = sorted({name for _, _, name in turns})
    active = np.zeros((len(names), round(seconds * 100)), bool)
    for start, end, name in turns:
        active[names.index(name), round(start * 100) : round(end * 100)] = True
    return names, active


def longest_constant(samples: np.ndarray) -> int:
    """Length of the longest run of equal samples: digital silence of any level."""
    changes = np.flatnonzero(np.r_[True, np.diff(samples) != 0, True])
    return int(np.diff(changes).max())


def check_one(folder: Path, entry: dict) -> str:
    """Describes the measurements; raises AssertionError on a fault."""
    name, planned = entry["name"], next(plan for plan in PLANS + LONG_PLANS if plan.name == entry["name"])
    for file, digest in entry["sha256"].items():
        assert (
            hashlib.sha256((folder / file).read_bytes()).hexdigest() == digest
        ), f"{file}: other bytes than in the manifest"
    samples, rate = soundfile.read(folder / f"{name}.flac", dtype="int16")
    assert (
        rate == 16000 and samples.ndim == 1 and len(samples) == planned.seconds * rate
    ), f"{name}: not the planned audio"
    turns = read_rttm(folder / f"{name}.rttm")
    assert all(0 <= start < end <= planned.seconds for start, end, _ in turns), f"{name}: a turn outside the audio"
    names, active = grid(turns, planned.seconds)
    assert len(names) == planned.speakers == len(entry["speakers"]), f"{name}: {len(names)} speakers"
    assert (
        active.sum(1).min() >= 100 * _SECONDS_OF_SPEECH
    ), f"{name}: a speaker has less than {_SECONDS_OF_SPEECH} s of speech"
    at_once = active.sum(0)
    overlap = (at_once > 1).sum() / (at_once > 0).sum()
    assert abs(overlap - entry["overlap_share"]) < 0.001 and 0.05 <= overlap <= 0.20, f"{name}: overlap {overlap:.3f}"
    constant = longest_constant(samples)
    assert constant <= LONGEST_CONSTANT_SECONDS * rate, f"{name}: {constant} equal samples in a row"
    power = (samples.reshape(-1, 160).astype(float) ** 2).mean(1)
    contrast_db = 10 * np.log10(power[at_once > 0].mean() / power[at_once == 0].mean())
    assert contrast_db > 3, f"{name}: speech {contrast_db:.1f} dB above the rest"
    spoken_share = (at_once > 0).mean()
    measured = f"overlap {overlap:.3f}, speech {spoken_share:.2f} of the time, {contrast_db:.1f} dB above pauses"
    return f"{name}: {len(turns)} turns, {measured}"


def check(folder: Path) -> None:
    for entry in json.loads((folder / "manifest.json").read_text())["meetings"]:
        print(check_one(folder, entry), flush=True)


if __name__ == "__main__":
    check(Path(sys.argv[1]))
