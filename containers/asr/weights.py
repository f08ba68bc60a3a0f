"""Pinned weights (weights.json): a file is used only if it has the pinned size and SHA-256."""

import hashlib
import json
import os
import urllib.request
from pathlib import Path

from tqdm import tqdm

CHUNK_BYTES = 1 << 20


def folder_of(name: str, pins: Path = Path(__file__).with_name("weights.json")) -> Path:
    """The folder with the weights of a model. Downloads missing files."""
    pin = json.loads(pins.read_text())[name]
    models = os.environ.get("ROLLCALL_ASR_MODELS") or Path.home() / ".cache" / "rollcall-asr"
    folder = Path(models) / f"{name}-{pin['revision'][:8]}"
    folder.mkdir(parents=True, exist_ok=True)
    source = f"{os.environ.get('HF_ENDPOINT', 'https://huggingface.co')}/{pin['repository']}/resolve/{pin['revision']}"
    for file, expected in pin["files"].items():
        if not is_intact(folder / file, **expected):
            download(f"{source}/{file}", folder / file, **expected)
    return folder


def is_intact(path: Path, bytes: int, sha256: str) -> bool:
    if not path.is_file() or path.stat().st_size != bytes:
        return False
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest() == sha256


def download(url: str, target: Path, bytes: int, sha256: str) -> None:
    """Downloads a file. An interrupted download leaves a `.part` file, from which the next one resumes."""
    part = target.with_name(f"{target.name}.part")
    received = part.stat().st_size if part.exists() else 0
    if received < bytes:
        print(f"Downloading {url} ({bytes / 1e6:.1f} MB)", flush=True)
        request = urllib.request.Request(url, headers={"Range": f"bytes={received}-"} if received else {})
        with urllib.request.urlopen(request, timeout=60) as response:
            received = received if response.status == 206 else 0  # 200: the server ignores ranges
            bar = tqdm(total=bytes, initial=received, unit="B", unit_scale=True, desc=target.name, disable=None)
            with bar, open(part, "ab" if received else "wb") as stream:
                while received <= bytes and (chunk := response.read(CHUNK_BYTES)):
                    received += stream.write(chunk)
                    bar.update(len(chunk))
    if received < bytes:
        raise OSError(f"{url} broke off after {received} of {bytes} bytes; the next try goes on from there")
    if not is_intact(part, bytes, sha256):
        part.unlink()
        raise OSError(f"{url} does not have the pinned size and SHA-256; refused")
    part.replace(target)
