"""Step 4: export the trained embedder as ONNX, whole and in two halves, and compare each with PyTorch.

    python -m embedder.export --checkpoint WORK/embedder-192-weights.pt --out FOLDER [--version 1]

Writes ``embedder-v<version>.onnx`` (``feats`` [B, T, 80] -> ``embs`` [B, 192], the signature and metadata that WeSpeaker's
and sherpa-onnx's runtimes read), ``…-trunk.onnx`` (``feats`` -> ``frames``, ``logits`` [B, ceil(T/2), 512]) and ``…-head.onnx``
(``pooled`` [B, 1024] -> ``embs``). Batch normalisation is folded into the convolutions; only the whole model carries the metadata. Also writes the weights as ``.npz``
in float16, from which training can go on (``--initial``), and which may stand in the place of the checkpoint.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from torch import nn
from torch.nn.utils import fuse_conv_bn_eval

from .model import Block, Embedder, FrontEnd, Trunk

OPSET = 17
PAIRS = {
    FrontEnd: (("conv1", "norm1"), ("conv2", "norm2"), ("conv3", "norm3"), ("conv4", "norm4")),
    Block: (("conv1", "norm1"), ("conv2", "norm2"), ("conv3", "norm3")),
    Trunk: (("stem", "stem_norm"), ("expand", "expand_norm")),
}


def fold(model: Embedder) -> Embedder:
    """A copy in evaluation mode with every batch normalisation folded into its neighbour."""
    model = copy.deepcopy(model).eval()
    for module in model.modules():
        for convolution, norm in PAIRS.get(type(module), ()):
            setattr(module, convolution, fuse_conv_bn_eval(getattr(module, convolution), getattr(module, norm)))
            setattr(module, norm, nn.Identity())
    head = model.head
    before, after = head.norm, head.out_norm
    scale_in = before.weight / torch.sqrt(before.running_var + before.eps)
    shift_in = before.bias - before.running_mean * scale_in
    scale_out = after.weight / torch.sqrt(after.running_var + after.eps)
    shift_out = after.bias - after.running_mean * scale_out
    linear = nn.Linear(head.linear.in_features, head.linear.out_features)
    linear.weight = nn.Parameter(scale_out[:, None] * head.linear.weight * scale_in[None])
    linear.bias = nn.Parameter(scale_out * (head.linear.weight @ shift_in) + shift_out)
    head.norm, head.linear, head.out_norm = nn.Identity(), linear, nn.Identity()
    return model


def metadata(version: str) -> dict[str, str]:
    """What sherpa-onnx and the service read from the file."""
    return {
        "framework": "wespeaker", "model_type": "speaker-embedding", "url": "", "feature_type": "kaldi-fbank-80",
        "language": "multilingual", "output_dim": "192", "sample_rate": "16000",
        "normalize_samples": "0", "feature_normalize_type": "global-mean", "version": version,
        "comment": "trained from scratch for rollcall", "feature_floor_nats": "10",
    }  # fmt: skip


def write(module: nn.Module, example: torch.Tensor, path: Path, inputs: list[str], outputs: list[str], axes: dict, facts: dict[str, str]) -> None:
    """Export, attach the facts as metadata, check the file and compare its outputs with PyTorch on two more shapes."""
    torch.onnx.export(module, (example,), str(path), input_names=inputs, output_names=outputs, dynamic_axes=axes, opset_version=OPSET, dynamo=False)
    graph = onnx.load(path)
    for key, value in facts.items():
        graph.metadata_props.add(key=key, value=value)
    onnx.checker.check_model(graph)
    onnx.save(graph, path)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    worst = 0.0
    for shape in ([1, *example.shape[1:]], [3, *example.shape[1:-1], example.shape[-1]]):
        if len(shape) == 3:
            shape[1] = 137 * shape[0]
        trial = torch.randn(shape, generator=torch.Generator().manual_seed(shape[0])) * 2
        with torch.no_grad():
            expected = module(trial)
        expected = expected if isinstance(expected, tuple) else (expected,)
        for want, got in zip(expected, session.run(None, {inputs[0]: trial.numpy()})):
            worst = max(worst, float(np.abs(want.numpy() - got).max()))
    print(f"{path.name}: {path.stat().st_size} bytes, sha256 {hashlib.sha256(path.read_bytes()).hexdigest()}, largest difference {worst:.1e}")


def stored_state(path: Path) -> dict[str, torch.Tensor]:
    """Weights of a checkpoint of ``train.py``, or of the ``.npz`` that this writes."""
    if path.suffix == ".npz":
        return {name: torch.from_numpy(value) for name, value in np.load(path).items()}
    return torch.load(path, map_location="cpu", weights_only=False)["model"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--version", default="1")
    args = parser.parse_args()
    torch.set_num_threads(1)
    args.out.mkdir(parents=True, exist_ok=True)
    state = stored_state(args.checkpoint)
    model = Embedder(len(state["trunk.stem.weight"]))
    model.load_state_dict({name: state[name].to(value.dtype) for name, value in model.state_dict().items()})
    np.savez_compressed(args.out / f"embedder-v{args.version}.npz", **{k: v.numpy().astype(np.float16 if v.is_floating_point() else v.numpy().dtype) for k, v in state.items()})
    model = fold(model)
    feats, pooled = torch.randn(2, 300, 80), torch.randn(2, 1024)
    stem = args.out / f"embedder-v{args.version}"
    time_axes = {0: "B", 1: "T"}
    write(model, feats, Path(f"{stem}.onnx"), ["feats"], ["embs"], {"feats": time_axes, "embs": {0: "B"}}, metadata(args.version))
    write(model.trunk, feats, Path(f"{stem}-trunk.onnx"), ["feats"], ["frames", "logits"],
          {"feats": time_axes, "frames": time_axes, "logits": time_axes}, {})  # fmt: skip
    write(model.head, pooled, Path(f"{stem}-head.onnx"), ["pooled"], ["embs"], {"pooled": {0: "B"}, "embs": {0: "B"}}, {})


if __name__ == "__main__":
    main()
