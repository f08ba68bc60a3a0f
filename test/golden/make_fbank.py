"""Makes data/fbank_*.npy: a signal and its filterbank by kaldi-native-fbank, the reference for wasm/dsp/filterbank.c.

    pip install numpy kaldi-native-fbank==1.22.5 && python test/golden/make_fbank.py

The signal (1 s at 16 kHz, stored as int16) has difficult cases for a filterbank: digital silence, a constant offset,
faint hiss, harmonics that glide as in a voice, full-scale noise, a click.
"""

from pathlib import Path

import kaldi_native_fbank as knf
import numpy as np

DATA = Path(__file__).parent / "data"
RATE = 16000


def signal() -> np.ndarray:
    rng = np.random.default_rng(7)
    t = np.arange(RATE) / RATE
    x = np.zeros(RATE)
    pitch = 2 * np.pi * np.cumsum(110 + 40 * np.sin(2 * np.pi * 3 * t)) / RATE
    voice = sum(np.sin(k * pitch) / k for k in range(1, 30))
    x[2400:9600] = 0.2 * voice[2400:9600]
    x[9600:11200] = 0.05  # a constant: the mean is removed
    x[11200:13600] = rng.uniform(-1, 1, 2400)
    x[13600:] = rng.normal(0, 3e-4, 2400)
    x[14800] = 0.9
    return np.clip(np.round(x * 32767), -32768, 32767).astype(np.int16)


def main() -> None:
    samples = signal()
    options = knf.FbankOptions()
    options.frame_opts.samp_freq = RATE
    options.frame_opts.dither = 0
    options.frame_opts.window_type = "hamming"
    options.frame_opts.snip_edges = True
    options.mel_opts.num_bins = 80
    options.mel_opts.low_freq = 20
    options.mel_opts.high_freq = 8000
    options.energy_floor = 0
    bank = knf.OnlineFbank(options)
    bank.accept_waveform(RATE, samples.astype(np.float32).tolist())
    bank.input_finished()
    frames = np.stack([bank.get_frame(i) for i in range(bank.num_frames_ready)]).astype(np.float32)
    np.save(DATA / "fbank_samples.npy", samples)
    np.save(DATA / "fbank_expected.npy", frames)
    print(samples.shape, frames.shape, frames.min(), frames.max())


if __name__ == "__main__":
    main()
