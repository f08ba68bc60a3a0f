"""Removes differences of recordings that must not identify speakers: noise floor, spectral shape of the microphone,
even loudness.

Voices come from many microphones. In a window each has a different spectral shape, and its noise appears only with its
speech; a network that separates speakers by these cues fails in a meeting with a shared microphone. Floors are
subtracted (power spectral subtraction: Boll, 1979), spectral shapes are moved towards a common one (cepstral mean
normalisation: Atal, 1974), and loudness, and with it the spectral shape, varies as in spontaneous speech.
"""

from dataclasses import dataclass

import numpy as np

from .bank import Entry, VoiceBank
from .frontend import BANDS
from .sounds import OCTAVES, to_power

FLOOR_PERCENTILE = 8
FLOOR_SHARE = 0.9
MIN_SHARE_LEFT = 0.05
SILENCE = 1e-6
"""Frames this far below the loudest are the digital silence between clips."""
KNOTS = 7
KNOT_FRAMES = 45
FADE_SHARE = 0.3
MAX_EFFORT_TILT = 0.22


@dataclass
class Profile:
    """One variant of a voice: power of its noise floor [64], and smooth spectral shape in dB with mean 0 [64]."""

    floor: np.ndarray
    colour_db: np.ndarray


class Profiles:
    """Profiles of the voices of a bank, measured at first use."""

    def __init__(self, voices: VoiceBank):
        self.voices = voices
        self._known: dict[tuple[int, str], Profile] = {}

    def of(self, entry: Entry, variant: str) -> Profile:
        key = (entry.rows["dry"], variant)
        if key not in self._known:
            self._known[key] = measure(
                self.voices.power(entry, variant, 0, entry.frames), entry.labels[: entry.frames] > 0
            )
        return self._known[key]


def measure(power: np.ndarray, speech: np.ndarray) -> Profile:
    """Profile of a recording: power [frames, 64], speech [frames] of booleans."""
    level = power.sum(1)
    audible = power[level > SILENCE * level.max()]
    floor = np.percentile(audible, FLOOR_PERCENTILE, axis=0) if len(audible) else np.zeros(BANDS)
    spoken = power[speech[: len(power)]] if speech.any() else power
    mean_db = 10 * np.log10(spoken.mean(0) + 1e-6 * spoken.mean() + 1e-12)
    centres = np.linspace(0, BANDS - 1, KNOTS)
    halves = BANDS / (KNOTS - 1)
    near = np.maximum(0, 1 - np.abs(np.arange(BANDS)[None] - centres[:, None]) / halves)
    smooth = np.interp(np.arange(BANDS), centres, near @ mean_db / near.sum(1))
    return Profile((FLOOR_SHARE * floor).astype(np.float32), smooth - smooth.mean())


def without_floor(power: np.ndarray, profile: Profile) -> np.ndarray:
    return np.maximum(power - profile.floor, MIN_SHARE_LEFT * power)


def common_colour_db(colours_db: list[np.ndarray], strength: float) -> list[np.ndarray]:
    """Equalisers in dB that move every spectral shape towards the mean of all by a share `strength`."""
    middle = np.mean(colours_db, 0)
    return [strength * (middle - colour) for colour in colours_db]


def effort_tilt(rng: np.random.Generator) -> float:
    """Spectral tilt in dB per octave for each dB of loudness (vocal effort: Titze and Sundberg, 1992)."""
    return rng.uniform(0, MAX_EFFORT_TILT)


def with_effort(decibels: np.ndarray | float, tilt: float) -> np.ndarray:
    """Changes of loudness in dB, [frames] or one -> power gains [frames, 64]: louder speech has more high
    frequencies."""
    level = np.clip(np.atleast_1d(decibels), -25, 15)[:, None]
    return to_power(level + tilt * level * OCTAVES)


def wandering_db(rng: np.random.Generator, frames: int, spread_db: float) -> np.ndarray:
    """Decibels of a random walk with steps of `spread_db` every 0.45 s, [frames]."""
    knots = max(2, frames // KNOT_FRAMES + 2)
    return np.interp(np.arange(frames), np.linspace(0, frames - 1, knots), rng.normal(0, spread_db, knots))


def loudness(rng: np.random.Generator, frames: int, spread_db: float, tilt: float) -> np.ndarray:
    """A power gain that varies by `spread_db` every 0.45 s and sometimes fades at the end, [frames, 64]."""
    decibels = wandering_db(rng, frames, spread_db)
    if rng.random() < FADE_SHARE and frames > 60:
        last = int(rng.uniform(25, min(90, frames - 20)))
        decibels[-last:] -= np.linspace(0, rng.uniform(3, 16), last)
    return with_effort(decibels, tilt)
