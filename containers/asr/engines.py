"""The two models: each returns a text, its segments and its words with times in seconds."""

from pathlib import Path

import av
import ctranslate2
import numpy as np
import onnx_asr
from fastapi import HTTPException
from faster_whisper import WhisperModel

RATE_HZ = 16_000
# No playlists: FFmpeg would open the addresses that they name.
OPTIONS = {"format_whitelist": "wav,w64,aiff,caf,mp3,flac,ogg,mov,mp4,m4a,matroska,webm,aac,amr"}


def refusal(message: str, param: str) -> HTTPException:
    return HTTPException(400, {"message": message, "param": param})


def decode(file, max_seconds: int) -> np.ndarray:
    """16 kHz mono samples from -1 to 1 of any audio file that FFmpeg reads."""
    resampler, parts, seconds = av.AudioResampler("s16", "mono", RATE_HZ), [], 0.0
    try:
        with av.open(file, "r", metadata_errors="ignore", options=OPTIONS) as container:
            for frame in container.decode(audio=0):
                frame.pts = None  # ignores gaps in the timestamps
                parts += resampler.resample(frame)
                seconds += frame.samples / frame.sample_rate
                if seconds > max_seconds:
                    raise refusal(f"The model takes at most {max_seconds} s of audio in a request.", "file")
    except (av.FFmpegError, IndexError):
        pass  # uses the audio before the damage
    if not parts:
        raise refusal("The audio file could not be decoded or its format is not supported.", "file")
    parts += resampler.resample(None)
    return np.concatenate([part.to_ndarray()[0] for part in parts]).astype(np.float32) / 32768


class Whisper:
    max_seconds = 7200

    def __init__(self, folder: Path):
        self.model = WhisperModel(str(folder), compute_type="auto")
        self.languages = self.model.supported_languages

    def transcribe(self, samples: np.ndarray, language: str | None) -> dict:
        ctranslate2.set_random_seed(0)
        found, info = self.model.transcribe(
            samples, language=language, word_timestamps=True, vad_filter=True, condition_on_previous_text=False
        )
        segments = list(found)
        words = [timed("word", word.word, word.start, word.end) for each in segments for word in each.words or []]
        return {
            "text": "".join(segment.text for segment in segments).strip(),
            "language": info.language,
            "segments": [timed("text", each.text, each.start, each.end) for each in segments],
            "words": words,
        }


class Parakeet:
    max_seconds = 300  # the memory of its attention grows with the square of the length
    languages = "bg cs da de el en es et fi fr hr hu it lt lv mt nl pl pt ro ru sk sl sv uk".split()
    token_seconds = 0.32  # the decoder's longest step: it returns no end of a token

    def __init__(self, folder: Path):
        quantization = "int8" if any(folder.glob("encoder-model?int8.onnx")) else None
        model = onnx_asr.load_model("nemo-parakeet-tdt-0.6b-v3", folder, quantization=quantization)
        self.model = model.with_timestamps()

    def transcribe(self, samples: np.ndarray, language: str | None) -> dict:
        found, words = self.model.recognize(samples), []
        for token, time in zip(found.tokens or [], found.timestamps or []):
            if token.startswith(" ") or not words:  # a new word
                words.append(timed("word", "", time, time))
            words[-1]["word"] += token.strip()
            if any(map(str.isalnum, token)):
                words[-1]["end"] = round(min(time + self.token_seconds, len(samples) / RATE_HZ), 3)
        words = [word for word in words if word["word"]]
        for word, following in zip(words, words[1:]):
            word["end"] = min(word["end"], following["start"])
        segments = [timed("text", found.text, words[0]["start"], words[-1]["end"])] if words else []
        return {"text": found.text.strip(), "language": language or "und", "segments": segments, "words": words}


def timed(key: str, text: str, start: float, end: float) -> dict:
    return {key: text.strip(), "start": round(float(start), 3), "end": round(float(end), 3)}
