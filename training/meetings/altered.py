"""Labelled recordings altered by nine rooms, lines, noises and levels, with the same words and labels.

    python -m meetings.altered --noise NOISE --out OUT FOLDER [FOLDER ...]

FOLDERs have 16 kHz mono FLAC files, each with an RTTM of the same name; NOISE is that of `generate.py`. OUT gets a
folder for every alteration with a folder for every FOLDER, by name. Improvements of models or parameters that are
chance on one version of a recording do not hold on nine others.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import soundfile
from scipy.signal import lfilter

from calibration.material import RATE, read

from . import channels

SEED = 1
ACTIVE_SHARE = 0.3
"""Samples beyond this share of the standard deviation count as speech for the noise level."""
TONE_SHARE = 0.3
ROOM_RANK = 2 / 3
"""Rank of the room in the order of reverberation time times distance."""
FAINT_GAIN = 0.02
DULL_CORNER_HERTZ = 800.0
PEAK = 0.98

Alteration = Callable[[np.ndarray, Path, np.random.Generator], np.ndarray]


def _in_a_room(samples: np.ndarray, noise: Path) -> np.ndarray:
    rooms = sorted(channels.rooms(noise), key=lambda room: room.rt60_seconds * room.distance_metres)
    return channels.in_room(samples, noise / rooms[int(ROOM_RANK * len(rooms))].file)


def _with_noise(samples: np.ndarray, noise: Path, below_speech_db: float, rng: np.random.Generator) -> np.ndarray:
    sound = channels.noise_excerpt(noise, len(samples), rng) + TONE_SHARE * channels.room_tone(len(samples), rng)
    magnitude = np.abs(samples)
    active = samples[magnitude > ACTIVE_SHARE * magnitude.std()]
    level = np.sqrt(np.mean(active**2)) if len(active) else 0.0
    return samples + sound * (level * 10 ** (-below_speech_db / 20) / sound.std())


def _dull(samples: np.ndarray) -> np.ndarray:
    """Attenuates by 6 dB an octave above a corner frequency."""
    kept = np.exp(-2 * np.pi * DULL_CORNER_HERTZ / RATE)
    return 2 * lfilter([1 - kept], [1, -kept], samples)


ALTERATIONS: dict[str, Alteration] = {
    "gsm": lambda samples, noise, rng: channels.through_codec(channels.telephone_band(samples), "gsm"),
    "mulaw": lambda samples, noise, rng: channels.through_codec(channels.telephone_band(samples), "mulaw"),
    "opus": lambda samples, noise, rng: channels.through_codec(samples, "opus"),
    "mp3": lambda samples, noise, rng: channels.through_codec(samples, "mp3"),
    "room": lambda samples, noise, rng: _in_a_room(samples, noise),
    "noise-10": lambda samples, noise, rng: _with_noise(samples, noise, 10, rng),
    "noise-3": lambda samples, noise, rng: _with_noise(samples, noise, 3, rng),
    "faint": lambda samples, noise, rng: FAINT_GAIN * samples,
    "dull": lambda samples, noise, rng: _dull(samples),
}


def alter(audio: Path, noise: Path, out: Path) -> None:
    """Writes one recording in all alterations, with its RTTM, under `out`."""
    samples = read(audio).astype(np.float64)
    for name, alteration in ALTERATIONS.items():
        folder = out / name / audio.parent.name
        folder.mkdir(parents=True, exist_ok=True)
        altered = alteration(samples, noise, np.random.default_rng(SEED))
        peak = np.abs(altered).max(initial=0)
        altered = altered * (PEAK / peak if peak > PEAK else 1)
        soundfile.write(folder / audio.name, altered.astype(np.float32), RATE, subtype="PCM_16")
        shutil.copyfile(audio.with_suffix(".rttm"), folder / f"{audio.stem}.rttm")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--noise", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("folders", type=Path, nargs="+")
    args = parser.parse_args()
    recordings = [audio for folder in args.folders for audio in sorted(folder.resolve().glob("*.flac"))]
    if not recordings:
        parser.error("no FLAC file in the given folders")
    for audio in recordings:
        alter(audio, args.noise, args.out)
    print(f"{len(recordings)} recordings, {len(ALTERATIONS)} alterations of each")


if __name__ == "__main__":
    main()
