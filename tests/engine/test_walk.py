"""The walk of one record in CONTRIBUTING.md is true: a traced run goes through these functions, in this order."""

import json
import re
import sys
from pathlib import Path

from elench.engine.job import Job, score_file
from elench.engine.session import Session
from elench.metrics import metric
from elench.models.base import Model, ModelSet
from elench.models.cache import AnswerCache
from elench.requests import Reading

HOME = Path(__file__).parents[2]
STEP = re.compile(r"^\d+\. `([\w/]+\.py)` `([\w.]+)`", re.M)


class Reader(Model):
    """Answers every question with 'Jane'; stands for models/reader.py."""

    role, name, sha256 = "reader", "stand-in", "0" * 64

    def lengths(self, requests):
        return [1] * len(requests)

    def answer(self, batch):
        return [Reading("Jane", (0, 4), 0.1, 0.9, 0.9, "Jane", 0.9) for _ in batch]


def test_the_walk_in_contributing_is_what_happens(tmp_path):
    steps = STEP.findall((HOME / "CONTRIBUTING.md").read_text())
    assert len(steps) <= 20 and len({file for file, _ in steps}) <= 12
    for file, function in steps:
        assert f"def {function.split('.')[-1]}(" in (HOME / "src" / "elench" / file).read_text(), f"{file} {function}"
    source = tmp_path / "in.jsonl"
    record = {
        "id": "1",
        "judge": "question",
        "context": "Jane wrote it.",
        "question": "Who wrote it?",
        "answer": "Jane",
    }
    source.write_text(json.dumps(record) + "\n")
    session = Session(ModelSet(loaded={"reader": Reader()}), AnswerCache(tmp_path / "cache.sqlite"))
    calls = []

    def trace(frame, event, _):
        if event in ("call", "return"):  # generators and coroutines are entered again: each time counts
            name = frame.f_code.co_name
            place = "models/reader.py" if frame.f_code is Reader.answer.__code__ else frame.f_code.co_filename
            calls.append((place.split("/src/elench/")[-1], name))

    job = Job(source, [metric("roundtrip")], tmp_path / "out.jsonl", session)
    sys.setprofile(trace)
    try:
        score_file(job)
    finally:
        sys.setprofile(None)
    at = 0
    for file, function in steps:
        wanted = (file, function.split(".")[-1])
        assert wanted in calls[at:], f"{file} {function} does not come after the step before it"
        at += calls[at:].index(wanted) + 1
    assert json.loads((tmp_path / "out.jsonl").read_text())["scores"]["roundtrip"] is not None
