"""What an outside tester found: rankings turned round, texts cut without a word, one bad reference that spoils all."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import elench
from elench.errors import Unscored, UsageError
from elench.metrics import metric
from elench.metrics.base import Score
from elench.metrics.qrelscore import power_mean, rescaled
from elench.models.base import ModelSet
from elench.requests import attempt, together, whichever
from tests.tiny import tiny

CONTEXT = "jane austen wrote the great old book in the city by the river ."


@pytest.fixture(scope="module")
def models() -> ModelSet:
    return ModelSet({"encoder": str(tiny("bert")), "causal": str(tiny("llama"))})


@pytest.mark.parametrize("baseline", [-0.2, 0.4, 1.0, 1.5, 40.0])
def test_rescaling_never_turns_a_ranking_round(baseline: float) -> None:
    values = [rescaled(v, baseline) for v in (0.0, 0.5, 1.2, 3.0, 50.0)]
    assert values == sorted(values) and len(set(values)) == 5


def test_a_high_power_does_not_underflow() -> None:
    assert power_mean([0.1, 0.2], 1000) == pytest.approx(0.2, rel=1e-2)
    assert power_mean([-0.1, -0.2], 2) == 0.0


def test_a_parameter_prints_what_it_is() -> None:
    for spec in ("qrel-lrm[p=1.00000001]", "rouge-l-kpqa[beta=0.1234567]", "qrel-lrm[p=2]"):
        assert str(metric(spec)) == spec and metric(str(metric(spec))) == metric(spec)


@pytest.mark.parametrize("spec", ["qrel-lrm[layers=²]", "rouge-l-kpqa[beta=inf]", "rouge-l-kpqa[beta=1e200]"])
def test_bad_parameters_are_refused(spec: str) -> None:
    with pytest.raises(UsageError):
        metric(spec)


def test_one_bad_reference_spares_the_others(models: ModelSet) -> None:
    record = {"id": "r", "judge": "question", "context": CONTEXT, "question": "who wrote the book ?"}
    for spec in ("ref-qrelscore[form=code]", "bertscore"):
        good, mixed = (
            elench.score([{**record, "references": references}], spec, models=models, cache=False)
            for references in (["who wrote it ?"], ["\u200b", "?", "who wrote it ?"])
        )
        assert mixed[spec, "r"] is not None and mixed[spec, "r"] >= good[spec, "r"] - 1e-6


def test_what_is_left_of_several() -> None:
    async def gives(value: float) -> Score:
        return Score(value)

    async def fails(why: str) -> Score:
        raise Unscored(why)

    def run(awaitable: Any) -> Any:
        try:
            awaitable.send(None)
        except StopIteration as done:
            return done.value

    places, found = run(whichever(fails("a"), gives(1.0), fails("b"), gives(2.0)))
    assert places == (1, 3) and [s.value for s in found] == [1.0, 2.0]
    with pytest.raises(Unscored, match="a"):
        run(whichever(fails("a"), fails("b")))
    assert str(run(attempt(fails("why")))) == "why"

    async def one_of_two() -> Any:
        return await together(fails("first"), gives(1.0))

    with warnings.catch_warnings(), pytest.raises(Unscored):
        warnings.simplefilter("error")  # the second is closed, not forgotten
        run(one_of_two())


def test_evidence_names_the_layers_that_count_and_the_confidence(models: ModelSet) -> None:
    record = {"id": "r", "judge": "question", "context": CONTEXT, "question": "who wrote the book ?"}
    specs = ["qrel-lrm[layers=2]", "qrel-grg[form=code]"]
    (line,) = elench.score([record], specs, models=models, cache=False)
    assert set(line["evidence"][specs[0]]["layers"]) == {"2"}
    assert {match[3] for match in line["evidence"][specs[0]]["matches"]} == {2}
    ((_, before, after),) = line["evidence"][specs[1]]["gains"]
    assert 0 < before < 1 and 0 < after < 1


def test_a_long_context_says_how_much_was_cut(models: ModelSet) -> None:
    spec = "qascore[form=causal]"
    record = {"id": "r", "judge": "question", "context": CONTEXT * 300, "question": "who ?", "answer": "jane"}
    (line,) = elench.score([record], spec, models=models, cache=False)
    assert line["evidence"][spec]["tokens cut"] > 0


@pytest.mark.embedded
@pytest.mark.parametrize(
    ("context", "answer"),
    [
        ("The Rhine rises in the Swiss\nAlps.", "the Swiss Alps"),
        ("The Rhine rises in the Swiss  Alps.", "the Swiss Alps"),
        ("It was the king’s castle.", "the king's castle"),
        ("The house cost US$5 million in May.", "$5 million"),
        ("The war of 1914–1918 was long.", "1914-1918"),
        ("莱茵河发源于瑞士阿尔卑斯山。", "瑞士阿尔卑斯山"),
        ("Word of it " + " ".join(f"w{i}" for i in range(45)) + " ends here.", " ".join(f"w{i}" for i in range(45))),
    ],
)
def test_an_answer_is_found_however_it_is_written(context: str, answer: str) -> None:
    record = {"id": "r", "judge": "question", "context": context, "question": "What does it say?", "answer": answer}
    (line,) = elench.score([record], ["qa-overlap", "roundtrip"], any_language=True)
    assert line["evidence"]["roundtrip"]["answer_in_context"] and line["scores"]["qa-overlap"] <= 0
    assert 0 <= line["evidence"]["qa-overlap"]["probability"] <= 1


@pytest.mark.embedded
def test_what_a_reader_cannot_read_is_unscored() -> None:
    rows = [
        {"id": "long", "context": CONTEXT, "question": "who wrote " * 100, "answer": "jane"},
        {"id": "mute", "context": CONTEXT, "question": "Who wrote?", "answer": "..."},
        {"id": "blank", "context": CONTEXT, "question": "\u200b\u200b", "answer": "jane"},
    ]
    told = elench.score(rows, "roundtrip").unscored["roundtrip"]
    assert "200 words" in told["long"] and "no word" in told["mute"] and "empty question" in told["blank"]
