"""Makes test/fixtures/audio/codec_*: short coded files, positions of their packets, and their samples by native FFmpeg.

    python test/golden/make_codecs.py        (needs numpy, and ffmpeg, ffprobe, flac and lame on the PATH)

The recordings are synthetic: two detuned harmonic tones, one per channel, with a little noise. Expected samples are
the mean of the channels; those of MP3 include the encoder's delay, as a decoder returns them packet by packet.
`codec_*.f32` is float32 little endian. FLAC is lossless, so its expected samples are the coded ones.
"""

import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np

OUT = Path(__file__).parent.parent / "fixtures" / "audio"


def tones(rate: int, seconds: float, channels: int) -> np.ndarray:
    """[samples, channels] in -1..1"""
    rng = np.random.default_rng(rate + channels)
    t = np.arange(int(rate * seconds)) / rate
    columns = []
    for channel in range(channels):
        pitch = 2 * np.pi * (140 + 37 * channel) * t * (1 + 0.2 * t)
        voice = sum(np.sin(k * pitch) / k for k in range(1, 12))
        columns.append(0.25 * voice + rng.normal(0, 0.01, len(t)))
    return np.stack(columns, 1)


def run(*command: str) -> bytes:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout


def write_wav(path: Path, samples: np.ndarray, rate: int, bits: int) -> None:
    raw = path.with_suffix(".raw")
    integers = np.round(samples * (1 << (bits - 1)))
    if bits == 16:
        integers.astype("<i2").tofile(raw)
    else:
        integers.astype("<i4").view(np.uint8).reshape(-1, 4)[:, :3].tofile(raw)
    run(
        "ffmpeg",
        "-v",
        "error",
        "-y",
        "-fflags",
        "+bitexact",
        "-f",
        f"s{bits}le",
        "-ar",
        str(rate),
        "-ac",
        str(samples.shape[1]),
        "-i",
        str(raw),
        "-c:a",
        f"pcm_s{bits}le",
        "-fflags",
        "+bitexact",
        str(path),
    )


def packets(path: Path) -> list[list[int]]:
    """Offset and size of every packet."""
    text = run("ffprobe", "-v", "error", "-show_entries", "packet=pos,size", "-of", "json", str(path))
    return [[int(p["pos"]), int(p["size"])] for p in json.loads(text)["packets"]]


def decoded(path: Path, channels: int) -> np.ndarray:
    raw = run(
        "ffmpeg", "-v", "error", "-flags2", "+skip_manual", "-i", str(path), "-f", "f32le", "-c:a", "pcm_f32le", "-"
    )
    return np.frombuffer(raw, "<f4").reshape(-1, channels).astype(np.float64).mean(1).astype("<f4")


def main() -> None:
    cases = []
    with tempfile.TemporaryDirectory() as folder:
        wav = Path(folder) / "in.wav"

        def add(name: str, codec: str, rate: int, channels: int, seconds: float, bits: int, *encode: str) -> None:
            samples = tones(rate, seconds, channels)
            write_wav(wav, samples, rate, bits)
            path = OUT / name
            path.unlink(missing_ok=True)
            run(*[{"IN": str(wav), "OUT": str(path)}.get(word, word) for word in encode])
            if codec == "flac":
                expected = (np.round(samples * (1 << (bits - 1))) / (1 << (bits - 1))).mean(1).astype("<f4")
            else:
                expected = decoded(path, channels)
            expected.tofile(path.with_suffix(".f32"))
            case = {
                "file": name,
                "expected": path.with_suffix(".f32").name,
                "codec": codec,
                "sampleRateHz": rate,
                "channels": channels,
                "packets": packets(path),
            }
            if codec == "flac":
                case["extraDataHex"] = path.read_bytes()[8:42].hex()
            cases.append(case)

        add(
            "codec_mp3_cbr_stereo.mp3", "mp3", 44100, 2, 0.3, 16, "lame", "--quiet", "-b", "128", "-m", "j", "IN", "OUT"
        )
        add("codec_mp3_vbr_mono.mp3", "mp3", 22050, 1, 0.5, 16, "lame", "--quiet", "-V", "4", "IN", "OUT")
        add(
            "codec_flac_16_stereo.flac",
            "flac",
            44100,
            2,
            0.25,
            16,
            "flac",
            "--silent",
            "-f",
            "-5",
            "-b",
            "4096",
            "-o",
            "OUT",
            "IN",
        )
        add("codec_flac_24_mono.flac", "flac", 48000, 1, 0.1, 24, "flac", "--silent", "-f", "-8", "-o", "OUT", "IN")

    (OUT / "codec_cases.json").write_text(json.dumps(cases) + "\n")


if __name__ == "__main__":
    main()
