"""Step 3: fine-tune the embedder, from CAM++'s weights, on stretches like those of the service.

    python -m embedder.train --work WORK --teacher FOLDER --steps 3600 [--threads 2] [--resume]

A training example is a degraded stretch of up to ten seconds in which one to four voices take turns (`stretches.py`).
The trunk runs over it once; its frames are pooled under the mask of every span and of every voice, as in the service.
The loss of each embedding is 10 (1 - cosine to the teacher's embedding of the same speech, clean and without other
voices) plus 0.3 times a cross-entropy over voices, against fixed class vectors: the teacher's mean of every voice. The
learning rate follows a cosine over the given steps. The exported weights are a running mean.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from pathlib import Path

import torch
import torch.nn.functional as F

from . import teacher
from .model import Embedder, from_campplus
from .stretches import Stretches

SCALE = 30.0
DISTILLATION_WEIGHT = 10.0
CLASS_WEIGHT = 0.3
VOICE_WEIGHT = 0.5
LOG_STEPS = 50
SAVE_SECONDS = 300


def learning_rate(peak: float, done: float) -> float:
    """Linear warm-up over the first 3 % and a cosine to a thousandth."""
    return peak * min(1.0, done / 0.03 + 0.03) * (0.5 + 0.5 * math.cos(math.pi * min(1.0, done))) + peak * 1e-3


def loss_of(embeddings, targets, labels, class_targets):
    """Mean loss and mean cosine of [N, 192] embeddings."""
    unit = F.normalize(embeddings)
    agreement = (unit * targets).sum(1).mean()
    classes = F.cross_entropy(SCALE * unit @ class_targets.T, labels)
    return DISTILLATION_WEIGHT * (1 - agreement) + CLASS_WEIGHT * classes, agreement.detach()


def save(path: Path, **state) -> None:
    """Replace the checkpoint atomically."""
    torch.save(state, path.with_suffix(".tmp"))
    os.replace(path.with_suffix(".tmp"), path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--teacher", type=Path, required=True)
    parser.add_argument(
        "--steps", type=int, required=True, help="length of the schedule, with --resume counted from the first step"
    )
    parser.add_argument("--batch", type=int, default=8, help="stretches of ten seconds a step, or more shorter ones")
    parser.add_argument("--learning-rate", type=float, default=5e-4)
    parser.add_argument("--average", type=float, default=0.999)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--resume", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    checkpoint = args.work / "embedder.pt"
    state = torch.load(checkpoint, map_location=args.device, weights_only=False) if args.resume else None
    step, earlier = (state["step"], state["seconds"]) if state else (0, 0.0)
    model = Embedder()
    model.load_state_dict(state["trained"] if state else from_campplus(teacher.load(args.teacher).state_dict()))
    device = torch.device(args.device)
    model.train().to(device, memory_format=torch.channels_last)
    mean = {k: v.clone().to(device) for k, v in (state["model"] if state else model.state_dict()).items()}
    optimiser = torch.optim.AdamW(
        model.parameters(), lr=args.learning_rate, weight_decay=0.01, betas=(0.9, 0.98), fused=True
    )
    if state:
        optimiser.load_state_dict(state["optimiser"])
    feed = Stretches(args.work, args.seed + 1000 * step)
    on_device = lambda values: torch.from_numpy(values).to(device)  # noqa: E731
    class_targets = on_device(feed.class_targets)
    print(vars(args), f"{feed.voice_count} voices, {sum(p.numel() for p in model.parameters())} parameters", flush=True)
    started = logged = saved = time.time()
    sums = torch.zeros(4)

    def write() -> None:
        seconds = earlier + time.time() - started
        states = {"model": mean, "trained": model.state_dict(), "optimiser": optimiser.state_dict()}
        save(checkpoint, **states, step=step, seconds=seconds)

    while step < args.steps:
        for group in optimiser.param_groups:
            group["lr"] = learning_rate(args.learning_rate, step / args.steps)
        batch = feed.draw(args.batch)
        with torch.autocast(device.type, torch.bfloat16):
            frames = model.trunk(on_device(batch.feats))
        total, seen = torch.zeros((), device=device), []
        for group, weight in ((batch.pieces, 1.0), (batch.voices, VOICE_WEIGHT)):
            embeddings = model.pooled(frames[on_device(group.rows)], on_device(group.masks))
            loss, agreement = loss_of(embeddings, on_device(group.targets), on_device(group.labels), class_targets)
            total = total + weight * loss
            seen.append(agreement)
        optimiser.zero_grad(set_to_none=True)
        total.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        if torch.isfinite(norm):
            optimiser.step()
        step += 1
        with torch.no_grad():
            share = 1 - min(args.average, (1 + step) / (20 + step))
            for name, value in model.state_dict().items():
                if value.is_floating_point():
                    mean[name].lerp_(value, share)
                else:
                    mean[name].copy_(value)
            sums += torch.tensor([total.item(), *(one.item() for one in seen), len(batch.pieces.rows)])
        if step % LOG_STEPS == 0:
            loss, pieces, voices, count = (sums / LOG_STEPS).tolist()
            rate = count * LOG_STEPS / (time.time() - logged)
            cosines = f"pieces {pieces:.4f} voices {voices:.4f}"
            print(f"{time.strftime('%H:%M:%S')} step {step} loss {loss:.3f} {cosines} {rate:.1f} pieces/s", flush=True)
            logged = time.time()
            sums.zero_()
        if time.time() - saved > SAVE_SECONDS:
            write()
            saved = time.time()
    write()
    print(f"stopped after {step} steps, {(earlier + time.time() - started) / 60:.1f} min", flush=True)


if __name__ == "__main__":
    main()
