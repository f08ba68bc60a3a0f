"""Step 4: write the fine-tuned embedder in the service's form, and measure the effect of 8 bits.

    python -m embedder.export --checkpoint WORK/embedder.pt --recordings FOLDER --out MODELS --version 5

FOLDER has FLAC at 16 kHz for the ranges of the trunk's activations (`calibration/sessions.py` generates some). Writes
``embedder-v5-trunk.int8.onnx`` (``feats`` [B, T, 80] -> ``frames`` [B, ceil(T / 4), 512]) and ``embedder-v5-head.onnx``
(``pooled`` [B, 1024], means and then standard deviations -> ``embs`` [B, 192]).
"""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper, numpy_helper

from quantisation import trunk
from quantisation.quantise import RATE, divided, windows

from .features import log_mels, raise_floor
from .model import EMBEDDING_SIZE, FRAME_CHANNELS, Embedder, folded

CALIBRATION_WINDOWS, TEST_WINDOWS = 64, 48
POOLED_FRAMES = 37  # 1.5 s, the length of a subsegment
PERCENTILE = 99.99
OPSET = 17


def metadata(version: str) -> dict[str, str]:
    """Properties that the service checks in a file."""
    return {
        "framework": "3d-speaker",
        "model_type": "speaker-embedding",
        "feature_type": "kaldi-fbank-80",
        "output_dim": str(EMBEDDING_SIZE),
        "sample_rate": str(RATE),
        "normalize_samples": "0",
        "feature_normalize_type": "global-mean",
        "version": version,
        "comment": "fine-tuned for rollcall from 3D-Speaker's CAM++ zh-en (Apache-2.0)",
        "feature_floor_nats": "10",
    }


def feats(samples: np.ndarray) -> np.ndarray:
    """10 s of samples -> filterbank [1, 998, 80] with the service's floor and mean."""
    raised = raise_floor(log_mels(samples))
    return (raised - raised.mean(0))[None].astype(np.float32)


def write_head(model: Embedder, path: Path) -> None:
    weights = [
        numpy_helper.from_array(model.head.weight.detach().numpy().T.copy(), "weight"),
        numpy_helper.from_array(model.head.bias.detach().numpy(), "bias"),
    ]
    nodes = [helper.make_node("Gemm", ["pooled", "weight", "bias"], ["embs"])]
    inputs = [helper.make_tensor_value_info("pooled", TensorProto.FLOAT, ["B", 2 * FRAME_CHANNELS])]
    outputs = [helper.make_tensor_value_info("embs", TensorProto.FLOAT, ["B", EMBEDDING_SIZE])]
    graph = helper.make_graph(nodes, "head", inputs, outputs, weights)
    written = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    onnx.checker.check_model(written)
    onnx.save(written, path)


def compare(model: Embedder, path: Path, inputs: list[np.ndarray]) -> str:
    """Cosines of embeddings of 1.5 s before and after rounding, and the change of scores between two of them."""
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])

    def embeddings(frames: torch.Tensor) -> torch.Tensor:
        """Unit embeddings [n, 192] of every 1.5 s of frames [1, T, 512]."""
        masks = torch.eye(frames.shape[1] // POOLED_FRAMES).repeat_interleave(POOLED_FRAMES, 1)
        return torch.nn.functional.normalize(model.pooled(frames[:, : masks.shape[1]], masks[None])[0], dim=1)

    with torch.inference_mode():
        before = torch.cat([embeddings(model.trunk(torch.from_numpy(one))) for one in inputs])
        after = torch.cat([embeddings(torch.from_numpy(session.run(None, {"feats": one})[0])) for one in inputs])
    cosines = (before * after).sum(1).numpy()
    moved = (after @ after.T - before @ before.T).numpy()
    return (
        f"embeddings of 1.5 s before and after: mean cosine {cosines.mean():.4f}, "
        f"first percentile {np.percentile(cosines, 1):.4f}; "
        f"scores between two: {moved.mean():.4f} on average, standard deviation {moved.std():.4f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--recordings", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--version", default="5")
    args = parser.parse_args()
    torch.set_num_threads(1)
    args.out.mkdir(parents=True, exist_ok=True)
    trained = Embedder()
    trained.load_state_dict(torch.load(args.checkpoint, weights_only=False)["model"])
    model = folded(trained)
    seen, unseen = divided(args.recordings)
    trunk_path, head_path = (args.out / f"embedder-v{args.version}-{half}.onnx" for half in ("trunk.int8", "head"))
    ranges = trunk.measure(model, map(feats, windows(seen, CALIBRATION_WINDOWS)), PERCENTILE)
    trunk.build(model, trunk_path, ranges, metadata(args.version))
    write_head(model, head_path)
    for path in (trunk_path, head_path):
        print(f"{path.name}: {path.stat().st_size} bytes, sha256 {hashlib.sha256(path.read_bytes()).hexdigest()}")
    print(compare(model, trunk_path, [feats(one) for one in windows(unseen, TEST_WINDOWS)]))


if __name__ == "__main__":
    main()
