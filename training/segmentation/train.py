"""Step 4: train the network on simulated windows: on the CPU with one thread per process (`torchrun` starts several),
or on a GPU with `--workers` processes that simulate the windows.

The learning rate falls with the elapsed share of `--minutes` (counted over all runs of a resumed training). A
checkpoint with all state for a resumption is written every few minutes and at the end.
"""

import argparse
import math
import time
from functools import partial
from pathlib import Path

import numpy as np
import torch

from .corpus import read_noise_index
from .frontend import FRAMES_PER_SECOND
from .learner import VALIDATED_AT_ONCE, Learner, LossOf
from .losses import error_rates, permutation_loss, side_losses, soft_label_loss
from .model import BLOCKS, Segmentation, blocks_in, load_weights
from .render import Renderer
from .simulate import Simulator
from .soft import SoftWindows
from .together import Together
from .turns import WINDOW_FRAMES
from .waves import WaveSimulator
from .workers import Source, Workers

LATE_FROM, LATE_FACTOR = 0.7, 0.4
"""Share of the time after which the weight of the side losses is reduced, and the factor."""
AVERAGE_DECAY = 0.9985
VALIDATION_WINDOWS, VALIDATION_SEED = 300, 77
REPORT_EVERY = 100
SHORT_SECONDS = (3, 7)
"""Lengths of windows of live streams and of last windows of recordings."""


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--start", help="weights to start from (state_dict or checkpoint)")
    parser.add_argument(
        "--blocks",
        type=int,
        nargs="+",
        help="blocks of the network; several values train networks of different depth on the same windows",
    )
    parser.add_argument("--resume", action="store_true", help="continue from --checkpoint")
    parser.add_argument("--minutes", type=float, required=True, help="length of the training")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--final-rate", type=float, default=2e-5)
    parser.add_argument("--warm-up", type=int, default=300, help="steps")
    parser.add_argument(
        "--average-decay", type=float, default=AVERAGE_DECAY, help="of the running average of the weights, per step"
    )
    parser.add_argument(
        "--waves",
        type=Path,
        metavar="NOISE",
        help="mix speech as waveforms (prepare_waves.py), in the rooms of this noise folder and random ones",
    )
    parser.add_argument(
        "--mel-share", type=float, default=0.0, help="with --waves: share of the batches that are mixed as mel powers"
    )
    parser.add_argument("--device", choices=["cuda", "cpu"], help="default: cuda if available")
    parser.add_argument(
        "--float32",
        action="store_true",
        help="no bfloat16: faster on processors that have no units for its matrices (AMX)",
    )
    parser.add_argument(
        "--workers", type=int, default=0, help="processes that simulate windows; 0: the training process"
    )
    parser.add_argument("--save-minutes", type=float, default=5.0)
    parser.add_argument("--pair-weight", type=float, default=0.6)
    parser.add_argument("--identity-weight", type=float, default=0.25, help="less when starting from trained weights")
    parser.add_argument(
        "--heads-only", action="store_true", help="only the heads of the side losses, which stored weights lack"
    )
    parser.add_argument("--soft", type=Path, help="soft labels written by distil.py")
    parser.add_argument("--soft-share", type=float, default=0.15, help="share of batches drawn from them")
    parser.add_argument("--soft-weight", type=float, default=0.5)
    parser.add_argument("--short-share", type=float, default=0.0, help="share of batches that are cut to 3 to 7 s")
    args = parser.parse_args()
    if args.mel_share and not args.waves:
        parser.error("without --waves all batches are mel powers: leave out --mel-share")
    if not 0 <= args.mel_share < 1 or (
        args.workers and args.mel_share and not 0 < round(args.workers * args.mel_share) < args.workers
    ):
        parser.error("--mel-share is below 1, and leaves a worker for either kind of batches")
    if args.heads_only and args.soft:
        parser.error("windows with soft labels teach the heads nothing (--heads-only without --soft)")
    if args.blocks and len(set(args.blocks)) < len(args.blocks):
        parser.error("--blocks names a number twice, and with it a checkpoint")
    # Each of several networks has its own checkpoint: model.pt becomes model-4.pt and model-6.pt.
    path = args.checkpoint
    args.checkpoints = (
        [path]
        if args.blocks is None or len(args.blocks) == 1
        else [path.with_stem(f"{path.stem}-{blocks}") for blocks in args.blocks]
    )
    args.blocks = args.blocks or [None]
    args.device = args.device or ("cuda" if torch.cuda.is_available() else "cpu")
    return args


def simulator(args: argparse.Namespace, split: str, seed: int | list[int], mel: bool = False) -> Simulator:
    """Simulates training windows; with `mel` as mel powers, also with --waves."""
    if args.waves and not mel:
        return WaveSimulator(args.work, split, seed, len(read_noise_index(args.waves, "rir")))
    return Simulator(args.work, split, seed)


def validation_set(args: argparse.Namespace, renderer: Renderer | None) -> list[torch.Tensor]:
    """Fixed windows of the held-out voices: features, labels, mask."""
    device = renderer.white.device if renderer else torch.device("cpu")
    source = Source(simulator(args, "dev", VALIDATION_SEED), None, VALIDATED_AT_ONCE, device, renderer)
    batches = [source.batch()[:3] for _ in range(VALIDATION_WINDOWS // VALIDATED_AT_ONCE)]
    return [torch.cat(parts).cpu() for parts in zip(*batches)]


def shortened(x: torch.Tensor, part: slice) -> torch.Tensor:
    """Features [N,F100,64] of a span given in labels at 50 Hz, less the mean over its time (the floor remains that of
    the complete window)."""
    x = x[:, 2 * part.start : 2 * part.stop]
    return x - x.mean(1, keepdim=True)


class Trainer:
    """Networks that are trained on the same windows, and the counters of their checkpoints."""

    def __init__(self, args: argparse.Namespace, together: Together):
        self.args, self.together = args, together
        self.seconds_waited = 0.0
        self.device = torch.device(args.device)
        states = (
            [torch.load(path, map_location="cpu", weights_only=False) for path in args.checkpoints]
            if args.resume
            else [None] * len(args.checkpoints)
        )
        self.step, self.windows, self.seconds = (
            states[0][name] if states[0] else 0 for name in ("step", "windows", "seconds")
        )
        self.renderer = Renderer(args.work, args.waves).to(self.device) if args.waves else None
        mels = round(args.workers * args.mel_share)
        self.simulator, self.source = self._source(args, args.workers - mels, self.renderer)
        self.mel_source = self._source(args, mels, None)[1] if args.mel_share else None
        torch.manual_seed(args.seed)
        self.learners = [self._learner(*one) for one in zip(args.blocks, args.checkpoints, states)]
        self.soft = SoftWindows(args.soft, args.seed + self.step + together.number) if args.soft else None
        self.chance = np.random.default_rng(
            [args.seed, self.step]
        )  # the same in all processes, so that the same parameters have gradients

    def _source(self, args: argparse.Namespace, count: int, renderer: Renderer | None) -> tuple[Simulator, Source]:
        """Source of batches with `count` workers: plans for the renderer, or mel powers without one."""
        mine = [self.together.number] if self.together.count > 1 else []
        mel = renderer is None
        make = partial(simulator, args, "train", mel=mel)
        apart = [1] if mel and args.waves else []  # batches of both kinds have separate seeds
        shapes = (Simulator if mel else WaveSimulator).shapes()
        workers = Workers(count, args.batch, shapes, make, [args.seed, self.step, *mine, *apart]) if count else None
        drawn = make([args.seed * 1000 + self.step, *mine, *apart])
        return drawn, Source(drawn, workers, args.batch, self.device, renderer)

    def _learner(self, blocks: int | None, checkpoint: Path, state: dict | None) -> Learner:
        args, identities = self.args, self.simulator.identities
        if state:
            blocks = blocks_in(state["model"])
        if args.start:
            model = load_weights(args.start, identities, blocks)
        else:
            model = Segmentation(identities, blocks or BLOCKS)
        return Learner(model.to(self.device), checkpoint, args.rate, args.heads_only, state)

    def save(self) -> None:
        for learner in self.learners:
            learner.save(dict(step=self.step, windows=self.windows, seconds=self.seconds))

    def close(self) -> None:
        for source in (self.source, self.mel_source):
            if source:
                source.close()

    def rate(self, progress: float) -> float:
        low = self.args.final_rate
        cosine = low + (self.args.rate - low) * 0.5 * (1 + math.cos(math.pi * progress))
        return float(cosine * min(1, (self.step + 1) / self.args.warm_up))

    def _short_part(self) -> slice:
        """Labels at 50 Hz of a span of 3 to 7 s, both ends on the grid of the network at 25 Hz."""
        pairs = self.chance.integers(*(seconds * FRAMES_PER_SECOND // 4 for seconds in SHORT_SECONDS))
        start = self.chance.integers(WINDOW_FRAMES // 4 - pairs + 1)
        return slice(int(2 * start), int(2 * (start + pairs)))

    def _autocast(self) -> torch.autocast:
        return torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=not self.args.float32)

    def _soft_batch(self) -> LossOf:
        """Windows with soft labels."""
        x, labels, mask, soft = (part.to(self.device) for part in self.soft.batch(self.args.batch))
        weight = self.args.soft_weight

        def loss(model: Segmentation) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
            with self._autocast():
                logs = model(x.transpose(1, 2))
            hard, near = (
                permutation_loss(logs, labels, mask).mean(),
                soft_label_loss(logs, soft, torch.ones_like(mask)).mean(),
            )
            return (1 - weight) * hard + weight * near, dict(soft=near.detach())

        return loss

    def _simulated_batch(self, progress: float) -> LossOf:
        args = self.args
        before = time.monotonic()
        source = self.mel_source if self.mel_source and self.chance.random() < args.mel_share else self.source
        x, labels, mask, identities = source.batch()
        self.seconds_waited += time.monotonic() - before
        mask = mask.float()
        x = x.float()
        if self.chance.random() < args.short_share:
            part = self._short_part()
            x, labels, mask = shortened(x, part), labels[..., part], mask[:, part]
        late = 1.0 if progress < LATE_FROM else LATE_FACTOR

        def loss(model: Segmentation) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
            with self._autocast():
                logs, first, last = model(x.transpose(1, 2), heads=True)
            main = permutation_loss(logs, labels, mask).mean()
            pair, identity = side_losses(model, first, last, labels.float(), mask, identities)
            total = main + late * (args.pair_weight * pair + args.identity_weight * identity)
            return total, dict(main=main.detach(), pair=pair.detach(), identity=identity.detach())

        return loss

    def update(self, progress: float) -> dict[str, torch.Tensor]:
        """One batch, simulated or with soft labels, for every network; their losses by name."""
        soft = self.soft and self.chance.random() < self.args.soft_share
        loss_of = self._soft_batch() if soft else self._simulated_batch(progress)
        self.step += 1
        self.windows += self.args.batch * self.together.count
        rate, parts = self.rate(progress), {}
        for learner in self.learners:
            losses = learner.update(loss_of, rate, self.together, self.step, self.args.average_decay)
            parts |= {self._name(name, learner): value for name, value in losses.items()}
        return parts

    def _name(self, name: str, learner: Learner) -> str:
        return name if len(self.learners) == 1 else f"{name}-{len(learner.model.blocks)}"

    def validate(self, held_out: list[torch.Tensor]) -> dict[str, float]:
        """Error rates of the averaged weights on the held-out windows: features, labels, mask."""
        rates: dict[str, float] = {}
        for learner in self.learners:
            found = error_rates(learner.outputs(held_out[0]), held_out[1], held_out[2])
            rates |= {self._name(name, learner): value for name, value in found.items()}
        return rates


def report(name: str, trainer: Trainer, values: dict[str, float]) -> None:
    shown = " ".join(f"{key} {value:.3f}" if abs(value) < 10 else f"{key} {value:.1f}" for key, value in values.items())
    minutes = trainer.seconds / 60
    print(f"{name} {minutes:.1f} min, step {trainer.step}, {trainer.windows / 1000:.0f}k windows: {shown}", flush=True)


class Progress:
    """Losses and speed since the last report. Only a report reads losses from the device."""

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
    held_out = validation_set(args, trainer.renderer) if first else []
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
        trainer.close()
        together.close()


if __name__ == "__main__":
    main()
