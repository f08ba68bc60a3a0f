"""Training of one model by several processes on the CPU, one per core: each simulates separate windows, and the
gradients are averaged after every batch.

`torchrun` starts the processes with their ranks and their count. The total batch is larger by that count.
"""

import os

import torch
import torch.distributed as distributed
from torch import Tensor, nn


class Together:
    """The group of processes; a single one without torchrun."""

    def __init__(self) -> None:
        self.count, self.number = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
        if self.count > 1:
            distributed.init_process_group("gloo")

    @property
    def first(self) -> bool:
        """Whether this process reports and writes checkpoints."""
        return self.number == 0

    def average_gradients(self, parameters: list[nn.Parameter]) -> None:
        """In place, over all processes. A parameter without a gradient here must be without one everywhere."""
        if self.count == 1:
            return
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        distributed.all_reduce(flat)
        flat /= self.count
        for gradient, part in zip(gradients, flat.split([gradient.numel() for gradient in gradients])):
            gradient.copy_(part.view_as(gradient))

    def of_first(self, value: float) -> float:
        """The value of the first process, so that all follow one clock."""
        if self.count == 1:
            return value
        shared: Tensor = torch.tensor([value], dtype=torch.float64)
        distributed.broadcast(shared, 0)
        return float(shared)

    def close(self) -> None:
        if self.count > 1:
            distributed.destroy_process_group()
