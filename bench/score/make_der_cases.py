"""Writes der_cases.json: random annotations with the errors that pyannote.metrics computes.

Usage: python bench/score/make_der_cases.py   (needs pyannote.metrics and pyannote.core; fixed seed)
"""

import json
import pathlib
import random

import pyannote.core
import pyannote.metrics
from pyannote.core import Annotation, Segment
from pyannote.metrics.diarization import DiarizationErrorRate

random.seed(20)


def annotation(speakers, segments, end, prefix):
    """Random segments on a millisecond grid; segments of a speaker never overlap (`support`)."""
    out = Annotation()
    for track in range(segments):
        start = random.randrange(0, end)
        length = random.randrange(1, max(2, end // 4))
        out[Segment(start / 1000, (start + length) / 1000), track] = f"{prefix}{random.randrange(speakers)}"
    return out.support()


def disturbed(reference, moves):
    """A hypothesis like a system's: shifted boundaries, dropped and relabelled segments."""
    out = Annotation()
    names = {label: f"H{index}" for index, label in enumerate(sorted(reference.labels()))}
    for track, (segment, _, label) in enumerate(reference.itertracks(yield_label=True)):
        if random.random() < 0.1:
            continue
        start = max(0, round(segment.start * 1000) + random.randrange(-moves, moves + 1))
        end = max(start + 1, round(segment.end * 1000) + random.randrange(-moves, moves + 1))
        name = names[label] if random.random() < 0.8 else f"H{random.randrange(len(names) + 1)}"
        out[Segment(start / 1000, end / 1000), track] = name
    return out.support()


def rows(a):
    return [[label, round(s.start, 3), round(s.end, 3)] for s, _, label in a.itertracks(yield_label=True)]


cases = []
metric = DiarizationErrorRate(collar=0.0, skip_overlap=False)
plans = [(n, h, 4 + 5 * k) for k in range(4) for n in (1, 2, 3, 5) for h in (1, 2, 4, 7)]
pairs = []
for n, h, count in plans:
    reference = annotation(n, count, 60000, "R")
    pairs.append((reference, annotation(h, count, 60000, "H")))
    pairs.append((reference, disturbed(reference, 400)))
empty = Annotation()
pairs.append((annotation(2, 5, 20000, "R"), empty))
for reference, hypothesis in pairs:
    detail = metric(reference, hypothesis, detailed=True)
    cases.append(
        {
            "reference": rows(reference),
            "hypothesis": rows(hypothesis),
            "total": round(detail["total"], 6),
            "miss": round(detail["missed detection"], 6),
            "falseAlarm": round(detail["false alarm"], 6),
            "confusion": round(detail["confusion"], 6),
            "der": round(detail["diarization error rate"], 9),
        }
    )
path = pathlib.Path(__file__).with_name("der_cases.json")
body = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
made_by = f"pyannote.metrics {pyannote.metrics.__version__}, pyannote.core {pyannote.core.__version__}"
path.write_text(f'{{"madeBy":{json.dumps(made_by)},"pooledDer":{abs(metric):.9f},"cases":[\n{body}\n]}}\n')
print(len(cases), "cases", made_by, path.stat().st_size, "bytes")
