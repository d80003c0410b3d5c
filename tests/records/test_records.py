"""Records are read strictly, line by line, and nothing of them is lost."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from elench.errors import UsageError
from elench.records.record import Record, Reject, read, read_records, write_records

FULL = {
    "id": "1", "context": "c", "question": "q?", "answer": "a", "references": ["r", "s"], "judge": "question",
    "system": "x", "group": "g", "human": {"fluency": 3.0}, "ratings": {"fluency": [3.0, None]}, "peers": {"bleu": 0.5},
    "note": {"kept": [1, 2]},
}  # fmt: skip


def write(path, *lines):
    path.write_bytes(b"\n".join(x if isinstance(x, bytes) else json.dumps(x).encode() for x in lines) + b"\n")
    return path


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_a_record_survives_writing_and_reading(tmp_path, kind):
    first = Record.from_object(FULL)
    second = Record.from_object({"id": "2", "question": 'a "b"\n,c 🍣', "references": [], "system": "y"})
    path = tmp_path / f"out.{kind}"
    write_records([first, second], path)
    back = list(read_records(path))
    assert [r.id for r in back] == ["1", "2"]
    for name in (
        "context",
        "question",
        "answer",
        "references",
        "judge",
        "system",
        "group",
        "human",
        "ratings",
        "peers",
    ):
        assert getattr(back[0], name) == getattr(first, name), name
    assert back[1].question == second.question
    note = back[0].extra["note"]
    assert (json.loads(note) if kind == "csv" else note) == {"kept": [1, 2]}


@settings(suppress_health_check=[HealthCheck.too_slow])  # a busy machine
@given(st.dictionaries(st.text(min_size=1), st.text()), st.text(min_size=1))
def test_unknown_fields_pass_through(extra, name):
    known = {"id", "context", "question", "answer", "summary", "references", "judge", "system", "group"}
    extra = {k: v for k, v in extra.items() if k not in known | {"human", "ratings", "peers"}}
    assert Record.from_object({"id": name, **extra}).to_object() == {"id": name, **extra}


@pytest.mark.parametrize(
    ("line", "field", "said"),
    [
        ({"id": "1", "references": {"text": "x"}}, "references", "list of strings"),
        ({"id": "1", "context": ["ok", 3]}, "context[1]", "string"),
        ({"id": "1", "context": {"a": 1}}, "context", "list of passages"),
        ({"id": "1", "group": True}, "group", "a number"),
        ({"id": "1", "references": ["ok", None]}, "references[1]", "string"),
        ({"id": "1", "references": [["nested"]]}, "references[0]", "string"),
        ({"id": "1", "question": True}, "question", "string"),
        ({"id": "", "question": "q"}, "id", "empty"),
        ({"id": ["x"]}, "id", "string"),
        ({"id": "1", "judge": "poem"}, "judge", "question, answer, summary"),
        ({"id": "1", "human": {"fluency": "good"}}, "human.fluency", "number"),
        ({"id": "1", "human": [1]}, "human", "object"),
        ({"id": "1", "ratings": {"fluency": 3}}, "ratings.fluency", "list"),
        ({"id": "1", "ratings": {"fluency": [3, "x"]}}, "ratings.fluency[1]", "number"),
        (b'{"id": "1", "human": {"x": Infinity}}', "Infinity", "JSON"),
        (b'{"id": "1", "question": 1e999}', "question", "must be a string, not inf"),
        (b'{"id": "1", "question": "\xff"}', "UTF-8", "byte"),
        (b'{"id": "1", "question": "\\ud83d"}', "question", "surrogate"),
        (b'{"id": "1", ', "JSON", "column"),
        (b"[1, 2]", "object", "line"),
        ({"id": "0", "question": "again"}, "id", "already on line 1"),
    ],
)
def test_a_bad_line_is_named_and_the_rest_is_read(tmp_path, line, field, said):
    path = write(tmp_path / "in.jsonl", {"id": "0", "question": "good"}, line, {"id": "z", "question": "good"})
    good, bad, last = list(read(path))
    assert isinstance(good, Record) and isinstance(last, Record)
    assert isinstance(bad, Reject) and bad.line == 2
    assert field in bad.reason and said in bad.reason
    with pytest.raises(UsageError, match=r"in\.jsonl:2: "):
        list(read_records(path))


def test_the_same_id_may_stand_once_per_system(tmp_path):
    path = write(tmp_path / "in.jsonl", *({"id": "1", "system": s, "question": "q"} for s in "ab"))
    assert [r.system for r in read_records(path)] == ["a", "b"]


def test_ids_are_made_from_line_numbers_where_there_are_none(tmp_path):
    path = write(tmp_path / "in.jsonl", {"question": "q"}, b"", {"question": "r"})
    assert [r.id for r in read_records(path)] == ["1", "3"]


@pytest.mark.parametrize("name", ["x.jsonl", "x.csv", "x.json"])
def test_an_empty_file_is_an_error(tmp_path, name):
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(UsageError, match="empty"):
        list(read(tmp_path / name))


def test_csv_rows_that_do_not_fit_the_header_are_rejected(tmp_path):
    (tmp_path / "x.csv").write_text("id,question,human.fluency\n1,q,3\n2,q\n3,q,good\n4,\xff,1\n", encoding="latin-1")
    first, short, wrong, garbled = read(tmp_path / "x.csv")
    assert isinstance(first, Record) and first.human == {"fluency": 3.0}
    assert "2 cells" in short.reason and short.line == 3
    assert "human.fluency" in wrong.reason
    assert "'question' is not valid UTF-8" in garbled.reason


def test_squad_json_becomes_records(tmp_path):
    qas = [{"id": "q1", "question": "Who?", "answers": [{"text": "Ann", "answer_start": 0}]}]
    squad = {"data": [{"title": "T", "paragraphs": [{"context": "Ann sang.", "qas": qas}]}]}
    (tmp_path / "s.json").write_text(json.dumps(squad))
    (record,) = read_records(tmp_path / "s.json")
    assert (record.id, record.context, record.answer, record.group) == ("q1", "Ann sang.", "Ann", "T-0")
    (tmp_path / "t.json").write_text('{"data": [{"paragraphs": [{"nothing": 1}]}]}')
    with pytest.raises(UsageError, match=r"data\[0\] is not in SQuAD form"):
        list(read(tmp_path / "t.json"))


@pytest.mark.parametrize(
    ("record", "judge"),
    [
        ({"summary": "s", "context": "c"}, "summary"),
        ({"question": "q", "answer": "a"}, "answer"),
        ({"question": "q", "answer": "a", "context": "c"}, "question"),
        ({"question": "q"}, "question"),
        ({"answer": "a"}, "answer"),
    ],
)
def test_what_is_judged_follows_from_what_the_record_has(record, judge):
    assert Record.from_object({"id": "1", **record}).guess_judge() == judge
