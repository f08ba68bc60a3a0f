"""Step 4: train the network on windows drawn on the fly, one process, one thread.

The learning rate falls with the share of `--minutes` that has passed (counted over all runs of a resumed training); a checkpoint with everything
needed to go on is written every few minutes and at the end.
"""

import argparse
import math
import os
import time
from pathlib import Path

import numpy as np
import torch

from .frontend import FRAMES_PER_SECOND, log_features, running_features
from .losses import error_rates, permutation_loss, side_losses, soft_label_loss
from .model import Segmentation, load_weights
from .simulate import Simulator
from .soft import SoftWindows
from .streaming_model import LIFE_SECONDS, StreamingSegmentation
from .turns import WINDOW_FRAMES

BETAS, WEIGHT_DECAY, GRADIENT_NORM = (0.9, 0.98), 0.02, 3.0
LATE_FROM, LATE_FACTOR = 0.7, 0.4
"""After this share of the time the side losses count less."""
AVERAGE_DECAY, AVERAGE_EVERY = 0.9985, 4
VALIDATION_WINDOWS, VALIDATION_SEED = 300, 77
BEGINNING_LABELS, BEGINNING_WEIGHT = 75, 0.3
"""What a streaming state says at its very beginning counts little, and so little of it is asked."""


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--start", help="weights to start from (state_dict or checkpoint)")
    parser.add_argument("--resume", action="store_true", help="go on from --checkpoint")
    parser.add_argument("--minutes", type=float, required=True, help="length of the whole training")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--final-rate", type=float, default=2e-5)
    parser.add_argument("--warm-up", type=int, default=300, help="steps")
    parser.add_argument("--save-minutes", type=float, default=5.0)
    parser.add_argument("--pair-weight", type=float, default=0.6)
    parser.add_argument("--identity-weight", type=float, default=0.25, help="less when starting from trained weights")
    parser.add_argument("--streaming", action="store_true", help="the form that carries its state; sequences as long as a state lives")
    parser.add_argument("--soft", type=Path, help="soft labels written by distil.py")
    parser.add_argument("--soft-share", type=float, default=0.15, help="share of batches drawn from them")
    parser.add_argument("--soft-weight", type=float, default=0.5)
    return parser.parse_args()


def simulator(args: argparse.Namespace, split: str, seed: int) -> Simulator:
    """Draws what the chosen form is trained on."""
    if args.streaming:
        return Simulator(args.work, split, seed, LIFE_SECONDS * FRAMES_PER_SECOND, running_features)
    return Simulator(args.work, split, seed, WINDOW_FRAMES, log_features)


def validation_set(args: argparse.Namespace) -> list[torch.Tensor]:
    """Fixed windows of the held-out voices: features, labels, mask."""
    x, labels, mask, _ = simulator(args, "dev", VALIDATION_SEED).batch(VALIDATION_WINDOWS)
    return [torch.from_numpy(part) for part in (x, labels, mask)]


class Trainer:
    """Model, optimiser, running average of the weights, and the counters that a checkpoint keeps."""

    def __init__(self, args: argparse.Namespace):
        self.args, self.step, self.windows, self.seconds = args, 0, 0, 0.0
        state = torch.load(args.checkpoint, map_location="cpu", weights_only=False) if args.resume else None
        self.simulator = simulator(args, "train", args.seed * 1000 + (state["step"] if state else 0))
        torch.manual_seed(args.seed)
        form, identities = StreamingSegmentation if args.streaming else Segmentation, self.simulator.identities
        self.model = load_weights(args.start, identities, form) if args.start else form(identities)
        parameters = list(self.model.parameters())
        groups = [
            dict(params=[p for p in parameters if p.dim() > 1], weight_decay=WEIGHT_DECAY),
            dict(params=[p for p in parameters if p.dim() <= 1], weight_decay=0.0),
        ]
        self.optimiser = torch.optim.AdamW(groups, lr=args.rate, betas=BETAS)
        if state:
            self.model.load_state_dict(state["model"])
            self.optimiser.load_state_dict(state["optimiser"])
            self.step, self.windows, self.seconds = state["step"], state["windows"], state["seconds"]
        self.average = state["average"] if state else {name: value.clone().float() for name, value in self.model.state_dict().items()}
        self.soft = SoftWindows(args.soft, args.seed + self.step) if args.soft else None

    def save(self) -> None:
        partial = self.args.checkpoint.with_suffix(".partial")
        state = dict(model=self.model.state_dict(), optimiser=self.optimiser.state_dict(), average=self.average)
        torch.save(dict(state, step=self.step, windows=self.windows, seconds=self.seconds), partial)
        os.replace(partial, self.args.checkpoint)

    def rate(self, progress: float) -> float:
        low = self.args.final_rate
        cosine = low + (self.args.rate - low) * 0.5 * (1 + math.cos(math.pi * progress))
        return float(cosine * min(1, (self.step + 1) / self.args.warm_up))

    def loss(self, progress: float) -> tuple[torch.Tensor, dict[str, float]]:
        """Loss of one batch: simulated windows, or windows with soft labels."""
        if self.soft and self.simulator.rng.random() < self.args.soft_share:
            x, labels, mask, soft = self.soft.batch(self.args.batch)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                logs = self.model(x.transpose(1, 2))
            hard, near = permutation_loss(logs, labels, mask).mean(), soft_label_loss(logs, soft).mean()
            weight = self.args.soft_weight
            return (1 - weight) * hard + weight * near, dict(soft=near.item())
        x, labels, mask, identities = (torch.from_numpy(part) for part in self.simulator.batch(self.args.batch))
        mask = mask.float()
        if self.args.streaming:
            mask[:, :BEGINNING_LABELS] *= BEGINNING_WEIGHT
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logs, first, last = self.model(x.float().transpose(1, 2), heads=True)
        main = permutation_loss(logs, labels, mask).mean()
        pair, identity = side_losses(self.model, first, last, labels.float(), mask, identities)
        late = 1.0 if progress < LATE_FROM else LATE_FACTOR
        total = main + late * (self.args.pair_weight * pair + self.args.identity_weight * identity)
        return total, dict(main=main.item(), pair=pair.item(), identity=identity.item())

    def update(self, progress: float) -> dict[str, float]:
        for group in self.optimiser.param_groups:
            group["lr"] = self.rate(progress)
        loss, parts = self.loss(progress)
        self.optimiser.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), GRADIENT_NORM)
        if torch.isfinite(norm):
            self.optimiser.step()
        self.step += 1
        self.windows += self.args.batch
        if self.step % AVERAGE_EVERY == 0:
            decay = min(AVERAGE_DECAY, (1 + self.step) / (20 + self.step)) ** AVERAGE_EVERY
            for name, value in self.model.state_dict().items():
                self.average[name].mul_(decay).add_(value.float(), alpha=1 - decay)
        return parts

    @torch.no_grad()
    def validate(self, held_out: list[torch.Tensor]) -> dict[str, float]:
        """Error rates of the averaged weights on the held-out windows."""
        own = {name: value.clone() for name, value in self.model.state_dict().items()}
        self.model.load_state_dict({name: value.to(own[name].dtype) for name, value in self.average.items()})
        self.model.eval()
        logs = torch.cat([self.model(part.float().transpose(1, 2)) for part in held_out[0].split(50)])
        self.model.load_state_dict(own)
        self.model.train()
        return error_rates(logs, held_out[1], held_out[2])


def report(name: str, trainer: Trainer, values: dict[str, float]) -> None:
    shown = " ".join(f"{key} {value:.3f}" if abs(value) < 10 else f"{key} {value:.1f}" for key, value in values.items())
    minutes = trainer.seconds / 60
    print(f"{name} {minutes:.1f} min, step {trainer.step}, {trainer.windows / 1000:.0f}k windows: {shown}", flush=True)


def main() -> None:
    args = parse_arguments()
    torch.set_num_threads(1)
    held_out = validation_set(args)
    trainer = Trainer(args)
    trainer.model.train()
    report("start", trainer, trainer.validate(held_out))
    before, saved = time.monotonic(), trainer.seconds
    sums: dict[str, list[float]] = {}
    while trainer.seconds < args.minutes * 60:
        for key, value in trainer.update(trainer.seconds / (args.minutes * 60)).items():
            sums.setdefault(key, []).append(value)
        now = time.monotonic()
        trainer.seconds += now - before
        before = now
        if trainer.step % 100 == 0:
            report("train", trainer, {key: float(np.mean(values)) for key, values in sums.items()})
            sums = {}
        if trainer.seconds - saved > args.save_minutes * 60:
            saved = trainer.seconds
            report("held out", trainer, trainer.validate(held_out))
            trainer.save()
    report("final", trainer, trainer.validate(held_out))
    trainer.save()


if __name__ == "__main__":
    main()
