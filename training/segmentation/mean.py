"""The mean of trained weights that began with a common ancestor ("model soups", Wortsman et al., 2022), as weights to export or to go on from.

    python -m segmentation.mean --out mean.pt a.pt b.pt
"""

import argparse
from pathlib import Path

import torch

from .model import TRAINING_ONLY, load_weights


def mean_of(paths: list[str]) -> dict[str, torch.Tensor]:
    """Mean of the (averaged) weights and of the batch norms' statistics of checkpoints or state_dicts, without training-only parts."""
    states = [load_weights(path).state_dict() for path in paths]
    kept = [name for name in states[0] if not name.startswith(TRAINING_ONLY)]
    return {name: torch.stack([state[name].float() for state in states]).mean(0).to(states[0][name].dtype) for name in kept}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("weights", nargs="+")
    args = parser.parse_args()
    torch.save(mean_of(args.weights), args.out)


if __name__ == "__main__":
    main()
