"""Step 1 for training on a GPU: the samples of every voice at five speeds, dry and through codecs, of all noises and rooms.

    python -m embedder.samples --voices VOICES --noise NOISE --work WORK [--processes 16]

What is done to a crop (rooms, noise, other talkers, lines) is then done on the GPU, to samples, and never twice the same. Only what cannot be
done there is done here: other speeds, and real codecs. Writes ``samples-<speed>-<variant>.i16`` and ``sample-units-<speed>.npy`` [(voice, offset, samples)],
``voices.json``, ``noise.i16`` with ``sample-noise.npy`` [(offset, samples)], and ``rooms.npy`` [rooms, 9600]. Units are those of ``prepare.py``, one after the
other, so that all of one voice is one stretch of samples.
"""

from __future__ import annotations

import argparse
import csv
import time
import zlib
from pathlib import Path

import numpy as np
import soundfile
import soxr

from processes import workers

from . import prepare
from .prepare import RATE

SPEEDS = (1.0, 0.8, 0.89, 1.12, 1.25)
VARIANTS = ("dry", "codec")
ROOM_SAMPLES = 9600
DIRECT_SAMPLE = 16
CODED_IN_ROOM, CODED_WITH_NOISE = 0.4, 0.4
CODED_NOISE_BELOW_SPEECH_DB = (5.0, 25.0)

_noise: list[np.ndarray] = []


def read_noise(noise: Path) -> list[np.ndarray]:
    """Every noise recording, mono float32 at 16 kHz, at least half a second long."""
    found = []
    with open(noise / "index.csv", newline="") as text:
        for row in csv.DictReader(text):
            if row["kind"] != "noise":
                continue
            samples, rate = soundfile.read(noise / row["file"], dtype="float32", always_2d=True)
            mono = samples.mean(1)
            mono = soxr.resample(mono, rate, RATE).astype(np.float32) if rate != RATE else mono
            if len(mono) >= RATE // 2:
                found.append(mono)
    return found


def _to_int16(samples: np.ndarray) -> np.ndarray:
    return np.round(np.clip(samples, -1, 1) * 32767).astype(np.int16)


def _start(noise: Path) -> None:
    prepare._start(noise)
    _noise.extend(read_noise(noise))


def _coded(dry: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The samples through a codec, some of them in a room or noise before it: a codec does other things to noisy speech."""
    samples = prepare.through_room(dry, rng) if rng.random() < CODED_IN_ROOM else dry
    if rng.random() < CODED_WITH_NOISE:
        noise = _noise[rng.integers(len(_noise))]
        piece = np.resize(np.roll(noise, -int(rng.integers(len(noise)))), len(samples))
        below = 10 ** (-rng.uniform(*CODED_NOISE_BELOW_SPEECH_DB) / 20)
        samples = samples + piece * (samples.std() * below / (piece.std() + 1e-9))
    coded = prepare.through_codec(samples, rng)
    return coded * (np.sqrt((dry**2).mean() / ((coded**2).mean() + 1e-12)))


def voice_samples(job: tuple[str, list[list[float]], float]) -> list[list[np.ndarray]]:
    """For every unit of one voice its variants' samples, int16."""
    file, clips, speed = job
    rng = np.random.default_rng(zlib.crc32(f"{file} {speed} samples".encode()))
    out = []
    for unit in prepare.cut_units(prepare.read_mono(file), clips):
        dry = prepare.change_speed(unit, speed)
        out.append([_to_int16(dry), _to_int16(_coded(dry, rng))])
    return out


def prepare_speed(voices: list[dict], root: Path, pool, work: Path, speed: float) -> None:
    """Write the sample files of one speed; a finished speed is left alone."""
    index_file = work / f"sample-units-{speed}.npy"
    if index_file.exists():
        return
    started, offset, index = time.time(), 0, []
    outputs = [open(work / f"samples-{speed}-{v}.i16", "wb") for v in VARIANTS]
    jobs = [(str(root / v["file"]), v["clips"], speed) for v in voices]
    for voice, units in enumerate(pool.map(voice_samples, jobs, chunksize=8)):
        for variants in units:
            for output, samples in zip(outputs, variants):
                output.write(samples.tobytes())
            index.append((voice, offset, len(variants[0])))
            offset += len(variants[0])
    for output in outputs:
        output.close()
    np.save(index_file, np.array(index, np.int64))
    print(f"speed {speed}: {offset / RATE / 3600:.2f} h, {time.time() - started:.0f} s", flush=True)


def prepare_sounds(noise: Path, work: Path) -> None:
    """Noises one after the other, and room responses with their direct sound at sample 16."""
    recordings = read_noise(noise)
    lengths = np.array([len(r) for r in recordings])
    np.save(work / "sample-noise.npy", np.stack([np.cumsum(lengths) - lengths, lengths], 1))
    np.concatenate([_to_int16(r) for r in recordings]).tofile(work / "noise.i16")
    rooms = np.zeros((0, ROOM_SAMPLES), np.float32)
    for response in prepare.load_rooms(noise):
        late = max(0, DIRECT_SAMPLE - int(np.abs(response).argmax()))
        rooms = np.concatenate([rooms, np.pad(response, (late, ROOM_SAMPLES))[None, :ROOM_SAMPLES]])
    np.save(work / "rooms.npy", rooms)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--voices", type=Path, required=True)
    parser.add_argument("--noise", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--speeds", type=float, nargs="+", default=list(SPEEDS))
    parser.add_argument("--processes", type=int, default=2)
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    voices = prepare.read_voices(args.voices, "train")
    prepare.keep_voices(voices, args.work)
    prepare_sounds(args.noise, args.work)
    with workers(args.processes, _start, (args.noise,), "spawn") as pool:
        for speed in args.speeds:
            prepare_speed(voices, args.voices, pool, args.work, speed)


if __name__ == "__main__":
    main()
