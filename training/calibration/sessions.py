"""Embeddings of pieces of people who share a recording, for the PLDA that tells apart who talks in one.

    python -m calibration.sessions TRUNK.onnx HEAD.onnx VOICES NOISE OUT.npz [--recordings FOLDER]

Generates conversations of six training voices each (`conversations.py`; kept in FOLDER), runs the embedder over stretches of ten
seconds as the service does, and takes pieces of one and a half seconds, and of four, where one person talks alone. Writes
embeddings [n, 192], voice [n], session [n] and seconds [n].
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import onnxruntime
import soundfile

from embedder.features import log_mels, raise_floor
from embedder.model import FRAME_STRIDE, VARIANCE_FLOOR

from .conversations import Plan, make
from .material import RATE, Corpora

SESSIONS, VOICES_EACH, SECONDS, SEED = 100, 6, 120, 7700
STRETCH = 10 * RATE
PIECES_SECONDS = (1.5, 1.5, 1.5, 4.0)
PIECES_EACH = 16


def plans() -> list[Plan]:
    rng = np.random.default_rng(SEED)
    kinds = [str(rng.choice(["meeting", "phone", "dialogue"], p=[0.4, 0.35, 0.25])) for _ in range(SESSIONS)]
    return [Plan(f"{index:03d}_{kind}", "fit", SECONDS, VOICES_EACH, kind, SEED + index) for index, kind in enumerate(kinds)]


def frames_of(trunk: onnxruntime.InferenceSession, samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Trunk frames [n, 512] of a whole recording and the second that each begins at."""
    frames, times = [], []
    for at in range(0, len(samples) - RATE, STRETCH):
        feats = raise_floor(log_mels(samples[at : at + STRETCH]))
        out = trunk.run(None, {"feats": (feats - feats.mean(0))[None].astype(np.float32)})[0][0]
        frames.append(out)
        times.append(at / RATE + np.arange(len(out)) * FRAME_STRIDE / 100)
    return np.concatenate(frames), np.concatenate(times)


def pooled(frames: np.ndarray) -> np.ndarray:
    return np.concatenate([frames.mean(0), np.sqrt(np.maximum(frames.var(0), VARIANCE_FLOOR))])


def read_rttm(path: Path) -> list[tuple[float, float, str]]:
    lines = [line.split() for line in path.read_text().splitlines()]
    return [(float(one[3]), float(one[3]) + float(one[4]), one[7]) for one in lines]


def observe(path: Path, trunk: onnxruntime.InferenceSession, rng: np.random.Generator):
    """Statistics [n, 1024], names and seconds of pieces where one person talks alone."""
    samples, _ = soundfile.read(path, dtype="float32")
    frames, times = frames_of(trunk, samples)
    turns = read_rttm(path.with_suffix(".rttm"))
    names = sorted({name for _, _, name in turns})
    active = np.array([[any(s <= t and t + 0.04 <= e for s, e, who in turns if who == name) for t in times] for name in names])
    alone = active & (active.sum(0) == 1)
    vectors, voices, seconds = [], [], []
    for name, mask in zip(names, alone):
        mine = np.flatnonzero(mask)
        for _ in range(min(PIECES_EACH, len(mine) // 12)):
            wanted = float(rng.choice(PIECES_SECONDS))
            count = int(wanted / 0.04)
            begin = int(rng.integers(0, max(1, len(mine) - count)))
            at = mine[begin : begin + count]
            # A piece lies in one place, as what is heard in a window does.
            at = at[times[at] - times[at[0]] < 3 * wanted]
            if len(at) < 18:
                continue
            vectors.append(pooled(frames[at]))
            voices.append(name)
            seconds.append(len(at) * 0.04)
    return vectors, voices, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trunk", type=Path)
    parser.add_argument("head", type=Path)
    parser.add_argument("voices", type=Path)
    parser.add_argument("noise", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--recordings", type=Path, default=Path("sessions"))
    args = parser.parse_args()
    args.recordings.mkdir(parents=True, exist_ok=True)
    missing = [plan for plan in plans() if not (args.recordings / f"{plan.name}.rttm").exists()]
    with ProcessPoolExecutor(2) as pool:
        for job in [pool.submit(make, Corpora(args.voices, args.noise), plan, args.recordings) for plan in missing]:
            job.result()
    if str(args.trunk) == "-":
        return
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    trunk, head = (onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"]) for path in (args.trunk, args.head))
    rng = np.random.default_rng(SEED)
    embeddings, voice, session, seconds = [], [], [], []
    for index, path in enumerate(sorted(args.recordings.glob("*.flac"))):
        vectors, names, lengths = observe(path, trunk, rng)
        embeddings.append(head.run(None, {"pooled": np.array(vectors, np.float32)})[0])
        voice += names
        session += [index] * len(names)
        seconds += lengths
    np.savez(args.out, embeddings=np.concatenate(embeddings), voice=np.unique(voice, return_inverse=True)[1], session=np.array(session), seconds=np.array(seconds))
    print(f"{len(voice)} pieces of {len(set(voice))} voices in {len(set(session))} recordings")


if __name__ == "__main__":
    main()
