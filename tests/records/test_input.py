"""Files as people have them: encodings, delimiters, standard input, other column names."""

import gzip
import io
import json
import sys

import pytest

from elench.errors import UsageError
from elench.metrics import metric
from elench.records.encoding import encoding_of
from elench.records.mapping import parse_map
from elench.records.record import Record, read_records
from elench.records.source import as_source

ROWS = [
    {"question": "Who sang?", "answer": "Änne Öz", "references": ["Änne"]},
    {"question": "Who, then; danced?", "answer": 'the "tall" one', "references": ["nobody"]},
]


def as_csv(delimiter):
    import csv

    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter)
    writer.writerow(["question", "answer", "references"])
    writer.writerows([row["question"], row["answer"], row["references"][0]] for row in ROWS)
    return out.getvalue()


def as_jsonl():
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS)


def texts(path):
    return [(r.question, r.answer, r.references) for r in read_records(path)]


EXPECTED = [(row["question"], row["answer"], tuple(row["references"])) for row in ROWS]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("name", ["comma.csv", "semicolon.csv", "tab.csv", "tab.tsv", "bar.csv", "lines.jsonl"])
def test_encodings_and_delimiters_are_recognised(tmp_path, name, encoding):
    marks = {"comma": ",", "semicolon": ";", "tab": "\t", "bar": "|"}
    text = as_jsonl() if name == "lines.jsonl" else as_csv(marks[name.split(".")[0]])
    (tmp_path / name).write_bytes(text.encode(encoding))
    assert texts(tmp_path / name) == EXPECTED


def test_short_texts_are_not_taken_for_utf_16():
    for text in (b"a", b"ab", b"abc", b"a,b", b"\n", b""):
        assert encoding_of(text) == "utf-8-sig", text


def test_compressed_files_are_read_and_broken_ones_named(tmp_path):
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(as_jsonl().encode()))
    assert texts(tmp_path / "a.jsonl.gz") == EXPECTED
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(as_jsonl().encode())[:-12])
    with pytest.raises(UsageError, match=r"b\.jsonl\.gz: cannot be decompressed"):
        texts(tmp_path / "b.jsonl.gz")


def test_what_excel_writes_in_europe_is_read(tmp_path):
    text = "sep=;\r\nid;answer;references;human.fluency\r\n1;ja;ja;3,5\r\n\r\n;;;\r\n2;nein;ja;4\r\n"
    (tmp_path / "x.csv").write_bytes(text.encode("utf-8-sig"))
    assert [(r.id, r.human, r.line) for r in read_records(tmp_path / "x.csv")] == [
        ("1", {"fluency": 3.5}, 3),
        ("2", {"fluency": 4.0}, 6),
    ]


def test_a_workbook_is_read(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (
        ["ID", "Question", "Answer", "Reference"],
        [1, "How many?", 42, "42"],
        [None] * 4,
        [2, "Who?", "I", "I"],
    ):
        book.active.append(row)
    book.save(tmp_path / "x.xlsx")
    found = list(read_records(tmp_path / "x.xlsx"))
    assert [(r.id, r.answer, r.references) for r in found] == [("1", "42", ("42",)), ("2", "I", ("I",))]
    (tmp_path / "y.xlsx").write_bytes(b"PK nothing")
    with pytest.raises(UsageError, match=r"y\.xlsx: not an \.xlsx workbook"):
        list(read_records(tmp_path / "y.xlsx"))


@pytest.mark.parametrize(
    ("data", "expected"), [(as_jsonl(), EXPECTED), (as_csv(";"), EXPECTED), (json.dumps(ROWS), EXPECTED)]
)
def test_standard_input_may_be_any_text_format(monkeypatch, data, expected):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data.encode())))
    source = as_source("-")
    assert str(source) == "stdin"
    assert texts(source) == expected and texts(source) == expected  # it is read more than once


def test_numbers_name_things_and_passages_are_kept():
    record = Record.from_object(
        {"id": 7, "group": 3.0, "system": 1.5, "context": ["One.", {"title": "t", "text": "Two."}], "references": "r"}
    )
    assert (record.id, record.group, record.system) == ("7", "3", "1.5")
    assert record.context == "One.\n\nTwo." and record.passages == ("One.", "Two.")
    assert record.references == ("r",)
    assert record.to_object()["context"] == ["One.", "Two."]


def write(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_columns_are_mapped(tmp_path):
    row = {
        "qid": 5,
        "pred": "Ann",
        "gold": {"texts": ["Anne", "Ann"]},
        "answer": "old",
        "passage": "Ann sang.",
        "more": 1,
    }
    path = write(tmp_path / "x.jsonl", row)
    mapping = parse_map("id=qid, answer=pred,references=gold.texts,context=passage")
    (record,) = read_records(as_source(path, mapping))
    assert (record.id, record.answer, record.references, record.context) == ("5", "Ann", ("Anne", "Ann"), "Ann sang.")
    assert record.extra["more"] == 1 and "pred" not in record.extra
    (swapped,) = read_records(as_source(path, parse_map("answer=pred,references=answer")))
    assert (swapped.answer, swapped.references) == ("Ann", ("old",))


def test_several_columns_may_hold_the_references(tmp_path):
    (tmp_path / "x.csv").write_text("answer,ref1,ref2\na,b,c\na,b,\n")
    first, second = read_records(as_source(tmp_path / "x.csv", parse_map("references=ref1+ref2")))
    assert (first.references, second.references) == (("b", "c"), ("b",))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("answer", "write FIELD=COLUMN"),
        ("prediction=answer", "did you mean answer=prediction?"),
        ("answr=x", "did you mean answer?"),
        ("answer=x,answer=y", "given twice"),
    ],
)
def test_a_bad_map_says_what_to_type(text, said):
    with pytest.raises(UsageError, match=said.replace("?", r"\?")):
        parse_map(text)


def test_a_mapped_column_must_exist(tmp_path):
    path = write(tmp_path / "x.jsonl", {"prediction": "a", "gold": "b"})
    with pytest.raises(UsageError, match=r"fields found: prediction, gold; did you mean answer=prediction\?"):
        as_source(path, {"answer": "predicton"})


@pytest.mark.parametrize(
    ("row", "typed"),
    [
        ({"prediction": "a", "reference": "b", "passage": "c"}, "--map answer=prediction,context=passage"),
        ({"pred": "a", "gold": "b"}, "--map answer=pred,references=gold"),
        (
            {"Query": "q", "Model Answer": "a", "Ground truth": "b"},
            "--map 'question=Query,answer=Model Answer,references=Ground truth'",
        ),
        ({"question": "q", "answer": "a", "goldAnswers": ["b"]}, "--map references=goldAnswers"),
        ({"anwser": "a", "references": "b"}, "--map answer=anwser"),
    ],
)
def test_missing_fields_name_the_map_to_type_and_it_works(tmp_path, row, typed):
    path = write(tmp_path / "x.jsonl", row)
    with pytest.raises(UsageError) as refused:
        as_source(path).for_metrics([metric("f1")])
    message = str(refused.value)
    assert typed in message and "fields found: " + ", ".join(row) in message and "x.jsonl" in message
    mapping = parse_map(typed.removeprefix("--map ").strip("'"))
    as_source(path, mapping).for_metrics([metric("f1")])
    (record,) = read_records(as_source(path, mapping))
    assert record.answer == "a" and record.references == ("b",)


def test_plain_text_is_pointed_to_its_option(tmp_path):
    (tmp_path / "x.txt").write_text("hello\n")
    with pytest.raises(UsageError, match=r"unknown kind of file; for plain text: --text"):
        list(read_records(tmp_path / "x.txt"))


def test_a_gold_answer_beside_a_prediction_gets_the_map_to_type(tmp_path):
    """`answer` alone would be judged: the gold answers instead of the system's."""
    row = {"document": "d", "summary": "gold", "prediction": "made"}
    (tmp_path / "in.jsonl").write_text(json.dumps(row))
    source = as_source(tmp_path / "in.jsonl")
    assert source.beside() == {"summary": "prediction", "references": "summary"}
    with pytest.raises(UsageError, match="try --map context=document,summary=prediction,references=summary"):
        source.for_metrics([metric("f1")])
    (record,) = as_source(tmp_path / "in.jsonl", source.guess()).read()
    assert (record.summary, record.references, record.context) == ("made", ("gold",), "d")


@pytest.mark.parametrize("columns", [["answer", "model"], ["answer", "system"], ["answer", "references", "prediction"]])
def test_other_columns_are_not_taken_for_predictions(tmp_path, columns):
    (tmp_path / "in.jsonl").write_text(json.dumps(dict.fromkeys(columns, "x")))
    assert as_source(tmp_path / "in.jsonl").beside() == {}


def test_numbered_references_are_suggested_together(tmp_path):
    (tmp_path / "in.csv").write_text("answer,ref2,ref1\na cat,the cat,a cat\n")
    with pytest.raises(UsageError, match=r"try --map references=ref1\+ref2"):
        as_source(tmp_path / "in.csv").for_metrics([metric("f1")])


@pytest.mark.parametrize("kind", ["gzip", "parquet", "xlsx", "squad"])
def test_standard_input_may_be_any_kind_of_file(tmp_path, monkeypatch, kind):
    import pandas

    table = pandas.DataFrame([{"question": "Who?", "answer": "Ada", "references": "Ada"}])
    if kind == "parquet":
        table.to_parquet(tmp_path / "in")
    elif kind == "xlsx":
        with (tmp_path / "in").open("wb") as file:
            table.to_excel(file, index=False)
    elif kind == "gzip":
        (tmp_path / "in").write_bytes(gzip.compress(table.to_csv(index=False).encode()))
    else:
        qas = [{"id": "q", "question": "Who?", "answers": [{"text": "Ada", "answer_start": 0}]}]
        squad = {"data": [{"title": "t", "paragraphs": [{"context": "Ada.", "qas": qas}]}]}
        (tmp_path / "in").write_text(json.dumps(squad))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((tmp_path / "in").read_bytes())))
    (record,) = as_source("-").read()
    assert (record.question, record.answer) == ("Who?", "Ada")


def test_messages_about_standard_input_do_not_name_a_temporary_file(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\xff,b\n1,2\n")))
    with pytest.raises(UsageError, match=r"^stdin:1: the header is not valid UTF-8"):
        as_source("-")


def test_what_to_type_is_said_for_common_slips(tmp_path):
    (tmp_path / "comma.jsonl").write_text('{"answer": "a"},\n{"answer": "b"},\n')
    assert "remove the comma" in next(as_source(tmp_path / "comma.jsonl").read()).reason
    (tmp_path / "object.jsonl").write_text('{"answer": {"output": "a"}}\n')
    assert "with output: name a part" in next(as_source(tmp_path / "object.jsonl").read()).reason
    (tmp_path / "pred.json").write_text('{"q1": "Ada"}')
    with pytest.raises(UsageError, match=r"elench score GOLD --predictions .*pred\.json"):
        as_source(tmp_path / "pred.json")
