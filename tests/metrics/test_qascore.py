"""The fast QAScore against the readable one, in every form; its edges; the papers' own examples."""

import math
import random

import pytest

import quaestor
from quaestor.metrics.qascore import FLOOR, by_word, names_its_answer
from quaestor.models.base import ModelSet
from quaestor.requests import TokenScores
from tests.metrics.second_qascore import SecondQAScore
from tests.tiny import WORDS, tiny

CONTEXT = "jane austen wrote the great old book in the city by the river ."


def items(seed, n):
    rng = random.Random(seed)
    extra = ["Zoë", "3,50", "the", "the", "東京", "(x)", "🍣", "can't", "J."]

    def some(low, high):
        return " ".join(rng.choices(WORDS + extra, k=rng.randint(low, high)))

    return [(some(4, 20), some(2, 8), some(1, 5)) for _ in range(n)]


@pytest.fixture(scope="module")
def models():
    return ModelSet({"masked": str(tiny("roberta-mlm")), "causal": str(tiny("llama"))})


@pytest.fixture(scope="module")
def second():
    return SecondQAScore(tiny("roberta-mlm"), tiny("llama"))


@pytest.mark.parametrize("kind", ["bert-mlm", "roberta-mlm"])
@pytest.mark.parametrize("reduce", ["sum", "mean"])
def test_paper_form_masks_whole_words(kind, reduce):
    made = items(1, 8)
    records = [{"id": str(i), "context": c, "question": q, "answer": a} for i, (c, q, a) in enumerate(made)]
    spec = f"qascore[form=paper,reduce={reduce}]"
    fast = quaestor.score(records, spec, models=ModelSet({"masked": str(tiny(kind))}), cache=False).values(
        "qascore[form=paper]" if reduce == "sum" else spec
    )
    second = SecondQAScore(tiny(kind))
    for value, (c, q, a) in zip(fast, made, strict=True):
        words = second.paper(c, q, a)
        assert value == pytest.approx(sum(words) / (len(words) if reduce == "mean" else 1), abs=1e-4)


@pytest.mark.parametrize("form", ["causal", "gain", "code"])
def test_the_other_forms(form, models, second):
    made = items(2, 8)
    records = [{"id": str(i), "context": c, "question": q, "answer": a} for i, (c, q, a) in enumerate(made)]
    result = quaestor.score(records, f"qascore[form={form}]", models=models, cache=False)
    for value, item in zip(result.values(result.specs[0]), made, strict=True):
        limit = {"limit": 128} if form == "code" else {}
        assert value == pytest.approx(getattr(second, form)(*item, **limit), abs=1e-4)


def test_code_form_keeps_the_last_ids(models, second):
    item = (" ".join(["river"] * 300), "who ?", "the king")
    record = {"id": "1", "context": item[0], "question": item[1], "answer": item[2]}
    (line,) = quaestor.score([record], "qascore[form=code]", models=models, cache=False)
    assert line["scores"]["qascore[form=code]"] == pytest.approx(second.code(*item, limit=128), abs=1e-4)
    assert line["evidence"]["qascore[form=code]"]["tokens cut"] > 0


def test_words_add_up_and_stand_in_the_evidence(models):
    record = {"id": "1", "context": CONTEXT, "question": "who wrote it ?", "answer": "jane austen"}
    (line,) = quaestor.score([record], "qascore[form=causal]", models=models, cache=False)
    words = line["evidence"]["qascore[form=causal]"]["words"]
    assert [w for w, _ in words] == ["jane", "austen"]
    assert sum(v for _, v in words) == pytest.approx(line["scores"]["qascore[form=causal]"], abs=1e-3)


def test_pieces_go_to_their_words():
    scores = TokenScores(("J", ".", " Au", "sten"), ((0, 1), (1, 2), (2, 5), (5, 9)), (-1.0, -2.0, -3.0, -4.0))
    assert by_word("J. Austen", scores) == [("J.", -3.0), ("Austen", -7.0)]


@pytest.mark.parametrize("form", ["paper", "causal", "gain", "code"])
@pytest.mark.parametrize(
    "item",
    [("🍣", "🍣", "🍣"), ("word " * 20_000, "who ?", "jane"), (CONTEXT, "is it so ?", "yes"), (CONTEXT, "x", "not there at all"),
     (CONTEXT, "who ?", "king " * 60)],
    ids=["emoji", "20,000 words", "yes/no", "answer not in the context", "long answer"],
)  # fmt: skip
def test_edges_give_a_number_or_a_reason(form, item, models):
    record = dict(zip(("context", "question", "answer"), item, strict=True)) | {"id": "1"}
    result = quaestor.score([record], f"qascore[form={form}]", models=models, cache=False)
    spec = result.specs[0]
    assert result[spec, "1"] is not None or not result.unscored[spec]["1"].startswith("error:"), result.unscored


@pytest.mark.embedded
def test_the_readers_form_follows_the_question_and_says_when_it_cannot():
    context = "Jack drove his car to the bazaar to purchase milk and honey for his large family."
    rows = [
        {
            "id": "good",
            "context": context,
            "question": "Where did Jack buy his milk and honey?",
            "answer": "the bazaar",
        },
        {"id": "bad", "context": context, "question": "Who needed milk and honey?", "answer": "the bazaar"},
        {"id": "absent", "context": context, "question": "Was Jack rich?", "answer": "no"},
    ]
    rows += [
        {"id": "named", "context": context, "question": "Did Jack buy milk at the bazaar?", "answer": "the bazaar"},
        {"id": "choice", "context": context, "question": "Was it the bazaar or a shop?", "answer": "the bazaar"},
    ]
    for spec in ("qascore", "qascore[form=reader]"):
        result = quaestor.score(rows, spec)
        assert result[spec, "good"] > result[spec, "bad"]
        assert "does not stand in the context" in result.unscored[spec]["absent"]
        assert result[spec, "choice"] > math.log(FLOOR)
    assert quaestor.score(rows[3:4], "qascore")["qascore", "named"] == math.log(FLOOR)
    assert names_its_answer("Is the Bazaar, old?", "the bazaar") and not names_its_answer("Is it bizarre?", "bazaar")
    overlap, exact = (quaestor.score(rows[:1], spec)[spec, "good"] for spec in ("qascore", "qascore[form=reader]"))
    assert exact <= overlap <= 0  # what counts in full counts in part, too
