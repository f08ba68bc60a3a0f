"""A network in training: its weights, the optimiser, the running average of the weights, and its checkpoint."""

import os
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from .model import TRAINING_ONLY, Segmentation
from .together import Together

BETAS, WEIGHT_DECAY, GRADIENT_NORM = (0.9, 0.98), 0.02, 3.0
AVERAGE_EVERY = 4
VALIDATED_AT_ONCE = 50

LossOf = Callable[[Segmentation], tuple[Tensor, dict[str, Tensor]]]
"""Returns the loss of a network on one batch, and its components for the report."""


@torch.no_grad()
def outputs_of(model: Segmentation, x: Tensor) -> Tensor:
    """Output of a network for features [N,F100,64]: log-probabilities [N,F50,7] on the CPU."""
    device = next(model.parameters()).device
    return torch.cat([model(part.to(device).float().transpose(1, 2)).cpu() for part in x.split(VALIDATED_AT_ONCE)])


class Learner:
    """state: as written by `save`"""

    def __init__(self, model: Segmentation, checkpoint: Path, rate: float, heads_only: bool, state: dict | None):
        self.model, self.checkpoint, self.heads_only = model, checkpoint, heads_only
        self._to_training()
        self.device = next(model.parameters()).device
        on_gpu = self.device.type == "cuda"
        if heads_only:
            for name, parameter in model.named_parameters():
                parameter.requires_grad_(name.startswith(TRAINING_ONLY))
        parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        groups = [
            dict(params=[p for p in parameters if p.dim() > 1], weight_decay=WEIGHT_DECAY),
            dict(params=[p for p in parameters if p.dim() <= 1], weight_decay=0.0),
        ]
        self.optimiser = torch.optim.AdamW(groups, lr=rate, betas=BETAS, fused=on_gpu)
        if state:
            model.load_state_dict(state["model"])
            for group in state["optimiser"]["param_groups"]:
                group["fused"] = on_gpu
            self.optimiser.load_state_dict(state["optimiser"])
        average = state["average"] if state else model.state_dict()
        self.average = {name: value.to(self.device, torch.float32, copy=True) for name, value in average.items()}

    def _to_training(self) -> None:
        """With heads only, the batch norms keep their statistics, which are part of the network's output."""
        self.model.train()
        if self.heads_only:
            for norm in (self.model.norm1, self.model.norm2):
                norm.eval()

    def save(self, counters: dict[str, float]) -> None:
        """Write the checkpoint; the optimiser's running means of gradients are stored in bfloat16, a sixth smaller."""
        optimiser = self.optimiser.state_dict()
        kept = {
            number: dict(values, exp_avg=values["exp_avg"].bfloat16()) for number, values in optimiser["state"].items()
        }
        state = dict(model=self.model.state_dict(), optimiser=dict(optimiser, state=kept), average=self.average)
        unfinished = self.checkpoint.with_suffix(".partial")
        torch.save(dict(state, **counters), unfinished)
        os.replace(unfinished, self.checkpoint)

    def update(
        self, loss_of: LossOf, rate: float, together: Together, step: int, average_decay: float
    ) -> dict[str, Tensor]:
        """Update with the batch number `step`; gradients are averaged over the processes. Returns the loss
        components."""
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        loss, parts = loss_of(self.model)
        self.optimiser.zero_grad()
        loss.backward()
        together.average_gradients(list(self.model.parameters()))
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), GRADIENT_NORM)
        if self.device.type == "cuda":  # the fused optimiser reads this on the GPU, without synchronisation
            self.optimiser.found_inf = (~torch.isfinite(norm)).float()
            self.optimiser.step()
        elif torch.isfinite(norm):
            self.optimiser.step()
        if step % AVERAGE_EVERY == 0:
            decay = min(average_decay, (1 + step) / (20 + step)) ** AVERAGE_EVERY
            averages, state = list(self.average.values()), self.model.state_dict()
            torch._foreach_lerp_(averages, [state[name].float() for name in self.average], 1 - decay)
        return parts

    @torch.no_grad()
    def outputs(self, x: Tensor) -> Tensor:
        """Output of the averaged weights for features [N,F100,64]: log-probabilities [N,F50,7] on the CPU."""
        own = {name: value.clone() for name, value in self.model.state_dict().items()}
        self.model.load_state_dict({name: value.to(own[name].dtype) for name, value in self.average.items()})
        self.model.eval()
        logs = outputs_of(self.model, x)
        self.model.load_state_dict(own)
        self._to_training()
        return logs
