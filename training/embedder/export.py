"""CAM++ in the service's two halves, undamaged: the trunk once per stretch, the head per speaker.

    python -m embedder.export --teacher FOLDER --recordings FOLDER --out ../models

Reads the published checkpoint (`teacher.py`), folds its batch normalisations into the layers before them, and writes

- ``embedder-v6-trunk.onnx``: ``feats`` [B, T, 80] -> ``frames`` [B, ceil(T / 2), 512], weights stored in 16-bit
  floating point and computed with in 32 bits;
- ``embedder-v6-head.onnx``: ``pooled`` [B, 1024], means and then standard deviations -> ``embs`` [B, 192].

Nothing is trained. Prints the cosines between the embeddings of the two halves and those of the published network on
FLAC recordings of RECORDINGS at 16 kHz.
"""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import soundfile
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from kernels.halve import halved

from . import teacher
from .features import log_mels, raise_floor

VERSION = "6"
OPSET = 17
FRAME_STRIDE = 2
FRAME_CHANNELS = 512
VARIANCE_FLOOR = 1e-5
WINDOW_SAMPLES = 160_000
METADATA = {
    "framework": "3d-speaker",
    "language": "Chinese-English",
    "model_type": "speaker-embedding",
    "feature_type": "kaldi-fbank-80",
    "output_dim": str(teacher.EMBEDDING_SIZE),
    "sample_rate": "16000",
    "normalize_samples": "0",
    "feature_normalize_type": "global-mean",
    "comment": "3D-Speaker's CAM++ zh-en (Apache-2.0)",
}


def folded(model: teacher.CamPlusPlus) -> teacher.CamPlusPlus:
    """Folds each batch normalisation that follows a convolution into it, in place; tensors keep the layers' names."""

    def fold(owner: nn.Module, convolution: str, norm_owner: nn.Module, norm: str) -> None:
        setattr(owner, convolution, fuse_conv_bn_eval(getattr(owner, convolution), getattr(norm_owner, norm)))
        setattr(norm_owner, norm, nn.Identity())

    front = model.head
    fold(front, "conv1", front, "bn1")
    fold(front, "conv2", front, "bn2")
    for block in (*front.layer1, *front.layer2):
        fold(block, "conv1", block, "bn1")
        fold(block, "conv2", block, "bn2")
        if len(block.shortcut) == 2:
            block.shortcut = nn.Sequential(fuse_conv_bn_eval(*block.shortcut))
    stages = model.xvector
    fold(stages.tdnn, "linear", stages.tdnn.nonlinear, "batchnorm")
    for name in ("block1", "block2", "block3"):
        for layer in getattr(stages, name).values():
            fold(layer, "linear1", layer.nonlinear2, "batchnorm")
    fold(stages.transit3, "linear", stages.out_nonlinear, "batchnorm")
    return model


class Trunk(nn.Module):
    """feats [B, T, 80] -> frames [B, ceil(T / 2), 512]: everything before the pooling."""

    def __init__(self, model: teacher.CamPlusPlus):
        super().__init__()
        self.head = model.head
        self.xvector = nn.Sequential(
            teacher.OrderedDict((name, part) for name, part in model.xvector.named_children() if name not in _HEAD)
        )

    def forward(self, feats):
        return self.xvector(self.head(feats.transpose(1, 2))).transpose(1, 2)


_HEAD = ("stats", "dense")


def write_trunk(trunk: Trunk, path: Path) -> None:
    torch.onnx.export(
        trunk,
        (torch.randn(1, 300, 80),),
        str(path),
        input_names=["feats"],
        output_names=["frames"],
        dynamic_axes={"feats": {0: "B", 1: "T"}, "frames": {0: "B", 1: "N"}},
        opset_version=OPSET,
        dynamo=False,
    )
    written = onnx.load(path)
    onnx.helper.set_model_props(written, {**METADATA, "version": VERSION, "feature_floor_nats": "10"})
    onnx.save(halved(written, kept=[]), path)


def write_head(model: teacher.CamPlusPlus, path: Path) -> None:
    """The last layer; its normalisation, which has no parameters of its own, is folded into it."""
    dense = fuse_conv_bn_eval(model.xvector.dense.linear, model.xvector.dense.nonlinear.batchnorm)
    weights = [
        numpy_helper.from_array(dense.weight.detach().numpy()[:, :, 0].T.copy(), "weight"),
        numpy_helper.from_array(dense.bias.detach().numpy(), "bias"),
    ]
    inputs = [helper.make_tensor_value_info("pooled", TensorProto.FLOAT, ["B", 2 * FRAME_CHANNELS])]
    outputs = [helper.make_tensor_value_info("embs", TensorProto.FLOAT, ["B", teacher.EMBEDDING_SIZE])]
    nodes = [helper.make_node("Gemm", ["pooled", "weight", "bias"], ["embs"])]
    graph = helper.make_graph(nodes, "head", inputs, outputs, weights)
    written = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    onnx.checker.check_model(written)
    onnx.save(written, path)


def pooled(frames: np.ndarray) -> np.ndarray:
    """Means and standard deviations [1024] of frames [n, 512], as the service pools them."""
    return np.concatenate([frames.mean(0), np.sqrt(np.maximum(frames.var(0), VARIANCE_FLOOR))])


def feats_of(samples: np.ndarray) -> np.ndarray:
    """Samples -> filterbank [1, T, 80] with the service's floor and mean."""
    raised = raise_floor(log_mels(samples))
    return (raised - raised.mean(0))[None].astype(np.float32)


def stretches(recordings: Path) -> list[np.ndarray]:
    """The first ten seconds of each recording."""
    found = [soundfile.read(path, WINDOW_SAMPLES, dtype="float32")[0] for path in sorted(recordings.rglob("*.flac"))]
    return [samples for samples in found if samples.std() > 1e-4]


def cosines(trunk: Path, head: Path, published: teacher.CamPlusPlus, recordings: Path) -> np.ndarray:
    """Cosine of the embedding of each stretch by the halves with that by the published network."""
    halves = [onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]) for path in (trunk, head)]
    found = []
    for samples in stretches(recordings):
        feats = feats_of(samples)
        with torch.inference_mode():
            expected = published(torch.from_numpy(feats))[0].numpy()
        frames = halves[0].run(None, {"feats": feats})[0][0]
        ours = halves[1].run(None, {"pooled": pooled(frames)[None].astype(np.float32)})[0][0]
        found.append(ours @ expected / np.linalg.norm(ours) / np.linalg.norm(expected))
    return np.array(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--teacher", type=Path, required=True)
    parser.add_argument("--recordings", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    paths = [args.out / f"embedder-v{VERSION}-{half}.onnx" for half in ("trunk", "head")]
    model = teacher.load(args.teacher)
    write_head(model, paths[1])
    write_trunk(Trunk(folded(model)).eval(), paths[0])
    for path in paths:
        print(f"{path.name}: {path.stat().st_size} bytes, sha256 {hashlib.sha256(path.read_bytes()).hexdigest()}")
    found = cosines(*paths, teacher.load(args.teacher), args.recordings)
    cosine = f"at least {found.min():.6f}, mean {found.mean():.6f}"
    print(f"{len(found)} stretches: cosine with the published network {cosine}")


if __name__ == "__main__":
    main()
