"""Step 5 of the streaming form: one ONNX graph that takes some more samples and the state, and gives what can be said by now and the next state.

Every layer keeps as much of its input as it will need again. What is kept grows to its full length with the first samples: a state begins as the few zeros that
padding is in training, and layers that look ahead give so many frames less at the first call. Frame `f` of all that a state has said covers samples
`[320 f, 320 f + 320)` from its beginning on. `GRAPH` names, for every tensor of the state, its shape at the beginning.
"""

import argparse
import itertools
import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .export import OPSET, FrontEnd, describe, metadata, save_weights
from .frontend import BANDS, FEATURE_SCALE, FRAME_SAMPLES, HOP_SAMPLES, POWER_FLOOR, RATE_HZ, SILENT_POWER, mel_power, running_features
from .model import GRU_UNITS, HEADS, SKIP, WIDTH, load_weights
from .streaming_model import KEPT_TAPS, LEFT_TAPS, LIFE_SECONDS, RIGHT_TAPS, CausalAttentionBlock, StreamingSegmentation

SIDE = 20
LEAD_SAMPLES = (FRAME_SAMPLES - HOP_SAMPLES) // 2
TOLERANCE = 2e-3
CHECK_SECONDS = 12
CHECK_CHUNKS = (3200, 6400, 640, 16_000, 3840)
FIRST_SAMPLES = 9600
"""At least so much has to come at the first call, for what looks ahead needs that much to say anything; all calls in multiples of `GRID_SAMPLES`."""
GRID_SAMPLES = 640
BLOCK = {"voices": (1, LEFT_TAPS, WIDTH), "pending": (1, 0, WIDTH), "keys": (1, HEADS, 0, WIDTH // HEADS), "values": (1, HEADS, 0, WIDTH // HEADS)}
GRAPH: dict[str, tuple[int, ...]] = {
    "samples": (1, 1, LEAD_SAMPLES),
    "count": (1, 1, 1),
    "level": (1, 1, 1),
    "logs": (1, BANDS, 1),
    "mel": (1, BANDS, 2),
    "coarse": (1, WIDTH, 1),
    "odd": (1, WIDTH, 0),
    "skip": (1, WIDTH, 0),
    **{f"first_{name}": shape for name, shape in BLOCK.items()},
    "first_gru": (2, 1, GRU_UNITS),
    **{f"second_{name}": shape for name, shape in BLOCK.items()},
    "second_gru": (2, 1, GRU_UNITS),
    "wide": (1, SKIP, 1),
}


def power_of(front_end: FrontEnd, samples: Tensor) -> Tensor:
    """Samples [1,1,L] from the beginning of the first frame on -> mel power [1,64,frames]; the transform is `FrontEnd`'s."""
    kept = SIDE // 2 + 1
    phases = samples[:, 0, : samples.shape[2] // SIDE * SIDE].reshape(1, -1, SIDE).transpose(1, 2)
    h = front_end.first_of(phases)
    h = h.reshape(1, SIDE, kept, 2, -1).permute(0, 2, 1, 3, 4).reshape(1, 2 * kept * SIDE, -1)
    h = F.conv1d(h, front_end.second, groups=kept)
    h = (h * h).reshape(1, kept, 2, SIDE, -1)
    return F.conv1d((h[:, :, 0] + h[:, :, 1]).reshape(1, kept * SIDE, -1), front_end.mel)


class Step(nn.Module):
    """One call: samples [1,1,S] and the tensors of the state in the order of `GRAPH` -> log-probabilities [1,F,7] and the next state."""

    def __init__(self, network: StreamingSegmentation):
        super().__init__()
        self.front_end, self.network = FrontEnd(), network
        self.conv1 = torch.nn.utils.fuse_conv_bn_eval(network.conv1, network.norm1)
        self.conv2 = torch.nn.utils.fuse_conv_bn_eval(network.conv2, network.norm2)
        self.grus = nn.ModuleList([nn.ModuleList([self._side(block.gru, suffix) for suffix in ("", "_reverse")]) for block in network.blocks[1::2]])

    @staticmethod
    def _side(gru: nn.GRU, suffix: str) -> nn.GRU:
        side = nn.GRU(WIDTH, GRU_UNITS, batch_first=True)
        side.load_state_dict({name: getattr(gru, name + suffix) for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")})
        return side

    def _features(self, samples: Tensor, state: dict[str, Tensor], after: dict[str, Tensor]) -> Tensor:
        samples = torch.cat([state["samples"], samples], 2)
        power = power_of(self.front_end, samples)
        after["samples"] = samples[:, :, power.shape[2] * HOP_SAMPLES :]
        heard = (power.sum(1, keepdim=True) > SILENT_POWER).float()
        counts = state["count"] + torch.cumsum(heard, 2)
        levels = state["level"] + torch.cumsum(power.mean(1, keepdim=True), 2)
        divisor = counts.clamp(min=1)
        logs = torch.log(power + POWER_FLOOR * (levels / divisor + POWER_FLOOR))
        sums = state["logs"] + torch.cumsum(logs * heard, 2)
        after["count"], after["level"], after["logs"] = counts[:, :, -1:], levels[:, :, -1:], sums[:, :, -1:]
        return (logs - sums / divisor) * FEATURE_SCALE

    def _attend(self, block: CausalAttentionBlock, x: Tensor, name: str, state: dict[str, Tensor], after: dict[str, Tensor]) -> Tensor:
        voices = torch.cat([state[f"{name}_voices"], block.norm_conv(x)], 1)
        x = torch.cat([state[f"{name}_pending"], x], 1)
        after[f"{name}_voices"], after[f"{name}_pending"] = voices[:, -(KEPT_TAPS - 1) :], x[:, -RIGHT_TAPS:]
        weight = block.depthwise.weight[:, :, :KEPT_TAPS]
        y = F.conv1d(voices.transpose(1, 2), weight, block.depthwise.bias, groups=WIDTH).transpose(1, 2)
        x = x[:, : y.shape[1]] + block.pointwise(torch.relu(y))
        attention = block.attention
        query, key, value = attention.qkv(block.norm_attention(x)).reshape(1, -1, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4).unbind(0)
        keys, values = torch.cat([state[f"{name}_keys"], key], 2), torch.cat([state[f"{name}_values"], value], 2)
        after[f"{name}_keys"], after[f"{name}_values"] = keys, values
        # Key j comes after query i where j - i is more than what was there before.
        distance = torch.arange(keys.shape[2])[None, :] - torch.arange(key.shape[2])[:, None]
        future = (distance > keys.shape[2] - key.shape[2]).float() * -1e4
        weights = (torch.matmul(query * (WIDTH // HEADS) ** -0.5, keys.transpose(2, 3)) + future).softmax(-1)
        x = x + attention.out(torch.matmul(weights, values).transpose(1, 2).reshape(1, -1, WIDTH))
        return x + block.narrow(torch.relu(block.widen(block.norm_forward(x))))

    def _recur(self, number: int, x: Tensor, name: str, state: dict[str, Tensor], after: dict[str, Tensor]) -> Tensor:
        y, hidden = self.network.blocks[2 * number + 1].norm(x), state[f"{name}_gru"]
        sides = [gru(y, hidden[side : side + 1]) for side, gru in enumerate(self.grus[number])]
        after[f"{name}_gru"] = torch.cat([last for _, last in sides], 0)
        return x + torch.cat([out for out, _ in sides], 2)

    def forward(self, samples: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
        network, after = self.network, {}
        state = dict(zip(GRAPH, tensors, strict=True))
        mel = torch.cat([state["mel"], self._features(samples, state, after)], 2)
        coarse = torch.relu(F.conv1d(mel, self.conv1.weight, self.conv1.bias, stride=2))
        after["mel"] = mel[:, :, 2 * coarse.shape[2] :]
        coarse = torch.cat([state["coarse"], coarse], 2)
        after["coarse"] = coarse[:, :, -2:]
        fine = F.conv1d(coarse, self.conv2.weight, self.conv2.bias)
        fine = coarse[:, :, 1 : 1 + fine.shape[2]] + torch.relu(fine)
        pairs, skip = torch.cat([state["odd"], fine], 2), torch.cat([state["skip"], fine], 2)
        z = network.down(pairs)
        after["odd"] = pairs[:, :, 2 * z.shape[2] :]
        z = z.transpose(1, 2)
        for number, name in enumerate(("first", "second")):
            z = self._attend(network.blocks[2 * number], z, name, state, after)
            z = self._recur(number, z, name, state, after)
        wide = network.up(network.norm(z)).reshape(1, -1, SKIP).transpose(1, 2)
        wide = torch.relu(wide + network.skip(skip[:, :, : wide.shape[2]]))
        after["skip"] = skip[:, :, wide.shape[2] :]
        wide = torch.cat([state["wide"], wide], 2)
        after["wide"] = wide[:, :, -2:]
        out = F.log_softmax(network.out(torch.relu(F.conv1d(wide, network.conv3.weight, network.conv3.bias)).transpose(1, 2)), -1)
        return (out, *(after[name] for name in GRAPH))


def beginning() -> dict[str, np.ndarray]:
    """The state before the first sample."""
    return {name: np.zeros(shape, np.float32) for name, shape in GRAPH.items()}


def write(step: Step, path: Path, properties: dict[str, str]) -> None:
    """Writes the graph. The state's tensors come out as `next_…`."""
    names, tensors = list(GRAPH), [torch.from_numpy(value) for value in beginning().values()]
    with torch.no_grad():
        _, *tensors = step(torch.randn(1, 1, 16_000) * 0.05, *tensors)
    axes = {"x": {2: "S"}, "y": {1: "F"}}
    for name, shape in GRAPH.items():
        if name in ("count", "level", "logs") or name.endswith("gru"):
            continue
        axis = 1 if name.endswith(("voices", "pending")) else 2
        axes[name], axes[f"next_{name}"] = {axis: f"{name}_length"}, {axis: f"next_{name}_length"}
    example = (torch.randn(1, 1, 3200) * 0.05, *tensors)
    outputs = ["y", *(f"next_{name}" for name in names)]
    torch.onnx.export(step, example, str(path), input_names=["x", *names], output_names=outputs, opset_version=OPSET, dynamic_axes=axes, dynamo=False)
    graph = onnx.load(path)
    onnx.helper.set_model_props(graph, properties)
    onnx.save(graph, path)


def run(session: onnxruntime.InferenceSession, samples: np.ndarray, chunks: tuple[int, ...]) -> np.ndarray:
    """Log-probabilities [F,7] of samples that come in chunks, whose lengths follow one another again and again."""
    state, said, at = beginning(), [], 0
    for size in itertools.chain([max(FIRST_SAMPLES, chunks[0])], itertools.cycle(chunks)):
        if at >= len(samples):
            break
        piece = samples[at : at + size]
        at += len(piece)
        out, *tensors = session.run(None, {"x": piece[None, None], **state})
        state = dict(zip(GRAPH, tensors, strict=True))
        said.append(out[0])
    return np.concatenate(said)


def check(network: StreamingSegmentation, path: Path) -> float:
    """Largest difference of the graph, fed in several ways, and the network over the whole; raises where it is too large."""
    rng = np.random.default_rng(0)
    count = CHECK_SECONDS * RATE_HZ
    x = (rng.standard_normal(count) * 0.1 * np.sin(np.arange(count) / 3000)).astype(np.float32)
    x[20_000:26_000] = 0
    with torch.no_grad():
        expected = network(torch.from_numpy(running_features(mel_power(x)))[None].transpose(1, 2))[0].numpy()
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    worst = 0.0
    for chunks in (CHECK_CHUNKS, (3200,), (count,)):
        got = run(session, x, chunks)
        if len(got) < len(expected) - 25:
            raise ValueError(f"only {len(got)} of {len(expected)} frames")
        # The training form pads its end, which a stream does not have.
        worst = max(worst, float(np.abs(np.exp(got) - np.exp(expected[: len(got)])).max()))
    if worst > TOLERANCE:
        raise ValueError(f"ONNX differs from PyTorch by {worst}")
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", required=True, help="checkpoint or state_dict; averaged weights are taken")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--weights", type=Path, help="also write the averaged weights (float32 state_dict without training-only parts)")
    parser.add_argument("--version", default="1")
    args = parser.parse_args()
    torch.set_num_threads(1)
    network = load_weights(args.checkpoint, form=StreamingSegmentation).eval()
    properties = {**metadata(args.version), "streaming": "1", "window_samples": "0", "frames_per_window": "0"}
    properties |= {"state": json.dumps({name: list(shape) for name, shape in GRAPH.items()}), "life_samples": str(LIFE_SECONDS * RATE_HZ), "first_samples": str(FIRST_SAMPLES), "grid_samples": str(GRID_SAMPLES)}
    write(Step(network).eval(), args.out, properties)
    difference = check(network, args.out)
    describe(args.out, network)
    print(f"probabilities, ONNX in chunks against PyTorch at once: largest difference {difference:.1e}")
    if args.weights:
        save_weights(network, args.weights)


if __name__ == "__main__":
    main()
