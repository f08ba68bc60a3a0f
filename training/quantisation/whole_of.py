"""Joins the front end of the complete segmentation model, in floating point, and its network in 8 bits, for other
engines: waveform in, log-probabilities out.

    python -m quantisation.whole_of SEGMENTATION.onnx NETWORK.int8.onnx SEGMENTATION.int8.onnx
"""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import compose, helper, version_converter
from onnx.utils import Extractor

from segmentation.export import CHECK_SHAPES
from segmentation.frontend import mel_power

LAST_FILTER = "front_end.mel"
"""Weights of the mel powers, bands before frames."""
PREFIX = "front/"
LARGEST_MOVED = 1e-3
"""Largest share of the probability in other classes due to another order of summation, which changes the rounding of
values near the middle of two steps."""


def front_end(whole: onnx.ModelProto, opset: int) -> onnx.ModelProto:
    """`x` [N, 1, T] -> `powers` [N, F, 64], from the complete model."""
    powers = next(node.output[0] for node in whole.graph.node if LAST_FILTER in node.input)
    shapes = {value.name: value for value in onnx.shape_inference.infer_shapes(whole).graph.value_info}
    whole.graph.value_info.append(shapes[powers])
    front = version_converter.convert_version(Extractor(whole).extract_model(["x"], [powers]), opset)
    front.graph.node.append(helper.make_node("Transpose", [powers], ["powers"], name="frames_first", perm=[0, 2, 1]))
    del front.graph.output[:]
    front.graph.output.append(helper.make_tensor_value_info("powers", onnx.TensorProto.FLOAT, ["N", "F", 64]))
    return front


def joined(whole: onnx.ModelProto, network: onnx.ModelProto) -> onnx.ModelProto:
    """Both in one graph, with the metadata of the complete model."""
    facts = {one.key: one.value for one in whole.metadata_props}
    opset = next(one.version for one in network.opset_import if one.domain == "")
    front = compose.add_prefix(front_end(whole, opset), PREFIX, rename_inputs=False, rename_outputs=False)
    front.ir_version = network.ir_version
    front.opset_import.extend(one for one in network.opset_import if one.domain)
    model = compose.merge_models(front, network, io_map=[("powers", "powers")])
    helper.set_model_props(model, facts)
    onnx.checker.check_model(model)
    return model


def check(model: Path, network: Path) -> float:
    """Largest share of the probability that differs from the network's on mel powers of numpy; raises if too large."""
    rng = np.random.default_rng(2)
    both, alone = (
        onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]) for path in (model, network)
    )
    worst = 0.0
    for batch, samples in CHECK_SHAPES:
        x = (rng.standard_normal((batch, 1, samples)) * 0.1 * np.sin(np.arange(samples) / 3000) + 0.05).astype(
            np.float32
        )
        powers = np.stack([mel_power(one[0]) for one in x]).astype(np.float32)
        got, expected = both.run(None, {"x": x})[0], alone.run(None, {"powers": powers})[0]
        if got.shape != expected.shape:
            raise ValueError(f"{got.shape} in one piece, {expected.shape} in two")
        worst = max(worst, float(np.abs(np.exp(got) - np.exp(expected)).sum(2).mean() / 2))
    if worst > LARGEST_MOVED:
        raise ValueError(f"{100 * worst:.2f} % of the probability moved")
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("whole", type=Path, help="output of segmentation.export")
    parser.add_argument("network", type=Path, help="output of quantisation.quantise, with the same weights")
    parser.add_argument("target", type=Path)
    args = parser.parse_args()
    onnx.save(joined(onnx.load(args.whole), onnx.load(args.network)), args.target)
    moved = check(args.target, args.network)
    print(
        f"{args.target}: {args.target.stat().st_size} bytes, "
        f"sha256 {hashlib.sha256(args.target.read_bytes()).hexdigest()}"
    )
    print(
        f"in one piece and in two: at most {100 * moved:.4f} % of the probability moved, "
        f"over {len(CHECK_SHAPES)} shapes"
    )


if __name__ == "__main__":
    main()
