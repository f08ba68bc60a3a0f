"""Room impulse responses: recorded or simulated ones of the noise folder, and random exponentially decaying ones."""

from pathlib import Path

import numpy as np

from .corpus import decode, read_noise_index
from .frontend import RATE_HZ

MAX_SAMPLES = 12_000
STORED_SHARE = 0.6


def load_responses(folder: Path) -> list[np.ndarray]:
    """Responses of the folder, cut to start 1 ms before their highest peak (so that labels stay in place)."""
    responses = [decode(folder / file) for file in read_noise_index(folder, "rir")]
    return [
        response[max(0, int(np.argmax(np.abs(response))) - 16) :][:MAX_SAMPLES]
        for response in responses
        if len(response)
    ]


def random_response(rng: np.random.Generator, far: bool) -> np.ndarray:
    """Direct sound, a few reflections and a decaying tail; direct to reverberant ratio -1..11 dB near, -9..3 dB far;
    RT60 0.1-0.9 s."""
    t60_seconds = rng.uniform(0.25, 0.9) if far else rng.uniform(0.1, 0.7)
    count = int(RATE_HZ * min(t60_seconds * 0.9 + 0.02, 0.7))
    tail = rng.standard_normal(count) * np.exp(-6.9 * np.arange(count) / RATE_HZ / t60_seconds)
    tail[: int(rng.uniform(0.001, 0.006) * RATE_HZ)] = 0
    dull = rng.uniform(0, 0.7)
    tail[1:] = (1 - dull) * tail[1:] + dull * tail[:-1]
    for _ in range(rng.integers(3, 9)):
        at = int(rng.uniform(0.001, 0.03) * RATE_HZ)
        if at < count:
            tail[at] += rng.choice([-1, 1]) * rng.uniform(1, 4) * np.exp(-at / 500)
    ratio_db = rng.uniform(-9, 3) if far else rng.uniform(-1, 11)
    tail /= np.sqrt((tail**2).sum()) * 10 ** (ratio_db / 20)
    tail[0] += 1
    return tail.astype(np.float32)[:MAX_SAMPLES]


def draw_response(rng: np.random.Generator, stored: list[np.ndarray], far: bool) -> np.ndarray:
    """A response of unit energy, float32."""
    if stored and rng.random() < STORED_SHARE:
        response = stored[int(rng.integers(len(stored)))]
    else:
        response = random_response(rng, far)
    return (response / np.sqrt((response**2).sum())).astype(np.float32)
