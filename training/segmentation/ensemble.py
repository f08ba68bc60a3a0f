"""Soft labels of several trained networks: one network learns to say what they say together (Hinton et al., 2015)."""

import torch
from torch import Tensor

from .losses import best_order_for, classes_of
from .model import load_weights


class Ensemble:
    """Networks with fixed weights; what they hear is what the network in training hears."""

    def __init__(self, paths: list[str], device: torch.device):
        self.networks = [load_weights(path).eval().to(device) for path in paths]

    @torch.no_grad()
    def targets(self, x: Tensor, labels: Tensor, weight: float) -> Tensor:
        """Features [N,F100,64] and labels [N,3,F50] -> class probabilities [N,F50,7]: the labels, and by `weight` the mean of the networks.

        The networks' speakers are put into the labels' order, each network's for itself.
        """
        classes = classes_of(labels)
        spoken = [best_order_for(network(x.transpose(1, 2)).exp(), classes) for network in self.networks]
        exact = torch.nn.functional.one_hot(classes, spoken[0].shape[-1]).float()
        return (1 - weight) * exact + weight * torch.stack(spoken).mean(0)
