"""The embedder's network: CAM++ at half of its frame rate, for the time limits of a Worker.

Source: Wang et al., "CAM++: A Fast and Efficient Network for Speaker Verification Using Context-Aware Masking",
arXiv:2303.00332. Two changes: the two-dimensional front end halves the frame rate (25 frames a second instead of 50),
and the dense layers have no dilation, where CAM++ has one of 2 in most: their context in time is the same. Frames are
rows, [B, T, C]. Every convolution over time is one product over concatenated frames, as in 8 bits
(`quantisation/trunk.py`).

The trunk runs once over a stretch of audio. The head turns statistics of any of its frames into an embedding.
"""

from __future__ import annotations

import copy

import torch
import torch.nn.functional as F
from torch import nn

BANDS = 80
EMBEDDING_SIZE = 192
FRAME_CHANNELS = 512
FRAME_STRIDE = 4
FRONT_CHANNELS = 32
GROWTH = 32
BOTTLENECK = 128
BLOCK_LAYERS = (12, 24, 16)
SEGMENT_FRAMES = 50  # two seconds
VARIANCE_FLOOR = 1e-5


class Norm(nn.BatchNorm1d):
    """Batch normalisation of rows, [..., C]."""

    def forward(self, x):
        return super().forward(x.reshape(-1, x.shape[-1])).reshape(x.shape)


class Residual(nn.Module):
    """[B, C, F, T] -> [B, C, F / stride, T], two convolutions over bands and frames."""

    def __init__(self, channels: int, stride: int):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, stride=(stride, 1), padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)
        self.shortcut, self.shortcut_norm = nn.Identity(), nn.Identity()
        if stride != 1:
            self.shortcut = nn.Conv2d(channels, channels, 1, stride=(stride, 1), bias=False)
            self.shortcut_norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.shortcut_norm(self.shortcut(x)))


class FrontEnd(nn.Module):
    """[B, T, 80] -> [B, ceil(T / 2), 320]: ten bands of 32 channels, in channel-major order."""

    def __init__(self):
        super().__init__()
        channels = FRONT_CHANNELS
        self.conv1 = nn.Conv2d(1, channels, 3, stride=(1, 2), padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.blocks = nn.ModuleList([Residual(channels, stride) for stride in (2, 1, 2, 1)])
        self.conv2 = nn.Conv2d(channels, channels, 3, stride=(2, 1), padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)

    def forward(self, feats):
        x = F.relu(self.norm1(self.conv1(feats.transpose(1, 2).unsqueeze(1))))
        for block in self.blocks:
            x = block(x)
        return F.relu(self.norm2(self.conv2(x))).flatten(1, 2).transpose(1, 2)


def beside(x: torch.Tensor, width: int, stride: int = 1) -> torch.Tensor:
    """[B, T, C] -> [B, ceil(T / stride), width * C]: every frame concatenated with its neighbours, earliest first."""
    padded = F.pad(x, (0, 0, width // 2, width // 2))
    frames = x.shape[1]
    return torch.cat([padded[:, tap : tap + frames : stride] for tap in range(width)], 2)


class DenseLayer(nn.Module):
    """The channels that a dense layer adds: [B, T, C] -> [B, T, GROWTH].

    A local convolution, gated by the mean of the stretch plus that of two seconds.
    """

    def __init__(self, channels: int):
        super().__init__()
        self.norm = Norm(channels)
        self.linear1 = nn.Linear(channels, BOTTLENECK, bias=False)
        self.norm1 = Norm(BOTTLENECK)
        self.local = nn.Linear(3 * BOTTLENECK, GROWTH, bias=False)
        self.context1 = nn.Linear(BOTTLENECK, BOTTLENECK // 2)
        self.context2 = nn.Linear(BOTTLENECK // 2, GROWTH)

    def forward(self, x, averages, segment_of):
        x = F.relu(self.norm1(self.linear1(F.relu(self.norm(x)))))
        gate = torch.sigmoid(self.context2(F.relu(self.context1(averages.to(x.dtype) @ x))))
        return self.local(beside(x, 3)) * gate[:, segment_of]


def averaging(frames: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights [segments, T] of the mean of the stretch plus that of each segment, and the segment of each frame [T]."""
    segment_of = torch.arange(frames, device=device) // SEGMENT_FRAMES
    one = (torch.arange((frames - 1) // SEGMENT_FRAMES + 1, device=device)[:, None] == segment_of).float()
    return one / one.sum(1, keepdim=True) + 1.0 / frames, segment_of


class Trunk(nn.Module):
    """feats [B, T, 80] -> frames [B, ceil(ceil(T / 2) / 2), 512]."""

    def __init__(self):
        super().__init__()
        self.front = FrontEnd()
        self.stem = nn.Linear(5 * 10 * FRONT_CHANNELS, 128, bias=False)
        self.stem_norm = Norm(128)
        self.blocks = nn.ModuleList()
        self.transit_norms = nn.ModuleList()
        self.transits = nn.ModuleList()
        channels = 128
        for layers in BLOCK_LAYERS:
            self.blocks.append(nn.ModuleList([DenseLayer(channels + i * GROWTH) for i in range(layers)]))
            channels += layers * GROWTH
            self.transit_norms.append(Norm(channels))
            self.transits.append(nn.Linear(channels, channels // 2, bias=False))
            channels //= 2
        self.out_norm = Norm(channels)

    def forward(self, feats):
        x = F.relu(self.stem_norm(self.stem(beside(self.front(feats), 5, stride=2))))
        averages, segment_of = averaging(x.shape[1], x.device)
        for block, norm, transit in zip(self.blocks, self.transit_norms, self.transits):
            for layer in block:
                x = torch.cat([x, layer(x, averages, segment_of)], 2)
            x = transit(F.relu(norm(x)))
        return F.relu(self.out_norm(x))


class Embedder(nn.Module):
    """feats [B, T, 80] -> embs [B, 192]; `pooled` uses only the frames of each row's mask."""

    def __init__(self):
        super().__init__()
        self.trunk = Trunk()
        self.head = nn.Linear(2 * FRAME_CHANNELS, EMBEDDING_SIZE)

    def forward(self, feats):
        frames = self.trunk(feats)
        return self.pooled(frames, torch.ones(frames.shape[:2], device=frames.device))

    def pooled(self, frames, weights):
        """frames [B, T, 512], weights [B, T] or [B, K, T] -> embeddings [B, 192] or [B, K, 192]."""
        frames = frames.float()
        many = weights if weights.ndim == 3 else weights[:, None]
        share = many / many.sum(2, keepdim=True)
        mean = share @ frames
        variance = share @ (frames * frames) - mean * mean
        statistics = torch.cat([mean, torch.sqrt(variance.clamp(min=VARIANCE_FLOOR))], 2)
        embeddings = self.head(statistics)
        return embeddings if weights.ndim == 3 else embeddings[:, 0]


def _affine(norm: nn.modules.batchnorm._BatchNorm) -> tuple[torch.Tensor, torch.Tensor]:
    """Gain and offset of a batch normalisation in evaluation mode."""
    gain = norm.weight / torch.sqrt(norm.running_var + norm.eps)
    return gain, norm.bias - norm.running_mean * gain


class Affine(nn.Module):
    """A gain and an offset per channel, [..., C]."""

    def __init__(self, norm: Norm):
        super().__init__()
        self.gain, self.offset = (nn.Parameter(value.detach().clone()) for value in _affine(norm))

    def forward(self, x):
        return x * self.gain + self.offset


def folded(model: Embedder) -> Embedder:
    """A copy in evaluation mode without batch normalisation.

    It becomes part of the previous weights, or a gain and an offset if a ReLU is between.
    """
    model = copy.deepcopy(model).eval()

    def fold(owner: nn.Module, layer: str, norm: str) -> None:
        old, (gain, offset) = getattr(owner, layer), _affine(getattr(owner, norm))
        old.weight = nn.Parameter((old.weight * gain.reshape(-1, *[1] * (old.weight.ndim - 1))).detach())
        old.bias = nn.Parameter(offset.detach())
        setattr(owner, norm, nn.Identity())

    trunk = model.trunk
    for owner in (trunk.front, *trunk.front.blocks):
        fold(owner, "conv1", "norm1")
        fold(owner, "conv2", "norm2")
        if isinstance(getattr(owner, "shortcut", None), nn.Conv2d):
            fold(owner, "shortcut", "shortcut_norm")
    fold(trunk, "stem", "stem_norm")
    for layer in (layer for block in trunk.blocks for layer in block):
        layer.norm = Affine(layer.norm)
        fold(layer, "linear1", "norm1")
    trunk.transit_norms = nn.ModuleList([Affine(norm) for norm in trunk.transit_norms])
    gain, offset = _affine(trunk.out_norm)
    last = trunk.transits[-1]
    last.weight, last.bias = nn.Parameter((last.weight * gain[:, None]).detach()), nn.Parameter(offset.detach())
    trunk.out_norm = nn.Identity()
    return model


def from_campplus(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The checkpoint of CAM++ (`teacher.py`) as the state of an `Embedder`."""
    out: dict[str, torch.Tensor] = {}

    def norm(target: str, source: str) -> None:
        for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
            out[f"{target}.{name}"] = state[f"{source}.{name}"]

    def over_frames(source: str) -> torch.Tensor:
        """[out, in, taps] -> [out, taps * in]"""
        return state[f"{source}.weight"].transpose(1, 2).flatten(1)

    for index in (1, 2):
        out[f"trunk.front.conv{index}.weight"] = state[f"head.conv{index}.weight"]
        norm(f"trunk.front.norm{index}", f"head.bn{index}")
    for number, source in enumerate(("head.layer1.0", "head.layer1.1", "head.layer2.0", "head.layer2.1")):
        target = f"trunk.front.blocks.{number}"
        for index in (1, 2):
            out[f"{target}.conv{index}.weight"] = state[f"{source}.conv{index}.weight"]
            norm(f"{target}.norm{index}", f"{source}.bn{index}")
        if f"{source}.shortcut.0.weight" in state:
            out[f"{target}.shortcut.weight"] = state[f"{source}.shortcut.0.weight"]
            norm(f"{target}.shortcut_norm", f"{source}.shortcut.1")
    out["trunk.stem.weight"] = over_frames("xvector.tdnn.linear")
    norm("trunk.stem_norm", "xvector.tdnn.nonlinear.batchnorm")
    for block, layers in enumerate(BLOCK_LAYERS):
        for layer in range(layers):
            source, target = f"xvector.block{block + 1}.tdnnd{layer + 1}", f"trunk.blocks.{block}.{layer}"
            norm(f"{target}.norm", f"{source}.nonlinear1.batchnorm")
            norm(f"{target}.norm1", f"{source}.nonlinear2.batchnorm")
            out[f"{target}.linear1.weight"] = state[f"{source}.linear1.weight"][:, :, 0]
            out[f"{target}.local.weight"] = over_frames(f"{source}.cam_layer.linear_local")
            for name in ("1", "2"):
                out[f"{target}.context{name}.weight"] = state[f"{source}.cam_layer.linear{name}.weight"][:, :, 0]
                out[f"{target}.context{name}.bias"] = state[f"{source}.cam_layer.linear{name}.bias"]
        out[f"trunk.transits.{block}.weight"] = state[f"xvector.transit{block + 1}.linear.weight"][:, :, 0]
        norm(f"trunk.transit_norms.{block}", f"xvector.transit{block + 1}.nonlinear.batchnorm")
    norm("trunk.out_norm", "xvector.out_nonlinear.batchnorm")
    # The last normalisation has no parameters to train, and batches have few rows for its statistics: it is folded.
    gain = 1 / torch.sqrt(state["xvector.dense.nonlinear.batchnorm.running_var"] + 1e-5)
    out["head.weight"] = state["xvector.dense.linear.weight"][:, :, 0] * gain[:, None]
    out["head.bias"] = -state["xvector.dense.nonlinear.batchnorm.running_mean"] * gain
    return out
