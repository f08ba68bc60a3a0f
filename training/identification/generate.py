"""Generated conversations with enrolment recordings, for calibrating and measuring identification.

    python -m identification.generate --voices VOICES --noise NOISE --out OUT [--seed 31]

Writes OUT/fit and OUT/check, from two halves of the dev voices with several clips (selected by hash). In each:
conversations of two to five people (NNN.flac, NNN.rttm), one enrolment recording per voice (prints/VOICE.flac), and
trials.json with the enrolled voices of each conversation. A voice's clips are divided between enrolment and
conversation, so no sentence is in both; the enrolment recording has a separate channel. About a third of the people in
a conversation are not enrolled, and up to three voices are enrolled that are not in it. Seeds are fixed: the same
corpora give the same files.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile

from calibration.conversations import Channel, background, render, telephone, write
from calibration.material import FRAME, RATE, Corpora, Voice, read, rows

SETS = ("alnum-accents", "cv61", "cvx", "gsc", "msc-malayalam", "speechocean762")
COUNTS = {"fit": 160, "check": 160}
SECONDS = (30, 60, 120)
KINDS = ("meeting", "phone", "dialogue")
KIND_SHARES = (0.45, 0.25, 0.3)
SPEAKERS, SPEAKER_SHARES = (2, 3, 4, 5), (0.4, 0.3, 0.2, 0.1)
ENROLLED_SHARE = 0.67
MAX_ABSENT = 3
MIN_CLIPS, MIN_SECONDS = 2, 7.0
ENROLMENT_SECONDS = (4.0, 29.0)
ENROLMENT_MAX_SHARE = 0.5
PAUSE_FRAMES = 25


@dataclass(frozen=True)
class Person:
    """A voice with its clips divided: rows of segments.csv for enrolment and for the conversation."""

    row: dict
    enrolment: list[dict]
    talk: list[dict]


def half_of(speaker: str) -> str:
    return ("fit", "check")[hashlib.sha256(speaker.encode()).digest()[0] & 1]


def seconds_of(segment: dict) -> float:
    return float(segment["end"]) - float(segment["start"])


def people(corpora: Corpora, half: str, seed: int) -> list[Person]:
    """Dev voices of one half with at least two clips, in the order of the index."""
    segments: dict[str, list[dict]] = {}
    for row in rows(corpora.voices / "segments.csv"):
        segments.setdefault(row["file"], []).append(row)
    found = []
    for number, row in enumerate(rows(corpora.voices / "index.csv")):
        clips = segments.get(row["file"], [])
        fits = row["split"] == "dev" and row["set"] in SETS and half_of(row["speaker"]) == half
        if not fits or len(clips) < MIN_CLIPS or float(row["seconds"]) < MIN_SECONDS:
            continue
        order = np.random.default_rng([seed, 1, number]).permutation(len(clips))
        total, taken, enrolment = sum(map(seconds_of, clips)), 0.0, []
        for at in order[:-1]:
            if enrolment and taken + seconds_of(clips[at]) > ENROLMENT_MAX_SHARE * total:
                break
            enrolment.append(clips[at])
            taken += seconds_of(clips[at])
        talk = [clips[at] for at in order[len(enrolment) :]]
        found.append(Person(row, enrolment, talk))
    return found


def enrolment_recording(corpora: Corpora, person: Person, seed: list[int]) -> np.ndarray:
    """The enrolment clips in sequence with short pauses, 4 to 29 s, with a separate channel and noise."""
    rng = np.random.default_rng(seed)
    voice = Voice(corpora, person.row, person.enrolment)
    longest = rng.uniform(*ENROLMENT_SECONDS)
    responses = [row for row in rows(corpora.noise / "index.csv") if row["kind"] == "rir"]
    chosen = responses[int(rng.integers(len(responses)))]["file"]
    response = read(corpora.noise / chosen) if rng.random() < 0.3 else None
    target = voice.spectrum + np.cumsum(rng.normal(0, 0.15, 257))
    channel = Channel(voice, target, rng.uniform(0, 1), response, rng.uniform(0.05, 0.4), 0.0, rng)
    pieces, length = [], 0
    for start, end in voice.runs:
        left = int(longest * 100) - length
        if left < 20:
            break
        end = min(end, start + left)
        pieces += [
            channel.apply(voice.samples[start * FRAME : end * FRAME], 0)[: (end - start) * FRAME + RATE // 4],
            np.zeros(PAUSE_FRAMES * FRAME),
        ]
        length += end - start + PAUSE_FRAMES
    mix = np.concatenate([np.zeros(PAUSE_FRAMES * FRAME), *pieces])
    power = (mix**2).mean() + 1e-9
    mix = mix + background(corpora, "dialogue", len(mix), [], rng) * np.sqrt(power * 10 ** (-rng.uniform(15, 45) / 10))
    if rng.random() < 0.2:
        mix = telephone(mix)
    return (mix[: 30 * RATE - FRAME] * rng.uniform(0.1, 0.9) / np.abs(mix).max()).astype(np.float32)


def conversation(corpora: Corpora, persons: list[Person], name: str, out: Path, seed: list[int]) -> dict:
    """Writes one conversation; returns its trial."""
    rng = np.random.default_rng(seed)
    count = int(rng.choice(SPEAKERS, p=SPEAKER_SHARES))
    kind = str(rng.choice(KINDS, p=KIND_SHARES))
    kind, count = ("phone", 2) if kind == "phone" else (kind, count)
    order = [persons[at] for at in rng.permutation(len(persons))]
    if rng.random() < 0.5:  # voices of one set are more similar
        alike = order[0].row["set"]
        order.sort(key=lambda person: person.row["set"] != alike)
    present, absent = order[:count], order[count : count + int(rng.integers(MAX_ABSENT + 1))]
    voices = [Voice(corpora, person.row, person.talk) for person in present]
    voices = [voice for voice in voices if voice.runs]
    babble = [
        row for row in rows(corpora.voices / "index.csv") if row["split"] == "train" and float(row["seconds"]) >= 10
    ]
    mix, active = render(corpora, kind, int(rng.choice(SECONDS)), voices, babble, rng)
    write(out, name, mix, active, voices)
    enrolled = [person.row["speaker"] for person in present if rng.random() < ENROLLED_SHARE]
    enrolled += [person.row["speaker"] for person in absent]
    if not enrolled:
        enrolled = [present[0].row["speaker"]]
    return {"name": name, "kind": kind, "enrolled": sorted(enrolled)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--voices", type=Path, required=True)
    parser.add_argument("--noise", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=31)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    corpora = Corpora(options.voices, options.noise)
    with ProcessPoolExecutor(options.processes) as pool:
        for number, (half, count) in enumerate(COUNTS.items()):
            out = options.out / half
            (out / "prints").mkdir(parents=True, exist_ok=True)
            persons = people(corpora, half, options.seed)
            prints = [
                pool.submit(enrolment_recording, corpora, person, [options.seed, 2, number, at])
                for at, person in enumerate(persons)
            ]
            trials = [
                pool.submit(conversation, corpora, persons, f"{at:03d}", out, [options.seed, 3, number, at])
                for at in range(count)
            ]
            for person, job in zip(persons, prints):
                soundfile.write(out / "prints" / f"{person.row['speaker']}.flac", job.result(), RATE)
            (out / "trials.json").write_text(json.dumps([job.result() for job in trials], indent=1) + "\n")
            print(f"{half}: {count} conversations, {len(persons)} voices", flush=True)


if __name__ == "__main__":
    main()
