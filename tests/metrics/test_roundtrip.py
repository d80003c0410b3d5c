"""roundtrip and qa-overlap: the score is what the reading says, and a better question gets a better one."""

from __future__ import annotations

import json
import math

import pytest

import elench
from elench.errors import Unscored
from elench.metrics import metric
from elench.metrics.roundtrip import RoundTrip, names_its_answer
from elench.records.record import Record
from elench.requests import Read, Reading

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
    assert evidence["f1"] == pytest.approx(2 / 3) and value == pytest.approx((0.2 + 0.9 * 2 / 3) / 2)
    assert drive(record("Where was she born?"), reading, "roundtrip[view=p]")[1] == 0.2
    json.dumps(evidence)


def test_a_span_counts_as_far_as_the_reader_believes_in_an_answer() -> None:
    declined = Reading("", None, 0.6, 0.3, gold=0.3, best="Warsaw")
    _, value, evidence = drive(record("Where?"), declined)
    assert value == pytest.approx((0.3 + 0.4) / 2) and evidence["unanswerable"] == 0.6
    unanswerable = Reading("", None, 0.9997, 0.0001, gold=0.0001, best="Warsaw")
    assert drive(record("Where?"), unanswerable)[1] < 0.001


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
    from elench.models.base import ModelSet

    questions = ["Where was Marie Curie born?", "Where did Marie Curie study physics?", "Who painted the ceiling?"]
    model = ModelSet()["reader"]
    readings = model.answer([Read(q, CONTEXT, "Warsaw") for q in questions])
    right, other, unrelated = (RoundTrip().judge_reading(r, "", "Warsaw").value for r in readings)
    assert right > 0.6 and right > other + 0.2 and right > unrelated + 0.2


def test_qa_overlap_is_the_logarithm_of_the_expected_f1() -> None:
    reading = Reading("in Warsaw", (21, 30), 0.1, 0.7, gold=0.2, best="in Warsaw", overlap=0.6)
    assert drive(record("Where was she born?"), reading, "qa-overlap")[1] == pytest.approx(math.log(0.6))
    assert drive(record("Where was she born?"), reading, "qa-overlap[view=probability]")[1] == pytest.approx(
        math.log(0.2)
    )
    nothing = Reading("", None, 1.0, 0.0, gold=0.0, best="1867", overlap=0.0)
    assert drive(record("Where?"), nothing, "qa-overlap")[1] == math.log(1e-6)


def test_qa_overlap_gives_a_question_that_contains_its_answer_the_lowest_score() -> None:
    sure = Reading("Warsaw", (24, 30), 0.0, 0.9, gold=0.9, best="Warsaw", overlap=0.9)
    _, value, evidence = drive(record("Was she born in Warsaw?"), sure, "qa-overlap")
    assert value == math.log(1e-6) and evidence["note"] == "the question contains its answer"
    assert drive(record("Was it Warsaw or Paris?"), sure, "qa-overlap")[1] == pytest.approx(math.log(0.9))
    assert names_its_answer("Is the Bazaar, old?", "the bazaar") and not names_its_answer("Is it bizarre?", "bazaar")


def test_qa_overlap_says_when_the_answer_does_not_occur_in_the_context() -> None:
    steps = metric("qa-overlap").score(record("Was she rich?", "no")).__await__()
    next(steps)
    with pytest.raises(Unscored, match="does not occur in the context"):
        steps.send([Reading("Warsaw", (24, 30), 0.2, 0.5, None, "Warsaw")])


@pytest.mark.embedded
def test_qa_overlap_ranks_the_question_that_asks_for_the_answer_first() -> None:
    jack = "Jack drove his car to the bazaar to purchase milk and honey for his large family."
    questions = ["Where did Jack buy his milk and honey?", "Who needed milk and honey?"]
    records = [{"id": str(i), "context": jack, "question": q, "answer": "the bazaar"} for i, q in enumerate(questions)]
    for spec in ("qa-overlap", "qa-overlap[view=probability]"):
        result = elench.score(records, spec)
        assert result[spec, "0"] > result[spec, "1"]
