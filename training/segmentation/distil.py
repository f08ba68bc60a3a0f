"""Optional step: windows mixed as waveforms, with their exact labels and a teacher's probabilities as soft labels.

The waveform mixtures have real convolution, filters and companding, which the mel-power simulation only approximates.
If the teacher differs much from the exact labels (it may miss a clean reverberant voice), the soft labels are the exact
ones.
"""

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from scipy.signal import butter, lfilter, oaconvolve, sosfilt

from .bank import VoiceBank
from .corpus import decode, read_noise_index
from .files import replacing
from .frontend import HOP_SAMPLES, RATE_HZ, log_features, mel_power
from .labels import Teacher
from .losses import CLASS_PERMUTATIONS, classes_of, error_rates
from .prepare_voices import SAMPLE_SCALE
from .rooms import draw_response, load_responses
from .turns import WINDOW_FRAMES, bridge_pauses, draw_turns, targets

WINDOW_SAMPLES = WINDOW_FRAMES * HOP_SAMPLES
LABEL_FRAMES = WINDOW_FRAMES // 2
FADE_SAMPLES = 80
MIN_NOISE_SECONDS = 2
LESS_NOISE = 10 ** (-10 / 20)
"""Amplitude of the noise in the teacher's input relative to the student's."""
MAX_TEACHER_ERROR = 30.0
"""Percent of labelled speech, best mapping within the window."""


@dataclass
class Sources:
    """Sources of the windows."""

    rng: np.random.Generator
    bank: VoiceBank
    samples: np.ndarray
    noises: list[np.ndarray]
    responses: list[np.ndarray]

    def __post_init__(self) -> None:
        own_speed = {
            entry.speaker: number for number, entry in enumerate(self.bank.entries) if entry.sample_offset is not None
        }
        self.own_speed = [own_speed.get(entry.speaker, -1) for entry in self.bank.entries]

    def speakers(self, count: int) -> list[int]:
        numbers = [self.own_speed[number] for number in self.bank.draw_speakers(count)]
        return [number for number in numbers if number >= 0]

    def speech(self, number: int, start: int, end: int) -> np.ndarray:
        """Frames [start, end) of a voice as samples with faded edges."""
        offset = self.bank.entries[number].sample_offset
        x = self.samples[offset + start * HOP_SAMPLES : offset + end * HOP_SAMPLES].astype(np.float32) / SAMPLE_SCALE
        fade = np.minimum(1, np.arange(1, len(x) + 1) / FADE_SAMPLES)
        return x * fade * fade[::-1]


def telephone(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Band-pass of a line and mu-law with 8 bits."""
    band = butter(4, [rng.uniform(200, 330), rng.uniform(3200, 3600)], "bandpass", fs=RATE_HZ, output="sos")
    y = sosfilt(band, x)
    peak = np.abs(y).max() + 1e-9
    companded = np.round(np.sign(y) * np.log1p(255 * np.abs(y) / peak) / np.log(256) * 127) / 127
    return np.sign(companded) * (256 ** np.abs(companded) - 1) / 255 * peak


def draw_noise(x: np.ndarray, sources: Sources) -> np.ndarray:
    """A recorded noise 2-45 dB below the mean power of the speech, and a hiss."""
    rng = sources.rng
    noise = sources.noises[int(rng.integers(len(sources.noises)))]
    noise = np.take(noise, np.arange(WINDOW_SAMPLES) + int(rng.integers(len(noise))), mode="wrap")
    level = np.sqrt((x**2).mean() / ((noise**2).mean() + 1e-12)) * 10 ** (-rng.uniform(2, 45) / 20)
    return noise * level + rng.standard_normal(WINDOW_SAMPLES) * np.sqrt((x**2).mean()) * 10 ** (
        -rng.uniform(30, 60) / 20
    )


def mix(sources: Sources) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One window: samples float32 [160000], the teacher's input (less noise, no telephone), activity uint8
    [speakers,1000]."""
    rng = sources.rng
    numbers = sources.speakers(int(rng.choice([1, 2, 3, 4], p=[0.25, 0.35, 0.28, 0.12]))) or sources.speakers(1)
    tracks = np.zeros((len(numbers), WINDOW_SAMPLES), np.float32)
    activity = np.zeros((len(numbers), WINDOW_FRAMES), np.uint8)
    free_from = [-10_000] * len(numbers)
    lively, sparse = bool(rng.random() < 0.7), bool(rng.random() < 0.1)
    for turn in draw_turns(
        rng, len(numbers), lively, sparse, lambda speaker, frames: sources.bank.draw_span(numbers[speaker], frames)
    ):
        span = turn.span
        at = max(turn.start, free_from[turn.speaker] + 15)
        low, high = max(0, at), min(WINDOW_FRAMES, at + span.end - span.start)
        if high <= low:
            continue
        speech = sources.speech(numbers[turn.speaker], span.start + low - at, span.start + high - at)
        tracks[turn.speaker, low * HOP_SAMPLES : high * HOP_SAMPLES] += speech * 10 ** (rng.normal(0, 2) / 20)
        activity[turn.speaker, low:high] |= span.entry.labels[span.start + low - at : span.start + high - at]
        free_from[turn.speaker] = at + span.end - span.start
    in_room, far, spread_db = rng.random() < 0.65, rng.random() < 0.5, rng.uniform(1, 8)
    out = np.zeros(WINDOW_SAMPLES, np.float32)
    for track in tracks:
        if in_room:
            track = oaconvolve(track, draw_response(rng, sources.responses, far))[:WINDOW_SAMPLES]
        out += track * 10 ** (np.clip(rng.normal(0, spread_db), -14, 6) / 20)
    if np.abs(out).max() < 1e-6:
        out = rng.standard_normal(WINDOW_SAMPLES).astype(np.float32) * 1e-3
    noise, tilt = draw_noise(out, sources), rng.uniform(-0.7, 0.5)
    noisy, teacher_input = (
        lfilter(*(([1], [1, tilt]) if tilt < 0 else ([1, -tilt], [1])), x)
        for x in (out + noise, out + noise * LESS_NOISE)
    )
    if rng.random() < 0.25:
        noisy = telephone(noisy, rng)
    noisy, teacher_input = (
        (x * rng.uniform(0.05, 0.7) / (np.abs(x).max() + 1e-9)).astype(np.float32) for x in (noisy, teacher_input)
    )
    return noisy, teacher_input, activity


def soft_labels(probabilities: np.ndarray, labels: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, bool]:
    """The teacher's probabilities [500,7] if they agree with labels [3,500], otherwise the labels as probabilities; and
    whether they agree.

    Overlap is as labelled, because a teacher finds half of it.
    """
    truth = torch.from_numpy(labels)[None]
    exact = np.eye(7, dtype=np.float32)[classes_of(truth)[0].numpy()]
    if (
        not labels.any()
        or error_rates(torch.from_numpy(probabilities)[None], truth, torch.from_numpy(mask)[None])["der"]
        > MAX_TEACHER_ERROR
    ):
        return exact, False
    aligned = max(
        (probabilities[:, order] for order in CLASS_PERMUTATIONS.numpy()),
        key=lambda ordered: float((ordered * exact).sum()),
    )
    return np.where(labels.sum(0)[:, None] > 1, exact, aligned), True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--noise", type=Path, required=True)
    parser.add_argument("--teacher", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--windows", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=11)
    args = parser.parse_args()
    rng = np.random.default_rng(args.seed)
    noises = [decode(args.noise / file) for file in read_noise_index(args.noise, "noise")]
    noises = [x for x in noises if len(x) >= MIN_NOISE_SECONDS * RATE_HZ]
    samples = np.memmap(args.work / "voices.i16", "<i2", "r")
    sources = Sources(rng, VoiceBank(args.work, "train", rng), samples, noises, load_responses(args.noise))
    teacher, started = Teacher(args.teacher), time.time()
    features = np.zeros((args.windows, WINDOW_FRAMES, 64), np.float16)
    labels, mask = np.zeros((args.windows, 3, LABEL_FRAMES), np.uint8), np.zeros((args.windows, LABEL_FRAMES), np.uint8)
    soft = np.zeros((args.windows, LABEL_FRAMES, 7), np.float16)
    agreed = 0
    for number in range(args.windows):
        x, teacher_input, activity = mix(sources)
        bridge_pauses(activity)
        features[number] = log_features(mel_power(x))
        labels[number], mask[number], _ = targets(activity, [-1] * len(activity))
        soft[number], agrees = soft_labels(teacher.resampled(teacher_input, 50), labels[number], mask[number])
        agreed += agrees
        if number % 500 == 0:
            print(f"{number}/{args.windows}, {time.time() - started:.0f} s", flush=True)
    print(f"the teacher agrees in {agreed} of {args.windows} windows")
    with replacing(args.out) as (file,):
        np.savez(file, features=features, labels=labels, mask=mask, soft=soft)


if __name__ == "__main__":
    main()
