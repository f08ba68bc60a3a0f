"""Degradations of one side of a trial: a room, noise, a level, a telephone or a codec. Drawn once, stored with the
trial."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from meetings import channels

ROOM_SHARE = 0.7
RECORDED_NOISE_SHARE = 0.5
NOISE_BELOW_SPEECH_DB = (5.0, 20.0)
LEVEL_DB = (-20.0, 0.0)
LINES = {"none": 0.3, "band": 0.1, "mulaw": 0.2, "gsm": 0.15, "opus": 0.15, "mp3": 0.1}
_TELEPHONE = ("band", "mulaw", "gsm")


def draw(noise: Path, rng: np.random.Generator) -> dict:
    """Parameters of one degradation, JSON-ready; `seed` fixes the noise itself."""
    rooms = channels.rooms(noise)
    return {
        "room": rooms[int(rng.integers(len(rooms)))].file if rng.random() < ROOM_SHARE else None,
        "noise_below_speech_db": round(float(rng.uniform(*NOISE_BELOW_SPEECH_DB)), 2),
        "is_noise_recorded": bool(rng.random() < RECORDED_NOISE_SHARE),
        "level_db": round(float(rng.uniform(*LEVEL_DB)), 2),
        "line": str(rng.choice(list(LINES), p=list(LINES.values()))),
        "seed": int(rng.integers(2**31)),
    }


def apply(samples: np.ndarray, facts: dict, noise: Path) -> np.ndarray:
    """The degraded samples, of the same number. samples [n] at 16 kHz in ±1"""
    rng = np.random.default_rng(facts["seed"])
    length = len(samples)
    samples = samples.astype(np.float64)
    if facts["room"]:
        samples = channels.in_room(samples, noise / facts["room"])
    hiss = channels.noise_excerpt(noise, length, rng) if facts["is_noise_recorded"] else 0
    hiss = hiss + channels.room_tone(length, rng)
    below = 10 ** (-facts["noise_below_speech_db"] / 20)
    samples = samples + hiss * (samples.std() * below / hiss.std())
    samples *= 0.9 * 10 ** (facts["level_db"] / 20) / np.abs(samples).max()
    if facts["line"] in _TELEPHONE:
        samples = channels.telephone_band(samples)
    if facts["line"] in channels.CODECS:
        samples = channels.through_codec(samples, facts["line"])
    return samples.astype(np.float32)
