"""One voice of each conversation made faint: a yardstick for distant speakers.

    python -m calibration.faint FOLDER OUT --db 28

For every FLAC in FOLDER, with an RTTM of the same name beside it, OUT holds the recording with one of its speakers lowered by so many
decibels wherever nobody else talks (the second least talkative of three and more, else the less talkative), and its RTTM as it was.
"""

import argparse
import pathlib
import shutil

import numpy as np
import soundfile

FADE_SECONDS = 0.02


def speaking(rttm, samples, rate):
    """Who speaks at every sample: {speaker: [samples] of bool}."""
    active = {}
    for line in map(str.split, rttm.read_text().splitlines()):
        if line and line[0] == "SPEAKER":
            start, length = float(line[3]), float(line[4])
            active.setdefault(line[7], np.zeros(samples, bool))[int(start * rate) : int((start + length) * rate)] = True
    return active


def lowered(audio, rate, active, decibels):
    """The recording with one speaker lowered."""
    by_speech = sorted(active, key=lambda speaker: active[speaker].sum())
    chosen = by_speech[-2] if len(by_speech) > 2 else by_speech[0]
    alone = active[chosen] & (sum(track.astype(int) for track in active.values()) == 1)
    fade = np.ones(int(FADE_SECONDS * rate))
    gain = np.convolve(np.where(alone, 10 ** (-decibels / 20), 1.0), fade / len(fade), "same")
    return audio * gain


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--db", type=float, default=28)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for path in sorted(options.folder.glob("*.flac")):
        audio, rate = soundfile.read(path)
        rttm = path.with_suffix(".rttm")
        active = speaking(rttm, len(audio), rate)
        soundfile.write(options.out / path.name, lowered(audio, rate, active, options.db) if len(active) > 1 else audio, rate)
        shutil.copy(rttm, options.out / rttm.name)


if __name__ == "__main__":
    main()
