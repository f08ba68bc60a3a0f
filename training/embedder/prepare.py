"""Step 1: log-mels of every training voice, at three speeds, dry, in a room, and in a room over a codec.

    python -m embedder.prepare --voices VOICES --noise NOISE --work WORK [--speeds 1.0 0.88 1.12] [--split train]

Writes, for every speed, ``mels-<speed>-<variant>.f16`` (frames x 80, natural log) and ``units-<speed>.npy``
[(voice, offset, frames)], and once ``voices.json`` and ``noise.f16``/``noise.npy``. A unit is up to 6 s of one voice,
its clips joined without silence; a voice at another speed counts as another speaker.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import subprocess
import time
import zlib
from collections import defaultdict
from pathlib import Path

import numpy as np
import scipy.signal
import soundfile
import soxr

from processes import workers

from . import features

SPEEDS = (1.0, 0.88, 1.12)
VARIANTS = ("dry", "room", "codec")
UNIT_SECONDS = 6.0
MIN_UNIT_SECONDS = 1.0
RATE = features.SAMPLE_RATE

_rooms: list[np.ndarray] = []


def read_voices(voices: Path, split: str) -> list[dict]:
    """Rows {speaker, set, file, clips: [[start, end] seconds]} of one split, in file order."""
    clips: dict[str, list[list[float]]] = defaultdict(list)
    with open(voices / "segments.csv", newline="") as text:
        for row in csv.DictReader(text):
            clips[row["file"]].append([float(row["start"]), float(row["end"])])
    with open(voices / "index.csv", newline="") as text:
        rows = [row for row in csv.DictReader(text) if row["split"] == split and float(row["seconds"]) >= 1.2]
    return [
        {
            "speaker": row["speaker"],
            "set": row["set"],
            "file": row["file"],
            "clips": sorted(clips[row["file"]]) or [[0.0, float(row["seconds"])]],
        }
        for row in rows
    ]


def keep_voices(voices: list[dict], work: Path) -> None:
    """Write ``voices.json``; exits if the folder has features of other voices, which would be kept."""
    path = work / "voices.json"
    if path.exists() and json.loads(path.read_text()) != voices:
        cause = "another --split or other corpora"
        raise SystemExit(f"{path} lists other voices ({cause}): give another --work, or remove that folder")
    path.write_text(json.dumps(voices))


def cut_units(samples: np.ndarray, clips: list[list[float]]) -> list[np.ndarray]:
    """Units of up to 6 s; clips are joined within a unit, long clips are cut into equal parts."""
    parts: list[np.ndarray] = []
    for start, end in clips:
        clip = samples[int(start * RATE) : int(end * RATE)]
        pieces = max(1, round(len(clip) / (UNIT_SECONDS * RATE)))
        parts += [p for p in np.array_split(clip, pieces) if len(p) >= 0.25 * RATE]
    units: list[np.ndarray] = []
    pending: list[np.ndarray] = []
    for part in parts:
        if pending and sum(map(len, pending)) + len(part) > 1.15 * UNIT_SECONDS * RATE:
            units.append(np.concatenate(pending))
            pending = []
        pending.append(part)
    if pending:
        units.append(np.concatenate(pending))
    return [u for u in units if len(u) >= MIN_UNIT_SECONDS * RATE]


def change_speed(samples: np.ndarray, speed: float) -> np.ndarray:
    """Faster and higher for speed > 1, like a tape; another identity in the training."""
    return samples if speed == 1.0 else soxr.resample(samples, RATE * speed, RATE, quality="MQ").astype(np.float32)


def load_rooms(noise: Path) -> list[np.ndarray]:
    """Impulse responses, from just before the direct sound, at most 0.6 s, unit energy."""
    rooms = []
    for folder in ("rir-sim", "rir-real"):
        for file in sorted((noise / folder).glob("*.flac")):
            response, _ = soundfile.read(file, dtype="float32", always_2d=True)
            response = response[:, 0]
            response = response[max(0, int(np.abs(response).argmax()) - 16) :][: int(0.6 * RATE)]
            rooms.append(response / np.sqrt((response**2).sum() + 1e-12))
    return rooms


def through_room(samples: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The same number of samples, convolved with a random room."""
    room = _rooms[rng.integers(len(_rooms))]
    return scipy.signal.oaconvolve(samples, room)[: len(samples)].astype(np.float32)


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


def read_mono(file: str) -> np.ndarray:
    """A voice's recording, [n] at 16 kHz."""
    samples, rate = soundfile.read(file, dtype="float32")
    return samples if rate == RATE else soxr.resample(samples, rate, RATE).astype(np.float32)


def voice_mels(job: tuple[str, list[list[float]], float]) -> list[list[np.ndarray]]:
    """Log-mels of the variants of every unit of a voice, float16 [frames, 80]."""
    file, clips, speed = job
    rng = np.random.default_rng(zlib.crc32(f"{file} {speed}".encode()))
    out = []
    for unit in cut_units(read_mono(file), clips):
        dry = change_speed(unit, speed)
        wet = through_room(dry, rng)
        coded = through_codec(wet if rng.random() < 0.5 else dry, rng)
        out.append([features.log_mels(x).astype(np.float16) for x in (dry, wet, coded)])
    return out


def _start(noise: Path) -> None:
    _rooms.extend(load_rooms(noise))


def prepare_speed(voices: list[dict], root: Path, noise: Path, work: Path, speed: float, processes: int) -> None:
    """Write the feature files of one speed, unless they are complete."""
    index_file = work / f"units-{speed}.npy"
    if index_file.exists():
        return
    started, offset, index = time.time(), 0, []
    outputs = [open(work / f"mels-{speed}-{v}.f16", "wb") for v in VARIANTS]
    jobs = [(str(root / v["file"]), v["clips"], speed) for v in voices]
    with workers(processes, _start, (noise,)) as pool:
        for voice, units in enumerate(pool.map(voice_mels, jobs, chunksize=8)):
            for variants in units:
                frames = min(map(len, variants))
                for output, mels in zip(outputs, variants):
                    output.write(mels[:frames].tobytes())
                index.append((voice, offset, frames))
                offset += frames
            if voice % 500 == 0:
                done = f"{offset / 360_000:.2f} h, {time.time() - started:.0f} s"
                print(f"speed {speed}: voice {voice} of {len(jobs)}, {done}", flush=True)
    for output in outputs:
        output.close()
    np.save(index_file, np.array(index, np.int64))


def prepare_noise(noise: Path, work: Path) -> None:
    """Log-mels of all noise recordings, concatenated, and [(offset, frames)]."""
    if (work / "noise.npy").exists():
        return
    index, offset = [], 0
    with open(noise / "index.csv", newline="") as text, open(work / "noise.f16", "wb") as out:
        for row in csv.DictReader(text):
            if row["kind"] != "noise":
                continue
            samples, _ = soundfile.read(noise / row["file"], dtype="float32", always_2d=True)
            mels = features.log_mels(samples.mean(1)).astype(np.float16)
            if len(mels) < 50:
                continue
            out.write(mels.tobytes())
            index.append((offset, len(mels)))
            offset += len(mels)
    np.save(work / "noise.npy", np.array(index, np.int64))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--voices", type=Path, required=True)
    parser.add_argument("--noise", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--speeds", type=float, nargs="+", default=list(SPEEDS))
    parser.add_argument("--split", choices=("train", "dev"), default="train")
    parser.add_argument("--processes", type=int, default=2)
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    voices = read_voices(args.voices, args.split)
    keep_voices(voices, args.work)
    prepare_noise(args.noise, args.work)
    for speed in args.speeds:
        prepare_speed(voices, args.voices, args.noise, args.work, speed, args.processes)


if __name__ == "__main__":
    main()
