"""Step 1: decode every voice, detect its speech, write samples and labels.

Writes to the work folder: `voices.i16` (16 kHz samples, every clip's speech at a mean mel power of 1 before a common
scale), `voices.labels.u8` (100 Hz, 1 = speech) and `voices.json` (a list of files: position, speaker, usable clips in
frames).
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

from processes import workers

from .corpus import Voice, decode, read_voices
from .files import replacing
from .frontend import HOP_SAMPLES, mel_power
from .labels import Teacher, label_clips

SAMPLE_SCALE = 4096.0
"""int16 value of one unit of the normalised samples."""

_state: dict = {}


def _start(folder: Path, teacher: Path) -> None:
    _state.update(folder=folder, teacher=Teacher(teacher))


def process(voice: Voice) -> tuple[Voice, np.ndarray, np.ndarray, list[tuple[int, int]]] | None:
    """Decode and label one voice; None if it has no usable clip."""
    samples = decode(_state["folder"] / voice.file)
    frames = len(samples) // HOP_SAMPLES
    if frames < 60:
        return None
    speech, overlap = _state["teacher"].speech_and_overlap(samples)
    labels, gains, clips = label_clips(mel_power(samples, frames).sum(1), speech, overlap, voice.clips)
    if not clips:
        return None
    scaled = samples[: frames * HOP_SAMPLES] * np.sqrt(np.repeat(gains, HOP_SAMPLES)) * SAMPLE_SCALE
    return voice, np.clip(scaled, -32767, 32767).astype("<i2"), labels, clips


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--voices", type=Path, required=True)
    parser.add_argument("--teacher", type=Path, required=True, help="segmentation model used as speech detector (ONNX)")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--processes", type=int, default=2)
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    voices = read_voices(args.voices)
    started = time.time()
    index, sample_offset, label_offset = [], 0, 0
    with (
        workers(args.processes, _start, (args.voices, args.teacher), "fork") as pool,
        replacing(*(args.work / name for name in ("voices.i16", "voices.labels.u8", "voices.json"))) as (
            sample_file,
            label_file,
            index_file,
        ),
    ):
        for count, result in enumerate(pool.map(process, voices, chunksize=8)):
            if count % 400 == 0:
                print(f"{count}/{len(voices)} voices, {time.time() - started:.0f} s", flush=True)
            if result is None:
                continue
            voice, samples, labels, clips = result
            sample_file.write(samples.tobytes())
            label_file.write(labels.tobytes())
            index.append(
                dict(
                    speaker=voice.speaker,
                    set=voice.set,
                    split=voice.split,
                    sample_offset=sample_offset,
                    label_offset=label_offset,
                    frames=len(labels),
                    clips=clips,
                )
            )
            sample_offset += len(samples)
            label_offset += len(labels)
        index_file.write(json.dumps(index).encode())
    hours = label_offset / 360_000
    print(f"{len(index)} of {len(voices)} voices, {hours:.2f} h, {time.time() - started:.0f} s")


if __name__ == "__main__":
    main()
