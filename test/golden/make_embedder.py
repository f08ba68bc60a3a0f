"""Writes the embedding of the first six seconds of the fixture by PyTorch in floating point.

    PYTHONPATH=training python test/golden/make_embedder.py CHECKPOINT test/golden/data/embedder_v5.json

The two halves of the embedder in 8 bits are compared with it.
"""

import json
import subprocess
import sys

import numpy as np
import torch

from embedder.export import feats
from embedder.model import Embedder, folded

checkpoint, target = sys.argv[1:]
source = ["-i", "test/fixtures/conversation.mp3"]
samples_format = ["-ar", "16000", "-ac", "1", "-f", "f32le"]
command = ["ffmpeg", "-loglevel", "error", *source, *samples_format, "-"]
decoded = subprocess.run(command, capture_output=True, check=True).stdout
samples = np.frombuffer(decoded, "<f4")[: 599 * 160 + 400]
model = Embedder()
model.load_state_dict(torch.load(checkpoint, weights_only=False)["model"])
with torch.inference_mode():
    embedding = folded(model)(torch.from_numpy(feats(samples)))[0].numpy()
with open(target, "w") as out:
    json.dump([round(float(value), 5) for value in embedding / np.linalg.norm(embedding)], out)
    out.write("\n")
