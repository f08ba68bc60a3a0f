"""Scoring of embedders: known cases of the equal error rate, and all steps with the embedder of the default pack."""

import json
import unittest

import numpy as np

from evaluation import scoring
from tests.made_up import write_noise, write_recordings, write_voices
from tests.steps import MODELS, InFolder, run


class Scoring(unittest.TestCase):
    def rate(self, scores: list[float], is_same: list[bool]) -> float:
        order = np.argsort(scores)
        return scoring.weighted_eer(np.array(scores)[order], np.array(is_same)[order], np.ones(len(scores)))

    def test_equal_error_rate(self) -> None:
        self.assertEqual(self.rate([0.9, 0.8, 0.2, 0.1], [True, True, False, False]), 0)
        self.assertEqual(self.rate([0.9, 0.8, 0.2, 0.1], [False, False, True, True]), 100)
        self.assertEqual(self.rate([0.9, 0.4, 0.6, 0.1], [True, True, False, False]), 50)

    def test_interval_holds_the_rate(self) -> None:
        rng = np.random.default_rng(0)
        voices = np.repeat(np.arange(20), 4)
        vectors = rng.normal(size=(20, 8))[voices] + rng.normal(size=(80, 8))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        every = [(i, j) for i in range(80) for j in range(i)]
        pairs = {
            "same": [pair for pair in every if voices[pair[0]] == voices[pair[1]]],
            "different": [pair for pair in every if voices[pair[0]] != voices[pair[1]]],
        }
        rate, draws = scoring.eer(vectors, [str(voice) for voice in voices], pairs, seed=1)
        low, high = scoring.interval(draws)
        self.assertTrue(0 < low < rate < high < 50)


class EvaluationSteps(InFolder):
    def test_draws_trials_and_evaluates_an_embedder(self) -> None:
        voices, noise, meetings = (self.folder / name for name in ("voices", "noise", "meetings"))
        write_voices(voices, train=0, dev=4)
        write_noise(noise)
        write_recordings(meetings, count=1, seconds=20)
        corpora = ["--voices", voices, "--noise", noise, "--meetings", meetings]
        trials, out = self.folder / "trials.json", self.folder / "eer.json"
        run("evaluation.trials", *corpora, "--out", trials, "--seed", 5)
        embedder = "+".join(str(MODELS / f"embedder-v6-{half}.onnx") for half in ("trunk", "head"))
        run(
            "evaluation.eer",
            "--trials",
            trials,
            *corpora,
            "--model",
            f"v6={embedder}",
            "--floor",
            "with",
            "--json",
            out,
        )
        found = {name: rows["v6, floor"]["eer"] for name, rows in json.loads(out.read_text())["sets"].items()}
        self.assertEqual(len(found), 14)
        self.assertLess(found["clean / 3 s / any"], 30)
