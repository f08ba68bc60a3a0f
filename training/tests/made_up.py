"""Made-up voices, noises, rooms and recordings for the tests: tones with the rhythm of speech, seconds of each."""

import csv
from pathlib import Path

import numpy as np
import soundfile

RATE_HZ = 16_000
CLIP_SECONDS = 6.0
FLOOR = 3e-4
"""Amplitude of the noise in all signals. Digital silence would count as a cut in the recording."""


def speech(hz: float, seconds: float, rng: np.random.Generator) -> np.ndarray:
    """Harmonics of a fundamental in syllables and phrases, a pause of about a second after each phrase."""
    count = int(seconds * RATE_HZ)
    time = np.arange(count) / RATE_HZ
    orders = np.arange(1, int(4000 // hz))
    formants = sum(np.exp(-(((orders * hz - centre) / 250) ** 2)) for centre in (2.2 * hz + 350, 1500, 2600))
    tone = (formants[:, None] * np.sin(2 * np.pi * hz * orders[:, None] * time + orders[:, None])).sum(0)
    syllables = 0.55 - 0.45 * np.cos(2 * np.pi * 4 * time)
    phrases = np.zeros(count)
    at = int(0.3 * RATE_HZ)
    while at < count:
        end = at + int(rng.uniform(1.2, 1.8) * RATE_HZ)
        phrases[at:end] = 1
        at = end + int(rng.uniform(0.9, 1.1) * RATE_HZ)
    sound = 0.2 * tone / np.abs(tone).max() * syllables * phrases
    return (sound + FLOOR * rng.standard_normal(count)).astype(np.float32)


def write_table(path: Path, rows: list[dict]) -> None:
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def write_voices(folder: Path, train: int, dev: int, clips: int = 2) -> None:
    """A folder of single-speaker recordings in the form of `segmentation/corpus.py`."""
    folder.mkdir()
    rng = np.random.default_rng(1)
    index, segments = [], []
    for number in range(train + dev):
        file = f"{number:02d}.flac"
        samples = speech(90 + 17 * number, clips * CLIP_SECONDS, rng)
        soundfile.write(folder / file, samples, RATE_HZ)
        split = "train" if number < train else "dev"
        seconds = clips * CLIP_SECONDS
        index.append(dict(file=file, speaker=f"voice-{number}", set="cv61", seconds=seconds, kind="real", split=split))
        for clip in range(clips):
            start = clip * CLIP_SECONDS
            segments.append(dict(file=file, start=start, end=start + CLIP_SECONDS, source_clip=f"clip_{clip}.mp3"))
    write_table(folder / "index.csv", index)
    write_table(folder / "segments.csv", segments)


def write_noise(folder: Path, rooms: int = 8) -> None:
    """A folder of noises and room responses in the form of `segmentation/corpus.py`."""
    rng = np.random.default_rng(2)
    (folder / "rir-sim").mkdir(parents=True)
    rows = []
    for number in range(3):
        file = f"noise-{number}.flac"
        soundfile.write(folder / file, (0.05 * rng.standard_normal(8 * RATE_HZ)).astype(np.float32), RATE_HZ)
        rows.append(dict(file=file, kind="noise", seconds=8, source="made up"))
    for number in range(rooms):
        file = f"rir-sim/{number}.flac"
        tail = np.exp(-np.arange(RATE_HZ // 4) / 800) * rng.standard_normal(RATE_HZ // 4) * 0.05
        tail[0] = 0.9
        soundfile.write(folder / file, tail.astype(np.float32), RATE_HZ)
        source = f"RT60 0.3{number} s, distance 0.{3 + number % 6} m"
        rows.append(dict(file=file, kind="rir", seconds=0.25, source=source))
    write_table(folder / "index.csv", rows)


def write_recordings(folder: Path, count: int, seconds: int) -> None:
    """Recordings of two people who speak in turn, FLAC and RTTM."""
    folder.mkdir()
    rng = np.random.default_rng(3)
    for number in range(count):
        parts, lines = [], []
        for start in range(0, seconds, 5):
            who = start // 5 % 2
            parts.append(speech(110 + 80 * who + 5 * number, 5, rng))
            lines.append(f"SPEAKER r{number} 1 {start}.300 4.000 <NA> <NA> person-{who} <NA> <NA>\n")
        soundfile.write(folder / f"r{number}.flac", np.concatenate(parts), RATE_HZ)
        (folder / f"r{number}.rttm").write_text("".join(lines))
