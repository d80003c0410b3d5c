"""JSON documents in the shapes that other tools write: each becomes the same two records."""

import json

import pytest

from elench.errors import UsageError
from elench.records.record import read_records

ROWS = [{"question": "Who?", "answer": "Ada", "references": ["Ada Marsh"]},
        {"question": "When?", "answer": "1874", "references": ["in 1874", "1874"]}]  # fmt: skip
COLUMNS = {name: [row[name] for row in ROWS] for name in ROWS[0]}
DOCUMENTS = {
    "list": ROWS,
    "wrapped": {"version": 2, "results": ROWS},
    "data": {"data": ROWS, "schema": {"fields": []}},
    "camel case": {"testCases": ROWS, "metricsScores": [{"metric": "x"}]},
    "columns": COLUMNS,
    "pandas": {name: {"0": column[0], "1": column[1]} for name, column in COLUMNS.items()},
    "pandas split": {"columns": list(COLUMNS), "index": [0, 1], "data": [list(row.values()) for row in ROWS]},
    "by id": {"q1": ROWS[0], "q2": ROWS[1]},
}


@pytest.mark.parametrize(
    ("shape", "indent", "ending"),
    [
        (shape, indent, ending)
        for shape in DOCUMENTS
        for indent, ending in ((None, "json"), (2, "json"), (None, "jsonl"), (2, "jsonl"))
        if (indent, ending) != (None, "jsonl") or shape == "list"  # one object on one line of JSONL is a record
    ],
)
def test_every_shape_gives_the_same_records(tmp_path, shape, indent, ending):
    path = tmp_path / f"x.{ending}"
    path.write_text(json.dumps(DOCUMENTS[shape], indent=indent))
    records = list(read_records(path))
    assert [(r.question, r.answer, list(r.references)) for r in records] == [tuple(row.values()) for row in ROWS]
    assert shape != "by id" or [r.id for r in records] == ["q1", "q2"]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("ending", ["json", "jsonl"])
def test_one_object_is_one_record(tmp_path, indent, ending):
    path = tmp_path / f"x.{ending}"
    row = {**ROWS[0], "context": [{"text": "Ada Marsh built it."}]}  # a list of objects inside a record
    path.write_text(json.dumps(row, indent=indent))
    (record,) = read_records(path)
    assert record.answer == "Ada" and record.passages == ("Ada Marsh built it.",)


def test_lines_under_the_name_of_a_document(tmp_path):
    path = tmp_path / "x.json"
    path.write_text("\n".join(map(json.dumps, ROWS)))
    assert [r.answer for r in read_records(path)] == ["Ada", "1874"]


def test_a_document_without_records_names_what_it_has(tmp_path):
    path = tmp_path / "x.json"
    path.write_text('{"seed": 1, "config": {"a": 1}}')
    with pytest.raises(UsageError, match=r"no list of records in it; names found at the top: seed, config"):
        list(read_records(path))


CELLS = {
    "json": '["Ada", "Marsh"]',
    "python": "['Ada', 'Marsh']",
    "numpy": "['Ada' 'Marsh']",
    "numpy, several lines": "['Ada'\n 'Marsh']",
    "an apostrophe": "[\"Ada\", 'Marsh']",
}


@pytest.mark.parametrize("cell", CELLS.values(), ids=list(CELLS))
def test_lists_in_cells_as_pandas_prints_them(tmp_path, cell):
    quoted = cell.replace('"', '""')
    path = tmp_path / "x.csv"
    path.write_text(f'answer,gold,context\nAda,"{quoted}","[sic] it was built"\n', encoding="utf-8")
    from elench.records.source import as_source

    (record,) = read_records(as_source(path, {"references": "gold"}))
    assert record.references == ("Ada", "Marsh") and record.context == "[sic] it was built"
