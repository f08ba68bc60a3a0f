"""Trials: pairs of speech spans to compare, drawn once and stored as JSON.

    python -m evaluation.trials --voices VOICES --noise NOISE --meetings MEETINGS --out trials.json --seed 5

`segments` is a list of {source, file, pieces [[start, end] s], seconds, voice, set, degradation or null}; `sets` maps a
name to {same, different}, lists of pairs of indices into it. The names are `clean|degraded / seconds / hard|any` and
`meetings / all|within`. Both sides of a same-speaker pair come from different clips; the clean and the degraded trials
have the same cuts. Hard impostors are of the same set (similar recordings, often the same language), others of any.
MEETINGS has recordings, each with an RTTM of the same name.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import soundfile

from calibration.material import RATE, read, rows, runs_of
from meetings.check import grid, read_rttm

from . import degrade

LENGTHS_SECONDS = (1.5, 3.0, 5.0)
CUTS_A_SIDE = 2
IMPOSTORS_A_CUT = 10  # of the same set, and as many of any
MIN_STRETCH_SECONDS, MAX_STRETCH_SECONDS = 1.5, 3.0
_JOIN_SAMPLES = RATE // 100


def two_sides(clips: list[tuple[float, float]], rng: np.random.Generator) -> list[list[tuple[float, float]]]:
    """Deals clips to two sides of about equal length, longest first; equal ones and the order within a side at
    random."""
    sides: list[list[tuple[float, float]]] = [[], []]
    for clip in sorted((clips[i] for i in rng.permutation(len(clips))), key=lambda clip: clip[0] - clip[1]):
        lengths = [sum(end - start for start, end in side) for side in sides]
        sides[int(lengths[1] < lengths[0])].append(clip)
    return [[side[i] for i in rng.permutation(len(side))] for side in sides]


def cut(side: list[tuple[float, float]], seconds: float, offset: float) -> list[list[float]]:
    """Spans of the joined clips with `seconds` in total, from `offset`."""
    pieces, at = [], 0.0
    for start, end in side:
        first, last = max(start, start + offset - at), min(end, start + offset + seconds - at)
        if last - first > 0.001:
            pieces.append([round(first, 4), round(last, 4)])
        at += end - start
    return pieces


def voice_cuts(
    voice: dict, clips: list[tuple[float, float]], seconds: float, rng: np.random.Generator
) -> list[list[dict]]:
    """Segments of the two sides; none if a side is too short."""
    sides = two_sides(clips, rng)
    found: list[list[dict]] = []
    for side in sides:
        total = sum(end - start for start, end in side)
        if total < seconds:
            return []
        count = CUTS_A_SIDE if total >= 1.5 * seconds else 1
        found.append(
            [
                {
                    "source": "voices",
                    "file": voice["file"],
                    "pieces": cut(
                        side, seconds, rng.uniform(0, total - seconds) if count == 1 else k * (total - seconds)
                    ),
                    "seconds": seconds,
                    "voice": voice["speaker"],
                    "set": voice["set"],
                    "degradation": None,
                }
                for k in range(count)
            ]
        )
    return found


def pairs_of_voices(segments: list[dict], sides: list[tuple[str, int]], rng: np.random.Generator) -> dict[str, dict]:
    """same: all cuts of one side with all of the other; different: first sides with second sides of others."""
    same, hard, anyone = [], [], []
    firsts = [i for i, (_, side) in enumerate(sides) if side == 0]
    seconds = [i for i, (_, side) in enumerate(sides) if side == 1]
    for i in firsts:
        same += [(i, j) for j in seconds if sides[j][0] == sides[i][0]]
        others = [j for j in seconds if sides[j][0] != sides[i][0]]
        alike = [j for j in others if segments[j]["set"] == segments[i]["set"]]
        for pool, target in ((alike, hard), (others, anyone)):
            chosen = rng.permutation(len(pool))[:IMPOSTORS_A_CUT]
            target += [(i, pool[k]) for k in sorted(chosen)]
    return {"hard": {"same": same, "different": hard}, "any": {"same": same, "different": anyone}}


def from_voices(voices: Path, noise: Path, max_voices: int, rng: np.random.Generator) -> tuple[list[dict], dict]:
    """Segments and sets of the held-out voices with two clips or more."""
    clips: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row in rows(voices / "segments.csv"):
        clips[row["file"]].append((float(row["start"]), float(row["end"])))
    chosen = [row for row in rows(voices / "index.csv") if row["split"] == "dev" and len(clips[row["file"]]) > 1]
    chosen = [chosen[i] for i in sorted(rng.permutation(len(chosen))[:max_voices])]
    segments: list[dict] = []
    sets: dict[str, dict] = {}
    for length in LENGTHS_SECONDS:
        cuts, sides = [], []
        for row in chosen:
            for side, found in enumerate(voice_cuts(row, clips[row["file"]], length, rng)):
                cuts += found
                sides += [(row["speaker"], side)] * len(found)
        pairs = pairs_of_voices(cuts, sides, rng)
        for state in ("clean", "degraded"):
            base = len(segments)
            for one in cuts:
                segments.append(one if state == "clean" else {**one, "degradation": degrade.draw(noise, rng)})
            for kind, both in pairs.items():
                name = f"{state} / {length:g} s / {kind}"
                sets[name] = {key: [[base + i, base + j] for i, j in listed] for key, listed in both.items()}
    return segments, sets


def from_meetings(folder: Path, base: int) -> tuple[list[dict], dict]:
    """Single-speaker spans of 1.5 to 3 s, with all pairs over all recordings and within one."""
    segments = []
    for path in sorted(folder.glob("*.rttm")):
        recording = path.with_suffix(".flac")
        names, active = grid(read_rttm(path), soundfile.info(recording).duration)
        alone = active & (active.sum(0) == 1)
        for name, row in zip(names, alone):
            for start, end in runs_of(row):
                while end - start >= MIN_STRETCH_SECONDS * 100:
                    stop = min(end, start + int(MAX_STRETCH_SECONDS * 100))
                    segments.append(
                        {
                            "source": "meetings",
                            "file": recording.name,
                            "pieces": [[start / 100, stop / 100]],
                            "seconds": (stop - start) / 100,
                            "voice": name,
                            "set": "meetings",
                            "degradation": None,
                        }
                    )
                    start = stop
    sets = {f"meetings / {kind}": {"same": [], "different": []} for kind in ("all", "within")}
    for i, one in enumerate(segments):
        for j, other in enumerate(segments[:i]):
            key = "same" if one["voice"] == other["voice"] else "different"
            sets["meetings / all"][key].append([base + j, base + i])
            if one["file"] == other["file"]:
                sets["meetings / within"][key].append([base + j, base + i])
    return segments, sets


def joined_pieces(whole: np.ndarray, pieces: list[list[float]], length: int) -> np.ndarray:
    """Spans [[start, end] s] of a recording joined by crossfades of 10 ms; the lost length is mirrored at the end."""
    joined = np.zeros(0)
    for start, end in pieces:
        piece = whole[round(start * RATE) : round(end * RATE)].astype(np.float64)
        fade = np.linspace(0, 1, min(_JOIN_SAMPLES, len(piece), len(joined)))
        if len(fade):
            joined[len(joined) - len(fade) :] *= 1 - fade
            joined[len(joined) - len(fade) :] += fade * piece[: len(fade)]
        joined = np.concatenate([joined, piece[len(fade) :]])
    return np.pad(joined, (0, max(0, length - len(joined))), "reflect")


def samples_of(segments: list[dict], folders: dict[str, Path], noise: Path) -> list[np.ndarray]:
    """float32 samples at 16 kHz of every segment."""
    found: list[np.ndarray] = [np.zeros(0, np.float32)] * len(segments)
    file, whole = None, np.zeros(0)
    for i in sorted(range(len(segments)), key=lambda i: (segments[i]["source"], segments[i]["file"], i)):
        one = segments[i]
        path = folders[one["source"]] / one["file"]
        if path != file:
            file, whole = path, read(path)
        joined = joined_pieces(whole, one["pieces"], round(one["seconds"] * RATE))
        found[i] = degrade.apply(joined, one["degradation"], noise) if one["degradation"] else joined.astype(np.float32)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("voices", "noise", "meetings", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--max-voices", type=int, default=162)
    options = parser.parse_args()
    segments, sets = from_voices(options.voices, options.noise, options.max_voices, np.random.default_rng(options.seed))
    more, meeting_sets = from_meetings(options.meetings, len(segments))
    whole = {"seed": options.seed, "sets": {**sets, **meeting_sets}, "segments": segments + more}
    options.out.write_text(json.dumps(whole) + "\n")
    print(len(whole["segments"]), "segments,", round(sum(one["seconds"] for one in whole["segments"])), "s")
    for name, pairs in whole["sets"].items():
        print(f"{name}: {len(pairs['same'])} same, {len(pairs['different'])} different")


if __name__ == "__main__":
    main()
