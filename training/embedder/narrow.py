"""Step 3 of a narrower network, before its training: the channels of a trained one that matter most.

    python -m embedder.narrow --work WORK --weights embedder/weights/embedder-v2.npz --channels 192 --out narrow.npz

How much a channel matters is how strongly it is on (mean absolute activation on training crops) times the norm of the weights that read it (magnitude
pruning: Li et al., "Pruning Filters for Efficient ConvNets", ICLR 2017). Channels of the residual stream are chosen once for all blocks, those inside a block within their groups. What is
left is a start to train from (``train.py --initial narrow.npz --channels 192``), no network to use.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from .feeds import MelFeed
from .model import Embedder

BATCHES, BATCH_CROPS, CROP_FRAMES = 20, 32, 200


def load(weights: Path, channels: int) -> Embedder:
    """A network with the weights of ``export.py``'s .npz."""
    model, stored = Embedder(channels), np.load(weights)
    model.load_state_dict({k: torch.from_numpy(stored[k]).to(v.dtype) for k, v in model.state_dict().items()})
    return model


@torch.no_grad()
def activity(model: Embedder, work: Path, seed: int) -> dict[str, Tensor]:
    """Mean absolute input of every convolution over time, by the convolution's name, [channels]."""
    sums: dict[str, Tensor] = {}
    names = {m: n for n, m in model.trunk.named_modules() if n.startswith(("blocks", "expand")) and hasattr(m, "stride")}

    def note(module, inputs) -> None:
        own = inputs[0].abs().mean((0, 2, 3))
        sums[names[module]] = sums.get(names[module], 0) + own / BATCHES

    hooks = [module.register_forward_pre_hook(note) for module in names]
    feed = MelFeed(work, seed, torch.device("cpu"))
    model.eval()
    for _ in range(BATCHES):
        model(feed.draw(BATCH_CROPS, CROP_FRAMES)[0])
    for hook in hooks:
        hook.remove()
    return sums


def strongest(importance: Tensor, count: int, groups: int = 1) -> Tensor:
    """Indices, rising, of the ``count`` most important channels, as many of each group."""
    rows = importance.view(groups, -1).topk(count // groups, 1).indices.sort(1).values
    return (rows + torch.arange(groups)[:, None] * (len(importance) // groups)).flatten()


def narrow(model: Embedder, seen: dict[str, Tensor], channels: int) -> Embedder:
    """A network of fewer channels with the weights of those that are kept."""
    trunk = model.trunk
    reads = [(seen[f"blocks.{i}.conv1"], block.conv1.weight) for i, block in enumerate(trunk.blocks)] + [(seen["expand"], trunk.expand.weight)]
    stream = strongest(sum(on * weight.square().sum((0, 2, 3)).sqrt() for on, weight in reads), channels)
    state = dict(model.state_dict())

    def take(name: str, rows: Tensor | None, columns: Tensor | None = None) -> None:
        value = state[name] if rows is None else state[name][rows]
        state[name] = value if columns is None else value[:, columns]

    def take_norm(name: str, rows: Tensor) -> None:
        for part in ("weight", "bias", "running_mean", "running_var"):
            take(f"{name}.{part}", rows)

    take("trunk.stem.weight", stream)
    take_norm("trunk.stem_norm", stream)
    for i, block in enumerate(trunk.blocks):
        at, groups = f"trunk.blocks.{i}", block.conv2.groups
        size = block.conv2.weight.shape[1]
        # A grouped convolution's weights say for each channel of a group how it is read by the group's outputs.
        read = block.conv2.weight.view(groups, -1, size, 3).square().sum((1, 3)).sqrt().flatten()
        first = strongest(seen[f"blocks.{i}.conv2"] * read, channels, groups)
        second = strongest(seen[f"blocks.{i}.conv3"] * block.conv3.weight.square().sum((0, 2, 3)).sqrt(), channels, groups)
        take(f"{at}.conv1.weight", first, stream)
        take_norm(f"{at}.norm1", first)
        inside = (first % size).view(groups, -1)
        rows = state[f"{at}.conv2.weight"][second].view(groups, channels // groups, size, 1, 3)
        kept = [rows[group][:, inside[group]] for group in range(groups)]
        state[f"{at}.conv2.weight"] = torch.cat(kept)
        take_norm(f"{at}.norm2", second)
        take(f"{at}.conv3.weight", stream, second)
        take_norm(f"{at}.norm3", stream)
    take("trunk.expand.weight", None, stream)
    smaller = Embedder(channels)
    smaller.load_state_dict(state)
    return smaller


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--from-channels", type=int, default=256)
    parser.add_argument("--channels", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(1)
    model = load(args.weights, args.from_channels)
    smaller = narrow(model, activity(model, args.work, args.seed), args.channels)
    np.savez_compressed(args.out, **{k: v.numpy() for k, v in smaller.state_dict().items()})
    print(f"{args.channels} of {args.from_channels} channels")


if __name__ == "__main__":
    main()
