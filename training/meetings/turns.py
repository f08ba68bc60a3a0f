"""Plans of turns with heavy-tailed lengths, gaps, interruptions and back-channels.

A meeting is planned on frames of 10 ms before its sound is computed. Distributions are those of conversations: gaps
around a quarter of a second with a long tail (Heldner and Edlund, Journal of Phonetics 2010), most overlap at changes
of speaker and from back-channels (Shriberg et al., Eurospeech 2001), and a few people with most of the speech.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .voices import BRIDGE_FRAMES, Deck, Phrase, Voice

LONG_FRAMES = 10 * 60 * 100  # ten minutes


@dataclass(frozen=True)
class Placed:
    speaker: int
    start: int  # frame of 10 ms
    phrase: Phrase
    gain_db: float


def shares_of_floor(speakers: int, is_long: bool, rng: np.random.Generator) -> np.ndarray:
    """One or two dominant speakers (in long meetings two) with more than half of the speech, the others with uneven
    shares of the rest; descending."""
    dominant = 1 if speakers <= 3 or (not is_long and rng.random() < 0.4) else 2
    shares = np.concatenate([rng.uniform(0.8, 1.2, dominant), rng.dirichlet(np.full(speakers - dominant, 2.0)) + 0.06])
    shares[:dominant] *= rng.uniform(0.5, 0.68) / shares[:dominant].sum()
    shares[dominant:] *= (1 - shares[:dominant].sum()) / shares[dominant:].sum()
    return -np.sort(-shares)


class Floor:
    """The turns planned so far."""

    def __init__(self, voices: list[Voice], frames: int, rng: np.random.Generator):
        self.voices, self.frames, self.rng = voices, frames, rng
        self.active = np.zeros((len(voices), frames), bool)
        self.busy_until = np.zeros(len(voices), int)
        self.placed: list[Placed] = []
        self.decks = [Deck(voice.phrases, rng) for voice in voices]
        self.short_decks = [Deck(voice.short, rng) if voice.short else None for voice in voices]

    def say(self, speaker: int, start: int, phrase: Phrase, gain_db: float) -> int:
        """Places a phrase if it fits before the end, returns the frame at which it ends."""
        end = start + phrase.frames
        if end + 100 <= self.frames:
            self.active[speaker, start:end] |= phrase.active
            self.placed.append(Placed(speaker, start, phrase, gain_db))
        return end

    def turn(self, speaker: int, start: int, wanted: float) -> int:
        """Phrases with short pauses up to about the wanted length; returns the end of the turn."""
        now, gain_db = start, float(self.rng.normal(0, 1.5))
        while True:
            left = wanted - (now - start)
            now = self.say(speaker, now, self.decks[speaker].deal(left if left < 200 else None), gain_db)
            if now - start >= 0.85 * wanted or now >= self.frames:
                break
            now += int(np.clip(np.exp(self.rng.normal(np.log(22), 0.7)), 6, 150))
        self.busy_until[speaker] = now
        return now

    def back_channels(self, holder: int, start: int, end: int, rate_per_frame: float) -> None:
        """Short words of others inside a turn."""
        at = start + 60 + int(self.rng.exponential(1 / rate_per_frame))
        while at < end - 60:
            others = [
                i
                for i in range(len(self.voices))
                if i != holder and self.short_decks[i] and self.busy_until[i] + 40 < at
            ]
            if others:
                speaker = others[int(self.rng.integers(len(others)))]
                phrase = self.short_decks[speaker].deal(float(self.rng.uniform(20, 80)))
                self.busy_until[speaker] = self.say(speaker, at, phrase, float(self.rng.normal(-3, 2)))
            at += 80 + int(self.rng.exponential(1 / rate_per_frame))

    def overlap_share(self) -> float:
        """Overlapped time over time with speech."""
        at_once = spoken(self.active).sum(0)
        return float((at_once > 1).sum() / max(1, (at_once > 0).sum()))


def spoken(active: np.ndarray) -> np.ndarray:
    """bool [speakers, frames] with each speaker's pauses of less than 0.3 s filled: the reference."""
    filled = active.copy()
    for row in filled:
        edges = np.flatnonzero(np.diff(np.r_[0, row.astype(int), 0])).reshape(-1, 2)
        for (_, end), (start, _) in zip(edges[:-1], edges[1:]):
            if start - end < BRIDGE_FRAMES:
                row[end:start] = True
    return filled


def plan_once(voices: list[Voice], frames: int, shares: np.ndarray, intensity: float, seed: list[int]) -> Floor:
    """One meeting; a larger intensity means more interruptions and back-channels. Shares are those of the speech, one
    per voice."""
    rng = np.random.default_rng(seed)
    floor = Floor(voices, frames, rng)
    count = len(voices)
    held = np.zeros(count)
    now, last, before, last_start = int(rng.uniform(50, 400)), -1, -1, 0
    while now < frames - 150:
        owed = shares * (held.sum() + 1500) - held
        weights = np.maximum(owed, 0) + 0.03 * shares * (held.sum() + 1500)
        if last >= 0:
            weights[last] *= 0.3
        if before >= 0:
            weights[before] *= 2.5  # two people talk for a while before a third comes in
        speaker = int(rng.choice(count, p=weights / weights.sum()))
        is_dominant = shares[speaker] >= 0.9 * np.sort(shares)[-min(2, count)]
        wanted = np.clip(np.exp(rng.normal(np.log(330 if is_dominant else 200), 1.0)), 40, 5000)
        start = now
        if last >= 0 and speaker != last and rng.random() < min(0.75, 0.3 * intensity):
            depth = rng.uniform(10, 60) if rng.random() < 0.6 else rng.uniform(60, 250)
            start = now - int(min(depth, 0.7 * wanted, 0.6 * (now - last_start)))
        elif last >= 0 and rng.random() < 0.06:
            start = now + int(rng.uniform(150, 900))
        elif last >= 0:
            start = now + int(np.clip(np.exp(rng.normal(np.log(35), 0.9)), 3, 300))
        start = max(start, int(floor.busy_until[speaker]) + 10)
        end = floor.turn(speaker, start, wanted)
        floor.back_channels(speaker, start, end, 0.0012 * intensity)
        held[speaker] += end - start
        if speaker != last:
            before, last = last, speaker
        last_start, now = start, max(end, now)
    return floor


def plan(voices: list[Voice], frames: int, overlap_share: float, seed: list[int]) -> tuple[Floor, np.ndarray]:
    """The meeting with the overlap nearest to the requested one, of 16 intensities; with the voices' shares of the
    speech.

    Voices with the most material speak most, so that phrases are repeated as rarely as possible.
    """
    rng = np.random.default_rng(seed)
    shares = np.zeros(len(voices))
    richest_first = np.argsort([-voice.phrase_seconds for voice in voices], kind="stable")
    shares[richest_first] = shares_of_floor(len(voices), frames > LONG_FRAMES, rng)
    best: tuple[float, Floor] | None = None
    for step in range(16):
        floor = plan_once(voices, frames, shares, 0.3 + 0.2 * step, [*seed, step])
        miss = abs(floor.overlap_share() - overlap_share)
        if floor.active.any(1).all() and (best is None or miss < best[0]):
            best = (miss, floor)
    if best is None:
        raise RuntimeError("no plan has speech of all speakers")
    return best[1], shares
