"""Step 3: train the embedder by soft distillation and classification.

    python -m embedder.train --work WORK --crops 1500000 [--resume] [--device cuda]

Loss: 10 (1 - cosine to the teacher's embedding of the same speech without its degradation) + additive-angular-margin
cross-entropy over voices and speeds (Deng et al., "ArcFace", CVPR 2019) against fixed class vectors, the teacher's mean embedding
of each class: the student must tell each voice from all others in the teacher's space. The learning rate follows a cosine over ``--crops``; a checkpoint is written every 5 minutes and at the end, and ``--resume`` goes on from it with the
optimiser's state, so a run may be cut into pieces. A crop is counted as such whatever its length (1 to 3 s).
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

from .augment import Augmenter
from .crops import Crops
from .model import Embedder, flops_per_second

CROP_FRAMES = (100, 150, 200, 300)
CROP_SHARES = (0.2, 0.3, 0.35, 0.15)
BATCH_FRAMES = 6400
SCALE = 30.0
FINAL_MARGIN = 0.2
DISTILLATION_WEIGHT = 10.0
CHECKPOINT_SECONDS = 300.0


def margin_loss(cosine: torch.Tensor, label: torch.Tensor, margin: float) -> torch.Tensor:
    """Additive angular margin cross-entropy; cosine [B, C], label [B]."""
    own = cosine.gather(1, label[:, None]).clamp(-0.999, 0.999)
    shifted = torch.cos(torch.acos(own) + margin)
    shifted = torch.where(own > math.cos(math.pi - margin), shifted, own - margin * math.sin(margin))
    return F.cross_entropy(cosine.scatter(1, label[:, None], shifted) * SCALE, label)


def learning_rate(peak: float, done: float) -> float:
    """Linear warm-up over the first 2 % and a cosine to a thousandth."""
    return peak * min(1.0, done / 0.02 + 0.02) * (0.5 + 0.5 * math.cos(math.pi * min(1.0, done))) + peak * 1e-3


def save(path: Path, **state) -> None:
    """Replace the checkpoint whole."""
    torch.save(state, path.with_suffix(".tmp"))
    os.replace(path.with_suffix(".tmp"), path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--name", default="embedder-v1")
    parser.add_argument("--crops", type=int, default=1_500_000)
    parser.add_argument("--minutes", type=float, default=0, help="stop after this long, keeping the schedule; 0: never")
    parser.add_argument("--learning-rate", type=float, default=1.5e-3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--initial", type=Path, help="start from these weights, the .npz that export.py writes")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    checkpoint = args.work / f"{args.name}.pt"
    state = torch.load(checkpoint, map_location=args.device, weights_only=False) if args.resume and checkpoint.exists() else None
    seen, step = (state["seen"], state["step"]) if state else (0, 0)
    crops = Crops(args.work, args.seed + 1000 * step)
    augment = Augmenter(args.work, args.seed + 1000 * step + 1)
    lengths = np.random.default_rng(args.seed + 1000 * step + 2)
    device = torch.device(args.device)
    model = Embedder()
    if args.initial and not state:
        stored = np.load(args.initial)
        model.load_state_dict({k: torch.from_numpy(stored[k]).to(v.dtype) for k, v in model.state_dict().items()})
    model.to(device, memory_format=torch.channels_last)
    classes = torch.from_numpy(crops.class_targets).to(device)
    optimiser = torch.optim.AdamW(model.parameters(), lr=args.learning_rate, weight_decay=0.05, fused=True)
    if state:
        model.load_state_dict(state["model"])
        optimiser.load_state_dict(state["optimiser"])
    print(vars(args), f"speeds {crops.speeds}, {sum(p.numel() for p in model.parameters())} parameters,",
          f"{flops_per_second(model.cpu()) / 1e9:.3f} GFLOP/s", flush=True)  # fmt: skip
    model.to(device).train()
    started = logged = saved = time.time()
    seen_at_log, sums, data_seconds = seen, np.zeros(4), 0.0

    def write() -> None:
        save(checkpoint, model=model.state_dict(), optimiser=optimiser.state_dict(), seen=seen, step=step, args=vars(args))

    while seen < args.crops and (not args.minutes or time.time() - started < 60 * args.minutes):
        done = seen / args.crops
        for group in optimiser.param_groups:
            group["lr"] = learning_rate(args.learning_rate, done)
        margin = FINAL_MARGIN * min(1.0, max(0.0, (done - 0.1) / 0.4))
        before = time.time()
        frames = int(lengths.choice(CROP_FRAMES, p=CROP_SHARES))
        batch = crops.draw(BATCH_FRAMES // frames, frames)
        feats = torch.from_numpy(augment(batch.mels)).to(device)
        label, target = torch.from_numpy(batch.label).to(device), torch.from_numpy(batch.target).to(device)
        data_seconds += time.time() - before
        with torch.autocast(device.type, torch.bfloat16):
            embedding = model(feats)
        unit = F.normalize(embedding.float())
        agreement = (unit * target).sum(1).mean()
        cosine = unit @ classes.T
        loss = DISTILLATION_WEIGHT * (1 - agreement) + margin_loss(cosine, label, margin)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimiser.step()
        step += 1
        seen += len(label)
        sums += [float(loss.detach()), float(agreement.detach()), float((cosine.argmax(1) == label).float().mean()), 1]
        if step % 200 == 0:
            mean, spent = sums / sums[3], time.time() - logged
            print(f"{time.strftime('%H:%M:%S')} step {step} crops {seen} loss {mean[0]:.3f} teacher {mean[1]:.3f} accuracy {mean[2]:.3f}",
                  f"{(seen - seen_at_log) / spent:.0f} crops/s, data {100 * data_seconds / spent:.0f} %", flush=True)  # fmt: skip
            sums, data_seconds, logged, seen_at_log = np.zeros(4), 0.0, time.time(), seen
        if time.time() - saved > CHECKPOINT_SECONDS:
            write()
            saved = time.time()
    write()
    print(f"stopped at {seen} crops, {step} steps, {(time.time() - started) / 60:.1f} min", flush=True)


if __name__ == "__main__":
    main()
