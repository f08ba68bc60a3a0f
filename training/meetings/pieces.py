"""Excerpts of generated meetings, of half a minute to four minutes.

    python -m meetings.pieces OUT FOLDER [FOLDER ...]

FOLDERs have FLAC files, each with an RTTM of the same name (`generate.py` writes them). OUT gets a folder for every
length in seconds and position.
"""

import argparse
from pathlib import Path

import soundfile

PIECES = ((30, 0), (30, 100), (30, 200), (60, 0), (60, 150), (120, 30), (240, 40))
"""Length and start, seconds."""
LEAST_SECONDS = 0.001


def cut_rows(rttm: str, name: str, start: float, seconds: float) -> list[str]:
    """The rows of an RTTM within [start, start + seconds), with times relative to `start`."""
    rows = []
    for row in rttm.splitlines():
        fields = row.split()
        if not fields or fields[0] != "SPEAKER":
            continue
        begin = float(fields[3])
        first, last = max(begin, start) - start, min(begin + float(fields[4]), start + seconds) - start
        if last - first > LEAST_SECONDS:
            rows.append(" ".join([fields[0], name, fields[2], f"{first:.3f}", f"{last - first:.3f}", *fields[5:]]))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("folders", type=Path, nargs="+")
    args = parser.parse_args()
    for folder in args.folders:
        for audio in sorted(folder.glob("*.flac")):
            samples, rate = soundfile.read(audio, dtype="int16")
            rttm = audio.with_suffix(".rttm").read_text()
            for seconds, start in PIECES:
                piece = samples[start * rate : (start + seconds) * rate]
                if len(piece) < seconds * rate:
                    continue
                name = f"{folder.name}-{audio.stem}"
                place = args.out / f"{seconds}s-from-{start}"
                place.mkdir(parents=True, exist_ok=True)
                soundfile.write(place / f"{name}.flac", piece, rate, subtype="PCM_16")
                (place / f"{name}.rttm").write_text("\n".join(cut_rows(rttm, name, start, seconds)) + "\n")


if __name__ == "__main__":
    main()
