"""Generated conversations of training voices, and embeddings of single speakers in them, for the fit of the PLDA.

    python -m calibration.sessions VOICES NOISE RECORDINGS [--trunk TRUNK.onnx --head HEAD.onnx --out OUT.npz]

Generates 100 conversations of six voices each (`conversations.py`) into the folder RECORDINGS, except existing ones.
With trunk and head of an embedder it then computes embeddings: the trunk runs over windows of ten seconds, as in the
service; its frames are pooled over 1.5 s or 4 s of single-speaker speech. OUT.npz gets embeddings [n, 192] and voice
[n], session [n] (the recording) and seconds [n] of each.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import onnxruntime
import soundfile

from embedder.features import log_mels, raise_floor
from embedder.export import FRAME_STRIDE, pooled
from meetings.check import read_rttm

from .conversations import Plan, make
from .material import RATE, Corpora

SESSIONS, VOICES_EACH, SECONDS, SEED = 100, 6, 120, 7700
WINDOW = 10 * RATE
FRAME_SECONDS = FRAME_STRIDE / 100
PIECES_SECONDS = (1.5, 1.5, 1.5, 4.0)
PIECES_EACH = 16


def plans() -> list[Plan]:
    rng = np.random.default_rng(SEED)
    kinds = [str(rng.choice(["meeting", "phone", "dialogue"], p=[0.4, 0.35, 0.25])) for _ in range(SESSIONS)]
    return [
        Plan(f"{index:03d}_{kind}", "fit", SECONDS, VOICES_EACH, kind, SEED + index) for index, kind in enumerate(kinds)
    ]


def generate(corpora: Corpora, recordings: Path) -> None:
    """Writes the missing conversations."""
    recordings.mkdir(parents=True, exist_ok=True)
    missing = [plan for plan in plans() if not (recordings / f"{plan.name}.rttm").exists()]
    with ProcessPoolExecutor(2) as pool:
        for job in [pool.submit(make, corpora, plan, recordings) for plan in missing]:
            job.result()


def trunk_frames(trunk: onnxruntime.InferenceSession, samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Trunk frames [n, 512] of a recording, and their start times in seconds."""
    frames, times = [], []
    for at in range(0, len(samples) - RATE, WINDOW):
        feats = raise_floor(log_mels(samples[at : at + WINDOW]))
        out = trunk.run(None, {"feats": (feats - feats.mean(0))[None].astype(np.float32)})[0][0]
        frames.append(out)
        times.append(at / RATE + np.arange(len(out)) * FRAME_STRIDE / 100)
    return np.concatenate(frames), np.concatenate(times)


def pieces_of(path: Path, trunk: onnxruntime.InferenceSession, rng: np.random.Generator):
    """Single-speaker spans of a recording: statistics [n, 1024], names [n] and seconds [n]."""
    samples, _ = soundfile.read(path, dtype="float32")
    frames, times = trunk_frames(trunk, samples)
    turns = read_rttm(path.with_suffix(".rttm"))
    names = sorted({name for _, _, name in turns})
    active = np.array(
        [
            [any(s <= t and t + FRAME_SECONDS <= e for s, e, who in turns if who == name) for t in times]
            for name in names
        ]
    )
    alone = active & (active.sum(0) == 1)
    vectors, voices, seconds = [], [], []
    for name, mask in zip(names, alone):
        mine = np.flatnonzero(mask)
        for _ in range(min(PIECES_EACH, len(mine) // 12)):
            wanted = float(rng.choice(PIECES_SECONDS))
            count = int(wanted / FRAME_SECONDS)
            begin = int(rng.integers(0, max(1, len(mine) - count)))
            at = mine[begin : begin + count]
            # The frames of a span lie close together, like those of one window.
            at = at[times[at] - times[at[0]] < 3 * wanted]
            if len(at) < 18:
                continue
            vectors.append(pooled(frames[at]))
            voices.append(name)
            seconds.append(len(at) * FRAME_SECONDS)
    return vectors, voices, seconds


def observe(recordings: Path, trunk: Path, head: Path, out: Path) -> None:
    """Writes the embeddings of spans of all recordings."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    halves = [onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"]) for path in (trunk, head)]
    rng = np.random.default_rng(SEED)
    embeddings, voice, session, seconds = [], [], [], []
    for index, path in enumerate(sorted(recordings.glob("*.flac"))):
        vectors, names, lengths = pieces_of(path, halves[0], rng)
        embeddings.append(halves[1].run(None, {"pooled": np.array(vectors, np.float32)})[0])
        voice += names
        session += [index] * len(names)
        seconds += lengths
    _, numbers = np.unique(voice, return_inverse=True)
    np.savez(out, embeddings=np.concatenate(embeddings), voice=numbers, session=session, seconds=seconds)
    print(f"{len(voice)} pieces of {len(set(voice))} voices in {len(set(session))} recordings")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("voices", type=Path)
    parser.add_argument("noise", type=Path)
    parser.add_argument("recordings", type=Path)
    parser.add_argument("--trunk", type=Path)
    parser.add_argument("--head", type=Path)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    observing = (args.trunk, args.head, args.out)
    if any(observing) and not all(observing):
        parser.error("--trunk, --head and --out go together")
    generate(Corpora(args.voices, args.noise), args.recordings)
    if all(observing):
        observe(args.recordings, *observing)


if __name__ == "__main__":
    main()
