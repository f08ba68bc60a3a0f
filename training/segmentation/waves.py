"""Conversations of 10 s whose speech is mixed as waveforms: a window is a random plan, which `render.py` computes for
batches on a device.

Turns, scenes and noise are those of `simulate.py`. Speech is mixed from samples, not mel powers: overlapping voices
keep their phases, and people in one room have responses of that room, each from a different position, for any voices.
Noise is mel power, which is added to that of the speech.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from . import scenes
from .frontend import BANDS, RATE_HZ
from .render import MOUTHS, ROOMS
from .simulate import Shapes, Simulator
from .sounds import to_power
from .turns import WINDOW_FRAMES, bridge_pauses, draw_turns, targets
from .voicing import wandering_db

TRACKS = 5
SHARED_SHARE = 0.8
"""Share of one-room windows with responses of one random room; otherwise each speaker has a stored one, of any room."""
STORED_SHARE = 0.5
ECHO_SHARE = 0.06
"""Share of windows with an echo: of all speakers from a far wall or a loudspeaker, of one on a line."""
ECHO_SECONDS, ECHO_DB = (0.08, 0.7), (-20.0, -3.0)
EDGE_IN_DB, EDGE_OUT_DB = np.array([-5.0, -1.5]), np.array([-1.0, -3.0, -7.0])


class Plan(NamedTuple):
    """Input of the renderer for one window, or stacked for a batch, with the labels."""

    source: np.ndarray
    """Frame of `waves.i16` of every track in every frame, or -1: int32 [5, F]."""
    gain: np.ndarray
    """Amplitude of every track's frames: float16 [5, F]."""
    equaliser: np.ndarray
    """Decibels of every track's bands: float16 [5, 64]."""
    response: np.ndarray
    """Row of the responses, or -1: int32 [5]."""
    share: np.ndarray
    """Amplitudes of the direct sound and of the response: float32 [5, 2]."""
    echo: np.ndarray
    """Delay of an echo in samples, and its amplitude (0: none): float32 [5, 2]."""
    noise: np.ndarray
    """Square root of mel power: float16 [F, 64]."""
    channel: np.ndarray
    """Amplitude of every band of the recording: float16 [64]."""
    hiss: np.ndarray
    """Power of its hiss, relative to the rest during speech (positive) or absolute (negative): float32 []."""
    has_sound: np.ndarray
    """Whether the recording has sound in a frame: uint8 [F]."""
    labels: np.ndarray
    mask: np.ndarray
    identities: np.ndarray


def _root(power: np.ndarray) -> np.ndarray:
    return np.sqrt(np.minimum(power, 1e9)).astype(np.float16)


class WaveSimulator(Simulator):
    """Generates plans; the same seed gives the same plans. stored_rooms: number of responses in the noise folder"""

    def __init__(self, work: Path, split: str, seed: int | Sequence[int], stored_rooms: int):
        super().__init__(work, split, seed)
        items = json.loads((work / "mels.json").read_text())
        waves = json.loads((work / "waves.json").read_text())
        if len(items) != len(waves):
            raise ValueError(f"{work}: waves.json is not of mels.json, run segmentation.prepare_waves again")
        self.rows = {item["rows"]["dry"]: rows for item, rows in zip(items, waves)}
        self.stored_rooms = stored_rooms
        # Held-out windows have none, and other random values do not depend on them.
        self.echo_share = ECHO_SHARE if split == "train" else 0.0
        self.echo_rng = np.random.default_rng([*(seed if isinstance(seed, Sequence) else [seed]), 1])

    @staticmethod
    def shapes() -> Shapes:
        """Shapes of the arrays of a plan."""
        return [
            ((TRACKS, WINDOW_FRAMES), np.int32),
            ((TRACKS, WINDOW_FRAMES), np.float16),
            ((TRACKS, BANDS), np.float16),
            ((TRACKS,), np.int32),
            ((TRACKS, 2), np.float32),
            ((TRACKS, 2), np.float32),
            ((WINDOW_FRAMES, BANDS), np.float16),
            ((BANDS,), np.float16),
            ((), np.float32),
            ((WINDOW_FRAMES,), np.uint8),
            *Simulator.shapes()[1:],
        ]

    def _response(
        self, scene: scenes.Scene, track: scenes.Track, room: int, mouth: int, in_room: str | None
    ) -> tuple[int, tuple[float, float]]:
        """Row of the responses and amplitudes, for a speaker who is "near", "far" or (None) has the tail of the
        scene."""
        rng = self.rng
        if in_room is None:
            if track.tail_gain is None:
                return -1, (1.0, 0.0)
            ratio_db = -10 * np.log10(track.tail_gain.mean())
        else:
            ratio_db = rng.uniform(-9, 3) if in_room == "far" else rng.uniform(-1, 11)
        if in_room and (rng.random() < STORED_SHARE if scene.kind != "meeting" else room < 0):
            return ROOMS * MOUTHS + int(rng.integers(self.stored_rooms)), (0.0, 1.0)
        if room < 0:
            room = int(rng.integers(ROOMS))
        tail = 10 ** (-ratio_db / 20)
        whole = np.hypot(1, tail)
        return room * MOUTHS + mouth, (1 / whole, tail / whole)

    def _draw_echo(self, count: int, is_call: bool) -> np.ndarray:
        """Echoes of `count` speakers, as in `Plan`."""
        rng, echo = self.echo_rng, np.zeros((TRACKS, 2), np.float32)
        if rng.random() < self.echo_share:
            late = RATE_HZ * np.exp(rng.uniform(*np.log(ECHO_SECONDS)))
            which = int(rng.integers(count)) if is_call else slice(None, count)
            echo[which] = late, 10 ** (rng.uniform(*ECHO_DB) / 20)
        return echo

    def _plan_speech(
        self,
        scene: scenes.Scene,
        numbers: list[int],
        rooms_of: list[str | None],
        sparse: bool,
        plan: Plan,
        noise: np.ndarray,
    ) -> np.ndarray:
        """Fills the tracks of a plan, adds breaths to the noise, and returns the activity: uint8 [speakers, F]."""
        rng, count = self.rng, len(numbers)
        lively = scene.kind != "separate" or rng.random() < 0.35
        activity, free_from = np.zeros((count, self.frames), np.uint8), np.full(count, -10_000)
        room = int(rng.integers(ROOMS)) if scene.kind == "meeting" and rng.random() < SHARED_SHARE else -1
        mouths = rng.permutation(MOUTHS)
        for number, track in enumerate(scene.tracks):
            plan.response[number], plan.share[number] = self._response(
                scene, track, room, int(mouths[number % MOUTHS]), rooms_of[number]
            )
            plan.equaliser[number] = track.equaliser
        plan.echo[:] = self._draw_echo(count, is_call=scene.kind != "meeting")
        for turn in draw_turns(
            rng,
            count,
            lively,
            sparse,
            lambda speaker, frames: self.voices.draw_span(numbers[speaker], frames),
            self.frames,
        ):
            span, number = turn.span, turn.speaker
            at = max(turn.start, int(free_from[number]) + 15)
            if at >= self.frames:
                continue
            track = scene.tracks[number]
            first = at - (span.start - span.since)
            cut, last = max(0, -first), min(span.until - span.since, self.frames - first)
            if last > cut:
                rows = self.rows[span.entry.rows["dry"]]
                row = rows.get(track.variant, rows["quiet" if track.without_floor else "dry"])
                level_db = track.level_db + rng.normal(0, track.turn_spread_db) + np.zeros(span.until - span.since)
                if track.wander_db:
                    level_db += wandering_db(rng, len(level_db), track.wander_db)
                if rng.random() < 0.2:
                    level_db += np.linspace(0, rng.normal(0, 3), len(level_db))
                level_db[:2] += EDGE_IN_DB[: len(level_db)]
                level_db[-3:] += EDGE_OUT_DB[-len(level_db) :]
                where = slice(first + cut, first + last)
                plan.source[number, where] = row + span.since + np.arange(cut, last)
                plan.gain[number, where] = 10 ** (np.clip(level_db[cut:last], -60, 40) / 20)
                labels = span.entry.labels[span.since : span.until]
                activity[number, where] |= labels[cut:last]
            if rng.random() < track.breath_share:
                breaths = np.zeros_like(noise)
                self._breathe(breaths, at, track)
                noise += breaths * to_power(track.level_db)
            free_from[number] = max(free_from[number], at + span.end - span.start)
        return activity

    def window(self) -> Plan:
        """One window as a plan."""
        rng = self.rng
        kind = str(rng.choice(scenes.KINDS, p=[0.35, 0.5, 0.15]))
        speakers, sparse = self.draw_company(kind)
        scene = getattr(scenes, kind)(rng, speakers) if speakers else scenes.Scene(kind, snr_db=20.0)
        numbers = self.voices.draw_speakers(speakers)
        plan = Plan(*(np.zeros(shape, dtype) for shape, dtype in self.shapes()))
        plan.source[:], plan.response[:], plan.has_sound[:] = -1, -1, 1
        noise = np.zeros((self.frames, BANDS), np.float32)
        activity = np.zeros((1, self.frames), np.uint8)
        if speakers:
            scene.tracks = scene.tracks[: len(numbers)]
            self.keep_audible(scene)
            rooms_of = [track.variant if track.variant in ("near", "far") else None for track in scene.tracks]
            for track, in_room in zip(scene.tracks, rooms_of):
                track.variant = "dry" if in_room else track.variant
            self._alike(scene, numbers)
            for track in scene.tracks:
                track.variant = "quiet" if track.without_floor and track.variant == "dry" else track.variant
            activity = self._plan_speech(scene, numbers, rooms_of, sparse, plan, noise)
            bridge_pauses(activity)
        self._add_noise(noise, scene, speakers, quiet=sparse or not speakers)
        plan.noise[:] = _root(noise)
        plan.channel[:] = _root(scenes.draw_channel(rng, kind))
        hiss = 10 ** -rng.uniform(4.5, 9)
        plan.hiss[...] = hiss if speakers else -1e-3 * hiss
        if rng.random() < 0.05:
            edge = int(rng.integers(100, self.frames - 200))
            silent = slice(edge, None) if rng.random() < 0.8 else slice(None, edge)
            plan.has_sound[silent], activity[:, silent] = 0, 0
        for part, value in zip(plan[-3:], targets(activity, [n if speakers else -1 for n in numbers])):
            part[:] = value
        return plan
