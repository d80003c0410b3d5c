"""What a file judges is decided once: by what its references fit, then by what the metrics need."""

import json
import os
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

import elench
from elench.errors import UsageError
from elench.metrics import metric
from elench.records.judging import decide
from elench.records.record import Record, read_records

DATA = Path(os.environ.get("ELENCH_DATA", "../shared/data")) / "judgements"

RAG = {
    "context": "Paris is the capital of France.", "question": "What is the capital of France?", "answer": "Paris",
    "references": ["Paris"],
}  # fmt: skip
ASKED = RAG | {"references": ["Which city is the capital of France?"]}


def records(*rows):
    return [Record.from_object({"id": str(i), **row}) for i, row in enumerate(rows)]


def decided(rows, specs=""):
    return decide(records(*rows), [metric(s) for s in specs.split(",") if s], "in.jsonl")


@pytest.mark.parametrize(
    ("rows", "specs", "judge"),
    [
        ([RAG], "f1", "answer"),
        ([ASKED], "f1", "question"),
        ([RAG | {"answer": "London"}], "", "answer"),
        (
            [ASKED | {"question": "name the capital of france", "references": ["name france's capital city"]}],
            "",
            "question",
        ),
        ([{"summary": "s", "context": "c"}], "rouge-l", "summary"),
        ([{"context": "c", "question": "q?", "answer": "a"}], "qascore,length", "question"),
        ([{"question": "q?", "answer": "a"}], "length[judge=answer]", "answer"),
    ],
)
def test_references_decide_then_metrics(rows, specs, judge):
    assert decided(rows, specs) == judge


@pytest.mark.parametrize(
    ("rows", "specs"),
    [([RAG, ASKED], "f1"), ([{"context": "c", "question": "q?", "answer": "a"}], "length")],
)
def test_what_cannot_be_told_is_one_clear_error(rows, specs):
    with pytest.raises(UsageError, match=r"in\.jsonl: cannot tell .*: add --judge question or --judge answer"):
        decided(rows, specs)


def test_records_that_say_what_they_judge_are_left_alone():
    assert decided([RAG | {"judge": "answer"}, ASKED | {"judge": "question"}], "f1") is None


def test_a_rag_record_has_its_answer_judged_by_every_metric(tmp_path):
    """The bug this replaces: f1 held the question against the answer's references, beside KPQA judging the answer."""
    (tmp_path / "rag.jsonl").write_text(json.dumps(RAG))
    for source in ([RAG], tmp_path / "rag.jsonl"):
        result = elench.score(source, "f1,em,bleu,length")
        assert result["f1"] == {next(iter(result["f1"])): 1.0} and list(result["length"].values()) == [1.0]


@pytest.mark.validation
@pytest.mark.parametrize("name", sorted(path.stem for path in DATA.glob("*.jsonl")) or ["no data"])
def test_every_judgement_file_is_decided_as_its_makers_say(name):
    if not DATA.is_dir():
        pytest.skip("needs the data sets with human ratings: set ELENCH_DATA")
    found = list(islice(read_records(DATA / f"{name}.jsonl"), 1000))
    (judge,) = {record.judge for record in found}
    assert decide([replace(record, judge=None) for record in found], [], name) == judge


def test_a_question_without_its_answer_does_not_make_references_questions():
    """The model gave no answer to one of two questions: answers are judged all the same."""
    rows = [{"question": "When?", "answer": "In 1874", "references": "1874"}, {"question": "Who?", "references": "Ada"}]
    result = elench.score(rows, "f1")
    assert result.judging == "answer" and result["f1"] == {"0": pytest.approx(2 / 3), "1": None}


def test_python_names_its_own_argument_where_it_cannot_decide():
    with pytest.raises(elench.UsageError, match=r'answers or summaries are judged .*: add judge="answer" or judge='):
        elench.score([{"answer": "a b", "summary": "a c"}], "length")


@pytest.mark.parametrize("answer", [{}, {"answer": None}])
def test_answers_under_another_name_are_asked_for_instead_of_judging_the_questions(tmp_path, answer):
    """It used to compare the questions with the gold answers: f1 = 0 for every record, exit code 0."""
    row = {"question": "Who built it?", "Model Answer": "Ada", "references": ["Ada Marsh"], **answer}
    (tmp_path / "in.jsonl").write_text(json.dumps(row))
    with pytest.raises(UsageError, match=r"references are of answers; no record has 'answer'.*'answer=Model Answer'"):
        elench.score(tmp_path / "in.jsonl", "f1")


def test_references_that_repeat_a_question_are_questions_without_a_question_mark():
    assert decided([{"question": "Quem fez isto?", "references": ["quem fez isto"]}], "f1") == "question"


def test_empty_answers_are_unscored_answers(tmp_path):
    (tmp_path / "in.jsonl").write_text(json.dumps({"question": "Who built it?", "answer": "", "references": "Ada"}))
    with pytest.warns(UserWarning, match="empty answer"):
        assert elench.score(tmp_path / "in.jsonl", "f1").judging == "answer"


def test_without_references_each_metric_judges_the_only_text_it_can():
    row = RAG | {"references": None}
    (record,) = records({k: v for k, v in row.items() if v is not None})
    assert metric("support").judged(record) == "answer" and metric("answerable").judged(record) == "question"


def test_retrieval_is_judged_without_an_answer():
    (record,) = records({"question": "Who built it?", "context": "Ada did.", "references": ["Ada"]})
    assert metric("context-recall").missing(record) is None and metric("f1").missing(record) == "answer"
