"""Conversations of 10 s, simulated during the training in the mel-power domain: features, labels, loss mask, identities
of speakers.

Powers of the sources are summed, with a cross term 2 sqrt(A B) cos(phase) of random phase in overlap (its spread
decreases with the number of DFT bins in a band). A window takes about 2 ms.
"""

import ctypes
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from . import scenes, sounds, voicing
from .bank import NoiseBank, Span, VoiceBank
from .frontend import BANDS, BINS_PER_BAND, log_features
from .kernels import library
from .sounds import to_power
from .turns import LOCAL_SPEAKERS, WINDOW_FRAMES, bridge_pauses, draw_turns, targets

PHASE_ROWS = 40_000
EDGE_IN, EDGE_OUT = np.array([[0.3], [0.7]], np.float32), np.array([[0.8], [0.5], [0.2]], np.float32)
ALIKE_SHARE = {"meeting": 0.75, "separate": 0.3, "call": 0.3}
"""Share of windows in which differences of the voices' recordings (noise floor, spectral shape, even loudness) are
removed (voicing.py)."""
SPARSE_SHARE = 0.14
FAINTEST_BELOW_NOISE_DB = {"meeting": 6, "separate": 3, "call": 3}
"""Lower bound of labelled speakers relative to the noise. Recorded noise lies below most of a voice's bands, so that
the voice is audible."""
MOSTLY_BREATH_SHARE = 0.3
"""Share of the windows without speech with audible breath, like silent people with head-sets."""


def _pointer(array: np.ndarray) -> ctypes.c_void_p:
    return array.ctypes.data_as(ctypes.c_void_p)


def warp_bands(power: np.ndarray, amount: float) -> np.ndarray:
    """Stretch the band axis by 1 + amount: another vocal tract."""
    where = np.clip(np.arange(BANDS) * (1 + amount), 0, BANDS - 1.001)
    low = where.astype(int)
    weight = (where - low).astype(np.float32)
    return power[:, low] * (1 - weight) + power[:, low + 1] * weight


Shapes = list[tuple[tuple[int, ...], type]]
"""Shape and type of every array of a window."""


class Simulator:
    """Simulates windows with the voices of one split; the same seed gives the same windows."""

    frames = WINDOW_FRAMES

    def __init__(self, work: Path, split: str, seed: int | Sequence[int]):
        self.rng = np.random.default_rng(seed)
        self.voices, self.noises = VoiceBank(work, split, self.rng), NoiseBank(work, self.rng)
        self.profiles = voicing.Profiles(self.voices)
        phases = np.cos(2 * np.pi * np.random.default_rng(2).random((PHASE_ROWS, BANDS), dtype=np.float32))
        self.cross = (2 * phases / np.sqrt(BINS_PER_BAND)).astype(np.float32)

    @staticmethod
    def shapes() -> Shapes:
        """Shapes of features, labels, mask and identities."""
        labels = WINDOW_FRAMES // 2
        return [
            ((WINDOW_FRAMES, BANDS), np.float16),
            ((LOCAL_SPEAKERS, labels), np.uint8),
            ((labels,), np.uint8),
            ((LOCAL_SPEAKERS,), np.int32),
        ]

    @property
    def identities(self) -> int:
        return len(self.voices.entries)

    def _place(self, power: np.ndarray, active: np.ndarray, span: Span, at: int, track: scenes.Track) -> None:
        """Add a span to one speaker's power [T,64] and activity [T], its speech starting at frame `at`."""
        begin = span.since
        first = at - (span.start - begin)
        cut, last = max(0, -first), min(span.until - begin, self.frames - first)
        if last <= cut:
            return
        x = self.voices.power(span.entry, track.variant, begin + cut, begin + last)
        if track.without_floor:
            x = voicing.without_floor(x, self.profiles.of(span.entry, track.variant))
        x = x * voicing.with_effort(self.rng.normal(0, track.turn_spread_db), track.effort_tilt)
        if track.wander_db:
            x = x * voicing.loudness(self.rng, len(x), track.wander_db, track.effort_tilt)
        if self.rng.random() < 0.2:  # towards or away from the microphone while speaking
            x *= to_power(np.linspace(0, self.rng.normal(0, 3), len(x)))[:, None]
        x *= to_power(track.equaliser)
        if abs(track.warp) > 1e-3:
            x = warp_bands(x, track.warp)
        if cut == 0:
            x[:2] *= EDGE_IN[: len(x)]
        if last == span.until - begin and len(x) > 3:
            x[-3:] *= EDGE_OUT
        start = first + cut
        power[start : start + len(x)] += x
        labels = span.entry.labels[begin : span.until]
        low, high = max(0, first), min(self.frames, first + len(labels))
        if high > low:
            active[low:high] |= labels[low - first : high - first]

    def _breathe(self, power: np.ndarray, at: int, track: scenes.Track) -> None:
        """Add a breath shortly before frame `at`, 8-28 dB below speech; it is not labelled."""
        breath = sounds.breath(self.noises)
        start = at - len(breath) - int(self.rng.integers(0, 40))
        low, high = max(0, start), min(self.frames, start + len(breath))
        if high > low:
            power[low:high] += breath[low - start : high - start] * to_power(track.equaliser - self.rng.uniform(8, 28))

    def _alike(self, scene: scenes.Scene, numbers: list[int]) -> None:
        """Removes differences between the speakers' microphones, in place; more often in meetings."""
        rng, share = self.rng, ALIKE_SHARE[scene.kind]
        if rng.random() < share:
            for track in scene.tracks:
                track.without_floor = True
        if rng.random() < share and len(numbers) > 1:
            colours = [
                self.profiles.of(self.voices.entries[n], t.variant).colour_db for n, t in zip(numbers, scene.tracks)
            ]
            equalisers = voicing.common_colour_db(colours, rng.uniform(0.4, 1.0))
            for track, equaliser in zip(scene.tracks, equalisers):
                track.equaliser = (0.4 if scene.kind == "meeting" else 1.0) * track.equaliser + equaliser
        if rng.random() < share:
            wander_db = rng.uniform(0.5, 6.0)
            for track in scene.tracks:
                track.wander_db, track.effort_tilt = wander_db, voicing.effort_tilt(rng)

    def _speak(self, scene: scenes.Scene, numbers: list[int], sparse: bool) -> tuple[np.ndarray, np.ndarray]:
        """The speakers' mixed power [T,64] and activities [speakers,T]."""
        count = len(numbers)
        lively = scene.kind != "separate" or self.rng.random() < 0.35
        powers = np.zeros((count, self.frames, BANDS), np.float32)
        activity = np.zeros((count, self.frames), np.uint8)
        free_from = np.full(count, -10_000)

        def span_of(speaker: int, frames: int) -> Span:
            return self.voices.draw_span(numbers[speaker], frames)

        for turn in draw_turns(self.rng, count, lively, sparse, span_of, self.frames):
            span = turn.span
            at = max(turn.start, int(free_from[turn.speaker]) + 15)
            if at >= self.frames:
                continue
            track = scene.tracks[turn.speaker]
            self._place(powers[turn.speaker], activity[turn.speaker], span, at, track)
            if self.rng.random() < track.breath_share:
                self._breathe(powers[turn.speaker], at, track)
            free_from[turn.speaker] = max(free_from[turn.speaker], at + span.end - span.start)
        mixed = np.zeros((self.frames, BANDS), np.float32)
        so_far = np.zeros(self.frames, bool)
        for number, track in enumerate(scene.tracks):
            power = powers[number]
            power *= to_power(track.level_db)
            if track.tail_gain is not None:
                flutter = np.ascontiguousarray(self.noises.white(self.frames))
                pointers = [_pointer(a) for a in (power, flutter, scene.tail_decay, track.tail_gain)]
                library().reverberate(*pointers, self.frames, BANDS)
            both = np.where(so_far & (activity[number] > 0))[0]
            if len(both):
                low, high = both[0], both[-1] + 1
                a, b = mixed[low:high], power[low:high]
                row = int(self.rng.integers(PHASE_ROWS - self.frames))
                total = a + b
                crossed = np.maximum(total + np.sqrt(a * b) * self.cross[row : row + high - low], 0.03 * total)
                mixed += power
                mixed[low:high] = crossed
            else:
                mixed += power
            so_far |= activity[number] > 0
        return mixed, activity

    def _add_noise(self, power: np.ndarray, scene: scenes.Scene, speakers: int, quiet: bool) -> None:
        """Background, faint unlabelled talkers, short events and rumble, in place."""
        rng = self.rng
        if speakers and rng.random() < 0.08:
            for _ in range(int(rng.integers(1, 3))):
                bleed = self.voices.babble(1, self.frames)
                power += bleed / (bleed.sum(1).mean() + 1e-9) * to_power(rng.uniform(-42, -27))
        snr_db = scene.snr_db if speakers else float(rng.choice([0.0, 20.0]))
        if speakers or rng.random() < 0.85:
            kind = str(rng.choice(["white", "floor"])) if speakers and snr_db > 30 else None
            if not speakers:
                kind = str(rng.choice(["stored", "floor", "white", "music"], p=[0.45, 0.2, 0.21, 0.14]))
            elif snr_db < 8:
                kind = "stored" if rng.random() < 0.6 else "white"
            power += sounds.background(self.noises, self.voices, self.frames, kind) * to_power(-snr_db)
        rate = 2.5 if quiet else 0.9 if scene.kind == "meeting" else 0.6
        for _ in range(int(rng.poisson(rate)) if rng.random() < 0.65 else 0):
            sound = sounds.event(self.noises, self.voices)
            level_db = (
                rng.uniform(-30, 3) if not quiet else rng.uniform(-28, 10) if speakers else -snr_db + rng.uniform(0, 25)
            )
            at = int(rng.integers(-len(sound) // 2, self.frames - len(sound) // 2))
            low, high = max(0, at), min(self.frames, at + len(sound))
            power[low:high] += sound[low - at : high - at] * to_power(level_db)
        if not speakers and rng.random() < MOSTLY_BREATH_SHARE:
            silence = scenes.Track(
                0, "dry", np.zeros(BANDS) if rng.random() < 0.5 else sounds.random_curve(rng, 2.5), 0, 0
            )
            louder_db = rng.uniform(5, 40) - snr_db
            breaths = np.zeros_like(power)
            for at in np.cumsum(rng.uniform(100, 500, 6)).astype(int):
                self._breathe(breaths, int(at), silence)
            power += breaths * to_power(louder_db)
        if rng.random() < 0.2:
            power += sounds.rumble(self.noises, self.frames)

    def draw_company(self, kind: str) -> tuple[int, bool]:
        """Number of speakers of a window, and whether they speak little."""
        odds = (
            [0, 0.15, 0.75, 0.10]
            if kind == "call"
            else [0.09, 0.14, 0.29, 0.28, 0.13, 0.07] if kind == "meeting" else [0.13, 0.2, 0.38, 0.22, 0.07]
        )
        speakers = int(self.rng.choice(len(odds), p=odds))
        return speakers, speakers > 0 and self.rng.random() < SPARSE_SHARE

    def keep_audible(self, scene: scenes.Scene) -> None:
        """Raises speakers that are far below the noise."""
        for track in scene.tracks:
            track.level_db = max(track.level_db, -scene.snr_db - FAINTEST_BELOW_NOISE_DB[scene.kind])

    def window(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Features float16 [T,64], activities uint8 [3,T/2] at 50 Hz, loss mask uint8 [T/2], identities int32 [3] (-1:
        unknown)."""
        rng = self.rng
        kind = str(rng.choice(scenes.KINDS, p=[0.35, 0.5, 0.15]))
        speakers, sparse = self.draw_company(kind)
        scene = getattr(scenes, kind)(rng, speakers) if speakers else scenes.Scene(kind, snr_db=20.0)
        numbers = self.voices.draw_speakers(speakers)
        if speakers:
            scene.tracks = scene.tracks[: len(numbers)]
            self.keep_audible(scene)
            self._alike(scene, numbers)
            power, activity = self._speak(scene, numbers, sparse)
            bridge_pauses(activity)
        else:
            power, activity = np.zeros((self.frames, BANDS), np.float32), np.zeros((1, self.frames), np.uint8)
        self._add_noise(power, scene, speakers, quiet=sparse or not speakers)
        power *= scenes.draw_channel(rng, kind)
        power += self.noises.white(self.frames) * (10 ** -rng.uniform(4.5, 9) * (power.mean() if speakers else 1e-3))
        if rng.random() < 0.05:
            edge = int(rng.integers(100, self.frames - 200))
            silent = slice(edge, None) if rng.random() < 0.8 else slice(None, edge)
            power[silent], activity[:, silent] = 0, 0
        identities = [n if abs(t.warp) < 0.02 else -1 for n, t in zip(numbers, scene.tracks)]
        return (log_features(power).astype(np.float16), *targets(activity, identities))

    def batch(self, size: int) -> list[np.ndarray]:
        """`size` windows, stacked."""
        return [np.stack(part) for part in zip(*(self.window() for _ in range(size)))]
