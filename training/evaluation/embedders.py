"""The compared embedders. Each turns a list of float32 sample arrays at 16 kHz into unit vectors [n, D].

All get the same samples, and none may use its own speech detector.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime

from calibration.sessions import pooled
from embedder.features import log_mels, raise_floor

RATE = 16000
BATCH = 16

Samples = list[np.ndarray]
Embedder = Callable[[Samples], np.ndarray]


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / (np.linalg.norm(vectors, axis=1, keepdims=True) + 1e-12)


def filterbank(samples: np.ndarray, has_floor: bool) -> np.ndarray:
    """[T, 80] log-mels, with the floor if requested, mean over time subtracted."""
    mels = log_mels(samples)
    if has_floor:
        mels = raise_floor(mels)
    return (mels - mels.mean(0)).astype(np.float32)


def batched(features: Callable[[np.ndarray], np.ndarray], run: Callable[[np.ndarray], np.ndarray]) -> Embedder:
    """Segments of equal length go through `run` [B, T, bands] -> [B, D] together."""

    def embed(samples: Samples) -> np.ndarray:
        alike = defaultdict(list)
        for i, one in enumerate(samples):
            alike[len(one)].append(i)
        found: list[np.ndarray | None] = [None] * len(samples)
        for indices in alike.values():
            for first in range(0, len(indices), BATCH):
                part = indices[first : first + BATCH]
                for i, vector in zip(part, run(np.stack([features(samples[i]) for i in part]))):
                    found[i] = vector
        return unit(np.array(found, np.float64))

    return embed


def session(path: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def onnx(path: Path, has_floor: bool) -> Embedder:
    """A model of WeSpeaker signature, `feats` [B, T, 80] -> `embs` [B, D]."""
    model = session(path)
    return batched(
        lambda samples: filterbank(samples, has_floor), lambda feats: model.run(["embs"], {"feats": feats})[0]
    )


def halves(trunk_path: Path, head_path: Path, has_floor: bool) -> Embedder:
    """Trunk and head, as in the service, pooled over the complete segment."""
    trunk, head = session(trunk_path), session(head_path)

    def run(feats: np.ndarray) -> np.ndarray:
        statistics = [pooled(frames) for frames in trunk.run(["frames"], {"feats": feats})[0]]
        return head.run(["embs"], {"pooled": np.array(statistics, np.float32)})[0]

    return batched(lambda samples: filterbank(samples, has_floor), run)


def teacher(folder: Path, has_floor: bool) -> Embedder:
    """CAM++ in PyTorch (`embedder/teacher.py`), its checkpoint in `folder`."""
    import torch

    from embedder import teacher as module

    torch.set_num_threads(1)
    model = module.load(folder)

    def run(feats: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            return model(torch.from_numpy(feats)).numpy()

    return batched(lambda samples: filterbank(samples, has_floor), run)


def bilstm(path: Path) -> Embedder:
    """wq2012's encoder, `mfcc` [B, T, 40] -> `embedding` [B, 128]; librosa's default MFCCs."""
    import librosa

    model = session(path)
    return batched(
        lambda samples: librosa.feature.mfcc(y=samples, sr=RATE, n_mfcc=40).T.astype(np.float32),
        lambda mfcc: model.run(["embedding"], {"mfcc": mfcc})[0],
    )


def mfcc_statistics() -> Embedder:
    """Mean and standard deviation of 20 MFCCs, each of the 40 figures standardised over all segments of the trials."""
    import librosa

    def embed(samples: Samples) -> np.ndarray:
        tables = [librosa.feature.mfcc(y=one, sr=RATE, n_mfcc=20) for one in samples]
        figures = np.array([np.concatenate([table.mean(1), table.std(1)]) for table in tables], np.float64)
        return unit((figures - figures.mean(0)) / (figures.std(0) + 1e-9))

    return embed


def resemblyzer() -> Embedder:
    """VoiceEncoder of the PyPI package, with its volume normalisation and without its trimming of pauses."""
    import torch
    from resemblyzer import VoiceEncoder
    from resemblyzer.audio import normalize_volume
    from resemblyzer.hparams import audio_norm_target_dBFS

    torch.set_num_threads(1)
    encoder = VoiceEncoder("cpu", verbose=False)

    def embed(samples: Samples) -> np.ndarray:
        loud = (normalize_volume(one, audio_norm_target_dBFS, increase_only=True) for one in samples)
        return unit(np.array([encoder.embed_utterance(one.astype(np.float32)) for one in loud], np.float64))

    return embed
