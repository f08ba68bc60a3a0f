"""Kaldi-compatible log-mel filterbank and the service's feature floor, in numpy.

The filterbank is that of WeSpeaker embedders (``wasm/dsp`` computes it in the service): 80 bands from 20 to 8000 Hz, 25
ms windows every 10 ms, Hamming, mean removed per frame, pre-emphasis 0.97, 512-point FFT, samples scaled to 16-bit
range, energies floored at the float32 epsilon, no dither, only complete frames (``snip_edges``).
"""

from __future__ import annotations

import numpy as np
import scipy.fft

SAMPLE_RATE = 16_000
FRAME_SHIFT_SAMPLES = 160
FRAME_LENGTH_SAMPLES = 400
FFT_POINTS = 512
BANDS = 80
PRE_EMPHASIS = 0.97
ENERGY_FLOOR = 1.1920929e-7
FEATURE_FLOOR_NATS = 10.0
FEATURE_FLOOR_PERCENTILE = 95.0


def _mel(hertz: np.ndarray | float) -> np.ndarray:
    return 1127.0 * np.log1p(np.asarray(hertz, np.float64) / 700.0)


def _bank() -> np.ndarray:
    low, high = _mel(20.0), _mel(8000.0)
    width = (high - low) / (BANDS + 1)
    bins = _mel(np.arange(FFT_POINTS // 2) * SAMPLE_RATE / FFT_POINTS)
    left = low + np.arange(BANDS)[:, None] * width
    rising, falling = (bins - left) / width, (left + 2 * width - bins) / width
    weights = np.maximum(0, np.minimum(rising, falling))
    return np.concatenate([weights, np.zeros((BANDS, 1))], 1).T.astype(np.float32).copy()


_BANK = _bank()
_WINDOW = (0.54 - 0.46 * np.cos(2 * np.pi * np.arange(FRAME_LENGTH_SAMPLES) / (FRAME_LENGTH_SAMPLES - 1))).astype(
    np.float32
)


def log_mels(samples: np.ndarray) -> np.ndarray:
    """[n] samples in ±1 at 16 kHz -> [T, 80] natural-log band energies, no mean subtraction."""
    scaled = np.ascontiguousarray(samples, np.float32) * 32768.0
    if len(scaled) < FRAME_LENGTH_SAMPLES:
        scaled = np.pad(scaled, (0, FRAME_LENGTH_SAMPLES - len(scaled)))
    count = 1 + (len(scaled) - FRAME_LENGTH_SAMPLES) // FRAME_SHIFT_SAMPLES
    stride = scaled.strides[0]
    frames = np.lib.stride_tricks.as_strided(
        scaled, (count, FRAME_LENGTH_SAMPLES), (FRAME_SHIFT_SAMPLES * stride, stride)
    ).copy()
    frames -= frames.mean(1, keepdims=True)
    frames[:, 1:] -= PRE_EMPHASIS * frames[:, :-1]
    frames[:, 0] *= 1 - PRE_EMPHASIS
    frames *= _WINDOW
    spectrum = scipy.fft.rfft(frames, FFT_POINTS, axis=1)
    power = spectrum.real**2 + spectrum.imag**2
    return np.log(np.maximum(power @ _BANK, ENERGY_FLOOR))


def raise_floor(mels: np.ndarray) -> np.ndarray:
    """Clamp [T, 80] log-mels from below, 10 nats under their loudest frames: the rule of
    `src/diarization/embedder.ts`."""
    peaks = np.sort(mels.max(1))
    loud = peaks[int(FEATURE_FLOOR_PERCENTILE / 100 * (len(peaks) - 1))]
    return np.maximum(mels, loud - FEATURE_FLOOR_NATS)
