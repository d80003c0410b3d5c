"""The walk of one record in CONTRIBUTING.md is true: a traced run goes through these functions, in this order."""

import json
import re
import sys
from collections import Counter
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


def traced(folder, records):
    """Every entry and exit, in order, of the functions of elench that score a file of a number of records."""
    folder.mkdir()
    source = folder / "in.jsonl"
    rows = (
        {"id": str(i), "judge": "question", "context": f"Jane wrote {i}.", "question": "Who?", "answer": "Jane"}
        for i in range(records)
    )
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    session = Session(ModelSet(loaded={"reader": Reader()}), AnswerCache(folder / "cache.sqlite"))
    calls = []

    def trace(frame, event, _):
        if event in ("call", "return"):  # generators and coroutines are entered again: each time counts
            place = "models/reader.py" if frame.f_code is Reader.answer.__code__ else frame.f_code.co_filename
            calls.append((place.split("/src/elench/")[-1], frame.f_code.co_name))

    job = Job(source, [metric("roundtrip")], folder / "out.jsonl", session)
    sys.setprofile(trace)
    try:
        score_file(job)
    finally:
        sys.setprofile(None)
    assert json.loads((folder / "out.jsonl").read_text().splitlines()[0])["scores"]["roundtrip"] is not None
    return calls


def test_the_walk_in_contributing_is_what_happens(tmp_path):
    steps = STEP.findall((HOME / "CONTRIBUTING.md").read_text())
    assert len(steps) <= 20 and len({file for file, _ in steps}) <= 12
    for file, function in steps:
        assert f"def {function.split('.')[-1]}(" in (HOME / "src" / "elench" / file).read_text(), f"{file} {function}"
    calls, at = traced(tmp_path / "one", 1), 0
    for file, function in steps:
        wanted = (file, function.split(".")[-1])
        assert wanted in calls[at:], f"{file} {function} does not come after the step before it"
        at += calls[at:].index(wanted) + 1


def test_contributing_counts_everything_that_touches_a_record(tmp_path):
    """Functions that are called more often the more records there are, helpers included."""
    traced(tmp_path / "warm", 1)
    few, many = (Counter(traced(tmp_path / str(n), n)) for n in (3, 13))
    ours = {file.relative_to(HOME / "src" / "elench").as_posix() for file in (HOME / "src" / "elench").rglob("*.py")}
    touched = {k for k in many if k[0] in ours and k[1][0] != "<" and many[k] - few[k] >= 10}
    most = re.search(r"at most (\d+) functions in (\d+) files", (HOME / "CONTRIBUTING.md").read_text())
    assert len(touched) <= int(most[1]) and len({file for file, _ in touched}) <= int(most[2]), sorted(touched)
