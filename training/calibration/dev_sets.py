"""Generated recordings of kinds that are difficult for a clustering, with exact labels, to choose its parameters.

    python -m calibration.dev_sets VOICES NOISE OUT

All voices are of the dev split. Writes FLAC and RTTM pairs into

- OUT/monologues: 24 single voices of 20 to 45 s, whose clips come from several days and microphones. The reference has
  no pauses, so that only the number of speakers and confusion matter.
- OUT/brief: 28 conversations of two or three people, of 12 to 28 s.
- OUT/clips: 48 conversations of two to six people, of 15 to 40 s.
- OUT/alike: 16 telephone calls of two minutes between two voices of nearly the same pitch, through a codec.
- OUT/many: 8 conversations of six to nine people.
- OUT/far: 8 conversations of three to five people who are far from the microphone.

In all but the monologues the clips of one person are from one sitting, and each is used once. The same corpora and
package versions give the same recordings.
"""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import soundfile

from .codecs import through_codec
from .conversations import background, pool_of, render, write
from .material import FRAME, RATE, Corpora, Voice, frames_of, read, rows, seconds_of

SEED = 4100
COUNTS = {"monologues": 24, "brief": 28, "alike": 16, "many": 8, "far": 8, "clips": 48}
SEED_OF = {"alike": 0, "brief": 1, "far": 2, "many": 3, "clips": 4}
PITCH_RANGE_HERTZ = (70, 350)
ALIKE_SEMITONES = 1.0


def pitch_of(samples: np.ndarray) -> float:
    """Median of the fundamental frequency in Hz over voiced frames, by autocorrelation; 0 without voiced frames."""
    frames = np.lib.stride_tricks.sliding_window_view(samples, 640)[::320] * np.hanning(640)
    frames = frames[np.argsort(-(frames**2).sum(1))[: len(frames) // 2]]
    spectrum = np.abs(np.fft.rfft(frames, 2048, axis=1)) ** 2
    correlation = np.fft.irfft(spectrum, axis=1)
    low, high = RATE // PITCH_RANGE_HERTZ[1], RATE // PITCH_RANGE_HERTZ[0]
    peaks = correlation[:, low:high].argmax(1) + low
    strength = correlation[np.arange(len(peaks)), peaks] / (correlation[:, 0] + 1e-9)
    return float(np.median(RATE / peaks[strength > 0.5])) if (strength > 0.5).any() else 0.0


def alike(corpora: Corpora, voices: list[dict]) -> list[dict]:
    """The first two of the voices (rows of index.csv) with nearly the same pitch."""
    semitones = [12 * np.log2(max(1.0, pitch_of(read(corpora.voices / row["file"])))) for row in voices]
    return next(
        [voices[a], voices[b]]
        for b in range(len(voices))
        for a in range(b)
        if min(semitones[a], semitones[b]) > 12 and abs(semitones[a] - semitones[b]) < ALIKE_SEMITONES
    )


def monologue(corpora: Corpora, number: int, out: Path) -> None:
    """Writes clips of one voice in random order, with pauses and one steady noise."""
    rng = np.random.default_rng(SEED + number)
    pool, segments = pool_of(corpora, "check")
    pool = [row for row in pool if len(segments[row["file"]]) >= 3 and seconds_of(segments[row["file"]]) >= 18]
    row = pool[np.random.default_rng(SEED).permutation(len(pool))[number % len(pool)]]
    samples, wanted = read(corpora.voices / row["file"]), rng.uniform(20, 45)
    parts: list[np.ndarray] = []
    for index in rng.permutation(len(segments[row["file"]])):
        start, end = frames_of(segments[row["file"]][index])
        parts += [samples[start * FRAME : end * FRAME], np.zeros(int(rng.uniform(0.2, 0.8) * RATE))]
        if sum(map(len, parts)) > wanted * RATE:
            break
    mix = np.concatenate(parts[:-1])
    mix = mix + background(corpora, "dialogue", len(mix), [], rng) * mix.std() * 10 ** (-rng.uniform(25, 45) / 20)
    mix *= 0.5 / np.abs(mix).max()
    name = f"mono-{number:02d}"
    soundfile.write(out / f"{name}.flac", mix.astype(np.float32), RATE)
    turn = f"SPEAKER {name} 1 0.000 {len(mix) / RATE:.3f} <NA> <NA> {row['speaker']} <NA> <NA>\n"
    (out / f"{name}.rttm").write_text(turn)


def conversation(corpora: Corpora, folder: str, number: int, out: Path) -> None:
    """Writes one conversation of `sitting` voices."""
    rng = np.random.default_rng([SEED, SEED_OF[folder], number])
    pool, segments = pool_of(corpora, "sitting")
    large = [name for name in sorted({r["set"] for r in pool}) if sum(r["set"] == name for r in pool) >= 12]
    if folder != "alike" or rng.random() < 0.7:
        chosen_set = large[int(rng.integers(len(large)))]
        pool = [row for row in pool if row["set"] == chosen_set]
    count, seconds, kind = {
        "brief": (
            int(rng.integers(2, 4)),
            int(rng.integers(12, 29)),
            str(rng.choice(["dialogue", "phone", "meeting"])),
        ),
        "alike": (2, 120, "phone"),
        "many": (int(rng.integers(6, 10)), 420, "dialogue"),
        "far": (int(rng.integers(3, 6)), 240, "meeting"),
    }.get(folder, (0, 0, ""))
    # Drawn apart from the others, whose random numbers stay the same.
    if folder == "clips":
        count, seconds = int(rng.integers(2, 7)), int(rng.integers(15, 41))
        kind = str(rng.choice(["dialogue", "phone", "meeting"]))
    chosen = [pool[index] for index in rng.permutation(len(pool))]
    chosen = alike(corpora, chosen) if folder == "alike" else chosen[:count]
    voices = [Voice(corpora, row, segments[row["file"]], whole=False) for row in chosen]
    voices = [voice for voice in voices if voice.runs]
    index = rows(corpora.voices / "index.csv")
    babble = [r for r in index if r["split"] == "train" and float(r["seconds"]) >= 10]
    is_far = folder == "far" or None
    mix, active = render(corpora, kind, seconds, voices, babble, rng, once=True, is_far=is_far)
    last = np.flatnonzero(active.any(0))[-1] + 50
    mix, active = mix[: last * FRAME], active[:, :last]
    if folder == "alike":
        mix = through_codec(mix, rng)
    write(out, f"{folder}-{number:02d}-{len(voices)}spk", mix, active, voices)


def main(voices: str, noise: str, target: str) -> None:
    corpora = Corpora(Path(voices), Path(noise))
    with ProcessPoolExecutor(2) as pool:
        jobs = []
        for folder, count in COUNTS.items():
            out = Path(target) / folder
            out.mkdir(parents=True, exist_ok=True)
            for number in range(count):
                if folder == "monologues":
                    jobs.append(pool.submit(monologue, corpora, number, out))
                else:
                    jobs.append(pool.submit(conversation, corpora, folder, number, out))
        for job in jobs:
            job.result()


if __name__ == "__main__":
    main(*sys.argv[1:])
