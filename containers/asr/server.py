"""Speech recognition with OpenAI's API: POST /v1/audio/transcriptions."""

import argparse
import asyncio
import os
from pathlib import Path
from typing import Annotated, Literal

import uvicorn
from fastapi import FastAPI, Form, HTTPException, Request, UploadFile
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse

from engines import RATE_HZ, Parakeet, Whisper, decode, refusal
from weights import folder_of

MAX_BODY_BYTES = 25 * 1024 * 1024 + 64 * 1024  # OpenAI's limit of a file, and the other fields
MAX_WAITING = 16
app = FastAPI(title="rollcall-asr", docs_url=None, redoc_url=None)


class Model:
    """An engine that is loaded at its first use and runs one request at a time."""

    def __init__(self, name: str, engine: type, ids: tuple[str, ...]):
        self.name, self.engine, self.ids = name, engine, ids
        self.folder: Path | None = None
        self.loading: asyncio.Task | None = None
        self.lock, self.requests = asyncio.Lock(), 0

    async def load(self, wait_seconds: float | None = 20):
        start = lambda: self.engine(self.folder or folder_of(self.name))
        task = self.loading = self.loading or asyncio.create_task(asyncio.to_thread(start))
        await asyncio.wait({task}, timeout=wait_seconds)
        if task.done() and not task.exception():
            return task.result()
        if task.done():
            self.loading = None  # the next request tries again
            print(f"The model {self.name} could not be loaded: {task.exception()}", flush=True)
        raise HTTPException(503, f"The model {self.name} is not loaded yet.", {"Retry-After": "30"})

    async def run(self, request: Request, file: UploadFile, language: str | None) -> dict:
        if self.requests > MAX_WAITING:
            raise HTTPException(429, "Too many requests wait for the model.", {"Retry-After": "10"})
        self.requests += 1
        try:
            engine = await self.load()
            if language and language not in engine.languages:
                raise refusal(f"The model does not know the language {language}.", "language")
            await request.is_disconnected()  # resumes reading: uvicorn pauses it after a large body and sees no end
            async with self.lock:
                if await request.is_disconnected():  # the client has disconnected
                    raise HTTPException(499, "The client has gone.")
                samples = await asyncio.to_thread(decode, file.file, engine.max_seconds)
                found = await asyncio.to_thread(engine.transcribe, samples, language or None)
                return {"task": "transcribe", "duration": round(len(samples) / RATE_HZ, 3), **found}
        finally:
            self.requests -= 1


MODELS = (
    Model("parakeet", Parakeet, ("asr-tdt-0.6b-v3", "parakeet-tdt-0.6b-v3")),
    Model("whisper", Whisper, ("asr-large-v3-turbo", "faster-whisper-large-v3-turbo", "whisper-1")),
)
BY_ID = {id: model for model in MODELS for id in model.ids}


@app.exception_handler(HTTPException)
@app.exception_handler(RequestValidationError)
async def describe(_: Request | None, fault: HTTPException | RequestValidationError) -> JSONResponse:
    """OpenAI's form of an error."""
    if isinstance(fault, RequestValidationError):
        first = fault.errors()[0]
        fault = refusal(first["msg"], str(first["loc"][-1]))
    kind = {429: "rate_limit_error", 503: "server_error"}.get(fault.status_code, "invalid_request_error")
    detail = fault.detail if isinstance(fault.detail, dict) else {"message": fault.detail}
    error = {"type": kind, "param": None, "code": None} | detail
    return JSONResponse({"error": error}, fault.status_code, fault.headers)


async def bounded(scope, receive, send) -> None:
    """The application for bodies of a known length within the limit."""
    length = int(dict(scope.get("headers", ())).get(b"content-length", -1 if scope.get("method") == "POST" else 0))
    if 0 <= length <= MAX_BODY_BYTES:
        return await app(scope, receive, send)
    refused = (411, "The request needs a Content-Length.") if length < 0 else (413, "The file is larger than 25 MB.")
    await (await describe(None, HTTPException(*refused)))(scope, receive, send)


@app.get("/healthz")
async def health():
    return {"status": "ok"}


@app.get("/v1/models")
async def models():
    return {"object": "list", "data": [{"id": id, "object": "model", "created": 0, "owned_by": ""} for id in BY_ID]}


@app.post("/v1/audio/transcriptions")
async def transcribe(
    request: Request,
    file: UploadFile,
    model: Annotated[str, Form()],
    language: Annotated[str | None, Form()] = None,
    response_format: Annotated[Literal["json", "text", "verbose_json"], Form()] = "json",
):
    if model not in BY_ID:
        raise HTTPException(404, {"message": f"Unknown model {model}.", "param": "model", "code": "model_not_found"})
    found = await BY_ID[model].run(request, file, language)
    if response_format == "text":
        return PlainTextResponse(f"{found['text']}\n")
    return found if response_format == "verbose_json" else {"text": found["text"]}


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", default=os.environ.get("HOST") or "127.0.0.1")
    parser.add_argument("--port", type=int, default=int(os.environ.get("PORT") or 8791))
    parser.add_argument("--preload", nargs="+", default=[], choices=[model.name for model in MODELS])
    for model in MODELS:
        parser.add_argument(f"--{model.name}", type=Path, metavar="DIR", help="weights instead of the pinned ones")
    options = parser.parse_args()
    for model in MODELS:
        model.folder = getattr(options, model.name)
        if model.folder and not model.folder.is_dir():
            parser.error(f"--{model.name}: there is no folder {model.folder}")
        if model.name in options.preload:
            await model.load(wait_seconds=None)
    await uvicorn.Server(uvicorn.Config(bounded, options.host, options.port, timeout_graceful_shutdown=5)).serve()


if __name__ == "__main__":
    asyncio.run(main())
