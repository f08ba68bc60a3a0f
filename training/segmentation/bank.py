"""The prepared voices and noises: random speakers, spans of their speech, and spans of noise."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .frontend import BANDS, mel_power
from .labels import runs

SET_WEIGHT = {
    "gsc": 0.35,
    "alnum-accents": 0.3,
    "arabic-sc": 0.4,
    "msc-malayalam": 0.6,
    "vctk-vits-tts": 0.6,
    "speechocean762": 0.8,
}
"""Relative frequency of sets; lower for single words, spellings, few texts or synthetic voices."""

MIN_ISLAND_FRAMES = 12
MIN_VOICE_FRAMES = 60
MIN_PAUSE_FRAMES = 40
MIN_FLOOR_FRAMES, MAX_FLOOR_FRAMES = 100, 400
WIDE_SHARE = 0.35
"""Share of speech spans that include their recording's sounds before, after and between: breath, lips, the room.
Otherwise these sounds would become a cue for speech."""
SHORT_GAP_FRAMES, LONG_GAP_FRAMES = 90, 400
LEAD_FRAMES, TAIL_FRAMES, WIDE_FRAMES = 4, 30, 250
ONE_SET_SHARE = 0.55
WHITE_SECONDS = 60


@dataclass
class Entry:
    """One voice at one speed. Islands are (start, end, clip) in frames; rows are the starts of the variants in the
    feature file, sample_offset the position of the samples in `voices.i16` (None at other speeds).
    """

    speaker: str
    set: str
    rows: dict[str, int]
    labels: np.ndarray
    frames: int
    islands: list[tuple[int, int, int]]
    clips: list[tuple[int, int]]
    sample_offset: int | None


@dataclass
class Span:
    """Frames [start, end) of an entry; the recording may be used before and after it from `since` to `until`."""

    entry: Entry
    start: int
    end: int
    since: int
    until: int


class VoiceBank:
    """All voices of one split ("train" or "dev")."""

    def __init__(self, work: Path, split: str, rng: np.random.Generator):
        self.rng = rng
        items = json.loads((work / "mels.json").read_text())
        sizes = {
            "mels.f16": 2 * BANDS * sum(len(item["rows"]) * item["frames"] for item in items),
            "mels.labels.u8": sum(item["frames"] for item in items),
        }
        if any((work / name).stat().st_size != size for name, size in sizes.items()):
            raise ValueError(
                f"{work}: mels.f16 and mels.labels.u8 are not those of mels.json, run segmentation.prepare_mels again"
            )
        self.mels = np.memmap(work / "mels.f16", "f2", "r").reshape(-1, BANDS)
        labels = np.fromfile(work / "mels.labels.u8", "u1")
        self.entries: list[Entry] = []
        for item in items:
            if item["split"] != split:
                continue
            own = labels[item["label_row"] : item["label_row"] + item["frames"]]
            islands = []
            for start, end in runs(own):
                for clip, (first, last) in enumerate(item["clips"]):
                    a, b = max(start, first), min(end, last)
                    if b - a >= MIN_ISLAND_FRAMES:
                        islands.append((a, b, clip))
            if sum(b - a for a, b, _ in islands) >= MIN_VOICE_FRAMES:
                self.entries.append(
                    Entry(
                        item["speaker"],
                        item["set"],
                        item["rows"],
                        own,
                        item["frames"],
                        islands,
                        item["clips"],
                        item.get("sample_offset"),
                    )
                )
        seconds = np.array([sum(b - a for a, b, _ in e.islands) / 100 for e in self.entries])
        weight = np.minimum(20, seconds) ** 0.5 * np.array([SET_WEIGHT.get(e.set, 1.0) for e in self.entries])
        self.cumulative = np.cumsum(weight / weight.sum())
        self.floors = [pauses for entry in self.entries if (pauses := self._pauses(entry)) is not None]
        self.of_set: dict[str, list[int]] = {}
        for number, entry in enumerate(self.entries):
            self.of_set.setdefault(entry.set, []).append(number)
        self.set_cumulative = {
            name: np.cumsum(weight[which]) / weight[which].sum() for name, which in self.of_set.items()
        }

    @staticmethod
    def _pauses(entry: Entry) -> tuple[Entry, np.ndarray] | None:
        """An entry with the indices of its frames in longer pauses, without their edges; None if there are too few."""
        inside = np.zeros(entry.frames, bool)
        for first, last in entry.clips:
            inside[first:last] = True
        long = [np.arange(a + 10, b - 10) for a, b in runs(inside & (entry.labels == 0)) if b - a >= MIN_PAUSE_FRAMES]
        frames = np.concatenate(long) if long else np.zeros(0, int)
        return (entry, frames) if len(frames) >= MIN_FLOOR_FRAMES else None

    def floor(self, frames: int) -> np.ndarray:
        """The pauses of a random voice's recording, repeated, [frames, 64], mean power not normalised."""
        entry, pauses = self.floors[int(self.rng.integers(len(self.floors)))]
        at = int(self.rng.integers(max(1, len(pauses) - MAX_FLOOR_FRAMES)))
        chosen = pauses[at : at + MAX_FLOOR_FRAMES]
        low, high = int(chosen[0]), int(chosen[-1]) + 1
        power = self.power(entry, "dry", low, high)[chosen - low]
        return np.take(power, np.arange(frames) + int(self.rng.integers(len(power))), axis=0, mode="wrap")

    def draw(self) -> int:
        return min(int(np.searchsorted(self.cumulative, self.rng.random())), len(self.entries) - 1)

    def draw_speakers(self, count: int) -> list[int]:
        """Indices of entries of different speakers, half of the time all of one set (more similar)."""
        pool = None
        if self.rng.random() < ONE_SET_SHARE:
            name = self.entries[self.draw()].set
            pool = name if len(self.of_set[name]) >= 40 else None
        chosen: list[int] = []
        for _ in range(200):
            if len(chosen) == count:
                break
            if pool is None:
                number = self.draw()
            else:
                at = int(np.searchsorted(self.set_cumulative[pool], self.rng.random()))
                number = self.of_set[pool][min(at, len(self.of_set[pool]) - 1)]
            if all(self.entries[number].speaker != self.entries[other].speaker for other in chosen):
                chosen.append(number)
        return chosen

    def _quiet_frame(self, entry: Entry, near: int, low: int, high: int) -> int:
        """The frame of least power within 0.25 s of `near`, inside (low, high), for a cut."""
        low, high = max(low, near - 25), min(high, near + 25)
        if high - low < 4:
            return near
        row = entry.rows["dry"]
        power = np.asarray(self.mels[row + low : row + high, 4:40], np.float32).sum(1)
        power = np.convolve(power, np.ones(3), "same")
        power[[0, -1]] = np.inf
        return low + int(np.argmin(power))

    def draw_span(self, number: int, frames: int) -> Span:
        """About `frames` frames of one clip: an island, a part of one, or several with short pauses between them."""
        rng, entry = self.rng, self.entries[number]
        islands = entry.islands
        at = int(rng.integers(len(islands)))
        if frames < 120:
            for _ in range(6):
                other = int(rng.integers(len(islands)))
                if islands[other][1] - islands[other][0] < frames * 1.5:
                    at = other
                    break
        start, end, clip = islands[at]
        if end - start > frames * 1.6 and rng.random() < 0.5:
            start = self._quiet_frame(entry, start + int(rng.random() * (end - start - frames)), start, end)
        wide = rng.random() < WIDE_SHARE
        gap = LONG_GAP_FRAMES if wide else SHORT_GAP_FRAMES
        while (
            end - start < frames
            and at + 1 < len(islands)
            and islands[at + 1][2] == clip
            and islands[at + 1][0] - end < gap
        ):
            at += 1
            end = islands[at][1]
        if end - start > frames * 1.25:
            end = self._quiet_frame(
                entry, start + frames, start + int(0.7 * frames), min(end, start + int(1.4 * frames))
            )
        end = min(max(end, start + 10), entry.frames)
        # A cut from an island has speech around it, which must not be used without a label.
        lead, tail = (
            (int(rng.integers(LEAD_FRAMES, WIDE_FRAMES)), int(rng.integers(TAIL_FRAMES, WIDE_FRAMES)))
            if wide
            else (LEAD_FRAMES, TAIL_FRAMES)
        )
        before = max((last for first, last, _ in islands if first < start), default=0)
        since = min(start, max(start - lead, before + 3, entry.clips[clip][0]))
        following = next((first for first, last, _ in islands if last > end), entry.frames)
        until = min(end + tail, following - 3, entry.frames)
        return Span(entry, start, end, since, max(until, end))

    def power(self, entry: Entry, variant: str, start: int, end: int) -> np.ndarray:
        """Mel power [end - start, 64] of a variant; if the entry lacks it, "near" replaces "far", and "dry" any
        other."""
        rows = entry.rows
        if variant not in rows:
            variant = "near" if variant == "far" and "near" in rows else "dry"
        row = rows[variant]
        root = np.asarray(self.mels[row + start : row + end], np.float32)
        return root * root

    def babble(self, talkers: int, frames: int) -> np.ndarray:
        """Several simultaneous voices in a room, [frames, 64], mean power not normalised."""
        out = np.zeros((frames, BANDS), np.float32)
        for number in self.draw_speakers(talkers):
            entry = self.entries[number]
            whole = self.power(entry, "near", 0, entry.frames)
            at = int(self.rng.integers(entry.frames))
            out += np.take(whole, np.arange(at, at + frames) % entry.frames, axis=0) * 10 ** (
                self.rng.normal(0, 3) / 10
            )
        return out


class NoiseBank:
    """Stored noises and music, and white noise (mean 1 in every band)."""

    def __init__(self, work: Path, rng: np.random.Generator):
        self.rng = rng
        self.mels = np.fromfile(work / "noise.f16", "f2").reshape(-1, BANDS)
        index = json.loads((work / "noise.json").read_text())
        self.music = [item for item in index if item["kind"] == "music"]
        self.noises = [item for item in index if item["kind"] == "noise"]
        power = mel_power(np.random.default_rng(1).standard_normal(16_000 * WHITE_SECONDS).astype(np.float32))
        self.white_power = (power / power.mean(0)).astype(np.float32)

    def white(self, frames: int) -> np.ndarray:
        """[frames, 64] of white noise divided by its mean per band: random values around 1."""
        start = int(self.rng.integers(len(self.white_power) - frames))
        return self.white_power[start : start + frames]

    def stored(self, frames: int, music: bool = False) -> np.ndarray:
        """A span of a recording, repeated if too short; ESC-10 (loud events) at half the frequency of its clips."""
        rng = self.rng
        items = self.music if music else self.noises
        item = items[int(rng.integers(len(items)))]
        if not music and item["file"].startswith("esc10") and rng.random() < 0.5:
            for _ in range(5):
                item = items[int(rng.integers(len(items)))]
                if not item["file"].startswith("esc10"):
                    break
        start, count = int(rng.integers(item["frames"])), item["frames"]
        root = self.mels[item["row"] : item["row"] + count].astype(np.float32) if count < 4000 else None
        if root is None:
            start = int(rng.integers(count - frames))
            root = self.mels[item["row"] + start : item["row"] + start + frames].astype(np.float32)
            return root * root
        root = np.take(root, np.arange(start, start + frames) % count, axis=0)
        return root * root
