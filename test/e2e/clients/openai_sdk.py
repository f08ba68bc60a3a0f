"""Calls one method after another of OpenAI's Python SDK, as shipped; only the base address is another.

    openai_sdk.py calls.json

The calls are `[["models", {}], ["transcribe", {"file": "a.mp3", "model": "whisper-1"}]]`. Prints a JSON
line: what each call gave, and how it ended. ROLLCALL_URL and ROLLCALL_KEY say where and as whom.
"""

import json
import os
import sys

import openai


def call(client, name, arguments):
    if name == "models":
        return [model.id for model in client.models.list()]
    with open(arguments["file"], "rb") as file:
        answer = client.audio.transcriptions.create(**{**arguments, "file": file})
        if not arguments.get("stream"):
            return answer if isinstance(answer, str) else answer.model_dump(exclude_unset=True)
        return [event.model_dump(exclude_unset=True) for event in answer]


def main():
    client = openai.OpenAI(base_url=os.environ["ROLLCALL_URL"] + "/v1", api_key=os.environ["ROLLCALL_KEY"])
    with open(sys.argv[1]) as file:
        calls = json.load(file)
    results = []
    try:
        for name, arguments in calls:
            results.append(call(client, name, arguments))
    except openai.APIError as error:
        ended = {"name": type(error).__name__, "code": error.code, "param": error.param, "message": str(error)}
        print(json.dumps({"results": results, "error": ended}))
        return
    print(json.dumps({"results": results}))


main()
