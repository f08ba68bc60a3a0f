"""Conversations of one, two and three people, short and long, in the form of `conversations.py`: they show first
whether a clustering splits speakers.

    python -m calibration.few_people VOICES NOISE OUT

Writes OUT/one (50 monologues of 20 to 400 s), OUT/two (30 of 20 to 400 s, 65 of 3 to 8 minutes) and OUT/three (45 of 3
to 8 minutes), from voices of the dev split: half as in `check`, half as in `sitting`, without repeated clips. The same
corpora give the same recordings.
"""

import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from .conversations import Plan, make
from .material import Corpora

FOLDERS = ("one", "two", "three")
SEED = 900
SHORT_AND_LONG, LONG = (20, 40, 90, 200, 400), (180, 300, 480)


def plans(first_seed, speakers, lengths):
    """A plan for each of the given numbers of speakers."""
    rng = np.random.default_rng(SEED)
    found = []
    for index, count in enumerate(speakers):
        seconds = int(rng.choice(lengths))
        kind = str(rng.choice(["meeting", "phone"] if count == 1 else ["meeting", "phone", "dialogue"]))
        side = "sitting" if index % 2 else "check"
        found.append(
            Plan(f"{first_seed + index}_{kind}_{seconds}s_{count}spk", side, seconds, count, kind, first_seed + index)
        )
    return found


def main(voices, noise, out):
    corpora = Corpora(Path(voices), Path(noise))
    for name in FOLDERS:
        (Path(out) / name).mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor() as pool:
        planned = plans(9000, [1] * 50 + [2] * 30, SHORT_AND_LONG) + plans(9500, [2] * 65 + [3] * 45, LONG)
        jobs = [pool.submit(make, corpora, plan, Path(out) / FOLDERS[plan.speakers - 1]) for plan in planned]
        for job in jobs:
            job.result()


if __name__ == "__main__":
    main(*sys.argv[1:])
