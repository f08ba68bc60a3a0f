"""Step 3: features of every voice as square root of mel power, float16, 64 bands, 100 Hz.

Variants of a voice: at its original speed dry, in a near room, in a far room (a share of the voices) and through a
codec (a share); at another speed (a new voice for the identity loss) dry. Writes `mels.f16`, `mels.labels.u8` and
`mels.json`: one entry per voice and speed with the rows of every variant in `mels.f16` and its usable clips.
"""

import argparse
import json
import time
import zlib
from pathlib import Path

import numpy as np
from scipy.signal import oaconvolve, resample_poly

from processes import workers

from .corpus import CODECS, through_codec
from .files import replacing
from .frontend import HOP_SAMPLES, mel_power
from .prepare_voices import SAMPLE_SCALE
from .rooms import draw_response, load_responses

SPEEDS = [(10, 9), (15, 14), (14, 15), (10, 11), (8, 7), (7, 8), (13, 12), (6, 7)]
"""Length ratios (up, down) of the second speed."""

_state: dict = {}


def _start(work: Path, noise: Path, codec_share: float, far_share: float) -> None:
    _state.update(
        samples=np.memmap(work / "voices.i16", "<i2", "r"),
        labels=np.memmap(work / "voices.labels.u8", "u1", "r"),
        responses=load_responses(noise),
        codec_share=codec_share,
        far_share=far_share,
    )


def _root_mel(samples: np.ndarray, frames: int) -> np.ndarray:
    return np.sqrt(mel_power(samples, frames)).astype(np.float16)


def _in_room(samples: np.ndarray, rng: np.random.Generator, far: bool) -> np.ndarray:
    response = draw_response(rng, _state["responses"], far)
    return oaconvolve(samples, response)[: len(samples)].astype(np.float32)


def variants(entry: dict) -> list[tuple[dict, np.ndarray, dict[str, np.ndarray]]]:
    """One voice -> per speed: its index entry, labels and features by variant; random only by the speaker's name."""
    rng = np.random.default_rng(zlib.crc32(entry["speaker"].encode()))
    frames, offset = entry["frames"], entry["sample_offset"]
    samples = _state["samples"][offset : offset + frames * HOP_SAMPLES].astype(np.float32) / SAMPLE_SCALE
    labels = np.asarray(_state["labels"][entry["label_offset"] : entry["label_offset"] + frames])
    common = dict(speaker=entry["speaker"], set=entry["set"], split=entry["split"])
    features = {
        "dry": _root_mel(samples, frames),
        "near": _root_mel(_in_room(samples, rng, far=False), frames),
    }
    if rng.random() < _state["far_share"]:
        features["far"] = _root_mel(_in_room(samples, rng, far=True), frames)
    if rng.random() < _state["codec_share"]:
        name = list(CODECS)[int(rng.integers(len(CODECS)))]
        peak = np.abs(samples).max() / 0.5
        features["codec"] = _root_mel(through_codec(samples / peak, name) * peak, frames)
    own = dict(common, speed=1.0, frames=frames, clips=entry["clips"], sample_offset=offset)
    result = [(own, labels, features)]
    up, down = SPEEDS[int(rng.integers(len(SPEEDS)))]
    changed = resample_poly(samples, up, down).astype(np.float32)
    count = len(changed) // HOP_SAMPLES
    # A frame has the label of the frame that contains its centre.
    moved = labels[np.minimum(((np.arange(count) + 0.5) * down / up).astype(int), frames - 1)]
    clips = [(int(a * up / down), min(count, int(b * up / down))) for a, b in entry["clips"]]
    result.append((dict(common, speed=down / up, frames=count, clips=clips), moved, {"dry": _root_mel(changed, count)}))
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--noise", type=Path, required=True)
    parser.add_argument("--codec-share", type=float, default=0.2)
    parser.add_argument("--far-share", type=float, default=0.25)
    parser.add_argument("--processes", type=int, default=2)
    args = parser.parse_args()
    entries = json.loads((args.work / "voices.json").read_text())
    index, row, label_row, started = [], 0, 0, time.time()
    with (
        workers(args.processes, _start, (args.work, args.noise, args.codec_share, args.far_share), "fork") as pool,
        replacing(*(args.work / name for name in ("mels.f16", "mels.labels.u8", "mels.json"))) as (
            mel_file,
            label_file,
            index_file,
        ),
    ):
        for count, versions in enumerate(pool.map(variants, entries, chunksize=8)):
            if count % 400 == 0:
                print(f"{count}/{len(entries)} voices, {time.time() - started:.0f} s", flush=True)
            for entry, labels, features in versions:
                rows = {}
                for name, values in features.items():
                    mel_file.write(values.tobytes())
                    rows[name] = row
                    row += len(values)
                label_file.write(labels.tobytes())
                index.append(dict(entry, rows=rows, label_row=label_row))
                label_row += len(labels)
        index_file.write(json.dumps(index).encode())
    print(f"{len(index)} voices and speeds, {row / 360_000:.1f} h of features, {time.time() - started:.0f} s")


if __name__ == "__main__":
    main()
