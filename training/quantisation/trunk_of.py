"""Takes the trunk out of a whole embedder, in floating point, as `embedder.export` writes it beside the whole.

    python -m quantisation.trunk_of EMBEDDER.onnx TRUNK.onnx
"""

from __future__ import annotations

import sys
from pathlib import Path

import onnx
from onnx.utils import Extractor

OUTPUTS = ("frames", "logits")


def names_of(model: onnx.ModelProto) -> list[str]:
    """What the pooling reads: the last outputs of the trunk's nodes that nodes outside it take."""
    made = {output: node for node in model.graph.node for output in node.output if node.name.startswith("/trunk/")}
    taken = {name for node in model.graph.node if not node.name.startswith("/trunk/") for name in node.input}
    found = [name for name in made if name in taken]
    if len(found) != len(OUTPUTS):
        raise ValueError(f"expected {OUTPUTS}, found {found}")
    # The logits come of the frames, so they are made later.
    return found


def main(whole: str, target: str) -> None:
    model = onnx.load(whole)
    inner = names_of(model)
    shapes = {value.name: value for value in onnx.shape_inference.infer_shapes(model).graph.value_info}
    model.graph.value_info.extend(shapes[name] for name in inner)
    trunk = Extractor(model).extract_model(["feats"], inner)
    for old, new in zip(inner, OUTPUTS, strict=True):
        for node in trunk.graph.node:
            node.output[:] = [new if name == old else name for name in node.output]
            node.input[:] = [new if name == old else name for name in node.input]
        for output in trunk.graph.output:
            output.name = new if output.name == old else output.name
    onnx.checker.check_model(trunk)
    onnx.save(trunk, target)
    print(f"{target}: {Path(target).stat().st_size} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
