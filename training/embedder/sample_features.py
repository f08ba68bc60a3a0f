"""``features.log_mels`` on a batch of tensors, on whatever device they are."""

from __future__ import annotations

import torch

from . import features


class LogMels(torch.nn.Module):
    """samples [B, N] in ±1 at 16 kHz -> natural-log band energies [B, 1 + (N - 400) // 160, 80]; no gradient."""

    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.from_numpy(features._WINDOW.copy()))
        self.register_buffer("bank", torch.from_numpy(features._BANK.copy()))

    @torch.no_grad()
    def forward(self, samples: torch.Tensor) -> torch.Tensor:
        frames = (samples * 32768.0).unfold(1, features.FRAME_LENGTH_SAMPLES, features.FRAME_SHIFT_SAMPLES)
        frames = frames - frames.mean(2, keepdim=True)
        before = torch.cat([frames[..., :1], frames[..., :-1]], 2)
        frames = (frames - features.PRE_EMPHASIS * before) * self.window
        spectrum = torch.fft.rfft(frames, features.FFT_POINTS)
        power = spectrum.real.square() + spectrum.imag.square()
        return (power @ self.bank).clamp_min(features.ENERGY_FLOOR).log()
