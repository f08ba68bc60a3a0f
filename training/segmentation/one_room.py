"""Error of networks with all speakers in one room: acoustic properties of a speaker's recording do not help.

    python -m segmentation.one_room --work WORK --noise NOISE NAME=WEIGHTS.pt ...

Windows of held-out voices, two people or more, in the random rooms with the shortest and longest reverberation, the
response 6 dB below and 3 dB above the direct sound.
"""

import argparse
from pathlib import Path

import numpy as np
import torch

from .corpus import read_noise_index
from .learner import outputs_of
from .losses import error_rates
from .model import load_weights
from .render import MOUTHS, ROOMS, Renderer
from .waves import TRACKS, Plan, WaveSimulator

SEED = 78
ROOMS_OF_A_KIND = 60
RATIOS_DB = (-6, 3)
RENDERED_AT_ONCE = 10


def seconds_60_db(responses: torch.Tensor) -> torch.Tensor:
    """Reverberation time of every room, [rooms], by the slope from the beginning to -30 dB (Schroeder, 1965): responses
    [rooms, positions, samples]."""
    left = responses.square().mean(1).flip(1).cumsum(1).flip(1)
    return 2 * (left > 1e-3 * left[:, :1]).sum(1) / 16_000


def moved(plan: Plan, room: int, ratio_db: float) -> Plan:
    """The window in a room; `ratio_db` is the energy of the response relative to that of the direct sound."""
    tail = 10 ** (ratio_db / 20)
    share = (np.array([1, tail]) / np.hypot(1, tail)).astype(np.float32)
    return plan._replace(
        response=(room * MOUTHS + np.arange(TRACKS)).astype(np.int32), share=np.tile(share, (TRACKS, 1))
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--noise", type=Path, required=True)
    parser.add_argument("--windows", type=int, default=150)
    parser.add_argument("models", nargs="+", metavar="NAME=WEIGHTS.pt")
    args = parser.parse_args()
    torch.set_num_threads(1)
    models = {name: load_weights(path).eval() for name, path in (spec.split("=", 1) for spec in args.models)}
    renderer = Renderer(args.work, args.noise)
    order = torch.argsort(seconds_60_db(renderer.responses[: ROOMS * MOUTHS].view(ROOMS, MOUTHS, -1)))
    simulator = WaveSimulator(args.work, "dev", SEED, len(read_noise_index(args.noise, "rir")))
    plans: list[Plan] = []
    while len(plans) < args.windows:
        plan = simulator.window()
        if plan.labels.any(1).sum() >= 2:
            plans.append(plan)
    labels, mask = (torch.from_numpy(np.stack(part)) for part in list(zip(*plans))[-3:-1])
    print(
        "| rooms | response | network | DER | missed | false alarm | confusion | overlap found |\n"
        "|---|--:|---|--:|--:|--:|--:|--:|"
    )
    for kind, rooms in (("dry", order[:ROOMS_OF_A_KIND]), ("ringing", order[-ROOMS_OF_A_KIND:])):
        for ratio_db in RATIOS_DB:
            torch.manual_seed(SEED)
            placed = [moved(plan, int(rooms[number % len(rooms)]), ratio_db) for number, plan in enumerate(plans)]
            batches = [placed[at : at + RENDERED_AT_ONCE] for at in range(0, len(placed), RENDERED_AT_ONCE)]
            features = torch.cat(
                [renderer([torch.from_numpy(np.stack(part)) for part in zip(*batch)][:-3]) for batch in batches]
            )
            for name, model in models.items():
                rates = error_rates(outputs_of(model, features), labels, mask)
                print(
                    f"| {kind} | {ratio_db} dB | {name} | "
                    + " | ".join(f"{value:.1f}" for value in rates.values())
                    + " |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
