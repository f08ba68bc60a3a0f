"""A generated meeting: the plan, its sound and its labels; pieces and alterations of recordings."""

import numpy as np
import soundfile

from calibration.material import rows
from meetings import check, generate, plans
from meetings.turns import plan
from meetings.voices import Voice
from tests.made_up import write_noise, write_recordings, write_voices
from tests.steps import InFolder, run


class Meetings(InFolder):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        write_noise(cls.folder / "noise")
        write_voices(cls.folder / "voices", train=0, dev=3)
        index, segments = (rows(cls.folder / "voices" / name) for name in ("index.csv", "segments.csv"))
        cls.voices = [
            Voice(cls.folder / "voices", row, [segment for segment in segments if segment["file"] == row["file"]])
            for row in index
        ]

    def test_a_plan_has_all_speakers_and_the_overlap(self) -> None:
        floor, shares = plan(self.voices, 60 * 100, 0.1, [1])
        again, _ = plan(self.voices, 60 * 100, 0.1, [1])
        np.testing.assert_array_equal(floor.active, again.active)
        self.assertTrue(floor.active.any(1).all())
        self.assertAlmostEqual(shares.sum(), 1)
        self.assertLess(abs(floor.overlap_share() - 0.1), 0.06)

    def test_a_meeting_has_the_sound_of_its_labels(self) -> None:
        item = plans.Plan("made-up", 1, 3, "clean close", plans.CLOSE, "opus", 0.1)
        entry = generate.make(item, self.voices, self.folder / "noise", self.folder, [1])
        samples, rate = soundfile.read(self.folder / "made-up.flac")
        self.assertEqual((len(samples), rate), (60 * 16_000, 16_000))
        names, active = check.grid(check.read_rttm(self.folder / "made-up.rttm"), 60)
        self.assertEqual(len(names), 3)
        self.assertEqual(entry["turns"], len((self.folder / "made-up.rttm").read_text().splitlines()))
        power = (samples.reshape(-1, 160) ** 2).mean(1)
        speech = active.any(0)
        self.assertGreater(10 * np.log10(power[speech].mean() / power[~speech].mean()), 3)

    def test_pieces_and_alterations_keep_the_labels(self) -> None:
        source = self.folder / "recordings"
        write_recordings(source, count=1, seconds=35)
        run("meetings.pieces", self.folder / "pieces", source)
        piece = self.folder / "pieces" / "30s-from-0" / "recordings-r0"
        self.assertEqual(soundfile.info(piece.with_suffix(".flac")).duration, 30)
        self.assertEqual(len(piece.with_suffix(".rttm").read_text().splitlines()), 6)
        run("meetings.altered", "--noise", self.folder / "noise", "--out", self.folder / "altered", source)
        altered = sorted((self.folder / "altered").glob("*/recordings/r0.flac"))
        self.assertEqual(len(altered), 9)
        for path in altered:
            self.assertEqual(path.with_suffix(".rttm").read_text(), (source / "r0.rttm").read_text())
            self.assertEqual(soundfile.info(path).frames, 35 * 16_000)
