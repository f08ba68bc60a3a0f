"""The embedder: a small two-dimensional front end, dilated residual blocks, attentive statistics.

Sources: time-delay networks and statistics pooling (Snyder et al., "X-vectors", ICASSP 2018), grouped residual blocks
(Desplanques et al., "ECAPA-TDNN", Interspeech 2020), a convolutional front end (Thienpondt et al.,
"Integrating Frequency Translational Invariance in TDNNs", Interspeech 2021). There is no squeeze-excitation: nothing before
the pooling looks further than the receptive field, so that the frames of one speaker do not depend on who else speaks in
the stretch, and the trunk can be run once per stretch and pooled once per speaker.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

BANDS = 80
CHANNELS = 256
EMBEDDING_SIZE = 192
FRAME_CHANNELS = 512
VARIANCE_FLOOR = 1e-5


class FrontEnd(nn.Module):
    """[B, 80, T] -> [B, 10 * channels, ceil(T / 2)]."""

    def __init__(self, channels: int):
        super().__init__()
        self.conv1 = nn.Conv2d(1, channels, 3, stride=2, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, stride=(2, 1), padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)
        self.conv3 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm3 = nn.BatchNorm2d(channels)
        self.conv4 = nn.Conv2d(channels, channels, 3, stride=(2, 1), padding=1, bias=False)
        self.norm4 = nn.BatchNorm2d(channels)

    def forward(self, x):
        x = F.relu(self.norm1(self.conv1(x.unsqueeze(1))))
        x = F.relu(self.norm2(self.conv2(x)))
        x = F.relu(x + self.norm3(self.conv3(x)))
        return F.relu(self.norm4(self.conv4(x))).flatten(1, 2)


def _convolution(channels_in: int, channels: int, width: int = 1, **options) -> nn.Conv2d:
    """A convolution over time of [B, channels, 1, T]: two-dimensional, because only those know the channels-last layout, in
    which training is half as fast again on a CPU."""
    return nn.Conv2d(channels_in, channels, (1, width), **options)


class Block(nn.Module):
    """Residual 1x1 - grouped dilated k3 - 1x1."""

    def __init__(self, channels: int, dilation: int, groups: int = 8):
        super().__init__()
        self.conv1 = _convolution(channels, channels, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = _convolution(
            channels, channels, 3, padding=(0, dilation), dilation=(1, dilation), groups=groups, bias=False
        )
        self.norm2 = nn.BatchNorm2d(channels)
        self.conv3 = _convolution(channels, channels, bias=False)
        self.norm3 = nn.BatchNorm2d(channels)

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        y = F.relu(self.norm2(self.conv2(y)))
        return F.relu(x + self.norm3(self.conv3(y)))


class Trunk(nn.Module):
    """feats [B, T, 80] -> frames, logits, both [B, ceil(T / 2), 512]: what is computed once per stretch of audio."""

    def __init__(self, channels: int = CHANNELS, front_channels: int = 16, dilations: tuple[int, ...] = (1, 2, 3, 4, 1, 2)):
        super().__init__()
        self.front = FrontEnd(front_channels)
        self.stem = _convolution(10 * front_channels, channels, 3, padding=(0, 1), bias=False)
        self.stem_norm = nn.BatchNorm2d(channels)
        self.blocks = nn.ModuleList([Block(channels, d) for d in dilations])
        self.expand = _convolution(channels, FRAME_CHANNELS, bias=False)
        self.expand_norm = nn.BatchNorm2d(FRAME_CHANNELS)
        self.attention1 = _convolution(FRAME_CHANNELS, 96)
        self.attention2 = _convolution(96, FRAME_CHANNELS)

    def forward(self, feats):
        x = self.front(feats.transpose(1, 2)).unsqueeze(2)
        if self.training:
            x = x.contiguous(memory_format=torch.channels_last)
        x = F.relu(self.stem_norm(self.stem(x)))
        for block in self.blocks:
            x = block(x)
        frames = F.relu(self.expand_norm(self.expand(x)))
        logits = self.attention2(torch.tanh(self.attention1(frames)))
        return frames.squeeze(2).transpose(1, 2), logits.squeeze(2).transpose(1, 2)


class Head(nn.Module):
    """pooled [B, 1024] (weighted means, then standard deviations) -> embs [B, 192]."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(2 * FRAME_CHANNELS)
        self.linear = nn.Linear(2 * FRAME_CHANNELS, EMBEDDING_SIZE, bias=False)
        self.out_norm = nn.BatchNorm1d(EMBEDDING_SIZE)

    def forward(self, pooled):
        return self.out_norm(self.linear(self.norm(pooled)))


class Embedder(nn.Module):
    """feats [B, T, 80] -> embs [B, 192], the whole model with attentive statistics between trunk and head."""

    def __init__(self, channels: int = CHANNELS):
        super().__init__()
        self.trunk = Trunk(channels)
        self.head = Head()

    def forward(self, feats):
        frames, logits = self.trunk(feats)
        weights = torch.softmax(logits.float(), 1).to(frames.dtype)
        weighted = weights * frames
        mean = weighted.sum(1, dtype=torch.float32)
        variance = (weighted * frames).sum(1, dtype=torch.float32) - mean * mean
        return self.head(torch.cat([mean, torch.sqrt(variance.clamp(min=VARIANCE_FLOOR))], 1))


def flops_per_second(model: nn.Module, frames: int = 1000) -> float:
    """Multiply-adds count as two; per second of audio at 100 frames a second."""
    total = 0

    def count(module, _inputs, output):
        nonlocal total
        positions = output.shape[2:].numel() if output.ndim > 2 else 1
        total += 2 * module.weight.numel() * positions

    hooks = [m.register_forward_hook(count) for m in model.modules() if isinstance(m, (nn.Conv2d, nn.Linear))]
    training = model.training
    model.eval()
    with torch.no_grad():
        model(torch.randn(1, frames, BANDS))
    for hook in hooks:
        hook.remove()
    model.train(training)
    return total / (frames / 100)
