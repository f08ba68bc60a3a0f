"""The mean of trained weights that began with a common ancestor ("model soups", Wortsman et al., 2022), as weights to export or to go on from.

    python -m segmentation.mean --out mean.pt --weights a.pt b.pt

With --shares other sums: what a mean was made of is got back by `--folded --shares 2 -1`, since networks only mean what they did with their batch norms
folded into the convolutions.
"""

import argparse
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.utils import fuse_conv_bn_eval

from .model import TRAINING_ONLY, Segmentation, load_weights

NORMS = (("conv1", "norm1"), ("conv2", "norm2"))


def folded(network: Segmentation) -> Segmentation:
    """The same network for inference, its batch norms in the convolutions before them, but for the bias, which the norms keep."""
    for conv_name, norm_name in NORMS:
        conv, norm = getattr(network, conv_name), getattr(network, norm_name)
        fused = fuse_conv_bn_eval(conv.eval(), norm.eval())
        with torch.no_grad():
            conv.weight.copy_(fused.weight)
            norm.weight.fill_(1)
            norm.bias.copy_(fused.bias)
            norm.running_mean.zero_()
            norm.running_var.fill_(1 - norm.eps)
    return network


def sum_of(networks: list[Segmentation], shares: list[float]) -> dict[str, Tensor]:
    """Weights and statistics of the batch norms, each network's by its share, without training-only parts."""
    states = [network.state_dict() for network in networks]
    kept = [name for name in states[0] if not name.startswith(TRAINING_ONLY)]
    return {name: sum(share * state[name].double() for share, state in zip(shares, states)).to(states[0][name].dtype) for name in kept}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--weights", nargs="+", required=True)
    parser.add_argument("--shares", type=float, nargs="+", help="of the weights, together 1; without: all the same")
    parser.add_argument("--folded", action="store_true", help="fold the batch norms first; what comes of it is for inference")
    args = parser.parse_args()
    shares = args.shares or [1 / len(args.weights)] * len(args.weights)
    if len(shares) != len(args.weights) or abs(sum(shares) - 1) > 1e-6:
        parser.error("as many --shares as weights, together 1")
    networks = [load_weights(path) for path in args.weights]
    torch.save(sum_of([folded(network) if args.folded else network for network in networks], shares), args.out)


if __name__ == "__main__":
    main()
