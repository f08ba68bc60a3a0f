"""Mel-power front end shared by preparation, simulation and export.

Frames are 25 ms (less their mean, periodic Hann) every 10 ms; frame i is centred on sample 160 i + 80. The network's
input is the logarithm of the mel power divided by the window's mean power, floored at about -70 dB, less the mean over
time of every band: it does not depend on gain or a fixed equaliser.
"""

import numpy as np
import scipy.fft

RATE_HZ = 16_000
FRAME_SAMPLES = 400
HOP_SAMPLES = 160
FRAMES_PER_SECOND = RATE_HZ // HOP_SAMPLES
BANDS = 64
LOW_HZ, HIGH_HZ = 50.0, 7900.0
MIN_HALF_WIDTH_HZ = 42.0
POWER_FLOOR = 1e-7
FEATURE_SCALE = 0.4

WINDOW = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(FRAME_SAMPLES) / FRAME_SAMPLES)).astype(np.float32)


def _to_mel(hz: np.ndarray | float) -> np.ndarray:
    return 2595 * np.log10(1 + np.asarray(hz) / 700)


def _to_hz(mel: np.ndarray) -> np.ndarray:
    return 700 * (10 ** (mel / 2595) - 1)


_EDGES_HZ = _to_hz(np.linspace(_to_mel(LOW_HZ), _to_mel(HIGH_HZ), BANDS + 2))
BAND_HZ = _EDGES_HZ[1:-1].astype(np.float32)
"""Centre of every band in Hz, [64]."""


def _mel_matrix() -> np.ndarray:
    """Triangles [64, 201], at least 42 Hz wide on either side so that the low bands include a DFT bin."""
    bins = np.arange(FRAME_SAMPLES // 2 + 1) * RATE_HZ / FRAME_SAMPLES
    matrix = np.zeros((BANDS, len(bins)))
    for band in range(BANDS):
        centre = _EDGES_HZ[band + 1]
        left = min(_EDGES_HZ[band], centre - MIN_HALF_WIDTH_HZ)
        right = max(_EDGES_HZ[band + 2], centre + MIN_HALF_WIDTH_HZ)
        matrix[band] = np.clip(np.minimum((bins - left) / (centre - left), (right - bins) / (right - centre)), 0, None)
    return matrix.astype(np.float32)


MEL = _mel_matrix()
BINS_PER_BAND = np.maximum(1, MEL.sum(1) ** 2 / (MEL**2).sum(1)).astype(np.float32)
"""Effective number of independent DFT bins in a band: how much the cross term of two sources averages out, [64]."""


def mel_power(samples: np.ndarray, frames: int | None = None) -> np.ndarray:
    """Mono samples in +-1 -> mel power [frames, 64], frames = len(samples) // 160 unless given."""
    frames = frames or len(samples) // HOP_SAMPLES
    padded = np.zeros(frames * HOP_SAMPLES + FRAME_SAMPLES + 240, np.float32)
    lead = (FRAME_SAMPLES - HOP_SAMPLES) // 2
    count = min(len(samples), frames * HOP_SAMPLES + FRAME_SAMPLES - lead)
    padded[lead : lead + count] = samples[:count]
    view = np.lib.stride_tricks.as_strided(padded, (frames, FRAME_SAMPLES), (HOP_SAMPLES * 4, 4))
    # The window would spread an offset into the lowest bands, where it may exceed all speech.
    spectrum = scipy.fft.rfft((view - view.mean(1, keepdims=True)) * WINDOW, axis=1)
    return (spectrum.real**2 + spectrum.imag**2) @ MEL.T


def log_features(power: np.ndarray) -> np.ndarray:
    """Mel power of one window [frames, 64] -> the network's input [frames, 64], float32."""
    logs = np.log(power * (1 / (power.mean() + POWER_FLOOR)) + POWER_FLOOR)
    return ((logs - logs.mean(0)) * FEATURE_SCALE).astype(np.float32)
