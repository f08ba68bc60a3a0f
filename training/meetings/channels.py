"""Effects on a recording: rooms, noise, telephone bands and codecs.

Codecs run inside libsndfile (the `soundfile` wheel brings it), so the pinned version gives the same samples everywhere.
All samples are float arrays at 16 kHz, about ±1.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import soundfile
from scipy.signal import correlate, fftconvolve, firwin2, lfilter, resample_poly

from calibration.material import RATE, read, rows

NARROW_RATE = 8000
TELEPHONE_HERTZ = (300.0, 3400.0)
CODECS = ("mulaw", "gsm", "opus", "mp3")
_DELAY_SAMPLES = 4000  # no codec here is later than this
_BEFORE_DIRECT_SAMPLES = 5


@dataclass(frozen=True)
class Room:
    """A row of the noise index: one response, with the facts of its source column."""

    file: str
    rt60_seconds: float
    distance_metres: float


@lru_cache
def rooms(noise: Path) -> tuple[Room, ...]:
    """Room responses whose index row names RT60 and distance, in the order of the index."""
    found = []
    for row in rows(noise / "index.csv"):
        facts = re.search(r"RT60 ([\d.]+) s, distance ([\d.]+) m", row["source"])
        if row["kind"] == "rir" and facts:
            found.append(Room(row["file"], float(facts[1]), float(facts[2])))
    return tuple(found)


@lru_cache
def noise_files(noise: Path) -> tuple[str, ...]:
    return tuple(row["file"] for row in rows(noise / "index.csv") if row["kind"] == "noise")


@lru_cache(maxsize=None)  # all of them together are less than an hour of sound
def _recorded(path: Path) -> np.ndarray:
    return read(path)


@lru_cache(maxsize=64)
def response(path: Path) -> np.ndarray:
    """A room response that starts at the direct sound (so that labels stay in place) and has unit energy."""
    samples = read(path).astype(np.float64)
    samples = samples[max(0, int(np.argmax(np.abs(samples))) - _BEFORE_DIRECT_SAMPLES) :]
    return samples / np.sqrt((samples**2).sum())


def in_room(samples: np.ndarray, path: Path) -> np.ndarray:
    """The samples in a room, with the same length."""
    return fftconvolve(samples, response(path))[: len(samples)]


def band(samples: np.ndarray, low_hertz: float, high_hertz: float) -> np.ndarray:
    """Linear-phase band limit without delay, slopes of 60 and 300 Hz."""
    edges = np.array([0, low_hertz - 60, low_hertz, high_hertz, high_hertz + 300, RATE / 2]) / (RATE / 2)
    return fftconvolve(samples, firwin2(801, edges, [0, 0, 1, 1, 0, 0]), "same")


def telephone_band(samples: np.ndarray) -> np.ndarray:
    """The band of a plain telephone line."""
    return band(samples, *TELEPHONE_HERTZ)


def _round_trip(samples: np.ndarray, rate: int, **settings) -> np.ndarray:
    buffer = io.BytesIO()
    soundfile.write(buffer, samples.astype(np.float32), rate, **settings)
    buffer.seek(0)
    return soundfile.read(buffer, dtype="float64")[0]


def _in_step(reference: np.ndarray, decoded: np.ndarray) -> np.ndarray:
    """Removes the codec's delay, the offset of the best correlation over the first half minute."""
    decoded = np.pad(decoded, (0, len(reference) + _DELAY_SAMPLES))
    length = min(len(reference), 30 * RATE)
    match = correlate(decoded[: length + _DELAY_SAMPLES], reference[:length], "valid", "fft")
    delay = int(np.argmax(match))
    return decoded[delay : delay + len(reference)]


def through_codec(samples: np.ndarray, codec: str) -> np.ndarray:
    """Encodes and decodes: `mulaw` and `gsm` at 8 kHz, `opus` at about 12 kbit/s, `mp3` at 32 kbit/s."""
    peak = np.abs(samples).max() + 1e-9
    scaled = samples * min(1.0, 0.95 / peak)
    if codec in ("mulaw", "gsm"):
        subtype = {"mulaw": "ULAW", "gsm": "GSM610"}[codec]
        narrow = _round_trip(resample_poly(scaled, 1, 2), NARROW_RATE, format="WAV", subtype=subtype)
        decoded = resample_poly(narrow, 2, 1)
    elif codec == "opus":
        # libsndfile spreads its level 0..1 over 256..6 kbit/s and channel
        decoded = _round_trip(scaled, RATE, format="OGG", subtype="OPUS", compression_level=1 - 6 / 250)
    elif codec == "mp3":
        # 0..1 over 160..8 kbit/s at this rate
        settings = dict(bitrate_mode="CONSTANT", compression_level=128 / 152)
        decoded = _round_trip(scaled, RATE, format="MP3", subtype="MPEG_LAYER_III", **settings)
    else:
        raise ValueError(f"unknown codec {codec}")
    return _in_step(scaled, decoded)


def room_tone(length: int, rng: np.random.Generator) -> np.ndarray:
    """Steady noise of unit power, tilted towards low frequencies, its level wandering by about 1.5 dB over half
    minutes."""
    tilt = rng.uniform(0.6, 0.97)
    tone = lfilter([1 - tilt], [1, -tilt], rng.standard_normal(length))
    points = max(2, length // (15 * RATE) + 2)
    drift_db = np.interp(np.linspace(0, points - 1, length), np.arange(points), rng.normal(0, 1.5, points))
    tone *= 10 ** (drift_db / 20)
    return tone / tone.std()


def noise_excerpt(noise: Path, length: int, rng: np.random.Generator) -> np.ndarray:
    """A recorded noise of unit power from a random position, repeated if it is too short."""
    files = noise_files(noise)
    samples = _recorded(noise / files[int(rng.integers(len(files)))])
    start = int(rng.integers(len(samples)))
    excerpt = np.take(samples, np.arange(start, start + length), mode="wrap").astype(np.float64)
    return excerpt / (excerpt.std() + 1e-6)


def background(noise: Path, length: int, rng: np.random.Generator) -> np.ndarray:
    """Noise of a meeting, about unit power: room tone throughout, and occasionally some seconds of a recorded noise."""
    mix = room_tone(length, rng)
    at = int(rng.exponential(20) * RATE)
    while at < length:
        span = min(length - at, int(rng.uniform(1, 5) * RATE))
        fade = np.minimum(1, np.minimum(np.arange(span), np.arange(span)[::-1]) / (0.1 * RATE))
        mix[at : at + span] += 10 ** (rng.uniform(-10, 4) / 20) * fade * noise_excerpt(noise, span, rng)
        at += span + int(rng.exponential(30) * RATE)
    return mix
