"""Export of the embedder and its embeddings for the PLDA, on made-up recordings and a network of random weights."""

import contextlib
import io
from unittest import mock

import numpy as np
import onnxruntime
import torch

from calibration import sessions
from embedder import export, teacher
from tests.made_up import write_recordings
from tests.steps import InFolder, run

RECORDINGS = 4


class EmbedderSteps(InFolder):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        write_recordings(cls.folder / "recordings", count=RECORDINGS, seconds=20)
        torch.manual_seed(0)
        checkpoint = cls.folder / "campplus.pt"
        network = teacher.CamPlusPlus()
        # Frames of random weights vary little; scaled up, their variance is above the floor of the service's pooling.
        torch.nn.init.constant_(network.xvector.out_nonlinear.batchnorm.weight, 1000.0)
        torch.save(network.state_dict(), checkpoint)
        fetched = mock.patch.object(teacher, "fetch", return_value=checkpoint)
        fetched.start()
        cls.addClassCleanup(fetched.stop)
        cls.halves = [cls.folder / f"embedder-v6-{half}.onnx" for half in ("trunk", "head")]

    def test_1_exports_halves_that_equal_the_published_network(self) -> None:
        arguments = ["--teacher", self.folder, "--recordings", self.folder / "recordings", "--out", self.folder]
        printed = run("embedder.export", *arguments)
        self.assertIn(f"{RECORDINGS} stretches: cosine with the published network at least", printed)
        self.assertGreater(float(printed.split("at least ")[1].split(",")[0]), 0.999)
        trunk, head = (onnxruntime.InferenceSession(str(path)) for path in self.halves)
        for length in (200, 201):
            feats = np.random.default_rng(0).normal(size=(1, length, 80)).astype(np.float32)
            self.assertEqual(trunk.run(None, {"feats": feats})[0].shape, (1, (length + 1) // 2, 512))
        self.assertEqual(head.run(None, {"pooled": np.zeros((3, 1024), np.float32)})[0].shape, (3, 192))

    def test_2_writes_the_network_in_one_file(self) -> None:
        out = self.folder / "campplus.onnx"
        run("embedder.teacher_onnx", "--teacher", self.folder, "--out", out)
        feats = export.feats_of(export.stretches(self.folder / "recordings")[0])
        with torch.inference_mode():
            expected = teacher.load(self.folder)(torch.from_numpy(feats)).numpy()
        found = onnxruntime.InferenceSession(str(out)).run(None, {"feats": feats})[0]
        np.testing.assert_allclose(found, expected, atol=1e-3 * np.abs(expected).max())

    def test_3_observes_speakers_for_the_plda(self) -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            sessions.observe(self.folder / "recordings", *self.halves, self.folder / "sessions.npz")
        with np.load(self.folder / "sessions.npz") as observed:
            self.assertEqual(observed["embeddings"].shape, (len(observed["voice"]), 192))
            self.assertEqual(set(observed["session"]), set(range(RECORDINGS)))
