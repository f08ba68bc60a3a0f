"""Material of generated conversations: single-speaker recordings as runs of speech, and the sittings of a voice's
clips."""

import csv
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile
from scipy.signal import resample_poly

RATE = 16000
FRAME = RATE // 100  # labels and plans are in frames of 10 ms
SITTING_STEP = 100
"""Clips of Common Voice are numbered in the order of upload over all accounts: numbers of one account in one sitting
are closer than this."""


@dataclass(frozen=True)
class Corpora:
    voices: Path
    noise: Path


def rows(path):
    with open(path, encoding="utf8") as file:
        return list(csv.DictReader(file))


def read(path):
    samples, rate = soundfile.read(path, dtype="float32", always_2d=True)
    return resample_poly(samples.mean(1), RATE, rate) if rate != RATE else samples.mean(1)


def runs_of(flags, bridge=0):
    """[start, end) of runs of true, joined if less than `bridge` apart."""
    edges = np.flatnonzero(np.diff(np.r_[0, flags.astype(int), 0]))
    joined = []
    for start, end in edges.reshape(-1, 2):
        if joined and start - joined[-1][1] < bridge:
            joined[-1][1] = end
        else:
            joined.append([start, end])
    return joined


def speech_runs(samples):
    """Runs of speech in frames: within 30 dB of the clip's loudest frames, pauses under 0.3 s bridged, at least 0.2
    s."""
    count = len(samples) // FRAME
    level = 10 * np.log10((samples[: count * FRAME].reshape(count, FRAME) ** 2).mean(1) + 1e-10)
    level = np.convolve(level, np.ones(3) / 3, "same")
    return [run for run in runs_of(level > np.percentile(level, 90) - 30, 30) if run[1] - run[0] >= 20]


def frames_of(segment):
    """[start, end) of a row of segments.csv."""
    return tuple(int(float(segment[key]) * 100) for key in ("start", "end"))


def seconds_of(segments):
    return sum(float(segment["end"]) - float(segment["start"]) for segment in segments)


def sittings_of(row, segments):
    """Segments of each sitting of a voice: with one microphone, in one room, on one day. One, if sittings are
    unknown."""
    if not row["set"].startswith("cv"):
        return [segments]
    numbered = sorted(
        (int(re.search(r"(\d+)\.\w+$", segment["source_clip"])[1]), index) for index, segment in enumerate(segments)
    )
    sittings, last = [], None
    for number, index in numbered:
        if last is None or number - last > SITTING_STEP:
            sittings.append([])
        sittings[-1].append(index)
        last = number
    return [[segments[index] for index in sorted(sitting)] for sitting in sittings]


def longest_sitting(row, segments):
    return max(sittings_of(row, segments), key=seconds_of)


class Voice:
    """One speaker's recordings as runs of speech, least used first, and the long-term spectrum in dB at 257 bins."""

    def __init__(self, corpora, row, segments, whole=True):
        """whole: the spectrum is that of the file, otherwise only that of the given segments"""
        self.name = row["speaker"]
        self.samples = read(corpora.voices / row["file"])
        self.runs = []
        for start, end in map(frames_of, segments):
            self.runs += [(start + a, start + b) for a, b in speech_runs(self.samples[start * FRAME : end * FRAME])]
        source = (
            self.samples
            if whole
            else np.concatenate([self.samples[a * FRAME : b * FRAME] for a, b in map(frames_of, segments)])
        )
        windows = np.lib.stride_tricks.sliding_window_view(source, 512)[::256] * np.hanning(512)
        power = np.abs(np.fft.rfft(windows, axis=1)) ** 2
        energy = power.sum(1)
        spectrum = 10 * np.log10(power[energy > np.percentile(energy, 50)].mean(0) + 1e-8)
        self.spectrum = np.convolve(np.pad(spectrum, 6, "edge"), np.ones(13) / 13, "valid")
        self.used = [0] * len(self.runs)

    @property
    def has_more(self):
        """Whether there are unused runs."""
        return 0 in self.used

    def turn(self, frames, rng, once=False):
        """Runs with about this total number of frames; with `once` only unused ones, uncut."""
        order = sorted(range(len(self.runs)), key=lambda run: (self.used[run], rng.random()))
        if once:
            order = [run for run in order if self.used[run] == 0]
        first = order[0]
        if frames < 100:
            first = next((run for run in order[:6] if np.diff(self.runs[run])[0] < frames * 1.6), first)
        start, end = self.runs[first]
        self.used[first] += 1
        parts = [(start, end if once else min(end, start + int(frames * 1.3)))]
        if parts[0][1] < end and frames < 150 and rng.random() < 0.5:
            offset = int(rng.integers(0, end - start - int(frames) + 1))
            parts = [(start + offset, min(end, start + offset + int(frames)))]
        length, last = parts[0][1] - parts[0][0], first
        while length < frames * 0.8 and len(parts) < 12:
            last = min(range(len(self.runs)), key=lambda run: (self.used[run], abs(run - last - 1)))
            if once and self.used[last] > 0:
                break
            start, end = self.runs[last]
            self.used[last] += 1
            end = end if once else min(end, start + int(max(30, frames * 1.2 - length)))
            parts.append((start, end))
            length += end - start
        return parts
