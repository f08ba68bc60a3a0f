"""Step 5: write the network with its front end as one ONNX graph, waveform in, log-probabilities out, and compare it
with PyTorch."""

import argparse
import copy
import hashlib
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .frontend import BANDS, HOP_SAMPLES, MEL, RATE_HZ, WINDOW, log_features, mel_power
from .model import CLASSES, TRAINING_ONLY, Segmentation, features_of, load_weights

OPSET = 14
SIDE = 20
"""The 400-point DFT is 20 x 20."""
KEPT_BINS = SIDE // 2 + 1
TOLERANCE = 5e-4
CHECK_SHAPES = ((1, 160_000), (3, 160_000), (1, 48_000), (2, 80_320), (1, 400_000))


class FrontEnd(nn.Module):
    """Waveform [N,1,T] -> log features [N,64,T // 160].

    A 400-point DFT as 20 x 20 (Cooley and Tukey, 1965) in two grouped convolutions: 53 instead of 320 MFLOP per 10 s.
    With sample index 20 a + b and bin d + 20 e: first a sum over a for every b and d = 0..10 (the input is real, the
    other d are conjugates), then over b for every d.
    """

    def __init__(self) -> None:
        super().__init__()
        window, tap = WINDOW.astype(np.float64), np.arange(SIDE)
        first = np.zeros((SIDE, 2 * KEPT_BINS, SIDE))
        for b in range(SIDE):
            for d in range(KEPT_BINS):
                wave = np.exp(-2j * np.pi * tap * d / SIDE) * window[SIDE * tap + b]
                first[b, 2 * d], first[b, 2 * d + 1] = wave.real, wave.imag
        second = np.zeros((KEPT_BINS, 2 * SIDE, 2 * SIDE))
        for d in range(KEPT_BINS):
            for b in range(SIDE):
                wave = np.exp(-2j * np.pi * b * d / SIDE**2) * np.exp(-2j * np.pi * b * tap / SIDE)
                second[d, :SIDE, 2 * b], second[d, :SIDE, 2 * b + 1] = wave.real, -wave.imag
                second[d, SIDE:, 2 * b], second[d, SIDE:, 2 * b + 1] = wave.imag, wave.real
        mel = np.zeros((BANDS, KEPT_BINS, SIDE))
        for d in range(KEPT_BINS):
            for e in range(SIDE):
                bin_index = d + SIDE * e
                if bin_index <= SIDE**2 // 2:
                    mel[:, d, e] = MEL[:, bin_index]
                elif d not in (0, SIDE // 2):
                    mel[:, d, e] = MEL[:, SIDE**2 - bin_index]
        for name, values, shape in (
            ("first", first, (2 * KEPT_BINS * SIDE, 1, SIDE)),
            ("first_of_mean", first.sum(2), (1, 2 * KEPT_BINS * SIDE, 1)),
            ("second", second, (2 * KEPT_BINS * SIDE, 2 * SIDE, 1)),
            ("mel", mel, (BANDS, KEPT_BINS * SIDE, 1)),
        ):
            self.register_buffer(name, torch.tensor(values.reshape(shape), dtype=torch.float32))

    def forward(self, x: Tensor) -> Tensor:
        batch, frames = x.shape[0], x.shape[2] // 160
        phases = x[:, 0, : frames * 160].reshape(batch, -1, SIDE).transpose(1, 2)
        h = self.first_of(F.pad(phases, (6, 6)))
        h = h.reshape(batch, SIDE, KEPT_BINS, 2, -1).permute(0, 2, 1, 3, 4).reshape(batch, 2 * KEPT_BINS * SIDE, -1)
        h = F.conv1d(h, self.second, groups=KEPT_BINS)
        h = (h * h).reshape(batch, KEPT_BINS, 2, SIDE, -1)
        power = F.conv1d((h[:, :, 0] + h[:, :, 1]).reshape(batch, KEPT_BINS * SIDE, -1), self.mel)
        return features_of(power)

    def first_of(self, phases: Tensor) -> Tensor:
        """First half of the transform, of frames less their mean: [N,20,L] with samples 20 a + b at [b, a] ->
        [N,440,frames]."""
        mean = F.avg_pool1d(phases.mean(1, keepdim=True), SIDE, stride=HOP_SAMPLES // SIDE)
        return F.conv1d(phases, self.first, stride=HOP_SAMPLES // SIDE, groups=SIDE) - self.first_of_mean * mean


class WholeModel(nn.Module):
    """Front end and network, batch norms folded into the convolutions."""

    def __init__(self, network: Segmentation):
        super().__init__()
        self.front_end, self.network = FrontEnd(), copy.deepcopy(network).eval()
        for conv, norm in (("conv1", "norm1"), ("conv2", "norm2")):
            fused = torch.nn.utils.fuse_conv_bn_eval(getattr(self.network, conv), getattr(self.network, norm))
            setattr(self.network, conv, fused)
            setattr(self.network, norm, nn.Identity())

    def forward(self, x: Tensor) -> Tensor:
        return self.network(self.front_end(x))


class WithoutFrontEnd(nn.Module):
    """A model without its front end: mel powers [N,F,64] -> log-probabilities, for callers that compute the powers once
    for all windows of a recording."""

    def __init__(self, whole: WholeModel):
        super().__init__()
        self.network = whole.network

    def forward(self, powers: Tensor) -> Tensor:
        return self.network(features_of(powers.transpose(1, 2)))


FOR_SHERPA_ONNX = {"window_size": "160000"}
"""sherpa-onnx's name for the window."""


def metadata(version: str) -> dict[str, str]:
    """Metadata for engines: the frame's nominal cell as receptive field, so that centre = frame * shift + size / 2."""
    return {
        "model_type": "speaker-segmentation",
        "version": version,
        "sample_rate": str(RATE_HZ),
        "window_samples": "160000",
        "num_classes": "7",
        "num_speakers": "3",
        "max_simultaneous": "2",
        "powerset_max_classes": "2",
        "receptive_field_size": "320",
        "receptive_field_shift": "320",
        "frames_per_window": "500",
        "classes": CLASSES,
        "training": "from scratch",
        "licence": "see card",
    }


def write(model: WholeModel | WithoutFrontEnd, path: Path, properties: dict[str, str]) -> None:
    if isinstance(model, WholeModel):
        name, axes = "x", {0: "N", 2: "T"}
        example = torch.randn(2, 1, 160_000, generator=torch.Generator().manual_seed(0)) * 0.05
    else:
        name, axes = "powers", {0: "N", 1: "T"}
        example = torch.rand(2, 1000, BANDS, generator=torch.Generator().manual_seed(0)) * 0.05
    all_axes = {name: axes, "y": {0: "N", 1: "F"}}
    torch.onnx.export(
        model,
        (example,),
        str(path),
        input_names=[name],
        output_names=["y"],
        opset_version=OPSET,
        dynamic_axes=all_axes,
        dynamo=False,
    )
    graph = onnx.load(path)
    onnx.helper.set_model_props(graph, properties)
    onnx.save(graph, path)


def check(model: WholeModel, path: Path) -> float:
    """Largest difference of ONNX and PyTorch over several shapes; raises if it or that of the front end is too
    large."""
    rng = np.random.default_rng(0)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    worst = 0.0
    for batch, samples in CHECK_SHAPES:
        swell = np.sin(np.arange(samples) / 3000)
        x = (rng.standard_normal((batch, 1, samples)) * 0.1 * swell + 0.05).astype(np.float32)
        with torch.no_grad():
            expected = model(torch.from_numpy(x)).numpy()
            features = model.front_end(torch.from_numpy(x))[0].T.numpy()
        reference = log_features(mel_power(x[0, 0]))
        if np.abs(features - reference).max() > TOLERANCE:
            raise ValueError("the front end differs from numpy")
        got = session.run(None, {"x": x})[0]
        if got.shape != (batch, 2 * (samples // 640), 7):
            raise ValueError(f"unexpected shape {got.shape}")
        worst = max(worst, float(np.abs(got - expected).max()))
    if worst > TOLERANCE:
        raise ValueError(f"ONNX differs from PyTorch by {worst}")
    return worst


def check_without_front_end(model: WholeModel, path: Path) -> float:
    """Largest difference of the separate network, on mel powers from numpy, and the complete model in PyTorch; raises
    if too large."""
    rng = np.random.default_rng(1)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    worst = 0.0
    for samples in (160_000, 48_000):
        x = (rng.standard_normal(samples) * 0.1 * np.sin(np.arange(samples) / 3000)).astype(np.float32)
        with torch.no_grad():
            expected = model(torch.from_numpy(x[None, None])).numpy()
        worst = max(worst, float(np.abs(session.run(None, {"powers": mel_power(x)[None]})[0] - expected).max()))
    if worst > TOLERANCE:
        raise ValueError(f"the network alone differs from the whole model by {worst}")
    return worst


def describe(path: Path, network: Segmentation) -> None:
    """Prints size, parameters and checksum of a written file."""
    parameters = sum(p.numel() for name, p in network.named_parameters() if not name.startswith(TRAINING_ONLY))
    print(
        f"{path}: {path.stat().st_size} bytes, {parameters} parameters, "
        f"sha256 {hashlib.sha256(path.read_bytes()).hexdigest()}"
    )


def save_weights(network: Segmentation, path: Path) -> None:
    """Writes the weights without the training-only parts as a float32 state_dict."""
    torch.save(
        {name: value for name, value in network.state_dict().items() if not name.startswith(TRAINING_ONLY)}, path
    )
    print(f"{path}: {path.stat().st_size} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", required=True, help="checkpoint or state_dict; averaged weights are used")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--weights", type=Path, help="also write the averaged weights (float32 state_dict without training-only parts)"
    )
    parser.add_argument("--network", type=Path, help="also write the network without its front end, mel powers in")
    parser.add_argument("--version", default="1")
    args = parser.parse_args()
    torch.set_num_threads(1)
    network = load_weights(args.checkpoint).eval()
    whole = WholeModel(network).eval()
    write(whole, args.out, {**metadata(args.version), **FOR_SHERPA_ONNX})
    difference = check(whole, args.out)
    describe(args.out, whole.network)
    print(f"ONNX against PyTorch: largest difference {difference:.1e} over {len(CHECK_SHAPES)} shapes")
    if args.network:
        write(WithoutFrontEnd(whole), args.network, metadata(args.version))
        print(f"{args.network}: largest difference {check_without_front_end(whole, args.network):.1e}")
    if args.weights:
        save_weights(network, args.weights)


if __name__ == "__main__":
    main()
