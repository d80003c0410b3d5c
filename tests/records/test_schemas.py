"""Exports of other tools are recognised, announced and read; gold files join predictions; text files join by line."""

import json
from pathlib import Path

import pytest

from elench.errors import UsageError
from elench.metrics import metric
from elench.records.joining import from_text_files, with_predictions
from elench.records.record import read_records
from elench.records.source import as_source

CONTEXTS = ["The lighthouse was built in 1874.", "It stands on Gull Rock."]
QUESTION, ANSWER, GOLD = "When was the lighthouse built?", "In 1874.", "1874"
SAMPLES = {
    "ragas": {"user_input": QUESTION, "retrieved_contexts": CONTEXTS, "response": ANSWER, "reference": GOLD},
    "ragas (before 0.2)": {"question": QUESTION, "contexts": CONTEXTS, "answer": ANSWER, "ground_truth": GOLD},
    "deepeval": {
        "input": QUESTION, "actual_output": ANSWER, "expected_output": GOLD, "context": None,
        "retrieval_context": CONTEXTS, "source_file": None,
    },
    "SQuAD": {
        "id": "x", "title": "Gull Rock", "context": CONTEXTS, "question": QUESTION, "prediction_text": ANSWER,
        "answers": {"text": [GOLD], "answer_start": [27]},
    },
    "lm-evaluation-harness samples": {
        "doc_id": 0, "doc": {"question": QUESTION, "passage": CONTEXTS}, "target": GOLD,
        "arguments": {"gen_args_0": {"arg_0": f"Q: {QUESTION}\nA:", "arg_1": {"until": ["\n"]}}},
        "resps": [[" In 1874. Or so."]], "filtered_resps": [ANSWER], "filter": "none", "metrics": ["exact_match"],
        "doc_hash": "a", "prompt_hash": "b", "target_hash": "c", "exact_match": 0.0,
    },
    "KILT": {
        "id": "x", "input": QUESTION, "meta": {}, "prediction": ANSWER,
        "output": [{"answer": GOLD, "provenance": [{"title": "Gull Rock"}]}, {"provenance": []}],
    },
    "column names": {"Question": QUESTION, "Answer ": ANSWER, "Reference": GOLD, "CONTEXT": CONTEXTS},
}  # fmt: skip


def write(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", SAMPLES)
def test_known_files_are_recognised(tmp_path, name):
    source = as_source(write(tmp_path / "x.jsonl", SAMPLES[name])).for_metrics([metric("f1"), metric("rouge-l-kpqa")])
    assert source.recognised is not None and source.recognised.name == name
    assert name in source.recognised.announcement()
    (record,) = read_records(source)
    assert (record.question, record.answer, record.references) == (QUESTION, ANSWER, (GOLD,))
    assert name == "KILT" or record.passages == tuple(CONTEXTS)
    assert record.judge == "answer" or source.judging == "answer"


EXPORTS = Path(__file__).parent / "exports"


@pytest.mark.parametrize("path", sorted(EXPORTS.iterdir()), ids=lambda path: path.name)
def test_exports_as_the_libraries_write_them(path):
    """Written by deepeval 4.3.1 (EvaluationDataset.save_as), ragas 0.4.3 (EvaluationDataset.to_jsonl, to_csv) and
    lm-eval 0.4.13 (EvaluationTracker.save_results_samples)."""
    source = as_source(path).for_metrics([metric("f1"), metric("support")])
    first, second = read_records(source)
    assert (first.question, first.answer, first.references) == (QUESTION, ANSWER, (GOLD,))
    assert (second.answer, second.references) == ("A storm built it.", ("Ada Marsh",))
    assert first.passages == tuple(CONTEXTS) or first.context == " ".join(CONTEXTS)
    assert "answer" in (source.judging, first.judge)
    assert source.recognised.name.split("-")[0] in path.name.replace("samples", "lm")


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_what_hugging_face_datasets_writes(tmp_path, ending):
    datasets = pytest.importorskip("datasets")
    row = {k: v for k, v in SAMPLES["SQuAD"].items() if k != "context"} | {"context": " ".join(CONTEXTS)}
    table = datasets.Dataset.from_list([row])
    path = tmp_path / f"x.{ending}"
    write = {"jsonl": table.to_json, "parquet": table.to_parquet, "csv": table.to_csv}[ending]
    write(path)
    (record,) = read_records(path)
    assert (record.question, record.answer, record.references) == (QUESTION, ANSWER, (GOLD,))


def test_a_cell_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "x.csv").write_text("question,context,answers\nq,c,\"{'text': array(['x'}\"\n")
    with pytest.raises(UsageError, match=r"x\.csv:2: field 'answers' cannot be read from this cell"):
        list(read_records(tmp_path / "x.csv"))


def test_values_of_lm_eval_become_peers(tmp_path):
    (record,) = read_records(write(tmp_path / "x.jsonl", SAMPLES["lm-evaluation-harness samples"]))
    assert record.id == "0" and record.peers == {"exact_match": 0.0}


CHOICE = {
    "doc_id": 0, "doc": {"question": "Which is hot?", "choices": ["ice", "sun"], "gold": 1}, "target": "1",
    "arguments": {"gen_args_0": {"arg_0": "Q:", "arg_1": " ice"}, "gen_args_1": {"arg_0": "Q:", "arg_1": " sun"}},
    "resps": [[["-0.109", "False"]], [["-0.551", "False"]]], "filtered_resps": [["-0.109", "False"], ["-0.551", "False"]],
    "filter": "none", "metrics": ["acc"], "acc": 0.0,
}  # fmt: skip
"""A sample of a multiple-choice task as lm-eval 0.4 writes it (model: dummy)."""


def test_multiple_choice_of_lm_eval_is_the_likeliest_choice_not_its_likelihood(tmp_path):
    older = {**CHOICE, "doc_id": 1, "target": 1, "arguments": [["Q:", " ice"], ["Q:", " sun"]],
             "resps": [[[-2.0, False]], [[-0.5, True]]], "filtered_resps": [[-2.0, False], [-0.5, True]]}  # fmt: skip
    wrong, right = read_records(write(tmp_path / "x.jsonl", CHOICE, older))
    assert (wrong.answer, wrong.references) == ("ice", ("sun",)) and wrong.peers == {"acc": 0.0}
    assert (right.answer, right.references) == ("sun", ("sun",))


def test_a_single_continuation_of_lm_eval_is_an_answer_only_where_greedy_decoding_gives_it(tmp_path):
    one = {**CHOICE, "target": "mat", "arguments": [["The cat sat on the", " mat"]], "resps": [[[-2.0, False]]]}
    rows = [{**one, "doc_id": k, "filtered_resps": [[-2.0, greedy]]} for k, greedy in enumerate((False, True))]
    unknown, known = read_records(write(tmp_path / "x.jsonl", *rows))
    assert unknown.answer is None and (known.answer, known.references) == ("mat", ("mat",))


@pytest.mark.parametrize("column", ["model_answer", "answer", "prediction", "what it said"])
def test_a_column_with_predictions_makes_the_gold_answers_references(tmp_path, column):
    row = {k: v for k, v in SAMPLES["SQuAD"].items() if k != "prediction_text"} | {column: ANSWER}
    mapping = {"answer": column} if " " in column else {}
    (record,) = read_records(as_source(write(tmp_path / "x.jsonl", row), mapping))
    assert (record.answer, record.references, record.judge) == (ANSWER, (GOLD,), "answer")


def test_gold_answers_alone_ask_for_predictions(tmp_path):
    row = {k: v for k, v in SAMPLES["SQuAD"].items() if k != "prediction_text"}
    with pytest.raises(UsageError, match=r"holds gold answers: add a system's with --predictions FILE"):
        as_source(write(tmp_path / "x.jsonl", row)).for_metrics([metric("f1")])


def test_repeated_names_of_deepeval_cases_are_not_ids(tmp_path):
    row = {"name": "faq", "input": QUESTION, "actual_output": ANSWER}
    assert [r.id for r in read_records(write(tmp_path / "x.jsonl", row, row))] == ["1", "2"]
    other = {**row, "name": "price"}
    assert [r.id for r in read_records(write(tmp_path / "y.jsonl", row, other))] == ["faq", "price"]


def test_deepeval_cases_in_camel_case_and_with_a_gold_context_only(tmp_path):
    row = {"input": QUESTION, "actualOutput": ANSWER, "expectedOutput": GOLD, "context": CONTEXTS}
    (record,) = read_records(write(tmp_path / "x.jsonl", row))
    assert record.answer == ANSWER and record.references == (GOLD,) and record.passages == tuple(CONTEXTS)


def test_squad_without_predictions_is_for_question_generation(tmp_path):
    row = {k: v for k, v in SAMPLES["SQuAD"].items() if k != "prediction_text"}
    (record,) = read_records(write(tmp_path / "x.jsonl", row))
    assert record.answer == GOLD and not record.references and record.guess_judge() == "question"


def test_elench_names_are_left_alone(tmp_path):
    row = {"question": QUESTION, "answer": ANSWER, "references": [GOLD], "reference": "other", "input": "kept"}
    source = as_source(write(tmp_path / "x.jsonl", row))
    (record,) = read_records(source)
    assert source.recognised is None and record.references == (GOLD,)
    assert record.extra == {"reference": "other", "input": "kept"}


def test_a_column_of_the_wrong_kind_is_named_as_in_the_file(tmp_path):
    row = {**SAMPLES["ragas"], "user_input": [{"content": "hi", "type": "human"}]}
    path = write(tmp_path / "x.jsonl", SAMPLES["ragas"], row)
    with pytest.raises(
        UsageError,
        match=r"x\.jsonl:2: field 'question' must be a string, not a list: .*--map question=user_input\.-1\.content",
    ):
        list(read_records(path))


SQUAD = {
    "version": "1.1",
    "data": [{"title": "T", "paragraphs": [{"context": "Ann sang in Rome.", "qas": [
        {"id": "q1", "question": "Who sang?", "answers": [{"text": "Ann", "answer_start": 0}] * 2},
        {"id": "q2", "question": "Where did Ann sing?", "answers": [{"text": "Rome", "answer_start": 12}]},
    ]}]}],
}  # fmt: skip


@pytest.mark.parametrize(
    "predictions",
    [
        {"q1": "Ann", "q2": "in Paris"},
        [
            {"id": "q1", "prediction_text": "Ann", "no_answer_probability": 0.1},
            {"id": "q2", "prediction_text": "in Paris"},
        ],
        [{"id": "q1", "output": [{"answer": "Ann"}]}, {"id": "q2", "output": [{"answer": "in Paris"}]}],
    ],
)
def test_a_squad_file_takes_a_predictions_file(tmp_path, predictions):
    (tmp_path / "squad.json").write_text(json.dumps(SQUAD))
    (tmp_path / "pred.json").write_text(json.dumps(predictions))
    joined = with_predictions(as_source(tmp_path / "squad.json"), tmp_path / "pred.json")
    found = list(read_records(joined))
    assert [(r.id, r.answer, r.references, r.judge) for r in found] == [
        ("q1", "Ann", ("Ann",), "answer"),
        ("q2", "in Paris", ("Rome",), "answer"),
    ]
    assert found[0].context == "Ann sang in Rome." and str(joined).endswith("pred.json")


@pytest.mark.parametrize(
    ("predictions", "said"),
    [
        ({"q1": "Ann"}, r"1 of 2 records of .*squad\.json have no prediction, such as 'q2'"),
        ({"other": "Ann"}, r"no id of this file \(such as 'other'\) is in"),
        ({"q1": 3}, "q1: the prediction must be a string"),
        ([{"id": "q1", "text": "Ann"}], r"pred\.json:1: needs an id and a prediction; fields found: id, text"),
    ],
)
def test_predictions_that_do_not_fit_are_named(tmp_path, predictions, said):
    (tmp_path / "squad.json").write_text(json.dumps(SQUAD))
    (tmp_path / "pred.json").write_text(json.dumps(predictions))
    with pytest.raises(UsageError, match=said):
        with_predictions(as_source(tmp_path / "squad.json"), tmp_path / "pred.json")


def lines(path, *texts):
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return path


def test_text_files_join_by_line(tmp_path):
    hyp = lines(tmp_path / "hyp.txt", "a cat", "", "a\u2028dog")
    refs = [lines(tmp_path / "r1.txt", "the cat", "x", "dog"), lines(tmp_path / "r2.txt", "cat", "y", "dogs")]
    source = from_text_files(hyp, refs, lines(tmp_path / "src.txt", "s1", "s2", "s3"))
    first, second, third = read_records(source)
    assert (first.summary, first.references, first.context) == ("a cat", ("the cat", "cat"), "s1")
    assert second.summary == "" and third.summary == "a\u2028dog"
    assert str(source) == str(hyp) and source.judging == "summary"
    assert next(iter(read_records(from_text_files(hyp, refs)))).answer == "a cat"


def test_text_files_of_different_length_are_refused(tmp_path):
    hyp, ref = lines(tmp_path / "hyp.txt", "a", "b"), lines(tmp_path / "ref.txt", "a")
    with pytest.raises(UsageError, match=r"different numbers of lines: .*hyp\.txt 2, .*ref\.txt 1"):
        from_text_files(hyp, [ref])
    with pytest.raises(UsageError, match=r"none\.txt: no such file"):
        from_text_files(hyp, [tmp_path / "none.txt"])


def test_an_empty_prediction_is_a_prediction(tmp_path):
    """SQuAD v2's programs say "no answer" with an empty text; such a row was read as question generation."""
    row = {"id": "q", "context": "c", "question": "Who?", "answers": {"text": [], "answer_start": []}, "prediction": ""}
    (tmp_path / "in.jsonl").write_text(json.dumps(row))
    (record,) = as_source(tmp_path / "in.jsonl").read()
    assert (record.answer, record.judge) == ("", "answer")


def test_an_output_that_is_text_is_not_kilt(tmp_path):
    (tmp_path / "in.jsonl").write_text(json.dumps({"id": 1, "input": "Who?", "output": "Ada", "reference": "Ada"}))
    assert as_source(tmp_path / "in.jsonl").recognised.name == "column names"
