"""Step 2: noise recordings and generated music as features (square root of mel power, float16, 100 Hz): `noise.f16`,
`noise.json`."""

import argparse
import json
from functools import partial
from pathlib import Path

import numpy as np

from processes import workers

from .corpus import decode, read_noise_index
from .files import replacing
from .frontend import RATE_HZ, mel_power

MUSIC_SECONDS = 20
SCALES = ([0, 2, 3, 5, 7, 8, 10], [0, 2, 4, 5, 7, 9, 11])


def generated_music(rng: np.random.Generator) -> np.ndarray:
    """Chords of decaying harmonic notes with a noise beat, 20 s."""
    size = RATE_HZ * MUSIC_SECONDS
    out = np.zeros(size + 3 * RATE_HZ, np.float32)
    beat_seconds = 60 / rng.uniform(70, 150)
    root, scale = int(rng.integers(40, 60)), SCALES[int(rng.integers(2))]
    brightness, decay = rng.uniform(0.4, 0.9), rng.uniform(1, 6)
    at_seconds = 0.0
    while at_seconds < MUSIC_SECONDS:
        chord, start = int(rng.integers(7)), int(at_seconds * RATE_HZ)
        for note in range(int(rng.integers(1, 5))):
            hz = 440 * 2 ** ((root + scale[(chord + 2 * note) % 7] + 12 * int(rng.integers(3)) - 69) / 12)
            time = np.arange(int(RATE_HZ * rng.uniform(0.2, 2.5))) / RATE_HZ
            tone = sum(
                brightness**h
                / h
                * np.sin(2 * np.pi * hz * h * time + rng.uniform(0, 6))
                * np.exp(-decay * time * (1 + 0.2 * h))
                for h in range(1, 12)
                if hz * h < 7800
            )
            out[start : start + len(time)] += tone[: len(out) - start] * rng.uniform(0.3, 1)
        if rng.random() < 0.6:
            count = int(0.12 * RATE_HZ)
            hit = rng.standard_normal(count) * np.exp(-np.arange(count) / RATE_HZ * rng.uniform(20, 60))
            out[start : start + count] += hit * rng.uniform(0.2, 1.5)
        at_seconds += beat_seconds * rng.choice([0.5, 1, 1, 2])
    return out[:size]


def root_mel(samples: np.ndarray) -> np.ndarray | None:
    """Square root of mel power of a sound at a common level; None for less than half a second."""
    if len(samples) < RATE_HZ // 2:
        return None
    return np.sqrt(mel_power(samples / (np.sqrt((samples**2).mean()) + 1e-6) * 0.1)).astype(np.float16)


def recorded(folder: Path, file: str) -> np.ndarray | None:
    return root_mel(decode(folder / file))


def music(pieces: int, seed: int) -> list[np.ndarray]:
    """All pieces together, because they share a random stream."""
    rng = np.random.default_rng(seed)
    return [root_mel(generated_music(rng)) for _ in range(pieces)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--noise", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--music", type=int, default=40, help="pieces of generated music")
    parser.add_argument("--processes", type=int, default=2)
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    files = read_noise_index(args.noise, "noise")
    with workers(args.processes, method="fork") as pool:
        played = pool.submit(music, args.music, args.seed)
        sounds = [
            ("noise", file, mel)
            for file, mel in zip(files, pool.map(partial(recorded, args.noise), files, chunksize=8))
            if mel is not None
        ]
        sounds += [("music", f"generated-{piece}", mel) for piece, mel in enumerate(played.result())]
    index, row = [], 0
    for kind, name, mel in sounds:
        index.append(dict(row=row, frames=len(mel), kind=kind, file=name))
        row += len(mel)
    with replacing(args.work / "noise.f16", args.work / "noise.json") as (mel_file, index_file):
        np.concatenate([mel for _, _, mel in sounds]).tofile(mel_file)
        index_file.write(json.dumps(index).encode())
    print(f"{len(index)} noises, {row / 6000:.1f} min")


if __name__ == "__main__":
    main()
