"""Stores the large weights of an ONNX file in 16-bit floating point, each followed by a cast.

    python -m kernels.halve segmentation-3.0-float.onnx ../models/segmentation-3.0.onnx --keep filters

Kept tensors stay in 32 bits. A runtime computes with 32 bits as before. Prints the share of frames with the same most
likely class, on made-up input.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from .initializers import HALF

MIN_BYTES = 1024
"""Smaller tensors stay in 32 bits."""


def halved(model: onnx.ModelProto, kept: list[str]) -> onnx.ModelProto:
    """Changes the model in place, and returns it."""
    graph, casts = model.graph, []
    for tensor in graph.initializer:
        if tensor.data_type != TensorProto.FLOAT or len(tensor.raw_data) < MIN_BYTES or tensor.name in kept:
            continue
        name, values = tensor.name, numpy_helper.to_array(tensor).astype(np.float16)
        tensor.CopyFrom(numpy_helper.from_array(values, name + HALF))
        casts.append(helper.make_node("Cast", [name + HALF], [name], to=TensorProto.FLOAT))
    nodes = list(graph.node)
    del graph.node[:]
    graph.node.extend(casts + nodes)
    onnx.checker.check_model(model)
    return model


def same_classes(first: Path, second: Path) -> float:
    """The share of frames with the same most likely class, on noise of changing level and spectrum."""
    sessions = [onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]) for path in (first, second)]
    random, shares = np.random.default_rng(0), []
    for width in (1, 4, 16, 64):
        noise = np.convolve(random.normal(0, 0.1, 160_000), np.ones(width) / width, "same")
        noise *= np.repeat(random.uniform(0, 1, 40), 4000)
        classes = [s.run(None, {"x": noise.astype(np.float32)[None, None]})[0].argmax(-1) for s in sessions]
        shares.append((classes[0] == classes[1]).mean())
    return float(np.mean(shares))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--keep", nargs="*", default=[], help="names of tensors")
    args = parser.parse_args()
    onnx.save(halved(onnx.load(args.model), args.keep), args.out)
    print(f"frames with the same class: {same_classes(args.model, args.out):.2%}")


if __name__ == "__main__":
    main()
