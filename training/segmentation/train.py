"""Step 4: train the network on windows drawn on the fly: on the CPU with one thread a process (`torchrun` starts several), or on a GPU with `--workers`
processes that draw the windows.

The learning rate falls with the share of `--minutes` that has passed (counted over all runs of a resumed training); a checkpoint with everything
needed to go on is written every few minutes and at the end.
"""

import argparse
import math
import os
import time
from functools import partial
from pathlib import Path

import numpy as np
import torch

from .ensemble import Ensemble
from .frontend import FRAMES_PER_SECOND, log_features, running_features
from .losses import error_rates, permutation_loss, side_losses, soft_label_loss
from .model import TRAINING_ONLY, Segmentation, load_weights
from .simulate import Simulator
from .soft import SoftWindows
from .streaming_model import LIFE_SECONDS, StreamingSegmentation
from .together import Together
from .turns import WINDOW_FRAMES
from .workers import Source, Workers

BETAS, WEIGHT_DECAY, GRADIENT_NORM = (0.9, 0.98), 0.02, 3.0
LATE_FROM, LATE_FACTOR = 0.7, 0.4
"""After this share of the time the side losses count less."""
AVERAGE_DECAY, AVERAGE_EVERY = 0.9985, 4
VALIDATION_WINDOWS, VALIDATION_SEED = 300, 77
REPORT_EVERY = 100
SHORT_SECONDS = (3, 7)
"""Windows of live streams and last windows of recordings are as short as this."""
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
    parser.add_argument("--average-decay", type=float, default=AVERAGE_DECAY, help="of the running average of the weights, per step")
    parser.add_argument("--device", choices=["cuda", "cpu"], help="default: cuda where there is one (never for --streaming)")
    parser.add_argument("--float32", action="store_true", help="no bfloat16: faster on processors that have no units for its matrices (AMX)")
    parser.add_argument("--workers", type=int, default=0, help="processes that draw windows; 0: the trainer draws them itself")
    parser.add_argument("--save-minutes", type=float, default=5.0)
    parser.add_argument("--pair-weight", type=float, default=0.6)
    parser.add_argument("--identity-weight", type=float, default=0.25, help="less when starting from trained weights")
    parser.add_argument("--heads-only", action="store_true", help="only the heads of the side losses, which stored weights lack")
    parser.add_argument("--streaming", action="store_true", help="the form that carries its state; sequences as long as a state lives")
    parser.add_argument("--soft", type=Path, help="soft labels written by distil.py")
    parser.add_argument("--soft-share", type=float, default=0.15, help="share of batches drawn from them")
    parser.add_argument("--soft-weight", type=float, default=0.5)
    parser.add_argument("--teachers", nargs="+", help="weights whose probabilities, averaged, are soft labels of the simulated windows")
    parser.add_argument("--teacher-weight", type=float, default=0.5, help="how much they count beside the exact labels")
    parser.add_argument("--short-share", type=float, default=0.0, help="share of batches of which only 3 to 7 s are heard; teachers hear all of it")
    args = parser.parse_args()
    if args.streaming and (args.teachers or args.short_share):
        parser.error("--teachers and --short-share are for windows")
    if args.streaming and args.device == "cuda":
        parser.error("the streaming form is trained on the CPU only")
    if args.heads_only and args.soft:
        parser.error("windows with soft labels teach the heads nothing (--heads-only without --soft)")
    args.device = args.device or ("cuda" if torch.cuda.is_available() and not args.streaming else "cpu")
    return args


def window_frames(args: argparse.Namespace) -> int:
    return LIFE_SECONDS * FRAMES_PER_SECOND if args.streaming else WINDOW_FRAMES


def simulator(args: argparse.Namespace, split: str, seed: int | list[int]) -> Simulator:
    """Draws what the chosen form is trained on."""
    return Simulator(args.work, split, seed, window_frames(args), running_features if args.streaming else log_features)


def validation_set(args: argparse.Namespace) -> list[torch.Tensor]:
    """Fixed windows of the held-out voices: features, labels, mask."""
    x, labels, mask, _ = simulator(args, "dev", VALIDATION_SEED).batch(VALIDATION_WINDOWS)
    return [torch.from_numpy(part) for part in (x, labels, mask)]


def shortened(x: torch.Tensor, part: slice) -> torch.Tensor:
    """Features [N,F100,64] of a stretch given in labels at 50 Hz, without the mean over its time (its floor stays that of the whole window)."""
    x = x[:, 2 * part.start : 2 * part.stop]
    return x - x.mean(1, keepdim=True)


class Trainer:
    """Model, optimiser, running average of the weights, and the counters that a checkpoint keeps."""

    def __init__(self, args: argparse.Namespace, together: Together):
        self.args, self.together = args, together
        self.step, self.windows, self.seconds, self.seconds_waited = 0, 0, 0.0, 0.0
        self.device = torch.device(args.device)
        on_gpu = self.device.type == "cuda"
        state = torch.load(args.checkpoint, map_location="cpu", weights_only=False) if args.resume else None
        step = state["step"] if state else 0
        make = partial(simulator, args, "train")
        mine = [together.number] if together.count > 1 else []
        workers = Workers(args.workers, args.batch, window_frames(args), make, [args.seed, step, *mine]) if args.workers else None
        self.simulator = make([args.seed * 1000 + step, *mine])
        self.source = Source(self.simulator, workers, args.batch, self.device)
        torch.manual_seed(args.seed)
        form, identities = StreamingSegmentation if args.streaming else Segmentation, self.simulator.identities
        self.model = load_weights(args.start, identities, form) if args.start else form(identities)
        self.model.to(self.device)
        if args.heads_only:
            for name, parameter in self.model.named_parameters():
                parameter.requires_grad_(name.startswith(TRAINING_ONLY))
        parameters = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        groups = [
            dict(params=[p for p in parameters if p.dim() > 1], weight_decay=WEIGHT_DECAY),
            dict(params=[p for p in parameters if p.dim() <= 1], weight_decay=0.0),
        ]
        self.optimiser = torch.optim.AdamW(groups, lr=args.rate, betas=BETAS, fused=on_gpu)
        if state:
            self.model.load_state_dict(state["model"])
            for group in state["optimiser"]["param_groups"]:
                group["fused"] = on_gpu
            self.optimiser.load_state_dict(state["optimiser"])
            self.step, self.windows, self.seconds = state["step"], state["windows"], state["seconds"]
        average = state["average"] if state else self.model.state_dict()
        self.average = {name: value.to(self.device, torch.float32, copy=True) for name, value in average.items()}
        self.ensemble = Ensemble(args.teachers, self.device) if args.teachers else None
        self.soft = SoftWindows(args.soft, args.seed + self.step + together.number) if args.soft else None
        self.chance = np.random.default_rng([args.seed, self.step])  # the same in all processes, so that the same parameters have gradients

    def save(self) -> None:
        """Write the checkpoint; of the optimiser's running means of gradients, bfloat16 is kept, which is a sixth less to store."""
        optimiser = self.optimiser.state_dict()
        kept = {number: dict(values, exp_avg=values["exp_avg"].bfloat16()) for number, values in optimiser["state"].items()}
        state = dict(model=self.model.state_dict(), optimiser=dict(optimiser, state=kept), average=self.average)
        unfinished = self.args.checkpoint.with_suffix(".partial")
        torch.save(dict(state, step=self.step, windows=self.windows, seconds=self.seconds), unfinished)
        os.replace(unfinished, self.args.checkpoint)

    def rate(self, progress: float) -> float:
        low = self.args.final_rate
        cosine = low + (self.args.rate - low) * 0.5 * (1 + math.cos(math.pi * progress))
        return float(cosine * min(1, (self.step + 1) / self.args.warm_up))

    def _short_part(self) -> slice:
        """Labels at 50 Hz of a stretch of 3 to 7 s, both ends on the grid of the network at 25 Hz."""
        pairs = self.chance.integers(*(seconds * FRAMES_PER_SECOND // 4 for seconds in SHORT_SECONDS))
        start = self.chance.integers(WINDOW_FRAMES // 4 - pairs + 1)
        return slice(int(2 * start), int(2 * (start + pairs)))

    def loss(self, progress: float) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """Loss of one batch: simulated windows, or windows with soft labels."""
        if self.soft and self.chance.random() < self.args.soft_share:
            x, labels, mask, soft = (part.to(self.device) for part in self.soft.batch(self.args.batch))
            with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=not self.args.float32):
                logs = self.model(x.transpose(1, 2))
            hard, near = permutation_loss(logs, labels, mask).mean(), soft_label_loss(logs, soft, torch.ones_like(mask)).mean()
            weight = self.args.soft_weight
            return (1 - weight) * hard + weight * near, dict(soft=near.detach())
        before = time.monotonic()
        x, labels, mask, identities = self.source.batch()
        self.seconds_waited += time.monotonic() - before
        mask = mask.float()
        if self.args.streaming:
            mask[:, :BEGINNING_LABELS] *= BEGINNING_WEIGHT
        x = x.float()
        target = self.ensemble.targets(x, labels, self.args.teacher_weight) if self.ensemble else None
        if self.chance.random() < self.args.short_share:
            part = self._short_part()
            x, labels, mask = shortened(x, part), labels[..., part], mask[:, part]
            target = target[:, part] if target is not None else None
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=not self.args.float32):
            logs, first, last = self.model(x.transpose(1, 2), heads=True)
        main = (permutation_loss(logs, labels, mask) if target is None else soft_label_loss(logs, target, mask)).mean()
        pair, identity = side_losses(self.model, first, last, labels.float(), mask, identities)
        late = 1.0 if progress < LATE_FROM else LATE_FACTOR
        total = main + late * (self.args.pair_weight * pair + self.args.identity_weight * identity)
        return total, dict(main=main.detach(), pair=pair.detach(), identity=identity.detach())

    def update(self, progress: float) -> dict[str, torch.Tensor]:
        for group in self.optimiser.param_groups:
            group["lr"] = self.rate(progress)
        loss, parts = self.loss(progress)
        self.optimiser.zero_grad()
        loss.backward()
        self.together.average_gradients(list(self.model.parameters()))
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), GRADIENT_NORM)
        if self.device.type == "cuda":  # the fused optimiser looks at this on the GPU, and nobody has to wait for it
            self.optimiser.found_inf = (~torch.isfinite(norm)).float()
            self.optimiser.step()
        elif torch.isfinite(norm):
            self.optimiser.step()
        self.step += 1
        self.windows += self.args.batch * self.together.count
        if self.step % AVERAGE_EVERY == 0:
            decay = min(self.args.average_decay, (1 + self.step) / (20 + self.step)) ** AVERAGE_EVERY
            averages, state = list(self.average.values()), self.model.state_dict()
            torch._foreach_mul_(averages, decay)
            torch._foreach_add_(averages, [state[name].float() for name in self.average], alpha=1 - decay)
        return parts

    @torch.no_grad()
    def validate(self, held_out: list[torch.Tensor]) -> dict[str, float]:
        """Error rates of the averaged weights on the held-out windows."""
        own = {name: value.clone() for name, value in self.model.state_dict().items()}
        self.model.load_state_dict({name: value.to(own[name].dtype) for name, value in self.average.items()})
        self.model.eval()
        logs = torch.cat([self.model(part.to(self.device).float().transpose(1, 2)).cpu() for part in held_out[0].split(50)])
        self.model.load_state_dict(own)
        self.model.train()
        return error_rates(logs, held_out[1], held_out[2])


def report(name: str, trainer: Trainer, values: dict[str, float]) -> None:
    shown = " ".join(f"{key} {value:.3f}" if abs(value) < 10 else f"{key} {value:.1f}" for key, value in values.items())
    minutes = trainer.seconds / 60
    print(f"{name} {minutes:.1f} min, step {trainer.step}, {trainer.windows / 1000:.0f}k windows: {shown}", flush=True)


class Progress:
    """Losses and speed since the last report. Losses are read off the device only then."""

    def __init__(self, trainer: Trainer):
        self.trainer, self.losses = trainer, {}
        self.seconds, self.windows, self.seconds_waited = trainer.seconds, trainer.windows, trainer.seconds_waited

    def add(self, losses: dict[str, torch.Tensor]) -> None:
        for key, value in losses.items():
            self.losses.setdefault(key, []).append(value)

    def report(self) -> None:
        trainer, means = self.trainer, {key: float(torch.stack(values).mean()) for key, values in self.losses.items()}
        seconds = max(1e-9, trainer.seconds - self.seconds)
        per_second = (trainer.windows - self.windows) / seconds
        waited = 100 * (trainer.seconds_waited - self.seconds_waited) / seconds
        report("train", trainer, dict(means, windows_per_second=per_second, percent_waited=waited))


def train(args: argparse.Namespace, trainer: Trainer) -> None:
    first = trainer.together.first
    held_out = validation_set(args) if first else []
    trainer.model.train()
    if first:
        report("start", trainer, trainer.validate(held_out))
    before, saved, progress = time.monotonic(), trainer.seconds, Progress(trainer)
    while trainer.seconds < args.minutes * 60:
        losses = trainer.update(trainer.seconds / (args.minutes * 60))
        if first:
            progress.add(losses)
        now = time.monotonic()
        trainer.seconds = trainer.together.of_first(trainer.seconds + now - before)
        before = now
        if trainer.step % REPORT_EVERY == 0 and first:
            progress.report()
            progress = Progress(trainer)
        if trainer.seconds - saved > args.save_minutes * 60:
            saved = trainer.seconds
            if first:
                report("held out", trainer, trainer.validate(held_out))
                trainer.save()
    if first:
        report("final", trainer, trainer.validate(held_out))
        trainer.save()


def main() -> None:
    args = parse_arguments()
    torch.set_num_threads(1)
    if args.device == "cuda":
        torch.set_float32_matmul_precision("high")  # TF32
    together = Together()
    if together.count > 1 and args.device == "cuda":
        raise SystemExit("several processes train on the CPU only (--device cpu)")
    trainer = Trainer(args, together)
    try:
        train(args, trainer)
    finally:
        trainer.source.close()
        together.close()


if __name__ == "__main__":
    main()
