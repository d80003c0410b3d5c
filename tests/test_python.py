"""elench from Python: one case, one number, a result to look into."""

import json

import pandas
import pytest

import elench
from elench.errors import Unscored, UsageError

ROWS = [
    {"id": i, "system": s, "answer": a, "references": "the red fox"}
    for i, s, a in [("q1", "careful", "the red fox"), ("q1", "hasty", "a dog"), ("q2", "hasty", "red fox runs")]
]


def test_a_metric_is_a_function_of_text_and_references():
    assert elench.metric("f1")("a red fox", "the red fox") == 1.0
    assert elench.metric("bleu[n=1]")("red fox", ["dog", "red cat"]) == 0.5
    assert elench.metric("answer-leak")("Is it Ann?", answer="Ann") == 0.0
    assert elench.metric("source-overlap")("a b c", context="a b d") == 0.5
    with pytest.raises(Unscored, match="no reference"):
        elench.metric("f1")("a red fox")
    with pytest.raises(UsageError, match="field 'references"):
        elench.metric("f1")("a red fox", [["red fox"]])


def test_a_result_is_indexed_by_metric_id_and_system():
    result = elench.score(ROWS, "f1,em")
    assert result["f1", "q1", "careful"] == 1.0 and result["f1", "q1", "hasty"] == 0.0
    assert result["em", "q2"] == 0.0  # only one system has it
    assert result["q1", "careful"] == {"f1": 1.0, "em": 1.0}
    assert result["em"] == {("q1", "careful"): 1.0, ("q1", "hasty"): 0.0, ("q2", "hasty"): 0.0}
    for key, said in [(("f1", "q1"), "add the system, one of 'careful', 'hasty'"), ("q1", "add the system"),
                      (("f1", "q2", "careful"), "its systems are 'hasty'"), ("bleu", "neither a metric")]:  # fmt: skip
        with pytest.raises(KeyError, match=said):
            result[key]
    assert elench.score(ROWS[:1], "f1")["f1"] == {"q1": 1.0}


def test_the_worst_records_come_first():
    result = elench.score(ROWS, "em,f1")
    worst = result.worst(2, "f1")
    assert (worst[0]["id"], worst[0]["system"], worst[0]["f1"]) == ("q1", "hasty", 0.0)
    assert worst[0]["answer"] == "a dog" and worst[0]["references"] == ["the red fox"] and len(worst) == 2
    assert len(result.worst()) == 3
    with pytest.raises(KeyError, match="not a metric of this result"):
        result.worst(1, "bleu")


def test_tables_columns_and_single_dicts_are_read():
    frame = pandas.DataFrame({"pred": ["x", "y"], "gold": ["x", "x"], "human.ok": [1.0, float("nan")]})
    result = elench.score(frame, "em", map={"answer": "pred", "references": "gold"})
    assert result.values("em") == [1.0, 0.0] and result.records[0].human == {"ok": 1.0}
    assert result.to_pandas()["em"].tolist() == [1.0, 0.0]
    assert elench.score({"answer": "x", "references": ["x", "y"]}, "em").values("em") == [1.0]
    assert elench.score({"answer": ["x", "y"], "references": [["x"], ["x"]]}, "em").values("em") == [1.0, 0.0]
    ragas = [{"user_input": "q?", "response": "x", "reference": "x", "retrieved_contexts": ["c"]}]
    assert elench.score(ragas, "em").values("em") == [1.0]


def test_what_is_judged_is_in_the_result_and_its_signatures():
    row = {"question": "Who sang?", "answer": "Ann", "references": ["Ann"], "context": "Ann sang."}
    result = elench.score([row], "f1")
    assert (
        result.judging == "answer" and "judging answer" in repr(result) and "judging answer" in result.signatures["f1"]
    )
    forced = elench.score([row], "length", judge="question")
    assert forced.values("length") == [2.0]


def test_a_warning_says_when_nothing_could_be_scored():
    with pytest.warns(UserWarning, match="nothing could be scored: f1: empty answer"):
        result = elench.score([{"answer": " ", "references": ["x"]}], "f1")
    assert "unscored because f1: empty answer" in repr(result)


def test_a_zero_is_never_what_cannot_be_compared():
    """rouge-score gives 0 to a perfect one-word answer: there is no bigram to compare."""
    with pytest.warns(UserWarning, match="rouge-2: both texts are shorter than 2 words"):
        assert elench.score([{"answer": "Paris", "references": ["Paris"]}], "rouge-2").values("rouge-2") == [None]


def test_english_metrics_leave_other_languages_unscored():
    row = {
        "question": "Wann wurde der Leuchtturm gebaut?",
        "answer": "Er wurde 1874 gebaut.",
        "references": ["im Jahr 1874"],
    }
    with pytest.warns(UserWarning, match="made for English; this text looks German"):
        assert elench.score([row], "novel-f1").values("novel-f1") == [None]
    assert elench.score([row], "novel-f1", any_language=True).values("novel-f1")[0] > 0
    assert elench.score([row], "f1").values("f1")[0] > 0


def test_one_case_is_judged_with_its_evidence():
    case = elench.judge(question="Who sang?", answer="Ann did", references="Ann", metrics="f1,em,questeval")
    assert case["f1"] == pytest.approx(2 / 3) and case.scores["em"] == 0.0
    assert "questeval judges summary" in case.unscored["questeval"]
    printed = repr(case)
    assert (
        "judging the answer: Ann did" in printed
        and "f1: 0.6667" in printed
        and "Ann" in printed
        and "unscored" in printed
    )
    with pytest.raises(UsageError, match="at least one of"):
        elench.judge(context="only this")


@pytest.mark.embedded
def test_metrics_are_chosen_for_a_case():
    case = elench.judge(question="Who built it?", answer="Ada Marsh", context="Ada Marsh built the lighthouse in 1874.")
    assert list(case.scores) and all(value is not None for value in case.scores.values()), case


def test_without_models_a_case_is_judged_by_words(monkeypatch):
    from elench.engine import scoring
    from elench.errors import MissingModel

    whole = scoring.score

    def score(records, metrics, **options):
        if any(m.roles for m in scoring.parse_metrics(metrics)):
            raise MissingModel("no model here")
        return whole(records, metrics, **options)

    monkeypatch.setattr(scoring, "score", score)
    case = elench.judge(question="Who built it?", answer="Ada Marsh", references="Ada Marsh")
    assert case["novel-f1"] == 1.0 and case["f1"] == 1.0


@pytest.mark.parametrize(
    ("row", "given", "hint"),
    [
        ({"pred": "a fox", "gold": "a fox"}, None, '; try map={"answer": "pred", "references": "gold"}'),
        ({"answer": "a fox", "prediction": "fox"}, None, '; try map={"answer": "prediction", "references": "answer"}'),
        ({"mine": "a fox", "gold": "fox"}, {"answer": "mine"}, '; try map={"answer": "mine", "references": "gold"}'),
        ({"answer": "a fox", "text": "no reference"}, None, ""),
    ],
)
def test_columns_under_other_names_are_suggested_for_map(row, given, hint):
    with pytest.warns(UserWarning, match="nothing could be scored: f1: no") as told:
        elench.score([row], "f1", map=given)
    message = str(told[0].message)
    assert message.endswith(hint) and (bool(hint) == ("try map=" in message))
    if hint:
        assert elench.score([row], "f1", map=json.loads(hint.removeprefix("; try map="))).values("f1") != [None]
