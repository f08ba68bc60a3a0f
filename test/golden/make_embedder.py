"""Writes the embedding of four seconds of speech by the published CAM++ in PyTorch.

    PYTHONPATH=training python test/golden/make_embedder.py --teacher FOLDER --out test/golden/data/embedder_v6.json

The kernel of the trunk and the head are compared with it.
"""

import argparse
import json
import subprocess
from pathlib import Path

import numpy as np
import torch

from embedder import teacher
from embedder.export import feats_of

FIXTURE = "test/fixtures/formats/mp2-16000-mono.mp2"
"""At 16 kHz, so that every decoder gives the same samples without resampling."""
SAMPLES = 64_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--teacher", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    command = ["ffmpeg", "-loglevel", "error", "-i", FIXTURE, "-f", "f32le", "-"]
    decoded = subprocess.run(command, capture_output=True, check=True).stdout
    feats = feats_of(np.frombuffer(decoded, "<f4")[:SAMPLES])
    with torch.inference_mode():
        embedding = teacher.load(args.teacher)(torch.from_numpy(feats))[0].numpy()
    args.out.write_text(json.dumps([round(float(value), 6) for value in embedding / np.linalg.norm(embedding)]) + "\n")


if __name__ == "__main__":
    main()
