"""Every step of the segmentation model's training, on made-up voices, from the stored weights."""

import warnings
from pathlib import Path
from unittest import mock

import numpy as np
import onnx
import onnxruntime
import torch
import torch.nn.functional as F

from segmentation import train
from tests.made_up import RATE_HZ, write_noise, write_recordings, write_voices
from tests.steps import TRAINING, InFolder, run, run_apart

WEIGHTS = TRAINING / "segmentation" / "weights" / "segmentation-v8.pt"
VALIDATION_WINDOWS = 4


class LoudnessTeacher(torch.nn.Module):
    """A made-up teacher: one speaker in loud frames, no speech in others."""

    def forward(self, x):
        level = torch.log10(F.avg_pool1d(x * x, 320) + 1e-10)
        loud = 4 * (level[:, 0] + 5.0)
        others = torch.full_like(loud, -20.0)
        return torch.stack([-loud, loud, others, others, others, others, others], -1).log_softmax(-1)


def write_teacher(path: Path) -> None:
    axes = {"x": {0: "N", 2: "T"}, "y": {0: "N", 1: "F"}}
    names = dict(input_names=["x"], output_names=["y"])
    example = (torch.zeros(1, 1, RATE_HZ),)
    with warnings.catch_warnings(action="ignore"):
        torch.onnx.export(
            LoudnessTeacher(), example, str(path), dynamic_axes=axes, opset_version=14, dynamo=False, **names
        )
    model = onnx.load(path)
    onnx.helper.set_model_props(model, {"receptive_field_size": "320", "receptive_field_shift": "320"})
    onnx.save(model, path)


class SegmentationSteps(InFolder):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.voices, cls.noise, cls.work = (cls.folder / name for name in ("voices", "noise", "work"))
        write_voices(cls.voices, train=4, dev=3)
        write_noise(cls.noise)
        write_recordings(cls.folder / "recordings", count=5, seconds=20)
        write_teacher(cls.folder / "teacher.onnx")

    def test_1_prepares_voices_and_noise(self) -> None:
        voices = ["--voices", self.voices, "--teacher", self.folder / "teacher.onnx"]
        self.assertIn("7 of 7 voices", run_apart("segmentation.prepare_voices", *voices, "--work", self.work))
        noise = run_apart("segmentation.prepare_noise", "--noise", self.noise, "--work", self.work, "--music", 2)
        self.assertIn("5 noises", noise)
        self.assertIn(
            "14 voices and speeds", run_apart("segmentation.prepare_mels", "--noise", self.noise, "--work", self.work)
        )
        run_apart("segmentation.prepare_waves", "--work", self.work)

    def test_2_writes_soft_labels(self) -> None:
        out = self.folder / "soft.npz"
        teacher = ["--teacher", self.folder / "teacher.onnx", "--noise", self.noise]
        run("segmentation.distil", *teacher, "--work", self.work, "--out", out, "--windows", 3)
        with np.load(out) as soft:
            self.assertEqual(soft["features"].shape, (3, 1000, 64))
            np.testing.assert_allclose(soft["soft"].astype(float).sum(2), 1, atol=2e-3)

    def test_3_trains_one_step_on_waveforms_and_on_mel_powers(self) -> None:
        for name, waves in (("mel", []), ("waves", ["--waves", self.noise, "--workers", 2, "--mel-share", 0.5])):
            checkpoint = self.folder / f"{name}.pt"
            start = ["--start", WEIGHTS, "--work", self.work, "--checkpoint", checkpoint]
            length = ["--minutes", 0.0001, "--batch", 2, "--float32", "--device", "cpu"]
            with (
                mock.patch.object(train, "VALIDATION_WINDOWS", VALIDATION_WINDOWS),
                mock.patch.object(train, "VALIDATED_AT_ONCE", VALIDATION_WINDOWS),
            ):
                run("segmentation.train", *start, *length, *waves)
            before = torch.load(WEIGHTS)
            after = torch.load(checkpoint, weights_only=False)
            self.assertEqual(after["step"], 1)
            self.assertFalse(torch.equal(before["out.weight"], after["model"]["out.weight"]))

    def test_4_exports_quantises_and_joins_a_model_that_runs(self) -> None:
        whole, network, small, small_whole = (
            self.folder / f"{name}.onnx" for name in ("whole", "net", "net8", "whole8")
        )
        run("segmentation.export", "--checkpoint", self.folder / "waves.pt", "--out", whole, "--network", network)
        run("quantisation.quantise", network, self.folder / "recordings", small)
        run("quantisation.whole_of", whole, small, small_whole)
        sound = 0.1 * np.random.default_rng(0).standard_normal((1, 1, 10 * RATE_HZ)).astype(np.float32)
        expected, got = (
            onnxruntime.InferenceSession(str(path)).run(None, {"x": sound})[0] for path in (whole, small_whole)
        )
        self.assertEqual(got.shape, (1, 500, 7))
        np.testing.assert_allclose(np.exp(got).sum(2), 1, atol=1e-3)
        self.assertLess(np.abs(np.exp(got) - np.exp(expected)).mean(), 0.05)

    def test_5_evaluates_a_model(self) -> None:
        models = ["--model", f"new={self.folder / 'whole.onnx'}", "--model", f"loud={self.folder / 'teacher.onnx'}"]
        rows = run("segmentation.evaluate", *models, self.folder / "recordings").splitlines()
        self.assertEqual([row.split("|")[2].strip() for row in rows[2:]], ["new", "loud"])
        streamed = run("segmentation.stream", *models, "--minutes", 0.1, "--hop", 2, self.folder / "recordings")
        self.assertEqual(len(streamed.splitlines()), 4)

    def test_6_measures_networks_in_one_room(self) -> None:
        printed = run(
            "segmentation.one_room", "--work", self.work, "--noise", self.noise, "--windows", 2, f"v8={WEIGHTS}"
        )
        self.assertEqual(printed.count("| v8 |"), 4)
