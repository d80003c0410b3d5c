"""roundtrip: the score is what the reading says, and a better question gets a better one."""

from __future__ import annotations

import json

import pytest

from quaestor.errors import Unscored
from quaestor.metrics import metric
from quaestor.metrics.roundtrip import RoundTrip
from quaestor.records import Record
from quaestor.requests import Read, Reading

CONTEXT = "Marie Curie was born in Warsaw in 1867. She moved to Paris in 1891 to study physics."


def drive(record: Record, reading: Reading, spec: str = "roundtrip") -> tuple[Read, float, dict[str, object]]:
    """Run the metric as the engine does, with this reading for an answer."""
    steps = metric(spec).score(record).__await__()
    (request,) = next(steps)
    assert isinstance(request, Read)
    with pytest.raises(StopIteration) as done:
        steps.send([reading])
    return request, done.value.value.value, dict(done.value.value.evidence)


def record(question: str, answer: str = "Warsaw") -> Record:
    return Record(id="1", context=CONTEXT, question=question, answer=answer, judge="question")


def test_score_is_the_mean_of_probability_and_f1() -> None:
    reading = Reading("in Warsaw", (21, 30), 0.1, 0.7, gold=0.2, best="in Warsaw")
    request, value, evidence = drive(record("Where was she born?"), reading)
    assert request == Read("Where was she born?", CONTEXT, gold="Warsaw")
    assert evidence["f1"] == pytest.approx(2 / 3) and value == pytest.approx((0.2 + 2 / 3) / 2)
    assert drive(record("Where was she born?"), reading, "roundtrip[view=p]")[1] == 0.2
    json.dumps(evidence)


def test_best_span_counts_even_where_no_answer_is_likelier() -> None:
    declined = Reading("", None, 0.6, 0.3, gold=0.3, best="Warsaw")
    _, value, evidence = drive(record("Where?"), declined)
    assert value == pytest.approx(0.65) and evidence["unanswerable"] == 0.6


def test_an_answer_that_is_not_in_the_context_has_no_probability() -> None:
    _, value, evidence = drive(record("Where?", "Vienna"), Reading("Warsaw", (24, 30), 0.2, 0.5, None, "Warsaw"))
    assert value == 0.0 and evidence["answer_in_context"] is False


@pytest.mark.parametrize("field", ["context", "question", "answer"])
def test_a_blank_field_is_a_reason(field: str) -> None:
    blank = Record(
        **{"id": "1", "context": CONTEXT, "question": "Where?", "answer": "Warsaw", "judge": "question", field: " "}
    )
    with pytest.raises(Unscored, match=f"empty {field}"):
        next(RoundTrip().score(blank).__await__())


@pytest.mark.embedded
def test_the_right_question_beats_a_wrong_one() -> None:
    pytest.importorskip("torch")
    from quaestor.models.base import ModelSet

    questions = ["Where was Marie Curie born?", "Where did Marie Curie study physics?", "Who painted the ceiling?"]
    model = ModelSet()["reader"]
    readings = model.answer([Read(q, CONTEXT, "Warsaw") for q in questions])
    right, other, unrelated = (RoundTrip().join(r, "Warsaw").value for r in readings)
    assert right > 0.6 and right > other + 0.2 and right > unrelated + 0.2
