"""Acoustics of a simulated conversation: levels, rooms and lines of the speakers, noise and the recording's channel."""

from dataclasses import dataclass, field

import numpy as np
from scipy.special import expit

from .frontend import BAND_HZ, BANDS
from .sounds import OCTAVES, random_curve, to_power

KINDS = ("separate", "meeting", "call")
BAND_WIDTH_HZ = np.gradient(BAND_HZ)


@dataclass
class Track:
    """Acoustics of one speaker. A tail gain of None means no added reverberation (the variant may include a room)."""

    level_db: float
    variant: str
    equaliser: np.ndarray
    warp: float
    turn_spread_db: float
    tail_gain: np.ndarray | None = None
    without_floor: bool = False
    wander_db: float = 0.0
    effort_tilt: float = 0.0
    breath_share: float = 0.0


@dataclass
class Scene:
    """Acoustics of one window; levels in dB relative to a speaker at 0 dB."""

    kind: str
    tracks: list[Track] = field(default_factory=list)
    tail_decay: np.ndarray | None = None
    snr_db: float = 40.0


def telephone_db(rng: np.random.Generator) -> np.ndarray:
    """The band of a telephone line in dB, [64]."""
    depth = rng.uniform(30, 70)
    low = depth * expit((rng.uniform(180, 330) - BAND_HZ) / 30)
    return -low - depth * expit((BAND_HZ - rng.uniform(3200, 3700)) / 60)


def band_limit_db(rng: np.random.Generator) -> np.ndarray:
    """Sampled at 8 kHz, or limited at 5 to 7.5 kHz by a codec, [64]."""
    depth = rng.uniform(30, 70)
    if rng.random() < 0.55:
        return -1.3 * depth * expit((BAND_HZ - rng.uniform(3800, 4000)) / 30)
    return -depth * expit((BAND_HZ - rng.uniform(5000, 7500)) / 100)


def comb_db(rng: np.random.Generator) -> np.ndarray:
    """The comb filter of a voice mixed with its crosstalk in one to three other microphones, in dB, [64].

    Power of 1 + sum g exp(-j w tau), averaged over the width of a band (a sinc), without terms between two echoes.
    """
    out = np.ones(BANDS)
    for _ in range(int(rng.integers(1, 4))):
        gain, delay_seconds = 10 ** (-rng.uniform(5, 25) / 20), rng.uniform(0.0008, 0.012)
        out += gain**2 + 2 * gain * np.cos(2 * np.pi * BAND_HZ * delay_seconds) * np.sinc(BAND_WIDTH_HZ * delay_seconds)
    return 10 * np.log10(np.maximum(out, 0.02))


def draw_snr_db(rng: np.random.Generator, kind: str) -> float:
    u = rng.random()
    if kind == "meeting":
        return rng.uniform(28, 60) if u < 0.3 else rng.uniform(14, 28) if u < 0.75 else rng.uniform(2, 14)
    return rng.uniform(30, 75) if u < 0.4 else rng.uniform(12, 30) if u < 0.8 else rng.uniform(0, 12)


def _own_curve(rng: np.random.Generator) -> np.ndarray:
    return random_curve(rng, 2.5) if rng.random() < 0.6 else np.zeros(BANDS)


def _warp(rng: np.random.Generator) -> float:
    return rng.normal(0, 0.03) if rng.random() < 0.35 else 0.0


def _dry_variant(rng: np.random.Generator, codec_share: float) -> str:
    return "codec" if rng.random() < codec_share else "dry"


def separate(rng: np.random.Generator, speakers: int) -> Scene:
    """Speakers with separate microphones, rooms and equalisers: mixed recordings, conference calls."""
    scene = Scene("separate", snr_db=draw_snr_db(rng, "separate"))
    far = rng.random() < 0.35
    for _ in range(speakers):
        variant = (
            _dry_variant(rng, 0.2)
            if not far and rng.random() < 0.75
            else str(rng.choice(["near", "far"], p=[0.65, 0.35]))
        )
        level_db = float(np.clip(rng.normal(0, 5), -14, 10))
        scene.tracks.append(Track(level_db, variant, _own_curve(rng), _warp(rng), 1.5))
    return scene


def meeting(rng: np.random.Generator, speakers: int) -> Scene:
    """One room, one microphone or a mix of microphones: distances set level and reverberation, noise and tail are
    common.

    Levels differ by up to 20 dB. A third of the meetings are entirely far-field; a quarter are close-talk mixes with
    little tail. In nearly half of them the voices are those convolved with a room response, and the added tail is
    weaker.
    """
    scene = Scene("meeting", snr_db=draw_snr_db(rng, "meeting"))
    t60_seconds = rng.uniform(0.2, 0.9) * np.exp(-0.15 * np.maximum(OCTAVES, -2))
    scene.tail_decay = (10.0 ** (-0.06 / t60_seconds)).astype(np.float32)
    u = rng.random()
    ratio_db = rng.uniform(-8, 2) if u < 0.33 else rng.uniform(8, 20) if u < 0.58 else rng.uniform(0, 10)
    spread_db, room_curve = rng.uniform(1, 8), random_curve(rng, 3)
    convolved, far_share = rng.random() < 0.45, 0.7 if ratio_db < 3 else 0.25
    if convolved:
        ratio_db += 9
    # Mixed head-set microphones: crosstalk and audible breath.
    combed, breath_share = rng.random() < 0.5, float(rng.choice([0.0, 0.2, 0.8]))
    for _ in range(speakers):
        level_db = float(np.clip(rng.normal(0, spread_db), -14, 6))
        if convolved:
            variant = "far" if rng.random() < far_share else "near"
        else:
            variant = _dry_variant(rng, 0.1)
        direct_db = ratio_db + 0.6 * level_db + rng.normal(0, 2)
        track = Track(
            level_db, variant, _own_curve(rng) + rng.uniform(-1.5, 0.5) * OCTAVES, _warp(rng), rng.uniform(1, 5.5)
        )
        if combed:
            track.equaliser = track.equaliser + comb_db(rng)
        if rng.random() < breath_share:
            track.breath_share = rng.uniform(0.1, 0.6)
        track.tail_gain = to_power(room_curve - direct_db)
        scene.tracks.append(track)
    return scene


def call(rng: np.random.Generator, speakers: int) -> Scene:
    """A telephone call: codec recordings preferred, a separate line for each speaker, one possibly wide-band and
    near."""
    scene = Scene("call", snr_db=draw_snr_db(rng, "call") + 5)
    local = int(rng.integers(speakers)) if rng.random() < 0.2 else -1
    common = telephone_db(rng)
    for number in range(speakers):
        line = np.zeros(BANDS) if number == local else common if rng.random() < 0.4 else telephone_db(rng)
        variant = str(rng.choice(["codec", "dry", "near"], p=[0.6, 0.25, 0.15]))
        level_db = float(np.clip(rng.normal(0, 4), -12, 8))
        scene.tracks.append(
            Track(level_db, variant, _own_curve(rng) + 0.5 * random_curve(rng, 3) + line, _warp(rng), 2.0)
        )
    return scene


def draw_channel(rng: np.random.Generator, kind: str) -> np.ndarray:
    """The recording's spectral shape as a power gain, [64]: curve, tilt of -7 to 2.5 dB per octave, sometimes a band
    limit."""
    decibels = (random_curve(rng, 3) if rng.random() < 0.7 else np.zeros(BANDS)) + rng.uniform(-7, 2.5) * OCTAVES
    u = rng.random()
    if kind == "call":
        decibels = decibels + (telephone_db(rng) if u < 0.5 else 0)
    elif u < 0.1:
        decibels = decibels + telephone_db(rng)
    elif u < 0.32:
        decibels = decibels + band_limit_db(rng)
    return to_power(decibels)
