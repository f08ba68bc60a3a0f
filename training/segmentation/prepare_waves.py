"""Step 3b: samples of every voice and speed, for windows whose speech is mixed as waveforms (`waves.py`).

Writes `waves.i16`, the samples of all variants in frames of 160, and `waves.json`: for each entry of `mels.json`, in
its order, the first frame of every variant. Variants are "dry", "quiet" (without the recording's noise) and, for a
share of the voices, "codec".
"""

import argparse
import json
import time
import zlib
from pathlib import Path

import numpy as np
from scipy.signal import istft, resample_poly, stft

from processes import workers

from .corpus import CODECS, through_codec
from .files import replacing
from .frontend import FRAME_SAMPLES, HOP_SAMPLES
from .prepare_mels import SPEEDS
from .prepare_voices import SAMPLE_SCALE
from .voicing import FLOOR_PERCENTILE, FLOOR_SHARE, MIN_SHARE_LEFT, SILENCE

SMOOTHED_BINS = 5

_state: dict = {}


def _start(work: Path, codec_share: float) -> None:
    _state.update(samples=np.memmap(work / "voices.i16", "<i2", "r"), codec_share=codec_share)


def without_noise(samples: np.ndarray) -> np.ndarray:
    """Power spectral subtraction (Boll, 1979) of the spectrum of the quietest frames; same length."""
    _, _, spectrum = stft(samples, nperseg=FRAME_SAMPLES, noverlap=FRAME_SAMPLES - HOP_SAMPLES // 2)
    power = np.abs(spectrum) ** 2
    level = power.sum(0)
    audible = power[:, level > SILENCE * level.max()]
    if not audible.shape[1]:
        return samples
    floor = FLOOR_SHARE * np.percentile(audible, FLOOR_PERCENTILE, axis=1)
    # A percentile of single bins is far below their mean, because noise power is exponentially distributed.
    floor = np.convolve(floor, np.ones(SMOOTHED_BINS) / SMOOTHED_BINS, "same") / -np.log(1 - FLOOR_PERCENTILE / 100)
    smooth = np.apply_along_axis(np.convolve, 0, power, np.ones(SMOOTHED_BINS) / SMOOTHED_BINS, "same")
    gain = np.sqrt(np.maximum(1 - floor[:, None] / np.maximum(smooth, 1e-12), MIN_SHARE_LEFT))
    _, out = istft(spectrum * gain, nperseg=FRAME_SAMPLES, noverlap=FRAME_SAMPLES - HOP_SAMPLES // 2)
    return np.pad(out, (0, max(0, len(samples) - len(out))))[: len(samples)].astype(np.float32)


def variants(job: tuple[dict, int]) -> dict[str, np.ndarray]:
    """An entry of `mels.json` and the position of its voice's samples -> samples int16 of each variant, whole
    frames."""
    entry, offset = job
    rng = np.random.default_rng(zlib.crc32(f"{entry['speaker']} {entry['speed']} waves".encode()))
    up, down = next(((u, d) for u, d in SPEEDS if d / u == entry["speed"]), (1, 1))
    own_frames = entry["own_frames"]
    samples = _state["samples"][offset : offset + own_frames * HOP_SAMPLES].astype(np.float32) / SAMPLE_SCALE
    if up != down:
        samples = resample_poly(samples, up, down).astype(np.float32)
    samples = samples[: entry["frames"] * HOP_SAMPLES]
    found = {"dry": samples, "quiet": without_noise(samples)}
    if rng.random() < _state["codec_share"]:
        peak = np.abs(samples).max() / 0.5
        found["codec"] = through_codec(samples / peak, list(CODECS)[int(rng.integers(len(CODECS)))]) * peak
    return {
        name: np.clip(np.rint(values * SAMPLE_SCALE), -32767, 32767).astype("<i2") for name, values in found.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--codec-share", type=float, default=0.2)
    parser.add_argument("--processes", type=int, default=2)
    args = parser.parse_args()
    entries, started = json.loads((args.work / "mels.json").read_text()), time.time()
    own: dict[str, dict] = {item["speaker"]: item for item in entries if item["speed"] == 1.0}
    jobs = [
        (dict(item, own_frames=own[item["speaker"]]["frames"]), own[item["speaker"]]["sample_offset"])
        for item in entries
    ]
    index, row = [], 0
    with (
        workers(args.processes, _start, (args.work, args.codec_share), "fork") as pool,
        replacing(args.work / "waves.i16", args.work / "waves.json") as (sample_file, index_file),
    ):
        for count, found in enumerate(pool.map(variants, jobs, chunksize=8)):
            if count % 800 == 0:
                print(f"{count}/{len(jobs)} voices and speeds, {time.time() - started:.0f} s", flush=True)
            rows = {}
            for name, values in found.items():
                sample_file.write(values.tobytes())
                rows[name] = row
                row += len(values) // HOP_SAMPLES
            index.append(rows)
        index_file.write(json.dumps(index).encode())
    print(f"{row / 360_000:.1f} h of samples, {time.time() - started:.0f} s")


if __name__ == "__main__":
    main()
