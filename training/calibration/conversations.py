"""Generated conversations with exact labels, for choosing the parameters of clustering and confidence.

    python -m calibration.conversations VOICES NOISE OUT

VOICES holds index.csv (file, speaker, set, seconds, split), segments.csv (file, start, end) and one Ogg Opus file a
voice; NOISE holds index.csv (file, kind noise|rir, seconds) beside its recordings. Writes OUT/fit, OUT/check and
OUT/sitting: pairs of FLAC and RTTM files. `fit` has voices of the train split, from sets outside embedder-v0's
training; `check` and `sitting` have voices of the dev split. In `check` and `fit` the clips of one person come from
several days and microphones, and are repeated until the conversation has its planned length. In `sitting` they come
from one sitting, each is used once, and the conversation ends with the last of them: a repeated clip has the same
samples, so that a clustering tuned on repeated clips separates sentences instead of people. Seeds are fixed: the same
corpora give the same conversations.

The conversations resemble recordings that services get: meetings near to and far from the microphone, telephone calls
and dialogues, of half a minute to eight minutes, with backchannels, interruptions, and shares of talk from even to
lopsided. Voices of one conversation are mostly from one set and share a channel: their long-term spectra are made
similar, or the microphone would identify the speaker.
"""

import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile
from scipy.signal import fftconvolve, firwin2, lfilter, resample_poly

from .material import FRAME, RATE, Corpora, Voice, longest_sitting, read, rows, runs_of, seconds_of

UNSEEN_SETS = {"cv61", "cvx", "msc-malayalam", "alnum-accents"}
CHECK_SETS = UNSEEN_SETS | {"librispeech", "speechocean762"}
SITTING_SETS = CHECK_SETS - {"msc-malayalam"}
"""Sets with known sittings."""
SEEDS = {"check": 7, "fit": 11, "sitting": 13}
POOLS = {"check": ("dev", CHECK_SETS, 8), "fit": ("train", UNSEEN_SETS, 10), "sitting": ("dev", SITTING_SETS, 8)}
"""Split, sets and least seconds of the voices."""
SITTING_SPEAKERS, SITTING_COUNT, SITTING_MOST_SECONDS = range(2, 11), 48, 900
LENGTHS = ((30, 28), (60, 20), (180, 14), (480, 6))  # seconds, conversations
KINDS = {
    "meeting": dict(share=0.55, speakers=range(1, 7), weights=(0.08, 0.25, 0.27, 0.25, 0.1, 0.05), snr=(16, 42)),
    "phone": dict(share=0.2, speakers=range(1, 4), weights=(0.05, 0.85, 0.1), snr=(18, 40)),
    "dialogue": dict(share=0.25, speakers=range(2, 6), weights=(0.3, 0.35, 0.25, 0.1), snr=(20, 50)),
}


@dataclass(frozen=True)
class Plan:
    name: str
    side: str
    seconds: int
    speakers: int
    kind: str
    seed: int


class Channel:
    """Effects between a speaker and the recording: equaliser, room, level."""

    def __init__(self, voice, target, pull, response, tail, level, rng):
        curve = pull * (target - voice.spectrum) + rng.normal(0, 1) * np.linspace(-3, 3, 257)
        gain = 10 ** (np.clip(curve - np.median(curve[20:200]), -25, 25) / 20)
        self.equaliser = firwin2(255, np.linspace(0, 1, 257), gain)
        self.level = level
        self.response = None
        if response is not None:
            self.peak = int(np.argmax(np.abs(response)))
            shaped = response.astype(float).copy()
            shaped[self.peak + 48 :] *= tail  # close-talk recordings have less reverberation
            self.response = shaped / np.sqrt((shaped**2).sum())

    def apply(self, samples, gain):
        samples = np.convolve(samples, self.equaliser, "same")
        fade = np.ones(len(samples))
        length = min(240, len(samples) // 2)
        fade[:length] = np.linspace(0, 1, length)
        fade[len(fade) - length :] = np.linspace(1, 0, length)
        samples = samples * fade
        if self.response is not None:
            samples = fftconvolve(samples, self.response)[self.peak :]
        return samples * 10 ** ((self.level + gain) / 20)


class Recording:
    """The mixture so far, and the active speakers of each frame."""

    def __init__(self, seconds, voices, channels):
        self.voices, self.channels = voices, channels
        self.mix = np.zeros(seconds * RATE)
        self.active = np.zeros((len(voices), seconds * 100), bool)

    def put(self, speaker, frame, parts, gain, rng):
        """Adds a turn; returns the frame at which it ends."""
        position = int(frame)
        for start, end in parts:
            lead = min(480, start * FRAME)
            samples = self.voices[speaker].samples[start * FRAME - lead : end * FRAME + 800]
            sound = self.channels[speaker].apply(samples, gain)
            at = position * FRAME - lead
            first, last = max(0, at), min(len(self.mix), at + len(sound))
            if last > first:
                self.mix[first:last] += sound[first - at : last - at]
            self.active[speaker, max(0, position) : max(0, position + end - start)] = True
            position += end - start + int(rng.exponential(25)) + 3
        return position


def talk(recording, kind, rng, once=False):
    """Fills the recording with turns, interruptions, backchannels and pauses.

    With `once` every run of speech is used once, and the recording ends with the last.
    """
    count, frames = recording.active.shape
    share = rng.dirichlet(np.ones(count) * 1.5) + 0.03
    share /= share.sum()
    interrupts = rng.uniform(0, 0.25) if kind == "dialogue" else rng.uniform(0.15, 0.7)
    backchannels = 0.05 if kind == "dialogue" else rng.uniform(0.1, 0.5)
    pause = rng.choice([0.2, 0.5, 1.0])
    mean_turn = rng.choice([3.0, 5.0, 7.0] if kind == "dialogue" else [1.5, 3.0, 5.0])
    now = rng.uniform(0, 400) if rng.random() < 0.6 else 0.0
    previous, last = None, -1
    while now < frames:
        weights = share.copy()
        if last >= 0 and count > 1:
            weights[last] *= 0.25
        if once:
            weights *= [voice.has_more for voice in recording.voices]
            if not weights.any():
                break
        speaker = int(rng.choice(count, p=weights / weights.sum()))
        is_backchannel = rng.random() < backchannels
        length = rng.uniform(25, 90) if is_backchannel else np.clip(rng.exponential(mean_turn * 100), 60, 2500)
        parts = recording.voices[speaker].turn(length, rng, once)
        length = sum(end - start for start, end in parts)
        if previous is None:
            start = now
        elif speaker == last:
            start = now + 30 + rng.exponential(pause * 100)
        elif is_backchannel and previous[1] - previous[0] > 200 and length < 120:
            start = previous[0] + rng.uniform(50, max(51, previous[1] - previous[0] - length))
        elif rng.random() < interrupts:
            start = previous[1] - min(rng.uniform(10, 300), 0.8 * length, 0.8 * (previous[1] - previous[0]))
        else:
            start = previous[1] + rng.exponential(pause * 100)
        own = np.flatnonzero(recording.active[speaker, int(max(0, start)) :])
        if len(own):
            start = max(start, 0) + own[-1] + 20
        if start >= frames:
            break
        end = recording.put(speaker, start, parts, rng.normal(0, 1.5), rng)
        if previous is None or end > previous[1]:
            previous, last = (start, end), speaker
        now = previous[1]


def looped(samples, length, offset=0):
    return np.take(samples, np.arange(offset, offset + length) % len(samples))


def background(corpora, kind, length, babble_voices, rng):
    """Noise of unit power: coloured, at times with a recorded one, in meetings at times with far talkers."""
    tilt = rng.uniform(0.5, 0.97)
    noise = lfilter([1 - tilt], [1, -tilt], rng.standard_normal(length))
    noise /= noise.std()
    if rng.random() < 0.5:
        files = [row for row in rows(corpora.noise / "index.csv") if row["kind"] == "noise"]
        recorded = read(corpora.noise / files[int(rng.integers(len(files)))]["file"])
        recorded = looped(recorded, length, int(rng.integers(len(recorded))))
        noise += rng.random() * recorded / (recorded.std() + 1e-9)
    if kind == "meeting" and rng.random() < 0.3:
        chosen = rng.permutation(len(babble_voices))[:5]
        babble = sum(
            looped(read(corpora.voices / babble_voices[i]["file"]), length) * 10 ** (rng.normal(0, 3) / 20)
            for i in chosen
        )
        noise += 0.4 * babble / babble.std()
    return noise / noise.std()


def telephone(samples):
    """Band of a telephone, 8 kHz, 8 bits µ-law."""
    edges = np.array([0, 250, 350, 3300, 3600, 8000]) / 8000
    narrow = resample_poly(fftconvolve(samples, firwin2(301, edges, [0, 0, 1, 1, 0, 0]), "same"), 1, 2)
    narrow *= 0.8 / np.abs(narrow).max()
    code = np.round(np.sign(narrow) * np.log1p(255 * np.abs(narrow)) / np.log1p(255) * 127) / 127
    return resample_poly(np.sign(code) * np.expm1(np.abs(code) * np.log1p(255)) / 255, 2, 1)


def pool_of(corpora, side):
    """Voices that conversations of a side choose from: their rows of index.csv, and by file their rows of segments.csv.

    In `sitting` a voice has only the segments of its longest sitting.
    """
    segments = {}
    for row in rows(corpora.voices / "segments.csv"):
        segments.setdefault(row["file"], []).append(row)
    split, sets, least = POOLS[side]
    index = rows(corpora.voices / "index.csv")
    pool = [r for r in index if r["split"] == split and r["set"] in sets and float(r["seconds"]) >= least]
    if side == "sitting":
        segments = {row["file"]: longest_sitting(row, segments[row["file"]]) for row in pool}
        pool = [row for row in pool if seconds_of(segments[row["file"]]) >= least]
    return pool, segments


def make(corpora, plan, out):
    """Writes the conversation of a plan."""
    rng = np.random.default_rng(plan.seed)
    pool, segments = pool_of(corpora, plan.side)
    index = rows(corpora.voices / "index.csv")
    babble = [r for r in index if r["split"] == "train" and r["set"] in UNSEEN_SETS and float(r["seconds"]) >= 10]
    if rng.random() < 0.6:
        sets = sorted({r["set"] for r in pool})
        large = [name for name in sets if sum(r["set"] == name for r in pool) >= 10]
        sizes = np.array([sum(r["set"] == name for r in pool) for name in large], float)
        chosen = large[int(rng.choice(len(large), p=sizes / sizes.sum()))]
        pool = [r for r in pool if r["set"] == chosen]
    chosen = [pool[i] for i in rng.permutation(len(pool))[: plan.speakers]]
    voices = [Voice(corpora, row, segments[row["file"]], whole=plan.side != "sitting") for row in chosen]
    voices = [voice for voice in voices if voice.runs]
    mix, active = render(corpora, plan.kind, plan.seconds, voices, babble, rng, once=plan.side == "sitting")
    if plan.side == "sitting":
        last = np.flatnonzero(active.any(0))[-1] + 100
        mix, active = mix[: last * FRAME], active[:, :last]
    write(out, plan.name, mix, active, voices)


def render(corpora, kind, seconds, voices, babble, rng, once=False, is_far=None):
    """One conversation: its samples, and the activity of each voice, [voices, frames].

    `is_far`: whether the people are far from the microphone; None: at random, in half of the meetings.
    """
    target = np.mean([voice.spectrum for voice in voices], 0) + np.cumsum(rng.normal(0, 0.15, 257))
    pull = rng.uniform(0.6, 1.0) if kind != "phone" and rng.random() < 0.75 else rng.uniform(0, 0.4)
    drawn = kind == "meeting" and rng.random() < 0.5
    is_far = drawn if is_far is None else is_far
    responses = [row for row in rows(corpora.noise / "index.csv") if row["kind"] == "rir"]
    base = float(responses[int(rng.integers(len(responses)))]["seconds"])
    alike = sorted(responses, key=lambda row: abs(float(row["seconds"]) - base))[: max(12, 2 * len(voices))]
    channels = []
    for voice in voices:
        in_room = kind == "meeting" and (is_far or rng.random() < 0.35)
        response = read(corpora.noise / alike[int(rng.integers(len(alike)))]["file"]) if in_room else None
        tail = rng.uniform(0.1, 0.7) * (1 if is_far else 0.6)
        level = np.clip(rng.normal(0, 4 if kind == "meeting" else 2.5), -12, 8)
        channels.append(Channel(voice, target, pull, response, tail, level, rng))
    recording = Recording(seconds, voices, channels)
    talk(recording, kind, rng, once)
    mix, active = recording.mix, recording.active
    power = (mix[np.repeat(active.any(0), FRAME)] ** 2).mean() + 1e-9
    snr = rng.uniform(*KINDS[kind]["snr"])
    mix = mix + background(corpora, kind, len(mix), babble, rng) * np.sqrt(power * 10 ** (-snr / 10))
    if kind == "phone":
        mix = telephone(mix)
    mix *= rng.uniform(0.1, 0.9) / np.abs(mix).max()
    return mix[: seconds * RATE].astype(np.float32), active


def write(out, name, mix, active, voices):
    """The recording as FLAC, its turns as RTTM."""
    soundfile.write(out / f"{name}.flac", mix, RATE)
    lines = [
        f"SPEAKER {name} 1 {start / 100:.3f} {(end - start) / 100:.3f} <NA> <NA> {voice.name} <NA> <NA>\n"
        for voice, frames in zip(voices, active)
        for start, end in runs_of(frames, 30)
    ]
    (out / f"{name}.rttm").write_text("".join(lines))


def plans(side):
    rng = np.random.default_rng(SEEDS[side])
    found = []
    if side == "sitting":
        for index in range(SITTING_COUNT):
            kind, speakers = str(rng.choice(["meeting", "dialogue"])), int(rng.choice(SITTING_SPEAKERS))
            name = f"{index:03d}_{kind}_{speakers}spk"
            found.append(Plan(name, side, SITTING_MOST_SECONDS, speakers, kind, SEEDS[side] * 1000 + index))
        return found
    for seconds, count in LENGTHS:
        for _ in range(count):
            kind = str(rng.choice(list(KINDS), p=[k["share"] for k in KINDS.values()]))
            speakers = int(rng.choice(list(KINDS[kind]["speakers"]), p=KINDS[kind]["weights"]))
            speakers = min(speakers, 4) if seconds == 30 else speakers
            name = f"{len(found):03d}_{kind}_{seconds}s_{speakers}spk"
            found.append(Plan(name, side, seconds, speakers, kind, SEEDS[side] * 1000 + len(found)))
    return found


def main(voices, noise, out):
    corpora = Corpora(Path(voices), Path(noise))
    with ProcessPoolExecutor() as pool:
        jobs = []
        for side in SEEDS:
            folder = Path(out) / side
            folder.mkdir(parents=True, exist_ok=True)
            jobs += [pool.submit(make, corpora, plan, folder) for plan in plans(side)]
        for job in jobs:
            job.result()


if __name__ == "__main__":
    main(*sys.argv[1:])
