"""Computes the windows that `waves.py` has planned: samples of the tracks in their rooms, mixed, as the network's
input."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .bank import WHITE_SECONDS
from .frontend import BAND_HZ, BANDS, FRAME_SAMPLES, HOP_SAMPLES, MEL, RATE_HZ, WINDOW, mel_power
from .model import features_of
from .prepare_voices import SAMPLE_SCALE
from .rooms import load_responses

ROOMS, MOUTHS = 240, 6
"""Number of random rooms, and of speaker positions in each."""
RESPONSE_SAMPLES = 16_000
OCTAVE_BANDS_HZ = (0, 350, 700, 1400, 2800, 5600)
ROOM_SEED = 5
SECONDS_60_DB = (0.15, 1.2)
TRACKS_AT_ONCE = {"cpu": 1, "cuda": 128}
BLOCK_FRAMES = 200
"""Tracks are processed in blocks of 2 s, without silent ones: a third of the time of one transform of all 11 s."""
GUARD_SAMPLES = 2000
"""Margin around the response: equalisers have zero phase, so their output begins before their input."""
BLOCK_POINTS = 54_000
"""Length of the transforms: a block, its reverberation and the guards, rounded up to 2^4 3^3 5^3."""


def drawn_responses() -> np.ndarray:
    """Reverberation of random rooms, without the direct sound, energy 1: float32 [ROOMS * MOUTHS, samples].

    Noise that decays in every octave at a different rate (Jot and Chaigne, 1991), after a few reflections. The
    positions of a room differ in the noise and the reflections.
    """
    rng = np.random.default_rng(ROOM_SEED)
    hertz, seconds = np.fft.rfftfreq(RESPONSE_SAMPLES, 1 / RATE_HZ), np.arange(RESPONSE_SAMPLES) / RATE_HZ
    edges = [*OCTAVE_BANDS_HZ, RATE_HZ]
    out = np.zeros((ROOMS, MOUTHS, RESPONSE_SAMPLES), np.float32)
    for room in out:
        t60 = (
            np.exp(rng.uniform(*np.log(SECONDS_60_DB)))
            * np.exp(-rng.uniform(0, 0.35) * np.arange(-2, 4))
            * np.exp(rng.normal(0, 0.1, 6))
        )
        gain_db = np.cumsum(rng.normal(-0.5, 1.5, 6))
        for response in room:
            spectrum = np.fft.rfft(rng.standard_normal(RESPONSE_SAMPLES))
            for low, high, fall, db in zip(edges, edges[1:], t60, gain_db):
                band = np.fft.irfft(spectrum * ((hertz >= low) & (hertz < high)))
                response += band * np.exp(-6.9 * seconds / max(fall, 0.05)) * 10 ** (db / 20)
            begin = int(rng.uniform(0.001, 0.012) * RATE_HZ)
            response[:begin] = 0
            peak = np.abs(response).max()
            for _ in range(int(rng.integers(2, 8))):
                response[int(rng.uniform(0.001, 0.04) * RATE_HZ)] += rng.choice([-1, 1]) * peak * rng.uniform(0.5, 3)
            response /= np.sqrt((response**2).sum())
    return out.reshape(-1, RESPONSE_SAMPLES)


def _bands_to_bins(points: int) -> tuple[Tensor, Tensor]:
    """For every bin of a transform the band above it, and its interpolation weight between the bands below and
    above."""
    hertz, centres = torch.linspace(0, RATE_HZ / 2, points // 2 + 1), torch.from_numpy(BAND_HZ)
    right = torch.searchsorted(centres, hertz).clamp(1, BANDS - 1)
    return right, ((hertz - centres[right - 1]) / (centres[right] - centres[right - 1])).clamp(0, 1)


class Renderer(nn.Module):
    """Computes batches of plans; keeps all samples and responses on its device."""

    def __init__(self, work: Path, noise: Path):
        super().__init__()
        drawn, stored = drawn_responses(), load_responses(noise)
        responses = np.zeros((len(drawn) + len(stored), RESPONSE_SAMPLES), np.float32)
        responses[: len(drawn)] = drawn
        for row, response in zip(responses[len(drawn) :], stored):
            row[: len(response)] = response / np.sqrt((response**2).sum())
        path = work / "waves.i16"
        samples = torch.from_file(str(path), shared=False, size=path.stat().st_size // 2, dtype=torch.int16)
        right, weight = _bands_to_bins(BLOCK_POINTS)
        white = mel_power(np.random.default_rng(1).standard_normal(RATE_HZ * WHITE_SECONDS).astype(np.float32))
        for name, value in dict(
            samples=samples.reshape(-1, HOP_SAMPLES),
            responses=torch.from_numpy(responses),
            right=right,
            weight=weight,
            window=torch.from_numpy(WINDOW),
            mel=torch.from_numpy(MEL.T.copy()),
            white=torch.from_numpy(white / white.mean(0)),
        ).items():
            self.register_buffer(name, value, persistent=False)

    def _filters(self, equaliser: Tensor, response: Tensor, share: Tensor, echo: Tensor) -> Tensor:
        """Filters of N tracks, as in `Plan`, delayed by the guard: spectra [N, BLOCK_POINTS / 2 + 1]."""
        impulse = torch.zeros((len(response), BLOCK_POINTS), device=response.device)
        ringing = impulse[:, GUARD_SAMPLES : GUARD_SAMPLES + RESPONSE_SAMPLES]
        torch.mul(self.responses[response.long().clamp(min=0)], share[:, 1:] * (response >= 0)[:, None], out=ringing)
        ringing[:, 0] += share[:, 0]
        for track in torch.nonzero(echo[:, 1])[:, 0].tolist():
            late = int(echo[track, 0])
            ringing[track, late:] += echo[track, 1] * ringing[track, :-late]
        decibels = equaliser.float()
        low, high = decibels[:, self.right - 1], decibels[:, self.right]
        return torch.fft.rfft(impulse) * torch.exp2(torch.lerp(low, high, self.weight) * (math.log2(10) / 20))

    def _blocks(self, source: Tensor, gain: Tensor, *through: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Spectra [M, BLOCK_POINTS / 2 + 1] of the blocks with sound of N tracks, as in `Plan`, with the track and the
        block number of each."""
        spare = -source.shape[1] % BLOCK_FRAMES
        rows = F.pad(source.long(), (0, spare), value=-1).unflatten(1, (-1, BLOCK_FRAMES))
        level = F.interpolate(gain.float()[:, None], scale_factor=HOP_SAMPLES, mode="linear")[:, 0]
        level = F.pad(level, (0, spare * HOP_SAMPLES)).unflatten(1, (-1, BLOCK_FRAMES * HOP_SAMPLES))
        track, block = torch.nonzero((rows >= 0).any(2), as_tuple=True)
        rows = rows[track, block]
        samples = self.samples[rows.clamp(min=0)].float() * ((rows >= 0)[..., None] / SAMPLE_SCALE)
        spectrum = torch.fft.rfft(samples.flatten(1) * level[track, block], BLOCK_POINTS)
        return spectrum * self._filters(*through)[track], track, block

    def speech(self, source: Tensor, *rest: Tensor) -> Tensor:
        """Tracks of the batch, as in `Plan` -> mel power [B, F, 64] of their mixture."""
        batch, _, frames = source.shape
        window, track = torch.nonzero((source >= 0).any(2), as_tuple=True)
        count, at_once = -(-frames // BLOCK_FRAMES), TRACKS_AT_ONCE[source.device.type]
        mixed = torch.zeros((batch * count, BLOCK_POINTS // 2 + 1, 2), device=source.device)
        for start in range(0, len(window), at_once):
            some = window[start : start + at_once], track[start : start + at_once]
            spectra, which, block = self._blocks(*(part[some] for part in (source, *rest)))
            mixed.index_add_(0, some[0][which] * count + block, torch.view_as_real(spectra))
        blocks = torch.fft.irfft(torch.view_as_complex(mixed), BLOCK_POINTS).unflatten(0, (batch, count))
        block_samples = BLOCK_FRAMES * HOP_SAMPLES
        added = torch.zeros((batch, (count - 1) * block_samples + BLOCK_POINTS), device=source.device)
        for number in range(count):
            added[:, number * block_samples :][:, :BLOCK_POINTS] += blocks[:, number]
        samples = added[:, GUARD_SAMPLES : GUARD_SAMPLES + frames * HOP_SAMPLES]
        lead = (FRAME_SAMPLES - HOP_SAMPLES) // 2
        pieces = F.pad(samples, (lead, FRAME_SAMPLES - HOP_SAMPLES - lead)).unfold(1, FRAME_SAMPLES, HOP_SAMPLES)
        spectrum = torch.fft.rfft((pieces - pieces.mean(2, keepdim=True)) * self.window)
        return (spectrum.real.square() + spectrum.imag.square()) @ self.mel

    def _flutter(self, batch: int, frames: int) -> Tensor:
        """Mel power of white noise, 1 on average: [B, F, 64]."""
        start = torch.randint(len(self.white) - frames, (batch, 1), device=self.white.device)
        return self.white[start + torch.arange(frames, device=self.white.device)]

    @torch.no_grad()
    def forward(self, plan: Sequence[Tensor]) -> Tensor:
        """A batch of plans without their labels -> features [B, F, 64]."""
        *tracks, noise, channel, hiss, has_sound = plan
        power = self.speech(*tracks) + noise.float().square()
        power = power * channel.float().square()[:, None]
        mean = torch.where(hiss > 0, power.mean((1, 2)), 1.0)
        power = (power + self._flutter(*power.shape[:2]) * (hiss.abs() * mean)[:, None, None]) * has_sound[:, :, None]
        return features_of(power.transpose(1, 2)).transpose(1, 2)
