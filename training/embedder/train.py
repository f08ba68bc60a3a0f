"""Step 3: train the embedder by soft distillation and classification.

    python -m embedder.train --work WORK --crops 1500000 [--resume]
    python -m embedder.train --work WORK --samples --crops 10000000 --batch-frames 51200 [--minutes 20]     # on a GPU

Loss: 10 (1 - cosine to the teacher's embedding of the same speech without its degradation) + additive-angular-margin
cross-entropy over voices and speeds (Deng et al., "ArcFace", CVPR 2019) against fixed class vectors, the teacher's mean embedding
of each class: the student must tell each voice from all others in the teacher's space. The learning rate follows a cosine over ``--crops``; a checkpoint is written every few minutes and at the end, and ``--resume`` goes on from it with the
optimiser's state, so a run may be cut into pieces. A crop is counted as such whatever its length. With ``--samples`` crops come out of what ``samples.py`` and ``sample_targets.py``
wrote; with ``--fit-minutes`` the schedule ends when the time does. Beside the checkpoint lies ``NAME-weights.pt``, a quarter of its size, which ``export.py`` reads as well. With ``--average`` the model that is exported is a running mean of the weights.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from .augment import JITTER_FRAMES
from .feeds import Lengths, MelFeed, SampleFeed
from .model import CHANNELS, Embedder, flops_per_second

SCALE = 30.0
FINAL_MARGIN = 0.2
DISTILLATION_WEIGHT = 10.0
LOG_STEPS = 200


def margin_loss(cosine: torch.Tensor, label: torch.Tensor, margin: float) -> torch.Tensor:
    """Additive angular margin cross-entropy; cosine [B, C], label [B]."""
    own = cosine.gather(1, label[:, None]).clamp(-0.999, 0.999)
    shifted = torch.cos(torch.acos(own) + margin)
    shifted = torch.where(own > math.cos(math.pi - margin), shifted, own - margin * math.sin(margin))
    return F.cross_entropy(cosine.scatter(1, label[:, None], shifted) * SCALE, label)


def learning_rate(peak: float, done: float) -> float:
    """Linear warm-up over the first 2 % and a cosine to a thousandth."""
    return peak * min(1.0, done / 0.02 + 0.02) * (0.5 + 0.5 * math.cos(math.pi * min(1.0, done))) + peak * 1e-3


class Average:
    """A running mean of a model's floating-point state; its memory grows to ``decay`` as the run does."""

    def __init__(self, model: torch.nn.Module, decay: float, step: int):
        self.decay, self.step = decay, step
        self.own = [v for v in model.state_dict().values() if v.is_floating_point()]
        self.names = [k for k, v in model.state_dict().items() if v.is_floating_point()]
        self.mean = [v.detach().clone() for v in self.own]

    @torch.no_grad()
    def update(self) -> None:
        self.step += 1
        torch._foreach_lerp_(self.mean, self.own, 1 - min(self.decay, (1 + self.step) / (20 + self.step)))

    def state(self, model: torch.nn.Module) -> dict[str, torch.Tensor]:
        """A whole state dict with the means in it."""
        return {**model.state_dict(), **dict(zip(self.names, self.mean))}


def save(path: Path, **state) -> None:
    """Replace the checkpoint whole."""
    torch.save(state, path.with_suffix(".tmp"))
    os.replace(path.with_suffix(".tmp"), path)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--name", default="embedder")
    parser.add_argument("--crops", type=int, default=1_500_000)
    parser.add_argument("--minutes", type=float, default=0, help="stop after this long, keeping the schedule; 0: never")
    parser.add_argument("--fit-minutes", type=float, help="end the schedule after this long, whatever --crops says")
    parser.add_argument("--learning-rate", type=float, default=1.5e-3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint")
    parser.add_argument("--initial", type=Path, help="start from these weights, the .npz that export.py writes")
    parser.add_argument("--samples", action="store_true", help="draw and degrade samples on the device")
    parser.add_argument("--batch-frames", type=int, default=6400)
    parser.add_argument("--channels", type=int, help=f"default: those of the weights to start from, else {CHANNELS}")
    parser.add_argument("--average", type=float, default=0, help="decay of the running mean of the weights, e.g. 0.9995; 0: none")
    parser.add_argument("--save-seconds", type=float, default=300)
    parser.add_argument("--compile", action="store_true", help="a third faster after the first minutes; needs a C++ compiler")
    args = parser.parse_args()
    if not args.samples and args.batch_frames >= JITTER_FRAMES:
        parser.error(f"--batch-frames below {JITTER_FRAMES}, or --samples: what is added to the features is drawn from so many frames")
    return args


def channels_of(weights: dict | None, asked: int | None) -> int:
    """Channels of the network that weights (names to arrays; None: random ones) are for."""
    stored = len(weights["trunk.stem.weight"]) if weights else None
    if asked and stored and asked != stored:
        raise SystemExit(f"the weights to start from have {stored} channels, not {asked}: leave out --channels")
    return asked or stored or CHANNELS


def main() -> None:
    args = parse_arguments()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    checkpoint = args.work / f"{args.name}.pt"
    state = torch.load(checkpoint, map_location=args.device, weights_only=False) if args.resume else None
    seen, step, earlier = (state["seen"], state["step"], state.get("seconds", 0.0)) if state else (0, 0, 0.0)
    device = torch.device(args.device)
    initial = dict(np.load(args.initial)) if args.initial and not state else None
    args.channels = channels_of(state["model"] if state else initial, args.channels)
    feed = (SampleFeed if args.samples else MelFeed)(args.work, args.seed + 1000 * step, device)
    lengths = Lengths(feed, args.seed + 1000 * step + 2)
    model = Embedder(args.channels)
    size = f"{sum(p.numel() for p in model.parameters())} parameters, {flops_per_second(model) / 1e9:.3f} GFLOP/s"
    if initial:
        model.load_state_dict({k: torch.from_numpy(initial[k]).to(v.dtype) for k, v in model.state_dict().items()})
    model.to(device, memory_format=torch.channels_last)
    optimiser = torch.optim.AdamW(model.parameters(), lr=args.learning_rate, weight_decay=0.05, fused=True)
    if state:
        model.load_state_dict(state["trained"] if "trained" in state else state["model"])
        optimiser.load_state_dict(state["optimiser"])
    average = Average(model, args.average, step) if args.average else None
    if average and state:
        average.mean = [state["model"][name].to(device) for name in average.names]
    print(vars(args), f"speeds {feed.speeds}, {len(feed.class_targets)} classes, {size}", flush=True)
    model.train()
    run = torch.compile(model, dynamic=False) if args.compile else model
    started = logged = saved = time.time()
    seen_at_log, sums, data_seconds = seen, torch.zeros(3, device=device), 0.0

    def write() -> None:
        kept = dict(model=average.state(model), trained=model.state_dict()) if average else dict(model=model.state_dict())
        save(checkpoint, **kept, optimiser=optimiser.state_dict(), seen=seen, step=step, seconds=earlier + time.time() - started, args=vars(args))
        save(args.work / f"{args.name}-weights.pt", model=kept["model"], seen=seen, step=step)

    def progress() -> float:
        if args.fit_minutes is None:
            return seen / args.crops
        return (earlier + time.time() - started) / (60 * max(args.fit_minutes, 1e-3))

    while (done := progress()) < 1 and (not args.minutes or time.time() - started < 60 * args.minutes):
        for group in optimiser.param_groups:
            group["lr"] = learning_rate(args.learning_rate, done)
        margin = FINAL_MARGIN * min(1.0, max(0.0, (done - 0.1) / 0.4))
        before = time.time()
        frames = lengths.next()
        feats, label, target = feed.draw(args.batch_frames // frames, frames)
        data_seconds += time.time() - before
        with torch.autocast(device.type, torch.bfloat16):
            embedding = run(feats)
        unit = F.normalize(embedding.float())
        agreement = (unit * target).sum(1).mean()
        cosine = unit @ feed.class_targets.T
        loss = DISTILLATION_WEIGHT * (1 - agreement) + margin_loss(cosine, label, margin)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimiser.found_inf = (~torch.isfinite(norm)).float()  # the fused optimiser then leaves the weights as they are
        optimiser.step()
        if average:
            average.update()
        step += 1
        seen += len(label)
        with torch.no_grad():
            sums += torch.stack([loss, agreement, (cosine.argmax(1) == label).float().mean()])
        if step % LOG_STEPS == 0:
            mean, spent = (sums / LOG_STEPS).tolist(), time.time() - logged
            print(f"{time.strftime('%H:%M:%S')} step {step} crops {seen} loss {mean[0]:.3f} teacher {mean[1]:.3f} accuracy {mean[2]:.3f}",
                  f"{(seen - seen_at_log) / spent:.0f} crops/s, data {100 * data_seconds / spent:.0f} %", flush=True)  # fmt: skip
            logged, seen_at_log, data_seconds = time.time(), seen, 0.0
            sums.zero_()
        if time.time() - saved > args.save_seconds:
            write()
            saved = time.time()
    write()
    print(f"stopped at {seen} crops, {step} steps, {(time.time() - started) / 60:.1f} min", flush=True)


if __name__ == "__main__":
    main()
