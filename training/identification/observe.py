"""Embeddings of the same people in separate recordings, for the map from scores to confidences.

    python -m identification.observe --voices VOICES --noise NOISE --models MODELS --out OUT.npz [--seed 41]

Every voice with several clips gets two enrolment recordings (one person) and is in one conversation (two or three
people of similar voice: of one set, neighbours in pitch). Enrolment and conversation have different clips, from
different sittings where the voice has several. Each recording has its own microphone, room, noise and codec.

The embeddings are computed like those of the service: the trunk over stretches of ten seconds, whose mean is
subtracted; half the mean of a voice's windows, half that of its subsegments. A voice is observed in all of its speech
in a recording and in several first parts of it. OUT.npz has, row by row, `embedding` [n, 192], `speaker`, `recording`,
`is_enrolment`, `seconds` of speech, `pitch` in semitones, and by number of the speaker `names`, `sets` and `is_dev`.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime
from scipy.signal import firwin2

from calibration.material import FRAME, RATE, Corpora, Voice, read, rows, seconds_of, sittings_of
from embedder.export import FRAME_STRIDE, pooled
from embedder.features import log_mels, raise_floor
from meetings.channels import CODECS, band, in_room, noise_excerpt, room_tone, telephone_band, through_codec

SETS = ("alnum-accents", "arabic-sc", "cv61", "cvx", "gsc", "msc-malayalam", "speechocean762")
MIN_SIDE_SECONDS = 2.0
COUNTS = {"train": 320, "dev": 400}
"""Most voices of each split."""
ENROLMENTS = 2
ENROLMENT_SECONDS = (2.0, 29.0)
TURN_SECONDS = (0.8, 6.0)
CONVERSATION_SECONDS = 60.0
FIRST_PARTS = 3
"""Observations of the first seconds of a voice, besides that of all of its speech."""
MIN_SECONDS = 1.0

STRETCH = 10 * RATE
STRETCH_FRAMES = STRETCH // RATE * 100 // FRAME_STRIDE
FRAME_SECONDS = FRAME_STRIDE / 100
WINDOW_SECONDS, WINDOW_STEP_SECONDS = 10.0, 5.0
SUBSEGMENT_SECONDS, SUBSEGMENT_STEP_SECONDS = 1.5, 0.5
MIN_CLEAN_SECONDS = 0.4


@dataclass(frozen=True)
class Person:
    row: dict
    enrolment: list[dict]
    talk: list[dict]
    pitch: float
    """Median pitch in semitones above 55 Hz."""


def median_pitch(samples: np.ndarray) -> float:
    """Semitones above 55 Hz: the median over the voiced frames, by autocorrelation."""
    windows = np.lib.stride_tricks.sliding_window_view(samples, 640)[::320][:3000]
    windows = windows - windows.mean(1, keepdims=True)
    spectrum = np.abs(np.fft.rfft(windows, 2048, axis=1)) ** 2
    correlation = np.fft.irfft(spectrum, axis=1)
    lags = np.arange(RATE // 400, RATE // 65)
    normal = correlation[:, lags] / (correlation[:, :1] + 1e-9)
    voiced = (normal.max(1) > 0.5) & (correlation[:, 0] > np.percentile(correlation[:, 0], 40))
    best = lags[normal.argmax(1)]
    return float(12 * np.log2(RATE / np.median(best[voiced] if voiced.any() else best) / 55))


def divided(row: dict, segments: list[dict], rng: np.random.Generator) -> tuple[list[dict], list[dict]]:
    """Clips for enrolment and for the conversation: of different sittings, if the voice has several."""
    groups = sittings_of(row, segments)
    if len(groups) == 1:
        groups = [[segment] for segment in segments]
    order = [groups[at] for at in rng.permutation(len(groups))]
    total, enrolment = seconds_of(segments), []
    while len(order) > 1 and seconds_of(enrolment) < total / 3:
        enrolment += order.pop()
    return enrolment, [segment for group in order for segment in group]


def people(corpora: Corpora, split: str, seed: int) -> list[Person]:
    segments: dict[str, list[dict]] = {}
    for row in rows(corpora.voices / "segments.csv"):
        segments.setdefault(row["file"], []).append(row)
    listed = [row for row in rows(corpora.voices / "index.csv") if row["split"] == split and row["set"] in SETS]
    found = []
    for number in np.random.default_rng([seed, split == "dev"]).permutation(len(listed)):
        row, rng = listed[number], np.random.default_rng([seed, 1, number])
        clips = segments.get(row["file"], [])
        if len(clips) < 2 or len(found) == COUNTS[split]:
            continue
        enrolment, talk = divided(row, clips, rng)
        if min(seconds_of(enrolment), seconds_of(talk)) >= MIN_SIDE_SECONDS:
            found.append(Person(row, enrolment, talk, median_pitch(read(corpora.voices / row["file"]))))
    return found


def groups_of(persons: list[Person], rng: np.random.Generator) -> list[list[int]]:
    """Two or three numbers of persons of one set, neighbours in pitch."""
    order = sorted(range(len(persons)), key=lambda at: (persons[at].row["set"], persons[at].pitch))
    found = []
    while order:
        count = int(rng.integers(2, 4))
        group = [at for at in order[:count] if persons[at].row["set"] == persons[order[0]].row["set"]]
        found.append(group)
        order = order[len(group) :]
    return found


def microphone(rng: np.random.Generator) -> np.ndarray:
    """An equaliser: a tilt of up to 6 dB either way and ripples, at times without low or high frequencies."""
    points = np.linspace(0, 1, 257)
    gain = rng.normal(0, 3) * (points - 0.5) * 2
    gain += np.interp(points, np.linspace(0, 1, 9), rng.normal(0, 2.5, 9))
    if rng.random() < 0.3:
        gain -= 25 / (1 + (points * 8000 / rng.uniform(100, 350)) ** 4)
    if rng.random() < 0.2:
        gain -= 30 / (1 + (rng.uniform(3400, 7000) / (points * 8000 + 1)) ** 16)
    return firwin2(255, points, 10 ** (gain / 20))


class Surroundings:
    """Microphone, room, noise and codec of a recording; some recordings have little of each."""

    def __init__(self, corpora: Corpora, rng: np.random.Generator):
        self.corpora, self.rng = corpora, rng
        self.equaliser = microphone(rng)
        responses = [row["file"] for row in rows(corpora.noise / "index.csv") if row["kind"] == "rir"]
        has_room = rng.random() < 0.45
        self.responses = [responses[at] for at in rng.integers(0, len(responses), 3)] if has_room else []
        self.reverberant_share = rng.uniform(0.2, 1.0)
        self.noise_db = rng.uniform(5, 25) if rng.random() < 0.5 else rng.uniform(25, 50)
        self.codec = str(rng.choice(CODECS)) if rng.random() < 0.5 else None
        self.is_narrow = rng.random() < 0.15

    def place(self, samples: np.ndarray, number: int) -> np.ndarray:
        """The speech of one person, at its place in the room."""
        if not self.responses:
            return samples
        file = self.corpora.noise / self.responses[number % len(self.responses)]
        wet = in_room(samples, file)
        return (1 - self.reverberant_share) * samples + self.reverberant_share * wet

    def record(self, samples: np.ndarray) -> np.ndarray:
        rng = self.rng
        noise = room_tone(len(samples), rng)
        if rng.random() < 0.6:
            noise = noise + rng.uniform(0.3, 1.5) * noise_excerpt(self.corpora.noise, len(samples), rng)
        speech = (samples[samples != 0] ** 2).mean() + 1e-9
        mix = samples + noise * np.sqrt(speech / (noise**2).mean() * 10 ** (-self.noise_db / 10))
        mix = np.convolve(mix, self.equaliser, "same")
        if self.is_narrow:
            mix = telephone_band(mix) if rng.random() < 0.7 else band(mix, 100, 3900)
        mix = mix * rng.uniform(0.05, 0.9) / (np.abs(mix).max() + 1e-9)
        return (through_codec(mix, self.codec) if self.codec else mix).astype(np.float32)


def turns_of(voice: Voice, rng: np.random.Generator) -> list[np.ndarray]:
    """The runs of speech of a voice, each once, as turns: lists of samples."""
    found = []
    for start, end in voice.runs:
        while end - start > 0:
            length = min(end - start, int(100 * rng.uniform(*TURN_SECONDS)))
            if length >= 20:
                found.append(voice.samples[start * FRAME : (start + length) * FRAME])
            start += length
    return found


def laid_out(turns: list[tuple[int, np.ndarray]], rng: np.random.Generator, most_seconds: float):
    """Samples of each person [persons, samples] and activity [persons, frames of the embedder], one turn at a time."""
    step = RATE * FRAME_STRIDE // 100
    spans, at = [], int(rng.uniform(0, 1) * RATE)
    for person, samples in turns:
        samples = samples[: int(most_seconds * RATE) - at]
        if len(samples) < RATE // 5:
            break
        spans.append((person, at, samples))
        at += len(samples) + int(rng.uniform(0.05, 0.7) * RATE)
    mix = np.zeros((1 + max(person for person, _ in turns), at))
    active = np.zeros((len(mix), at // step), bool)
    for person, start, samples in spans:
        mix[person, start : start + len(samples)] += samples
        active[person, -(-start // step) : (start + len(samples)) // step] = True
    return mix, active


class Embedder:
    """The two halves of the service's embedder."""

    def __init__(self, models: Path):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        load = lambda half: onnxruntime.InferenceSession(  # noqa: E731
            str(next(models.glob(f"embedder-v*-{half}.onnx"))), options, ["CPUExecutionProvider"]
        )
        self.trunk, self.head = load("trunk"), load("head")

    def frames(self, samples: np.ndarray) -> np.ndarray:
        """[frames, 512]. A last stretch under 5 s is computed on the last ten seconds, as in the service."""
        found = []
        for at in range(0, len(samples), STRETCH):
            begin = at
            if len(samples) - at < STRETCH // 2:
                begin = max(0, len(samples) - STRETCH) // (FRAME * FRAME_STRIDE) * FRAME * FRAME_STRIDE
            feats = raise_floor(log_mels(samples[begin : at + STRETCH]))
            out = self.trunk.run(None, {"feats": (feats - feats.mean(0))[None].astype(np.float32)})[0][0]
            found.append(out[(at - begin) // (FRAME * FRAME_STRIDE) :][:STRETCH_FRAMES])
        return np.concatenate(found)

    def embed(self, spans: list[np.ndarray]) -> np.ndarray:
        """Unit embeddings [spans, 192] of frames [n, 512]."""
        found = self.head.run(None, {"pooled": np.array([pooled(span) for span in spans], np.float32)})[0]
        return found / np.linalg.norm(found, axis=1, keepdims=True)

    def voice(self, frames: np.ndarray, active: np.ndarray) -> np.ndarray:
        """The service's voice of a speaker who is active alone in these frames."""
        spans, weights = [], []
        window, window_step = (round(s / FRAME_SECONDS) for s in (WINDOW_SECONDS, WINDOW_STEP_SECONDS))
        for at in range(0, max(1, len(active) - window + window_step), window_step):
            inside = active[at : at + window]
            if inside.sum() * FRAME_SECONDS >= MIN_CLEAN_SECONDS:
                spans.append(frames[at : at + window][inside])
                weights.append(float(inside.sum()))
        windows = len(spans)
        length, step = (round(s / FRAME_SECONDS) for s in (SUBSEGMENT_SECONDS, SUBSEGMENT_STEP_SECONDS))
        for at in range(0, len(active), step):
            inside = active[at : at + length]
            middle = at + length // 2
            if middle < len(active) and active[middle] and inside.sum() * FRAME_SECONDS >= MIN_CLEAN_SECONDS:
                spans.append(frames[at : at + length][inside])
                weights.append(1.0)
        embeddings = self.embed(spans) * np.array(weights)[:, None]
        halves = [part.sum(0) for part in (embeddings[:windows], embeddings[windows:]) if len(part)]
        blended = sum(half / np.linalg.norm(half) for half in halves)
        return blended / np.linalg.norm(blended)


def observations(embedder: Embedder, samples: np.ndarray, active: np.ndarray, rng: np.random.Generator):
    """Voice and seconds of all of a person's speech, and of first parts of it."""
    frames = embedder.frames(samples)
    active = np.pad(active, (0, max(0, len(frames) - len(active))))[: len(frames)]
    count = int(active.sum())
    least = int(MIN_SECONDS / FRAME_SECONDS)
    if count < least:
        return []
    lengths = {count, *np.exp(rng.uniform(np.log(least), np.log(count), FIRST_PARTS)).astype(int).tolist()}
    order = np.cumsum(active)
    return [(embedder.voice(frames, active & (order <= n)), n * FRAME_SECONDS) for n in sorted(lengths)]


_state: dict = {}


def start(corpora: Corpora, models: Path) -> None:
    _state.update(corpora=corpora, embedder=Embedder(models))


def enrolments(person: Person, seed: list[int]) -> list[tuple]:
    """(recording, voice, seconds) of the enrolment recordings of a person."""
    corpora, embedder, found = _state["corpora"], _state["embedder"], []
    for number in range(ENROLMENTS):
        rng = np.random.default_rng([*seed, number])
        voice = Voice(corpora, person.row, person.enrolment)
        turns = [(0, samples) for samples in turns_of(voice, rng)]
        if not turns:
            continue
        turns = [turns[at] for at in rng.permutation(len(turns))]
        surroundings = Surroundings(corpora, rng)
        mix, active = laid_out(turns, rng, rng.uniform(*ENROLMENT_SECONDS))
        if active.any():
            samples = surroundings.record(surroundings.place(mix[0], 0))
            found += [(number, *observed) for observed in observations(embedder, samples, active[0], rng)]
    return found


def conversation(persons: list[Person], seed: list[int]) -> list[tuple]:
    """(number in the conversation, voice, seconds)."""
    corpora, embedder, rng = _state["corpora"], _state["embedder"], np.random.default_rng(seed)
    turns = []
    for number, person in enumerate(persons):
        own = turns_of(Voice(corpora, person.row, person.talk), rng)
        turns += [(place, number, samples) for place, samples in zip(np.sort(rng.random(len(own))), own)]
    turns = [(number, samples) for _, number, samples in sorted(turns, key=lambda turn: turn[0])]
    surroundings = Surroundings(corpora, rng)
    mix, active = laid_out(turns, rng, CONVERSATION_SECONDS)
    levels = 10 ** (rng.normal(0, 3, len(mix)) / 20)
    placed = [level * surroundings.place(one, number) for number, (one, level) in enumerate(zip(mix, levels))]
    samples = surroundings.record(sum(placed))
    return [
        (number, *observed)
        for number in range(len(mix))
        for observed in observations(embedder, samples, active[number], rng)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--voices", type=Path, required=True)
    parser.add_argument("--noise", type=Path, required=True)
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=41)
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    corpora = Corpora(options.voices, options.noise)
    seed, columns, persons = options.seed, [], []
    with ProcessPoolExecutor(options.processes, initializer=start, initargs=(corpora, options.models)) as pool:
        jobs = []
        for split in COUNTS:
            offset, chosen = len(persons), people(corpora, split, seed)
            persons += chosen
            for at, person in enumerate(chosen):
                jobs.append(([offset + at], True, pool.submit(enrolments, person, [seed, 2, offset + at])))
            for at, group in enumerate(groups_of(chosen, np.random.default_rng([seed, 3, offset]))):
                job = pool.submit(conversation, [chosen[one] for one in group], [seed, 4, offset, at])
                jobs.append(([offset + one for one in group], False, job))
        for number, (group, is_enrolment, job) in enumerate(jobs):
            for at, embedding, seconds in job.result():
                speaker, recording = (group[0], 10 * number + at) if is_enrolment else (group[at], 10 * number)
                columns.append((embedding, speaker, recording, is_enrolment, seconds))
            if number % 100 == 0:
                print(f"{number} of {len(jobs)} recordings", flush=True)
    names = ("embedding", "speaker", "recording", "is_enrolment", "seconds")
    arrays = {name: np.array(values) for name, values in zip(names, zip(*columns))}
    np.savez(
        options.out,
        **arrays | {"embedding": arrays["embedding"].astype(np.float32)},
        pitch=[person.pitch for person in persons],
        names=[person.row["speaker"] for person in persons],
        sets=[person.row["set"] for person in persons],
        is_dev=[person.row["split"] == "dev" for person in persons],
            )
    print(f"{len(columns)} observations of {len(persons)} voices")


if __name__ == "__main__":
    main()
