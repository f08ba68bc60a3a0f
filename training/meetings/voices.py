"""Speakers: their clips cut at pauses into phrases, used in random order.

A voice has 5 to 60 s of material and a meeting may need minutes of it, so phrases are repeated, but only when all
others of the voice were used, in a new order, and never consecutively.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibration.material import FRAME, read, rows, runs_of

SETS = ("alnum-accents", "cv61", "cvx", "librispeech", "msc-malayalam", "speechocean762")  # sentences, not single words
MIN_VOICE_SECONDS = 8.0
REUSE = 8  # a voice has at least 1 / REUSE of an equal share of a meeting of up to 20 minutes
LONG_REUSE = 12  # and this of a longer one
GATE_DB = 30  # frames this far below a clip's loudest ones have no speech
BRIDGE_FRAMES = 30  # pauses of one speaker shorter than this count as speech
SPLIT_FRAMES = 12  # pauses at least this long end a phrase
MAX_PHRASE_FRAMES = 450
MIN_PHRASE_FRAMES = 15
LEAD_FRAMES, TAIL_FRAMES = 3, 5  # of the recording kept around a phrase


@dataclass(frozen=True)
class Phrase:
    """A span of one clip, in frames of 10 ms of the voice's file, and its frames with speech."""

    start: int
    end: int
    active: np.ndarray

    @property
    def frames(self) -> int:
        return self.end - self.start


def activity(samples: np.ndarray) -> np.ndarray:
    """Speech by energy, bool [frames of 10 ms]: within 30 dB of the clip's loudest frames, smoothed over 30 ms."""
    count = len(samples) // FRAME
    power = (samples[: count * FRAME].reshape(count, FRAME).astype(np.float64) ** 2).mean(1)
    level = np.convolve(10 * np.log10(power + 1e-10), np.ones(3) / 3, "same")
    return level > np.percentile(level, 90) - GATE_DB


def phrases_of(samples: np.ndarray, offset: int) -> list[Phrase]:
    """Phrases of one clip at frame `offset` of its file: runs between pauses, long ones cut at their quietest
    frames."""
    active = activity(samples)
    count = len(active)
    power = (samples[: count * FRAME].reshape(count, FRAME).astype(np.float64) ** 2).mean(1)
    smooth = np.convolve(power, np.ones(5) / 5, "same")
    todo, found = [tuple(run) for run in runs_of(active, SPLIT_FRAMES)], []
    while todo:
        start, end = todo.pop(0)
        if end - start > MAX_PHRASE_FRAMES:
            low, high = start + MAX_PHRASE_FRAMES // 3, min(start + MAX_PHRASE_FRAMES, end - MAX_PHRASE_FRAMES // 4)
            cut = low + int(np.argmin(smooth[low:high]))
            todo[:0] = [(start, cut), (cut, end)]
        elif active[start:end].sum() >= MIN_PHRASE_FRAMES:
            found.append(Phrase(offset + start, offset + end, active[start:end]))
    return found


class Deck:
    """Returns phrases in random order, repeating one only after all were used."""

    def __init__(self, cards: list[Phrase], rng: np.random.Generator):
        self._cards, self._rng, self._left, self._last = cards, rng, [], None

    def deal(self, wanted_frames: float | None = None) -> Phrase:
        """The next phrase, or that of the next six with the length nearest to the wanted one."""
        if not self._left:
            self._left = [self._cards[i] for i in self._rng.permutation(len(self._cards))]
        fresh = [i for i in range(min(6, len(self._left))) if self._left[i] is not self._last] or [0]
        pick = fresh[0]
        if wanted_frames is not None:
            pick = min(fresh, key=lambda i: abs(self._left[i].frames - wanted_frames))
        self._last = self._left.pop(pick)
        return self._last


class Voice:
    """One speaker: samples at 16 kHz, phrases, short phrases for back-channels, long-term spectrum in dB at 257
    bins."""

    def __init__(self, folder: Path, row: dict, segments: list[dict]):
        self.name, self.set = row["speaker"], row["set"]
        self.samples = read(folder / row["file"]).astype(np.float64)
        self.phrases: list[Phrase] = []
        for segment in segments:
            first, last = (int(float(segment[key]) * 100) for key in ("start", "end"))
            self.phrases += phrases_of(self.samples[first * FRAME : last * FRAME], first)
        self.phrase_seconds = sum(phrase.active.sum() for phrase in self.phrases) / 100
        self.short = [phrase for phrase in self.phrases if phrase.frames <= 80] + self._openings()
        self.spectrum = self._spectrum()

    def _openings(self) -> list[Phrase]:
        """First 0.3 to 0.8 s of longer phrases, cut at the quietest frame."""
        found = []
        for phrase in (phrase for phrase in self.phrases if phrase.frames > 120):
            part = self.samples[(phrase.start + 30) * FRAME : (phrase.start + 80) * FRAME]
            end = 30 + int(np.argmin((part.reshape(-1, FRAME) ** 2).mean(1)))
            found.append(Phrase(phrase.start, phrase.start + end, phrase.active[:end]))
        return found

    def _spectrum(self) -> np.ndarray:
        speech = np.concatenate([self.samples[phrase.start * FRAME : phrase.end * FRAME] for phrase in self.phrases])
        windows = np.lib.stride_tricks.sliding_window_view(speech, 512)[::256] * np.hanning(512)
        power = (np.abs(np.fft.rfft(windows, axis=1)) ** 2).mean(0)
        return np.convolve(np.pad(10 * np.log10(power + 1e-8), 6, "edge"), np.ones(13) / 13, "valid")

    def sound(self, phrase: Phrase) -> tuple[np.ndarray, int]:
        """Samples of a phrase with a margin, faded at both ends, and the number of samples before its start."""
        lead = min(LEAD_FRAMES, phrase.start) * FRAME
        cut = self.samples[phrase.start * FRAME - lead : (phrase.end + TAIL_FRAMES) * FRAME].copy()
        fade = np.linspace(0, 1, min(lead, len(cut) // 2) or 1)
        cut[: len(fade)] *= fade
        fade = np.linspace(1, 0, min(TAIL_FRAMES * FRAME, len(cut) // 2))
        cut[len(cut) - len(fade) :] *= fade
        return cut, lead


def cast(folder: Path, sizes: list[tuple[int, int]], rng: np.random.Generator) -> list[list[tuple[dict, list[dict]]]]:
    """Draws (row, segments) of held-out voices for meetings of (speakers, seconds), without a voice in two of them.

    Meetings that need most of a speaker choose first, among the voices with enough of an equal share.
    """
    segments: dict[str, list[dict]] = {}
    for row in rows(folder / "segments.csv"):
        segments.setdefault(row["file"], []).append(row)
    pool = [
        row
        for row in rows(folder / "index.csv")
        if row["split"] == "dev" and row["set"] in SETS and float(row["seconds"]) >= MIN_VOICE_SECONDS
    ]
    casts: list[list[tuple[dict, list[dict]]]] = [[] for _ in sizes]
    for meeting in sorted(range(len(sizes)), key=lambda i: -sizes[i][1] / sizes[i][0]):
        speakers, seconds = sizes[meeting]
        reuse = REUSE if seconds <= 1200 else LONG_REUSE
        rich = [row for row in pool if float(row["seconds"]) >= seconds / speakers / reuse]
        chosen = [rich[i] for i in rng.choice(len(rich), speakers, replace=False)]
        casts[meeting] = [(row, segments[row["file"]]) for row in chosen]
        pool = [row for row in pool if row not in chosen]
    return casts
