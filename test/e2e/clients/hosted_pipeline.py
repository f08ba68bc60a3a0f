"""Runs the hosted pipeline of pyannote.audio on a file, and prints its two timelines as JSON.

    python hosted_pipeline.py FOLDER FILE

FOLDER has the pipeline's configuration, which is otherwise on the model hub. ROLLCALL_URL and ROLLCALL_KEY are the
address and the key of the service.
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
