"""Reading the folders of single-speaker voices, noises and room responses, and decoding audio.

A voices folder has `index.csv` (file, speaker, set, seconds, kind, split) and `segments.csv` (file, start, end, ...:
the position of each original clip in its file); a noise folder has `index.csv` (file, kind noise | rir, ...).
"""

import csv
import io
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import soundfile
from scipy.signal import resample_poly

from .frontend import RATE_HZ


@dataclass
class Voice:
    """One speaker's file and the spans of its clips in seconds."""

    file: str
    speaker: str
    set: str
    split: str
    clips: list[tuple[float, float]] = field(default_factory=list)


def read_voices(folder: Path) -> list[Voice]:
    """Every voice of the index, in the order of the index."""
    with open(folder / "index.csv", newline="") as handle:
        voices = {
            row["file"]: Voice(row["file"], row["speaker"], row["set"], row["split"]) for row in csv.DictReader(handle)
        }
    with open(folder / "segments.csv", newline="") as handle:
        for row in csv.DictReader(handle):
            if row["file"] in voices:
                voices[row["file"]].clips.append((float(row["start"]), float(row["end"])))
    return list(voices.values())


def read_noise_index(folder: Path, kind: str) -> list[str]:
    """Files of one kind: "noise" or "rir"."""
    with open(folder / "index.csv", newline="") as handle:
        return [row["file"] for row in csv.DictReader(handle) if row["kind"] == kind]


def decode(path: Path) -> np.ndarray:
    """Any mono audio file that libsndfile reads -> float32 samples at 16 kHz in +-1."""
    samples, rate_hz = soundfile.read(path, dtype="float32", always_2d=True)
    return to_rate(samples.mean(1), rate_hz, RATE_HZ)


def to_rate(samples: np.ndarray, from_hz: int, to_hz: int) -> np.ndarray:
    """Polyphase resampling, float32."""
    return samples if from_hz == to_hz else resample_poly(samples, to_hz, from_hz).astype(np.float32)


CODECS = {
    "gsm": (8000, "WAV", "GSM610", None),
    "mulaw": (8000, "WAV", "ULAW", None),
    "adpcm": (8000, "WAV", "IMA_ADPCM", None),
    "opus-narrow": (8000, "OGG", "OPUS", 0.97),
    "mp3-narrow": (8000, "MP3", "MPEG_LAYER_III", 0.95),
    "mp3-wide": (16000, "MP3", "MPEG_LAYER_III", 0.9),
}
"""Name -> (sampling rate in Hz, container, subtype and compression level 0..1 of libsndfile)."""


def through_codec(samples: np.ndarray, name: str) -> np.ndarray:
    """Samples at 16 kHz through a lossy codec, same length, without the codec's delay to the nearest 10 ms frame."""
    rate_hz, container, subtype, level = CODECS[name]
    options = {} if level is None else dict(compression_level=level)
    buffer = io.BytesIO()
    narrow = np.clip(to_rate(samples, RATE_HZ, rate_hz), -1, 1)
    soundfile.write(buffer, narrow, rate_hz, format=container, subtype=subtype, **options)
    buffer.seek(0)
    decoded, decoded_hz = soundfile.read(buffer, dtype="float32")
    out = to_rate(decoded, decoded_hz, RATE_HZ)
    before, after = (
        np.sqrt(np.square(part[: len(part) // 160 * 160]).reshape(-1, 160).sum(1)) for part in (samples, out)
    )
    frames = min(len(before), len(after))
    lag = max(range(min(12, frames - 1)), key=lambda shift: float(before[: frames - shift] @ after[shift:frames]))
    aligned = np.zeros(len(samples), np.float32)
    part = out[lag * 160 : lag * 160 + len(samples)]
    aligned[: len(part)] = part
    return aligned
