"""The generated meetings, twelve and three long ones, and the distributions of each condition.

A plan describes a meeting; everything else (voices, words, rooms, noise) follows from it and the seed.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Condition:
    """Effects between the speakers and the file. Ranges are [low, high), drawn uniformly."""

    rt60_seconds: tuple[float, float] | None  # None: no room response
    distance_metres: tuple[float, float]
    level_db: tuple[float, float]  # of a speaker, relative to the loudest possible one
    noise_db: tuple[float, float]  # of the meeting's noise, relative to the mean power of active speech
    spectrum_pull: tuple[float, float]  # 0: every speaker keeps the spectrum of a separate microphone, 1: all share one


CLOSE = Condition((0.15, 0.35), (0.25, 1.0), (-6, 0), (-30, -22), (0.3, 0.8))
FAR = Condition((0.3, 0.9), (1.0, 5.0), (-15, 0), (-22, -8), (0.8, 1.0))
CALL = Condition(None, (0, 0), (-10, 0), (-30, -15), (0.0, 0.4))
TABLE = Condition((0.2, 0.5), (0.4, 2.0), (-10, 0), (-26, -12), (0.6, 1.0))
NOISY = Condition((0.3, 0.7), (0.5, 2.5), (-8, 0), (-9, -5), (0.8, 1.0))


@dataclass(frozen=True)
class Plan:
    name: str
    minutes: int
    speakers: int
    label: str
    condition: Condition
    codec: str | None  # a name in channels.CODECS
    overlap_share: float  # target: overlapped time over time with speech

    @property
    def seconds(self) -> int:
        return self.minutes * 60


def _plan(
    number: int, minutes: int, speakers: int, label: str, condition: Condition, codec: str | None, overlap: float
) -> Plan:
    return Plan(f"gen-{number:02d}", minutes, speakers, label, condition, codec, overlap)


PLANS = (
    _plan(1, 5, 2, "telephone, mu-law", CALL, "mulaw", 0.06),
    _plan(2, 5, 4, "far room", FAR, None, 0.12),
    _plan(3, 6, 3, "clean close", CLOSE, None, 0.08),
    _plan(4, 6, 5, "far room", FAR, None, 0.17),
    _plan(5, 8, 3, "telephone, GSM", CALL, "gsm", 0.07),
    _plan(6, 8, 6, "far room, noisy", NOISY, None, 0.14),
    _plan(7, 10, 4, "table, Opus about 12 kbit/s", TABLE, "opus", 0.10),
    _plan(8, 10, 7, "clean close", CLOSE, None, 0.15),
    _plan(9, 12, 5, "far room", FAR, None, 0.18),
    _plan(10, 15, 4, "table, MP3 32 kbit/s", TABLE, "mp3", 0.09),
    _plan(11, 20, 6, "clean close", CLOSE, None, 0.11),
    _plan(12, 20, 8, "far room", FAR, None, 0.13),
)

LONG_PLANS = (
    _plan(21, 30, 5, "table", TABLE, None, 0.10),
    _plan(22, 45, 8, "far room", FAR, None, 0.12),
    _plan(23, 60, 10, "clean close", CLOSE, None, 0.10),
)
