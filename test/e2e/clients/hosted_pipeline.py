"""Runs the hosted pipeline of pyannote.audio on a file: hosted_pipeline.py FOLDER FILE. Prints its two timelines as JSON.

FOLDER holds the pipeline's configuration, which the model hub would give out. ROLLCALL_URL and ROLLCALL_KEY say where and as whom.
"""

import json
import os
import sys
import warnings

warnings.simplefilter("ignore")
os.environ["PYANNOTE_METRICS_ENABLED"] = "0"

from pyannote.audio import Pipeline  # noqa: E402
from pyannoteai.sdk import Client  # noqa: E402

Client.API_URL = os.environ["ROLLCALL_URL"] + "/v1"
pipeline = Pipeline.from_pretrained(sys.argv[1], token=os.environ["ROLLCALL_KEY"])
output = pipeline(sys.argv[2])


def turns(annotation):
    tracks = annotation.itertracks(yield_label=True)
    return [{"speaker": speaker, "start": segment.start, "end": segment.end} for segment, _, speaker in tracks]


print(
    json.dumps(
        {
            "diarization": turns(output.speaker_diarization),
            "exclusiveDiarization": turns(output.exclusive_speaker_diarization),
        }
    )
)
