"""A segmentation model whose weights are stored in 8 bits (dynamic quantisation), computed in float32.

Dynamic quantisation rounds activations too, per tensor, and on processors without VNNI the products of a native runtime saturate: segmentation-3.0 int8 then
calls clean speech one unbroken turn and loses reverberant voices altogether. As labels for training only its weights are wanted. The sample
numbers of its first layer, which the quantisation has rounded by up to a quarter of a sample, are put back exactly: n = 2 pi k / 16000, k = -125 ... -1
(SincNet, Ravanelli and Bengio, 2018).
"""

import argparse
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from .frontend import RATE_HZ

SINC_SAMPLES = "sincnet.conv1d.0.filterbank.n__quantized"
SINC_TAPS = 125
FLOAT_OF = {"MatMulInteger": "MatMul", "ConvInteger": "Conv"}


def _weights(stored: dict[str, np.ndarray], name: str) -> np.ndarray:
    """Float values of a quantised tensor; scales and zero points are one for all or, of an LSTM, one a direction."""
    if name == SINC_SAMPLES:
        return (2 * np.pi * np.arange(-SINC_TAPS, 0, dtype=np.float64) / RATE_HZ)[None].astype(np.float32)
    base = name.removesuffix("_quantized")
    values, scale, zero = (stored[part].astype(np.float32) for part in (name, base + "_scale", base + "_zero_point"))
    shape = (-1,) + (1,) * (values.ndim - 1) if scale.ndim else ()
    real = (values - zero.reshape(shape)) * scale.reshape(shape)
    return real.transpose(0, 2, 1) if scale.ndim else real  # an LSTM's are stored [directions, inputs, gates], and wanted the other way round


def dequantised(model: onnx.ModelProto) -> onnx.ModelProto:
    """The same model in float32, as a new graph; one without integer operations comes back equal."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    graph = result.graph
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    made_by = {name: node for node in graph.node for name in node.output}
    users: dict[str, list[onnx.NodeProto]] = {}
    for node in graph.node:
        for name in node.input:
            users.setdefault(name, []).append(node)
    tensors: dict[str, np.ndarray] = {}
    replaced: dict[str, onnx.NodeProto] = {}
    dropped: set[str] = set()

    def real(name: str) -> str:
        tensors[name + "_float"] = np.ascontiguousarray(_weights(stored, name))
        return name + "_float"

    for node in graph.node:  # nodes are told apart by their first output
        attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
        if node.op_type in FLOAT_OF:
            # quantised input -> integers -> cast -> times the product of both scales
            cast = users[node.output[0]][0]
            scaled = users[cast.output[0]][0]
            scales = next(name for name in scaled.input if name != cast.output[0])
            inputs = [made_by[node.input[0]].input[0], real(node.input[1])]
            replaced[scaled.output[0]] = helper.make_node(FLOAT_OF[node.op_type], inputs, [scaled.output[0]], **attributes)
            dropped |= {node.output[0], cast.output[0], scales}
        elif node.op_type == "DynamicQuantizeLSTM":
            inputs = [node.input[0], real(node.input[1]), real(node.input[2]), *node.input[3:7]]
            replaced[node.output[0]] = helper.make_node("LSTM", inputs, node.output, **attributes)
        elif node.op_type == "DynamicQuantizeLinear":
            dropped.add(node.output[0])
    nodes = [replaced.get(node.output[0], node) for node in graph.node if node.output[0] not in dropped]
    suffixes = ("_quantized", "_scale", "_zero_point")
    quantised = {name.removesuffix("_float").removesuffix("_quantized") + suffix for name in tensors for suffix in suffixes}
    initialisers = [tensor for tensor in graph.initializer if tensor.name not in quantised]
    initialisers += [numpy_helper.from_array(values, name) for name, values in tensors.items()]
    graph.CopyFrom(helper.make_graph(nodes, graph.name, graph.input, graph.output, initialisers, value_info=graph.value_info))
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    onnx.save(dequantised(onnx.load(args.model)), args.out)


if __name__ == "__main__":
    main()
