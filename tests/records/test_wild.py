"""Files as people bring them: read as meant, or one line that says what to type. Typing it then works."""

import bz2
import csv
import io
import json
import lzma
import re

import pytest

from elench.errors import UsageError
from elench.metrics import metric
from elench.records.mapping import parse_map
from elench.records.record import read_records
from elench.records.source import as_source
from elench.records.spreadsheets import sheet_note

QUESTION, ANSWER, GOLD, PASSAGE = "Who built it?", "Ann Thorne did.", "Ann Thorne", "Ann Thorne built the tower."
ROW = {"question": QUESTION, "answer": ANSWER, "references": GOLD}
TURNS = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION}]

SUGGESTED = {
    "LangSmith": {"id": "1", "inputs": {"question": QUESTION}, "outputs": {"output": ANSWER}, "reference_outputs": {"answer": GOLD}},
    "LangSmith, flat": {"inputs.question": QUESTION, "outputs.answer": ANSWER, "reference.answer": GOLD, "id": "1"},
    "promptfoo": {
        "provider": {"id": "p"}, "prompt": {"raw": "Q: Who?", "label": "Q"}, "vars": {"question": QUESTION, "context": PASSAGE},
        "response": {"output": ANSWER}, "testCase": {"assert": [{"type": "equals", "value": GOLD}]},
    },
    "OpenAI evals": {"run_id": "r", "sample_id": "s.1", "type": "match", "data": {"sampled": ANSWER, "expected": GOLD}},
    "Phoenix": {"context.span_id": "x", "attributes.input.value": QUESTION, "attributes.output.value": ANSWER, "expected": GOLD},
    "MLflow": {"inputs": QUESTION, "outputs": ANSWER, "ground_truth": GOLD, "exact_match/v1/score": 0},
    "chat": {"messages": [*TURNS, {"role": "assistant", "content": ANSWER}], "ideal": GOLD},
    "instructions": {"instruction": QUESTION, "input": "", "output": ANSWER, "target": GOLD},
}  # fmt: skip


def write(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", SUGGESTED)
def test_what_the_message_says_to_type_reads_the_export(tmp_path, name):
    path = write(tmp_path / "x.jsonl", SUGGESTED[name])
    with pytest.raises(UsageError, match="no record has 'answer' and 'references', which f1 needs") as told:
        as_source(path).for_metrics([metric("f1")])
    option = re.search(r"try --map '?([^;']+)", str(told.value))
    assert option and "looks like" not in str(told.value)
    source = as_source(path, parse_map(option[1])).for_metrics([metric("f1")])
    (record,) = read_records(source)
    assert (record.answer, record.references) == (ANSWER, (GOLD,))
    assert record.question == (None if name == "OpenAI evals" else QUESTION)
    assert source.judging == "answer"


def test_a_field_without_a_column_is_named(tmp_path):
    path = write(tmp_path / "x.jsonl", {"input": QUESTION, "output": ANSWER})
    with pytest.raises(UsageError, match="try --map question=input,answer=output; no column looks like 'references'"):
        as_source(path).for_metrics([metric("f1")])


def test_gold_questions_and_answers_alone_ask_for_predictions(tmp_path):
    path = write(tmp_path / "x.jsonl", {"id": "k", "input": QUESTION, "output": [{"answer": GOLD}]})
    with pytest.raises(UsageError, match="it holds gold answers: add a system's with --predictions FILE"):
        as_source(path).for_metrics([metric("f1")])


SPREAD, JOINED = "\n".join(json.dumps(ROW, indent=2) for _ in range(3)), json.dumps(ROW) * 3


@pytest.mark.parametrize(
    ("text", "name"), [(SPREAD, "x.json"), (SPREAD, "x.jsonl"), (SPREAD, "x.txt"), (SPREAD, "x"), (JOINED, "x.json")]
)
def test_objects_one_after_another_are_read_under_any_name(tmp_path, text, name):
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert [(r.id, r.answer) for r in read_records(tmp_path / name)] == [(str(k), ANSWER) for k in (1, 2, 3)]


def test_compressed_files_are_read_or_say_how_to_open_them(tmp_path):
    data = json.dumps(ROW).encode()
    (tmp_path / "x.jsonl.bz2").write_bytes(bz2.compress(data))
    (tmp_path / "x.jsonl.xz").write_bytes(lzma.compress(data))
    assert all(next(read_records(tmp_path / f"x.jsonl.{end}")).answer == ANSWER for end in ("bz2", "xz"))
    table = io.StringIO()
    csv.writer(table).writerows([["answer", "references"], [ANSWER, json.dumps([GOLD, "she"])]])
    (tmp_path / "x.csv.bz2").write_bytes(bz2.compress(table.getvalue().encode()))
    assert next(read_records(tmp_path / "x.csv.bz2")).references == (GOLD, "she")
    for name, said in (("b.jsonl.bz2", "cannot be decompressed"), ("b.jsonl.xz", "cannot be decompressed"),
                       ("b.jsonl.zst", "zstd -dc"), ("b.zip", "unzip -p")):  # fmt: skip
        (tmp_path / name).write_bytes(b"\x00nothing")
        with pytest.raises(UsageError, match=said):
            list(read_records(tmp_path / name))


def test_a_sheet_of_remarks_and_a_title_stand_before_the_records(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.title = "Readme"
    book.active.append(["Version", "2"])
    sheet = book.create_sheet("Data")
    for row in (
        ["Evaluation 2026"],
        [],
        ["Question", "Answer", "Reference", "human.ok"],
        [QUESTION, 1874, 1874.0, "0,5"],
    ):
        sheet.append(row)
    book.save(tmp_path / "x.xlsx")
    (record,) = read_records(tmp_path / "x.xlsx")
    assert (record.answer, record.references, record.human, record.line) == ("1874", ("1874",), {"ok": 0.5}, 4)
    assert sheet_note(tmp_path / "x.xlsx") == "reading sheet 'Data', not 'Readme'"


def test_unicode_text_of_a_german_excel_is_read(tmp_path):
    text = f"Question\tAnswer\tReference\thuman.ok\r\n{QUESTION}\t{ANSWER}\t{GOLD}\t0,5\r\nQ\tA\tB\t1,234\r\n"
    (tmp_path / "x.csv").write_bytes(text.encode("utf-16"))
    source = as_source(tmp_path / "x.csv")
    record, reject = source.read()
    assert record.human == {"ok": 0.5}
    assert "human.ok" in reject.reason and "1,234" in reject.reason


def test_numbers_are_texts_and_nan_is_missing(tmp_path):
    (tmp_path / "x.jsonl").write_text(
        '{"answer": 1874, "references": [1874.0, 3.5], "faithfulness": NaN}\n{"answer": NaN, "references": 7}\n'
    )
    first, second = read_records(tmp_path / "x.jsonl")
    assert (first.answer, first.references) == ("1874", ("1874", "3.5"))
    assert second.answer is None and second.references == ("7",)


def test_passages_of_hotpotqa_are_read_in_both_forms(tmp_path):
    sentences = ["Ann Thorne built the tower.", " It burned."]
    raw = {"question": QUESTION, "context": [["Tower", sentences], ["Sea", ["It is wet."]]]}
    rows = {"question": QUESTION, "context": {"title": ["Tower", "Sea"], "sentences": [sentences, ["It is wet."]]}}
    for record in read_records(write(tmp_path / "x.jsonl", raw, rows)):
        assert record.passages == ("Ann Thorne built the tower. It burned.", "It is wet.")


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"answer": [ANSWER]}, "--map answer=answer.0; if these are references, --map references=answer"),
        ({"question": TURNS}, "--map question=question.-1.content"),
        (
            {"answer": {"value": GOLD, "aliases": []}},
            "with value, aliases: name a part of it, --map answer=answer.PART",
        ),
    ],
)
def test_a_value_that_is_not_a_text_says_which_part_to_name(tmp_path, row, said):
    with pytest.raises(
        UsageError, match=re.escape(f"x.jsonl:1: field '{next(iter(row))}' must be a string, not a")
    ) as told:
        list(read_records(write(tmp_path / "x.jsonl", row)))
    assert said in str(told.value)


def test_a_place_outside_a_list_is_no_column(tmp_path):
    path = write(tmp_path / "x.jsonl", {"messages": TURNS})
    for place in ("-5", "2", "99999999999"):
        with pytest.raises(UsageError, match=f"--map question=messages.{place}.content: no field is called"):
            as_source(path, {"question": f"messages.{place}.content"})


def test_one_id_twice_points_to_the_column_of_the_system(tmp_path):
    path = write(tmp_path / "x.jsonl", *({**ROW, "id": 1, "model": model} for model in "ab"))
    with pytest.raises(
        UsageError, match="duplicate id '1': already on line 1; if 'model' names the system: --map system=model"
    ):
        list(read_records(path))
    assert [r.system for r in read_records(as_source(path, {"system": "model"}))] == ["a", "b"]


def test_a_missing_answer_is_no_vote_for_the_question(tmp_path):
    rows = [{"question": "lighthouse builder", "answer": text, "references": GOLD} for text in (ANSWER, "", None)]
    assert as_source(write(tmp_path / "x.jsonl", *rows)).for_metrics([metric("f1")]).judging == "answer"


def test_a_column_that_was_mapped_is_not_also_recognised(tmp_path):
    """Phoenix calls the retrieved text `reference`."""
    path = write(tmp_path / "x.jsonl", {"question": QUESTION, "answer": ANSWER, "reference": PASSAGE})
    assert next(read_records(path)).references == (PASSAGE,)
    record = next(read_records(as_source(path, {"context": "reference"})))
    assert record.context == PASSAGE and not record.has_references
