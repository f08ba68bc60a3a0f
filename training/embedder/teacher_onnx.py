"""Write CAM++ as one file in floating point, in sherpa-onnx's form, for the comparison of `npm run bench`.

python -m embedder.teacher_onnx --teacher FOLDER --out campplus.onnx
"""

from __future__ import annotations

import argparse
from pathlib import Path

import onnx
import torch

from . import teacher
from .export import METADATA, OPSET


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--teacher", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    model = teacher.load(args.teacher)
    axes = {"feats": {0: "B", 1: "T"}, "embs": {0: "B"}}
    torch.onnx.export(
        model,
        (torch.randn(1, 300, 80),),
        str(args.out),
        input_names=["feats"],
        output_names=["embs"],
        dynamic_axes=axes,
        opset_version=OPSET,
        dynamo=False,
    )
    written = onnx.load(args.out)
    onnx.helper.set_model_props(written, {**METADATA, "version": "1"})
    onnx.save(written, args.out)


if __name__ == "__main__":
    main()
