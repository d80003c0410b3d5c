"""A thousand malformed files: every one is read, or refused in one line; none ends in a traceback."""

import gzip
import json
import random

import pytest

from elench.errors import UsageError
from elench.metrics import metric
from elench.records.joining import from_text_files, read_predictions
from elench.records.record import Record, Reject
from elench.records.source import as_source

ENDINGS = (".jsonl", ".ndjson", ".csv", ".tsv", ".json", ".xlsx", ".parquet", ".jsonl.gz", ".csv.gz", ".txt")
ROWS = [
    {"id": "1", "question": "Who?", "answer": "Ann", "references": ["Ann", "Änne"], "context": ["a", "b"], "human": {"x": 1}},
    {"user_input": "Who?", "response": "Ann", "reference": "Ann", "retrieved_contexts": ["a"]},
    {"input": "Who?", "actualOutput": "Ann", "expected_output": None, "retrieval_context": None},
    {"id": 1, "context": "c", "question": "q", "answers": {"text": ["x"], "answer_start": [0]}, "prediction": "x"},
    {"doc_id": 0, "doc": {"question": "q"}, "target": 3, "resps": [["x"]], "filtered_resps": ["x"], "metrics": ["em"], "em": 1},
    {"id": "x", "input": "q", "output": [{"answer": "x"}], "prediction": "y"},
    {"data": [{"title": "T", "paragraphs": [{"context": "c", "qas": [{"id": "1", "question": "q", "answers": []}]}]}]},
]  # fmt: skip
ODD = [None, True, 0, -1.5, 1e308, 10**400, "", " ", "\x00", "\ud800", "\u202e", [], {}, [[]], [None], {"text": None},
       {"": ""}, ["x"] * 50, "x" * 5000, float("nan"), {"a": {"a": {"a": {}}}}]  # fmt: skip
NOISE = [b"\xff\xfe", b"\xef\xbb\xbf", b"\x00", b"\xff", b'"', b"'", b"{", b"}", b"[", b",", b";", b"\t", b"\r", b"\n", b"\\",
         b"sep=;\n", b"\x1f\x8b", b"PK\x03\x04", b"PAR1", b"NaN", b"\xe2\x80\xa8", b"[" * 3000, b'{"a":' * 2000]  # fmt: skip


def malformed(rng):
    """A row or two with odd values under odd names, in some format, then bytes cut, doubled and put in."""
    rows = []
    for _ in range(rng.randint(0, 4)):
        row = dict(rng.choice(ROWS))
        for _ in range(rng.randint(0, 3)):
            name = rng.choice([*row, "judge", "system", "ratings", "peers", "Answer", "", "human.x"])
            row[name] = rng.choice(ODD)
        rows.append(row if rng.random() < 0.9 else rng.choice(ODD))
    ending = rng.choice(ENDINGS)
    if ending == ".json":
        text = json.dumps(rows if rng.random() < 0.6 or not rows else rows[0])
    elif "csv" in ending or "tsv" in ending:
        mark = rng.choice(",;\t|")
        names = list(dict.fromkeys(k for row in rows if isinstance(row, dict) for k in row))
        lines = [names, *([str(row.get(k, "")) for k in names] for row in rows if isinstance(row, dict))]
        text = "\n".join(mark.join(line) for line in lines)
    else:
        text = "\n".join(json.dumps(row) for row in rows)
    data = text.encode(rng.choice(["utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1"]), "replace")
    for _ in range(rng.choice([0, 0, 1, 1, 2, 5])):
        at = rng.randint(0, len(data))
        data = data[:at] + rng.choice(NOISE) + data[at + rng.choice([0, 0, 1, 7]) :]
    if rng.random() < 0.2:
        data = data[: rng.randint(0, len(data))]
    if ending.endswith(".gz") and rng.random() < 0.8:
        data = gzip.compress(data)[: rng.choice([None, None, -5])]
    return ending, data


def one_line(error, path):
    assert "\n" not in str(error), str(error)
    assert len(str(error)) < 3000


@pytest.mark.parametrize("part", range(10))
def test_malformed_files_end_in_records_rejects_or_one_line(tmp_path, part):
    rng, read = random.Random(part), 0
    for number in range(100):
        ending, data = malformed(rng)
        path = tmp_path / f"{number}{ending}"
        path.write_bytes(data)
        try:
            source = as_source(path, rng.choice([None, None, {"answer": "response"}, {"references": "answers.text"}]))
            source = source.for_metrics(rng.choice([(), [metric("f1")], [metric("f1"), metric("length")]]))
            for item in source.read():
                assert isinstance(item, Record | Reject)
                assert isinstance(item, Record) or (item.reason and "\n" not in item.reason), item
                if isinstance(item, Record):
                    json.dumps(item.to_object())
                    item.guess_judge()
                    item.language()
                read += 1
        except UsageError as error:
            one_line(error, path)
        for door in (read_predictions, from_text_files):
            try:
                door(path)
            except UsageError as error:
                one_line(error, path)
    assert read > 20  # or the files are so broken that nothing is tested
