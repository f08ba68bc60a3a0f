"""Equal error rates of several embedders on the same trials, as a Markdown table and JSON.

    python -m evaluation.eer --trials trials.json --voices VOICES --noise NOISE --meetings MEETINGS \\
        --model new=embedder.onnx --model halves=trunk.onnx+head.onnx [--floor both] [--bilstm FILE] [--mfcc] \\
        [--resemblyzer] [--teacher FOLDER] [--cohort OTHERS.npz] [--cache FOLDER] [--json eer.json]

Every --model is an ONNX file of WeSpeaker signature, or our trunk and head, and gives a row with the feature floor, one
without, or both. Rows keep the order of the command line. The second table compares every row with the first, the third
has means over the sets of held-out voices. One thread. With --cache, vectors are stored under the hash of trials and
model and reused. OTHERS.npz has embeddings of other voices in the form of `calibration.sessions`, of the first model:
it adds a row for that model, with the mean score of a voice's most similar cohort voices subtracted.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from . import embedders, scoring
from .trials import samples_of

BOOTSTRAP_SEED = 11
COHORT_MIN_SECONDS = 3.0
COHORT_TOP = 10


@dataclass(frozen=True)
class Row:
    name: str
    key: str  # of the cache
    load: Callable[[], embedders.Embedder]


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def floors(choice: str) -> list[bool]:
    return {"with": [True], "without": [False], "both": [True, False]}[choice]


def rows_of(options: argparse.Namespace) -> list[Row]:
    """The rows that the command line requests."""
    found = []
    for given in options.model:
        name, path = given.split("=", 1)
        files = [Path(file) for file in path.split("+")]
        kind = embedders.halves if len(files) == 2 else embedders.onnx
        for has_floor in floors(options.floor):
            label = f"{name}, {'floor' if has_floor else 'no floor'}"
            found.append(Row(label, f"{'-'.join(map(digest, files))}-{has_floor}", partial(kind, *files, has_floor)))
    if options.bilstm:
        found.append(Row("wq2012 BLSTM", digest(options.bilstm), partial(embedders.bilstm, options.bilstm)))
    if options.mfcc:
        found.append(Row("MFCC statistics", "mfcc", embedders.mfcc_statistics))
    if options.resemblyzer:
        found.append(Row("resemblyzer", "resemblyzer-0.1.4", embedders.resemblyzer))
    if options.teacher:
        for has_floor in floors(options.teacher_floor):
            label = f"teacher CAM++, {'floor' if has_floor else 'no floor'}"
            found.append(Row(label, f"teacher-{has_floor}", partial(embedders.teacher, options.teacher, has_floor)))
    return found


def vectors_of(rows: list[Row], options: argparse.Namespace, segments: list[dict]) -> dict[str, np.ndarray]:
    """Unit vectors [segments, D] of every row, from the cache if possible."""
    found, samples, trials = {}, None, digest(options.trials)
    for row in rows:
        name = hashlib.sha256(f"{trials} {row.key}".encode()).hexdigest()[:32]
        kept = options.cache / f"{name}.npy" if options.cache else None
        if kept and kept.exists():
            found[row.name] = np.load(kept)
            continue
        if samples is None:
            began = time.monotonic()
            samples = samples_of(segments, {"voices": options.voices, "meetings": options.meetings}, options.noise)
            print(f"samples: {time.monotonic() - began:.0f} s", flush=True)
        began = time.monotonic()
        found[row.name] = row.load()(samples)
        print(f"{row.name}: {time.monotonic() - began:.0f} s", flush=True)
        if kept:
            kept.parent.mkdir(parents=True, exist_ok=True)
            np.save(kept, found[row.name])
    return found


def strangers_of(found: np.ndarray, path: Path) -> np.ndarray:
    """[segments] score of each against the cohort."""
    data = np.load(path)
    cohort = data["embeddings"][data["seconds"] >= COHORT_MIN_SECONDS].astype(np.float64)
    return scoring.against_strangers(found, cohort / np.linalg.norm(cohort, axis=1, keepdims=True), COHORT_TOP)


def table(head: list[str], lines: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *lines])


def evaluate(vectors: dict[str, np.ndarray], trials: dict, strangers: dict[str, np.ndarray]) -> tuple[dict, str, str]:
    """Figures by set and row, and the Markdown of two tables: the rates, and the comparison with the first row.

    strangers: cohort scores of the rows with normalised scores
    """
    voices = [one["voice"] for one in trials["segments"]]
    figures, main, against = {}, [], []
    first = next(iter(vectors))
    for name, pairs in trials["sets"].items():
        results = {
            row: scoring.eer(found, voices, pairs, BOOTSTRAP_SEED, strangers.get(row)) for row, found in vectors.items()
        }
        low_high = {row: scoring.interval(draws) for row, (_, draws) in results.items()}
        changes = {row: scoring.interval(draws - results[first][1]) for row, (_, draws) in results.items()}
        counts = f"{len(pairs['same'])} / {len(pairs['different'])}"
        main.append(
            [name, counts]
            + [f"{results[row][0]:.1f} ({low_high[row][0]:.1f}–{low_high[row][1]:.1f})" for row in vectors]
        )
        against.append(
            [name]
            + [
                f"{results[row][0] - results[first][0]:+.1f} ({changes[row][0]:+.1f} to {changes[row][1]:+.1f})"
                for row in vectors
                if row != first
            ]
        )
        figures[name] = {
            row: {
                "eer": round(results[row][0], 3),
                "interval": [round(v, 3) for v in low_high[row]],
                "against_first": [round(v, 3) for v in changes[row]],
            }
            for row in vectors
        }
    compared = (
        f"Against {first}:\n\n" + table(["trials", *[row for row in vectors if row != first]], against) + "\n\n"
        if len(vectors) > 1
        else ""
    )
    return figures, table(["trials", "same / different", *vectors], main), compared


def means(figures: dict) -> str:
    """Markdown: every row's mean error over the sets of held-out voices: clean, degraded and all."""
    rows = list(next(iter(figures.values())))
    lines = []
    for name, states in {"clean": ("clean",), "degraded": ("degraded",), "all": ("clean", "degraded")}.items():
        sets = [values for label, values in figures.items() if label.split(" / ")[0] in states]
        if sets:
            lines.append(
                [
                    f"{name}, mean of {len(sets)}",
                    *[f"{np.mean([values[row]['eer'] for values in sets]):.1f}" for row in rows],
                ]
            )
    return table(["trials", *rows], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("trials", "voices", "noise", "meetings"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--model", action="append", default=[], metavar="NAME=PATH")
    parser.add_argument("--floor", choices=("with", "without", "both"), default="both")
    parser.add_argument("--bilstm", type=Path)
    parser.add_argument("--mfcc", action="store_true")
    parser.add_argument("--resemblyzer", action="store_true")
    parser.add_argument("--teacher", type=Path, metavar="FOLDER")
    parser.add_argument("--teacher-floor", choices=("with", "without", "both"), default="both")
    parser.add_argument("--cohort", type=Path)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    trials = json.loads(options.trials.read_text())
    rows = rows_of(options)
    if not rows:
        parser.error("nothing to evaluate")
    vectors, strangers = vectors_of(rows, options, trials["segments"]), {}
    if options.cohort:
        first = next(iter(vectors))
        name = f"{first}, less strangers"
        strangers[name] = strangers_of(vectors[first], options.cohort)
        vectors = {first: vectors[first], name: vectors[first], **vectors}
    figures, rates, compared = evaluate(vectors, trials, strangers)
    print(f"{rates}\n\n{compared}Means:\n\n{means(figures)}")
    whole = {"trials_sha256": digest(options.trials), "seed": trials["seed"], "sets": figures}
    if options.json:
        options.json.write_text(json.dumps(whole, indent=1) + "\n")


if __name__ == "__main__":
    main()
