"""PLDA, confidences and the map of identification, fitted on made-up vectors; one generated conversation."""

import json
from pathlib import Path

import numpy as np
import soundfile

from calibration import conversations
from calibration.codecs import through_codec
from calibration.material import RATE, Corpora, sittings_of
from identification import generate, observe
from tests.made_up import speech, write_noise, write_voices
from tests.steps import InFolder, run

DIMENSION = 24


class Calibration(InFolder):
    def test_plda_separates_voices_better_than_the_cosine(self) -> None:
        rng = np.random.default_rng(0)
        voice = np.repeat(np.arange(40), 24)
        session = voice // 4
        # Half of the dimensions have the session and noise, not the voice.
        noise = rng.normal(size=(len(voice), DIMENSION)) * np.where(np.arange(DIMENSION) < 12, 0.6, 3.0)
        means = rng.normal(size=(40, DIMENSION)) * np.where(np.arange(DIMENSION) < 12, 1.0, 0.1)
        seconds = np.tile([1.2, 1.5, 4.0], len(voice) // 3)
        observed = self.folder / "sessions.npz"
        np.savez(observed, embeddings=means[voice] + noise, voice=voice, session=session, seconds=seconds)
        out = self.folder / "plda.json"
        printed = run("calibration.plda", observed, "made-up", out, "--dimensions", 12)
        fitted = json.loads(out.read_text())
        self.assertEqual(fitted["embedding"], "made-up")
        self.assertEqual(np.shape(fitted["transform"]), (12, DIMENSION))
        self.assertEqual(fitted["phi"], sorted(fitted["phi"], reverse=True))
        rates = [float(line.split("EER ")[1].split(" %")[0]) for line in printed.splitlines() if "EER" in line]
        for cosine, plda in zip(rates[::2], rates[1::2], strict=True):
            self.assertLess(plda, cosine)

    def test_confidences_are_fitted_to_the_counts(self) -> None:
        # A confidence c is right with the probability of the map with slope 0.5 and offset 0.2.
        odds = np.log(np.clip(np.arange(101) / 100, 0.005, 0.995) / (1 - np.clip(np.arange(101) / 100, 0.005, 0.995)))
        right = np.rint(10_000 / (1 + np.exp(-(0.5 * odds + 0.2)))).astype(int)
        counts = np.stack([10_000 - right, right], 1).tolist()
        sets = [{"folder": "made-up", "frames": counts, "turns": counts}]
        stored = self.folder / "counts.json"
        stored.write_text(json.dumps({"confidence": {"slope": 1.0, "offset": 0.0}, "sets": sets}))
        printed = run("calibration.confidences", stored, "--fit", "made-up").split()
        slope, offset = (float(printed[printed.index(name) + 1]) for name in ("slope", "offset"))
        self.assertAlmostEqual(slope, 0.5, places=2)
        self.assertAlmostEqual(offset, 0.2, places=2)

    def test_counts_are_fitted_to_answers(self) -> None:
        rng = np.random.default_rng(2)
        answers = []
        for _ in range(400):
            # Stated too sure: the odds of another number are twice the stated ones.
            fewer, more = rng.uniform(0.05, 0.5, 2)
            right = 1 / (1 + fewer + more)
            alternatives = [
                {"count": 2, "confidence": int(100 * 0.64 * fewer * right)},
                {"count": 4, "confidence": int(100 * 0.85 * more * right)},
            ]
            odds = np.array([2 * fewer, 1, 2 * more])
            speakers = 2 + int(rng.choice(3, p=odds / odds.sum()))
            count = {"estimate": 3, "confidence": int(100 * right), "alternatives": alternatives}
            answers.append({"speakers": speakers, "speakerCount": count})
        sets = [{"folder": name, "counts": answers[at::2]} for at, name in enumerate(("one", "two"))]
        path = self.folder / "counts.json"
        path.write_text(json.dumps({"sets": sets}))
        printed = run("calibration.counts", path).splitlines()
        self.assertEqual(len(printed), 3)
        fewer, more = (float(part.split(",")[0]) for part in printed[-1].split("intercept ")[1:])
        self.assertTrue(0.2 < fewer < 1.6 and 0.2 < more < 1.6, printed)

    def test_identification_is_fitted_to_pairs(self) -> None:
        rng = np.random.default_rng(1)
        people, recordings = 60, 4
        speaker = np.repeat(np.arange(people), recordings)
        seconds = rng.uniform(1, 20, len(speaker))
        # Of one second, half of the variance is noise.
        noise = rng.normal(size=(len(speaker), DIMENSION)) / np.sqrt(seconds)[:, None]
        embeddings = rng.normal(size=(people, DIMENSION))[speaker] + noise
        observed = self.folder / "pairs.npz"
        np.savez(
            observed,
            embedding=embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True),
            speaker=speaker,
            is_enrolment=np.arange(len(speaker)) % 2 == 0,
            seconds=seconds,
            pitch=rng.uniform(10, 20, people),
            sets=["made-up"] * people,
            is_dev=np.arange(people) % 3 == 0,
        )
        printed = run("identification.fit", observed)
        fitted = json.loads(printed.splitlines()[-1])
        self.assertGreater(fitted["slope"] * 0.9 + fitted["offset"], 0)
        self.assertLess(fitted["slope"] * 0.2 + fitted["offset"], 0)
        self.assertTrue(0.3 < fitted["noiseSeconds"] < 3, fitted)
        self.assertLess(float(printed.split("dev: ")[1].split(" nats")[0]), 0.3)

    def test_observes_voices_in_separate_recordings(self) -> None:
        voices, noise = self.folder / "observed-voices", self.folder / "observed-noise"
        write_voices(voices, train=1, dev=2)
        write_noise(noise)
        corpora = Corpora(voices, noise)
        persons = observe.people(corpora, "dev", seed=1)
        self.assertEqual(len(persons), 2)
        for person in persons:
            self.assertFalse({row["start"] for row in person.enrolment} & {row["start"] for row in person.talk})
        observe.start(corpora, Path(__file__).parents[2] / "models")
        for found in (observe.enrolments(persons[0], [1]), observe.conversation(persons, [2])):
            self.assertEqual({number for number, *_ in found}, {0, 1})
            for _, voice, seconds in found:
                self.assertAlmostEqual(float(voice @ voice), 1, places=5)
                self.assertTrue(1 <= seconds <= 6)

    def test_clips_of_distant_numbers_are_from_separate_sittings(self) -> None:
        clips = [{"source_clip": f"common_voice_en_{number}.mp3"} for number in (900, 17, 905, 1200)]
        sittings = sittings_of({"set": "cv61"}, clips)
        self.assertEqual(sittings, [[clips[1]], [clips[0], clips[2]], [clips[3]]])
        self.assertEqual(sittings_of({"set": "gsc"}, clips), [clips])

    def test_codecs_keep_length_and_level(self) -> None:
        samples = speech(150, 1.0, np.random.default_rng(0))
        coded = [through_codec(samples, np.random.default_rng(seed)) for seed in range(12)]
        for one in coded:
            self.assertEqual((one.shape, one.dtype), (samples.shape, np.float32))
            self.assertTrue(0.1 < np.abs(one).max() < 0.6)

    def test_generates_conversations_and_enrolments(self) -> None:
        voices, noise, out = (self.folder / name for name in ("voices", "noise", "conversations"))
        write_voices(voices, train=2, dev=10)
        write_noise(noise)
        out.mkdir()
        corpora = Corpora(voices, noise)
        plan = conversations.Plan("made-up", "check", 20, 2, "dialogue", 5)
        conversations.make(corpora, plan, out)
        samples, rate = soundfile.read(out / "made-up.flac")
        self.assertEqual((len(samples), rate), (20 * RATE, RATE))
        speakers = {line.split()[7] for line in (out / "made-up.rttm").read_text().splitlines()}
        self.assertEqual(len(speakers), 2)
        people = [person for half in ("fit", "check") for person in generate.people(corpora, half, seed=1)]
        self.assertEqual(len(people), 10)
        for person in people:
            self.assertFalse({row["start"] for row in person.enrolment} & {row["start"] for row in person.talk})
        enrolment = generate.enrolment_recording(corpora, people[0], [1])
        self.assertTrue(3 < len(enrolment) / RATE < 30 and np.isfinite(enrolment).all())
        trial = generate.conversation(corpora, people, "trial", out, [1])
        self.assertTrue(trial["enrolled"] and (out / "trial.rttm").exists())
