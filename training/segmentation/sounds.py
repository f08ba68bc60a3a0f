"""Sounds that are not speech, as mel power [frames, 64]: noises, laughter, breath, coughs, knocks, keyboards, rustling,
rumble."""

import numpy as np

from .bank import NoiseBank, VoiceBank
from .frontend import BAND_HZ, BANDS

OCTAVES = np.log2(np.maximum(BAND_HZ, 100) / 1000).astype(np.float32)
"""Octaves of every band above 1 kHz, for tilts in dB per octave."""


EVENT_SHARES = {
    "stored": 0.24,
    "burst": 0.22,
    "breath": 0.15,
    "laughter": 0.08,
    "cough": 0.06,
    "knock": 0.1,
    "keys": 0.09,
    "rustle": 0.06,
}


def random_curve(rng: np.random.Generator, spread_db: float, knots: int = 6) -> np.ndarray:
    """A smooth random equaliser in dB, [64]."""
    return np.interp(np.arange(BANDS), np.linspace(0, BANDS - 1, knots), rng.normal(0, spread_db, knots))


def to_power(decibels: np.ndarray | float) -> np.ndarray:
    return np.power(10.0, np.asarray(decibels) / 10).astype(np.float32)


def _unit(power: np.ndarray) -> np.ndarray:
    return (power / (power.sum(1).mean() + 1e-9)).astype(np.float32)


def background(noises: NoiseBank, voices: VoiceBank, frames: int, kind: str | None = None) -> np.ndarray:
    """A bed of noise with mean power 1: stored, shaped white, music, babble, or the pauses of a voice's recording."""
    rng = noises.rng
    if kind is None:
        kind = str(rng.choice(["stored", "white", "floor", "music", "babble"], p=[0.46, 0.24, 0.1, 0.08, 0.12]))
    if kind == "babble":
        return _unit(voices.babble(int(rng.integers(5, 9)), frames))
    if kind == "floor":
        return _unit(voices.floor(frames))
    if kind == "white":
        tilt_db = rng.uniform(-10, 3) * rng.random() * OCTAVES
        return _unit(noises.white(frames) * to_power(random_curve(rng, 4, 8) + tilt_db))
    return _unit(noises.stored(frames, music=kind == "music") * to_power(random_curve(rng, 2.5)))


def _formants(rng: np.random.Generator) -> np.ndarray:
    """A vowel-like envelope in dB, [64]: three resonances over a falling floor."""
    out = -6 * np.maximum(OCTAVES + 2, 0) - 8
    for hz, width in ((rng.uniform(350, 900), 0.5), (rng.uniform(1000, 2300), 0.35), (rng.uniform(2400, 3400), 0.3)):
        out = np.maximum(out, rng.uniform(-14, 0) - 6 * (np.log2(BAND_HZ / hz) / width) ** 2)
    return out


def _pulses(
    rng: np.random.Generator, frames: int, per_second: float, length: tuple[int, int], jitter: float
) -> np.ndarray:
    """An envelope [frames] of decaying pulses at about a regular rate."""
    out = np.zeros(frames, np.float32)
    at = 0.0
    while at < frames:
        count = int(rng.integers(*length))
        decay = np.exp(-3 * np.arange(count) / count) * rng.uniform(0.4, 1)
        here = int(at)
        part = out[here : here + count]
        part += decay[: len(part)]
        at += max(1.0, 100 / per_second * (1 + rng.normal(0, jitter)))
    return out


def laughter(noises: NoiseBank, voices: VoiceBank, frames: int) -> np.ndarray:
    """Bursts at 3.5-6.5 a second of one held vowel of some voice, or of breathy noise with formants, growing weaker."""
    rng = noises.rng
    envelope = _pulses(rng, frames, rng.uniform(3.5, 6.5), (7, 16), 0.12) * np.linspace(
        1, rng.uniform(0.05, 0.6), frames
    )
    colour = to_power(_formants(rng) + random_curve(rng, 2))
    out = noises.white(frames) * colour
    if rng.random() < 0.6:
        entry = voices.entries[voices.draw()]
        start, end, _ = entry.islands[int(rng.integers(len(entry.islands)))]
        piece = voices.power(entry, "dry", start, end)
        vowel = piece[int(np.argmax(piece[:, 4:30].sum(1)))]
        out = _unit(out) * rng.uniform(0.02, 0.3) + _unit(noises.white(frames) ** 0.5 * vowel)
    return _unit(out * (envelope[:, None] + 0.003))


def breath(noises: NoiseBank) -> np.ndarray:
    """One breath of mean power 1, 0.25-1.1 s, swelling and falling."""
    rng = noises.rng
    frames = int(rng.integers(25, 110))
    colour = to_power(random_curve(rng, 3) - 5 * np.abs(np.log2(BAND_HZ / rng.uniform(1200, 5000))))
    return _swelling(rng, noises.white(frames) * colour)


def _swelling(rng: np.random.Generator, power: np.ndarray) -> np.ndarray:
    """The sound [frames, 64] under an envelope that rises and falls, with mean power 1."""
    frames = len(power)
    step, rise = np.arange(frames), rng.uniform(0.02, 0.5) * frames
    envelope = (
        np.minimum(1, (step + 0.5) / rise) * np.minimum(1, (frames - step) / (frames - rise)) ** rng.uniform(0.5, 3)
    ) ** 2
    return _unit(_unit(power) * envelope[:, None])


def event(noises: NoiseBank, voices: VoiceBank) -> np.ndarray:
    """One short sound of mean power 1 and random kind, 0.04-3 s."""
    rng = noises.rng
    kind = str(rng.choice(list(EVENT_SHARES), p=list(EVENT_SHARES.values())))
    if kind == "laughter":
        return laughter(noises, voices, int(rng.integers(50, 260)))
    if kind == "breath":
        return breath(noises)
    if kind == "knock":
        frames = int(rng.integers(4, 20))
        colour = to_power(random_curve(rng, 5) - rng.uniform(2, 10) * np.maximum(OCTAVES + 2, 0))
        return _unit(noises.white(frames) * colour * np.exp(-rng.uniform(2, 7) * np.arange(frames) / frames)[:, None])
    if kind == "keys":
        frames = int(rng.integers(60, 300))
        colour = to_power(random_curve(rng, 4) + rng.uniform(-3, 4) * OCTAVES)
        return _unit(
            noises.white(frames) * colour * (_pulses(rng, frames, rng.uniform(3, 9), (2, 5), 0.4)[:, None] + 1e-3)
        )
    if kind == "rustle":
        frames = int(rng.integers(40, 250))
        envelope = np.exp(
            np.interp(
                np.arange(frames), np.linspace(0, frames, max(3, frames // 8)), rng.normal(0, 1.2, max(3, frames // 8))
            )
        )
        return _unit(
            noises.white(frames) * to_power(random_curve(rng, 3) + rng.uniform(-4, 4) * OCTAVES) * envelope[:, None]
        )
    frames = int(rng.integers(4, 30) if rng.random() < 0.4 else rng.integers(20, 150))
    if kind == "stored":
        power = noises.stored(frames)
    elif kind == "cough":
        frames = int(rng.integers(15, 45))
        power = noises.white(frames) * to_power(0.6 * _formants(rng) + random_curve(rng, 3))
    else:
        power = noises.white(frames) * to_power(random_curve(rng, 7, 5) + rng.uniform(-9, 3) * OCTAVES)
    return _swelling(rng, power)


def rumble(noises: NoiseBank, frames: int) -> np.ndarray:
    """Handling noise or hum below 60-200 Hz, slowly swelling."""
    rng = noises.rng
    swell = np.interp(np.arange(frames), np.linspace(0, frames, 8), rng.normal(0, 4, 8))
    slope = rng.uniform(9, 24) * np.log2(np.maximum(BAND_HZ, 60) / rng.uniform(60, 200)).clip(0)
    return noises.white(frames) * to_power(swell)[:, None] * to_power(rng.uniform(-8, 12) - slope) / BANDS
