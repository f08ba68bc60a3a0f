"""Makes data/melpower_expected.npy, the reference for wasm/dsp/melpower.c.

It has the mel powers of data/fbank_samples.npy in double precision.

    pip install numpy scipy && python test/golden/make_melpower.py

The bands are those of training/segmentation/frontend.py, which the network was trained on.
"""

import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "training"))
from segmentation.frontend import FRAME_SAMPLES, HOP_SAMPLES, MEL, WINDOW  # noqa: E402


def main() -> None:
    samples = np.load(HERE / "data/fbank_samples.npy").astype(np.float64) / 32768
    frames = 1 + (len(samples) - FRAME_SAMPLES) // HOP_SAMPLES
    cut = np.stack([samples[HOP_SAMPLES * i : HOP_SAMPLES * i + FRAME_SAMPLES] for i in range(frames)])
    cut -= cut.mean(1, keepdims=True)
    spectrum = np.fft.rfft(cut * WINDOW.astype(np.float64))
    powers = ((np.abs(spectrum) ** 2) @ MEL.T.astype(np.float64)).astype(np.float32)
    np.save(HERE / "data/melpower_expected.npy", powers)
    print(powers.shape, powers.min(), powers.max())


if __name__ == "__main__":
    main()
