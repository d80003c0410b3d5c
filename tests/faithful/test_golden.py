"""form=code against the authors' programs, value by value (see README.md for how the values were made)."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import elench
from elench.errors import MissingModel
from elench.models.base import ModelSet
from tests.faithful.checkpoints import checkpoint
from tests.faithful.items import ANSWERS, QUESTION_PAIRS, QUESTIONS, SUMMARIES

GOLDEN: dict[str, Any] = json.loads(Path(__file__).with_name("golden.json").read_text(encoding="utf-8"))
NEAR = 1e-5


@cache
def models() -> ModelSet:
    kinds = {
        "encoder": "bert", "causal": "gpt2", "masked": "roberta-mlm", "keyphrases": "bert-classifier",
        "asker": "t5-qg", "reader": "t5-qa",
    }  # fmt: skip
    return ModelSet({role: str(checkpoint(kind)) for role, kind in kinds.items()})


def scores(records: list[dict[str, Any]], *specs: str) -> Any:
    return elench.score(records, list(specs), models=models(), cache=False)


@pytest.mark.parametrize("name", QUESTIONS)
def test_qrelscore_and_qascore(name: str) -> None:
    context, question, answer = QUESTIONS[name]
    record = {"id": "1", "context": context, "question": question, "answer": answer, "judge": "question"}
    specs = [f"{metric}[form=code]" for metric in ("qrel-lrm", "qrel-grg", "qrelscore", "qascore")]
    result = scores([record], *specs)
    theirs = GOLDEN["qrelscore"][name]
    wanted = [theirs["lrm"], theirs["grg"], theirs["qrelscore"], GOLDEN["qascore"][name]]
    assert [result[spec, "1"] for spec in specs] == pytest.approx(wanted, abs=NEAR)


@pytest.mark.parametrize("question", ["on", "off"])
@pytest.mark.parametrize("name", ANSWERS)
def test_kpqa(name: str, question: str) -> None:
    asked, answer, reference = ANSWERS[name]
    record = {"id": "1", "question": asked, "answer": answer, "references": [reference], "judge": "answer"}
    theirs = GOLDEN["kpqa"][f"question={question}"][name]
    off = ",question=off" if question == "off" else ""
    specs = {metric: f"{metric}[form=code{off}]" for metric in theirs}
    result = scores([record], *specs.values())
    assert {metric: result[spec, "1"] for metric, spec in specs.items()} == pytest.approx(theirs, abs=NEAR)


@pytest.mark.embedded
def test_qsts() -> None:
    records = [
        {"id": str(i), "question": candidate, "references": [reference], "judge": "question"}
        for i, (reference, candidate) in enumerate(QUESTION_PAIRS)
    ]
    specs = ["qsts-names[form=code]", "qsts-edges[form=code]", "qsts[form=code,class=off]"]
    try:
        result = elench.score(records, specs, cache=False)
    except MissingModel as missing:
        pytest.skip(str(missing))
    ours = [[result[spec, str(i)] for spec in specs] for i in range(len(QUESTION_PAIRS))]
    for found, theirs in zip(ours, GOLDEN["qsts"], strict=True):
        assert found == pytest.approx(theirs, abs=NEAR)


@pytest.mark.embedded
@pytest.mark.parametrize("name", SUMMARIES)
def test_questeval(name: str) -> None:
    source, summary = SUMMARIES[name]
    record = {"id": "1", "context": source, "summary": summary, "judge": "summary"}
    outcome = scores([record], "questeval[form=code]").outcomes[0]
    (score,) = outcome.scores.values()
    asked = [row for row in score.evidence["questions"] if row["direction"] == "recall"]
    assert [row["answer"] for row in asked] == GOLDEN["questeval"][name]["answers"]
    assert [row["question"] for row in asked] == GOLDEN["questeval"][name]["questions"]
    assert score.value == pytest.approx(GOLDEN["questeval"][name]["score"], abs=NEAR)
