"""Recordings through real encoders and decoders, those of telephones and bad compressed files."""

from __future__ import annotations

import io
import subprocess

import numpy as np
import soundfile
import soxr

from .material import RATE


def _round_trip(samples: np.ndarray, rate: int, container: str, subtype: str, level: float | None = None) -> np.ndarray:
    buffer = io.BytesIO()
    narrow = soxr.resample(samples, RATE, rate, quality="MQ") if rate != RATE else samples
    options = {} if level is None else {"compression_level": level}
    soundfile.write(buffer, np.clip(narrow, -1, 1), rate, format=container, subtype=subtype, **options)
    buffer.seek(0)
    decoded, decoded_rate = soundfile.read(buffer, dtype="float32")
    wide = soxr.resample(decoded, decoded_rate, RATE, quality="MQ") if decoded_rate != RATE else decoded
    return np.pad(wide, (0, max(0, len(samples) - len(wide))))[: len(samples)].astype(np.float32)


LINEAR_PREDICTION_CODECS = (
    ("g723_1", "g723_1", ["-b:a", "6300"]),
    ("libspeex", "ogg", ["-b:a", "8000"]),
    ("libopus", "ogg", ["-b:a", "8000", "-application", "voip"]),
    ("libopus", "ogg", ["-b:a", "12000", "-application", "voip"]),
)
"""Codecs like those of mobile phones: ffmpeg's encoder, its container, its options. AMR has the same family as G.723.1,
but Debian's ffmpeg has no encoder for it."""


def _through_ffmpeg(samples: np.ndarray, rate: int, encoder: str, container: str, options: list[str]) -> np.ndarray:
    narrow = soxr.resample(samples, RATE, rate, quality="MQ") if rate != RATE else samples

    def run(arguments: list[str], data: bytes) -> bytes:
        command = ["ffmpeg", "-hide_banner", "-loglevel", "error", *arguments]
        return subprocess.run(command, input=data, capture_output=True, check=True).stdout

    coded = run(
        ["-f", "f32le", "-ar", str(rate), "-ac", "1", "-i", "-", "-c:a", encoder, *options, "-f", container, "-"],
        np.clip(narrow, -1, 1).astype("<f4").tobytes(),
    )
    decoded = run(["-f", container, "-i", "-", "-ar", str(RATE), "-ac", "1", "-f", "f32le", "-"], coded)
    wide = np.frombuffer(decoded, "<f4")
    return np.pad(wide, (0, max(0, len(samples) - len(wide))))[: len(samples)].astype(np.float32)


def through_codec(samples: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The samples through a random real encoder and decoder.

    Telephone (mu-law, GSM, ADPCM, and linear prediction at 8 kHz), Opus, Vorbis or MP3 at their worst quality.
    """
    scaled = samples * (0.3 / (np.abs(samples).max() + 1e-6))
    kind = rng.integers(9)
    if kind == 0:
        return _round_trip(scaled, 8000, "WAV", "ULAW")
    if kind == 1:
        return _round_trip(scaled, 8000, "WAV", "GSM610")
    if kind == 2:
        return _round_trip(scaled, 8000, "WAV", "IMA_ADPCM")
    if kind == 3:
        return _round_trip(scaled, int(rng.choice([8000, 16000])), "OGG", "OPUS", 1.0)
    if kind == 4:
        return _round_trip(scaled, 16000, "OGG", "VORBIS", 1.0)
    if kind == 5:
        return _round_trip(scaled, 16000, "MP3", "MPEG_LAYER_III", 0.9)
    encoder, container, options = LINEAR_PREDICTION_CODECS[rng.integers(len(LINEAR_PREDICTION_CODECS))]
    return _through_ffmpeg(scaled, 8000, encoder, container, options)
