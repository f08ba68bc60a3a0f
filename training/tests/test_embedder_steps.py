"""Every step of the embedder's training, on made-up voices and a teacher of random weights."""

import contextlib
import io
from unittest import mock

import numpy as np
import onnxruntime
import torch

from calibration import sessions
from embedder import teacher
from tests.made_up import write_noise, write_recordings, write_voices
from tests.steps import InFolder, run, run_apart

VOICES = 3


class EmbedderSteps(InFolder):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.voices, cls.noise, cls.work = (cls.folder / name for name in ("voices", "noise", "work"))
        write_voices(cls.voices, train=VOICES, dev=1)
        write_noise(cls.noise)
        write_recordings(cls.folder / "recordings", count=4, seconds=20)
        torch.manual_seed(0)
        checkpoint = cls.folder / "campplus.pt"
        torch.save(teacher.CamPlusPlus().state_dict(), checkpoint)
        fetched = mock.patch.object(teacher, "fetch", return_value=checkpoint)
        fetched.start()
        cls.addClassCleanup(fetched.stop)

    def test_1_prepares_features_and_targets(self) -> None:
        corpora = ["--voices", self.voices, "--noise", self.noise]
        run_apart("embedder.prepare", *corpora, "--work", self.work, "--speeds", 1.0)
        run("embedder.targets", "--work", self.work, "--teacher", self.folder, "--speeds", 1.0)
        units, targets = (np.load(self.work / f"{name}-1.0.npy") for name in ("units", "targets"))
        self.assertEqual(set(units[:, 0]), set(range(VOICES)))
        self.assertEqual(targets.shape, (len(units), teacher.EMBEDDING_SIZE))
        np.testing.assert_allclose(np.linalg.norm(targets, axis=1), 1, atol=1e-3)

    def test_2_trains_one_step(self) -> None:
        run("embedder.train", "--work", self.work, "--teacher", self.folder, "--steps", 1, "--batch", 1)
        state = torch.load(self.work / "embedder.pt", weights_only=False)
        self.assertEqual(state["step"], 1)
        self.assertTrue(all(torch.isfinite(value).all() for value in state["model"].values()))

    def test_3_exports_a_trunk_and_a_head_that_run(self) -> None:
        arguments = ["--checkpoint", self.work / "embedder.pt", "--recordings", self.folder / "recordings"]
        self.assertIn("mean cosine", run("embedder.export", *arguments, "--out", self.folder, "--version", "0"))
        halves = [self.folder / f"embedder-v0-{half}.onnx" for half in ("trunk.int8", "head")]
        trunk, head = (onnxruntime.InferenceSession(str(path)) for path in halves)
        frames = trunk.run(None, {"feats": np.random.default_rng(0).normal(size=(1, 200, 80)).astype(np.float32)})[0]
        self.assertEqual(frames.shape, (1, 50, 512))
        embedding = head.run(None, {"pooled": sessions.pooled(frames[0])[None].astype(np.float32)})[0]
        self.assertEqual(embedding.shape, (1, 192))
        self.assertTrue(np.isfinite(embedding).all())

    def test_4_observes_speakers_for_the_plda(self) -> None:
        halves = [self.folder / f"embedder-v0-{half}.onnx" for half in ("trunk.int8", "head")]
        with contextlib.redirect_stdout(io.StringIO()):
            sessions.observe(self.folder / "recordings", *halves, self.folder / "sessions.npz")
        with np.load(self.folder / "sessions.npz") as observed:
            self.assertEqual(observed["embeddings"].shape, (len(observed["voice"]), 192))
            self.assertEqual(set(observed["session"]), {0, 1, 2, 3})
