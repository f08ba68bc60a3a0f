"""Calls one method after another of the public SDK, as shipped; only the address of the API is another.

    sdk.py '[["upload", {"audio": "a.mp3"}], ["diarize", {"media_url": "$0"}], ["retrieve", {"job_id": "$1"}]]'

`$N` stands for what call N gave. Prints a JSON line: the results, and how it ended. ROLLCALL_URL and ROLLCALL_KEY say
where and as whom; a call of "waveform" reads a WAV file with SciPy and uploads its samples, as people with arrays do.
"""

import json
import os
import sys
import warnings

from pyannoteai.sdk import Client

warnings.simplefilter("ignore")
Client.API_URL = os.environ["ROLLCALL_URL"] + "/v1"


def waveform(client, path):
    import scipy.io.wavfile

    sample_rate, samples = scipy.io.wavfile.read(path)
    return client.upload({"waveform": samples, "sample_rate": sample_rate})


def main():
    results = []
    try:
        client = Client(token=os.environ["ROLLCALL_KEY"])
        for name, arguments in json.loads(sys.argv[1]):
            filled = {key: fill(value, results) for key, value in arguments.items()}
            method = (lambda **kw: waveform(client, **kw)) if name == "waveform" else getattr(client, name)
            results.append(method(**filled))
    except Exception as error:  # the tests compare the class and the words
        print(
            json.dumps({"results": results, "error": type(error).__name__, "arguments": [str(a) for a in error.args]})
        )
        return
    print(json.dumps({"results": results}))


def fill(value, results):
    if isinstance(value, str) and value.startswith("$"):
        number, *path = value[1:].split(".")
        found = results[int(number)]
        for key in path:
            found = found[key]
        return found
    if isinstance(value, dict):
        return {key: fill(inner, results) for key, inner in value.items()}
    return value


main()
