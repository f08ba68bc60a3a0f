"""Generates twelve meetings of 5 to 20 minutes with exact labels, about two hours, from held-out voices.

    python -m meetings.generate --voices VOICES --noise NOISE --out OUT --seed 20 [--long]

With `--long` it generates three meetings of 30, 45 and 60 minutes instead, with five to ten people.

VOICES has index.csv (file, speaker, set, seconds, split), segments.csv (file, start, end) and one recording per voice;
NOISE has index.csv (file, kind noise|rir, source) and its recordings. Writes OUT/gen-01.flac, gen-01.rttm ... and
manifest.json. The same corpora, seed and package versions give the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path

import numpy as np
import soundfile
from scipy.signal import firwin2, oaconvolve

from calibration.material import FRAME, RATE, runs_of

from . import channels, check
from .plans import LONG_PLANS, PLANS, Plan
from .turns import Floor, plan, spoken
from .voices import Voice, cast

LOUDNESS_DBFS = -23.0  # of the mean power of speech, before a codec


def equaliser(voice: Voice, target_db: np.ndarray, pull: float, tilt_db: float) -> np.ndarray:
    """FIR [255] that moves a voice's long-term spectrum towards the meeting's, so that microphones do not identify
    speakers."""
    curve = pull * (target_db - voice.spectrum) + tilt_db * np.linspace(-1, 1, 257)
    return firwin2(255, np.linspace(0, 1, 257), 10 ** (np.clip(curve - np.median(curve[20:200]), -20, 20) / 20))


def speaker_track(voice: Voice, speaker: int, floor: Floor) -> np.ndarray:
    """All phrases of one speaker at their positions, dry, at a mean active power of one."""
    track = np.zeros(floor.frames * FRAME)
    for placed in floor.placed:
        if placed.speaker == speaker:
            sound, lead = voice.sound(placed.phrase)
            at = placed.start * FRAME - lead
            track[at : at + len(sound)] += sound * 10 ** (placed.gain_db / 20)
    return track


def draw_rooms(condition, count: int, noise: Path, rng: np.random.Generator) -> list[channels.Room]:
    """One response per speaker, of similar reverberation time, as in one room, at the condition's distances."""
    low, high = condition.distance_metres
    pool = [room for room in channels.rooms(noise) if low <= room.distance_metres <= high]
    wanted = rng.uniform(*condition.rt60_seconds)
    alike = sorted(pool, key=lambda room: abs(room.rt60_seconds - wanted))[: count + 4]
    return [alike[i] for i in rng.permutation(len(alike))[:count]]


def render(
    item: Plan, voices: list[Voice], floor: Floor, noise: Path, rng: np.random.Generator
) -> tuple[np.ndarray, dict]:
    """Samples of the meeting and its random parameters."""
    condition, count = item.condition, len(voices)
    target = np.mean([voice.spectrum for voice in voices], 0) + np.cumsum(rng.normal(0, 0.12, 257))
    pull = rng.uniform(*condition.spectrum_pull)
    chosen = draw_rooms(condition, count, noise, rng) if condition.rt60_seconds else [None] * count
    levels = rng.uniform(*condition.level_db, count)
    levels[int(rng.integers(count))] = condition.level_db[1]
    mix = np.zeros(floor.frames * FRAME)
    for speaker, voice in enumerate(voices):
        track = speaker_track(voice, speaker, floor)
        filters = equaliser(voice, target, pull, rng.normal(0, 3))
        track = oaconvolve(track, filters, "same")
        if chosen[speaker] is not None:
            track = oaconvolve(track, channels.response(noise / chosen[speaker].file))[: len(track)]
        else:
            track = channels.band(track, rng.uniform(150, 350), rng.uniform(3100, 3600))
        active = np.repeat(floor.active[speaker], FRAME)
        mix += track * 10 ** (levels[speaker] / 20) / np.sqrt((track[active] ** 2).mean())
    speech_power = (mix[np.repeat(floor.active.any(0), FRAME)] ** 2).mean()
    noise_db = rng.uniform(*condition.noise_db)
    mix += channels.background(noise, len(mix), rng) * np.sqrt(speech_power * 10 ** (noise_db / 10))
    mix *= 10 ** (LOUDNESS_DBFS / 20) / np.sqrt(speech_power)
    over = np.abs(mix) > 0.7  # peaks are compressed, not clipped
    mix[over] = np.sign(mix[over]) * (0.7 + 0.28 * np.tanh((np.abs(mix[over]) - 0.7) / 0.28))
    if item.codec:
        mix = channels.through_codec(mix, item.codec)
    facts = {
        "spectrum_pull": round(float(pull), 2),
        "noise_db": round(float(noise_db), 1),
        "rooms": [
            room and {"file": room.file, "rt60_s": room.rt60_seconds, "distance_m": room.distance_metres}
            for room in chosen
        ],
        "levels_db": [round(float(level), 1) for level in levels],
    }
    return mix, facts


def rttm(name: str, voices: list[Voice], truth: np.ndarray) -> str:
    """Lines in order of time, seconds with three decimals."""
    turns = sorted((start, end, voice.name) for voice, row in zip(voices, truth) for start, end in runs_of(row))
    return "".join(
        f"SPEAKER {name} 1 {start / 100:.3f} {(end - start) / 100:.3f} <NA> <NA> {who} <NA> <NA>\n"
        for start, end, who in turns
    )


def make(item: Plan, voices: list[Voice], noise: Path, out: Path, seed: list[int]) -> dict:
    """Writes one meeting, returns its entry of the manifest."""
    floor, shares = plan(voices, item.seconds * 100, item.overlap_share, seed)
    samples, facts = render(item, voices, floor, noise, np.random.default_rng([*seed, 99]))
    truth = spoken(floor.active)
    soundfile.write(out / f"{item.name}.flac", samples, RATE, subtype="PCM_16")
    (out / f"{item.name}.rttm").write_text(rttm(item.name, voices, truth))
    speech = truth.sum(1) / 100
    return {
        "name": item.name,
        "seconds": item.seconds,
        "condition": item.label,
        "seed": seed,
        "overlap_share": round(floor.overlap_share(), 4),
        "speech_share": round(float(truth.any(0).mean()), 4),
        "turns": sum(len(runs_of(row)) for row in truth),
        **{key: value for key, value in facts.items() if key not in ("rooms", "levels_db")},
        "speakers": [
            {
                "name": voice.name,
                "set": voice.set,
                "floor_share": round(float(shares[i]), 3),
                "speech_s": round(float(speech[i]), 1),
                "material_s": round(float(voice.phrase_seconds), 1),
                "level_db": facts["levels_db"][i],
                "room": facts["rooms"][i],
            }
            for i, voice in enumerate(voices)
        ],
        "sha256": {
            f"{item.name}{ending}": hashlib.sha256((out / f"{item.name}{ending}").read_bytes()).hexdigest()
            for ending in (".flac", ".rttm")
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--voices", type=Path, required=True)
    parser.add_argument("--noise", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--long", action="store_true", help="the three long meetings")
    parser.add_argument(
        "--only", nargs="*", help="names of meetings to make, for a quick test; the manifest then lists only these"
    )
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    plans = LONG_PLANS if options.long else PLANS
    casts = cast(options.voices, [(item.speakers, item.seconds) for item in plans], np.random.default_rng(options.seed))
    entries = []
    for number, (item, chosen) in enumerate(zip(plans, casts), 1):
        if options.only and item.name not in options.only:
            continue
        voices = [Voice(options.voices, row, segments) for row, segments in chosen]
        entries.append(make(item, voices, options.noise, options.out, [options.seed, number]))
        print(
            f"{item.name}: {item.speakers} speakers, overlap {entries[-1]['overlap_share']:.3f}, {item.label}",
            flush=True,
        )
    manifest = {"seed": options.seed, "meetings": entries}
    (options.out / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    check.check(options.out)


if __name__ == "__main__":
    main()
