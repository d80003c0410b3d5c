"""The fast QAScore against the readable one, in every form; its edges; the papers' own examples."""

import random

import pytest

import elench
from elench.errors import UsageError
from elench.metrics import metric
from elench.metrics.qascore import by_word
from elench.models.base import ModelSet
from elench.models.catalog import family_entry
from elench.requests import TokenScores
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
    spec = "qascore" if reduce == "sum" else "qascore[reduce=mean]"
    fast = elench.score(records, spec, models=ModelSet({"masked": str(tiny(kind))}), cache=False).values(spec)
    second = SecondQAScore(tiny(kind))
    for value, (c, q, a) in zip(fast, made, strict=True):
        words = second.paper(c, q, a)
        assert value == pytest.approx(sum(words) / (len(words) if reduce == "mean" else 1), abs=1e-4)


@pytest.mark.parametrize("form", ["causal", "code"])
def test_the_other_forms(form, models, second):
    made = items(2, 8)
    records = [{"id": str(i), "context": c, "question": q, "answer": a} for i, (c, q, a) in enumerate(made)]
    result = elench.score(records, f"qascore[form={form}]", models=models, cache=False)
    for value, item in zip(result.values(result.specs[0]), made, strict=True):
        limit = {"limit": 128} if form == "code" else {}
        assert value == pytest.approx(getattr(second, form)(*item, **limit), abs=1e-4)


def test_code_form_keeps_the_last_ids(models, second):
    item = (" ".join(["river"] * 300), "who ?", "the king")
    record = {"id": "1", "context": item[0], "question": item[1], "answer": item[2]}
    (line,) = elench.score([record], "qascore[form=code]", models=models, cache=False)
    assert line["scores"]["qascore[form=code]"] == pytest.approx(second.code(*item, limit=128), abs=1e-4)
    assert line["evidence"]["qascore[form=code]"]["tokens cut"] > 0


def test_words_add_up_and_stand_in_the_evidence(models):
    record = {"id": "1", "context": CONTEXT, "question": "who wrote it ?", "answer": "jane austen"}
    (line,) = elench.score([record], "qascore[form=causal]", models=models, cache=False)
    words = line["evidence"]["qascore[form=causal]"]["words"]
    assert [w for w, _ in words] == ["jane", "austen"]
    assert sum(v for _, v in words) == pytest.approx(line["scores"]["qascore[form=causal]"], abs=1e-3)


def test_pieces_go_to_their_words():
    scores = TokenScores(("J", ".", " Au", "sten"), ((0, 1), (1, 2), (2, 5), (5, 9)), (-1.0, -2.0, -3.0, -4.0))
    assert by_word("J. Austen", scores) == [("J.", -3.0), ("Austen", -7.0)]


@pytest.mark.parametrize("form", ["paper", "causal", "code"])
@pytest.mark.parametrize(
    "item",
    [("🍣", "🍣", "🍣"), ("word " * 20_000, "who ?", "jane"), (CONTEXT, "is it so ?", "yes"), (CONTEXT, "x", "not there at all"),
     (CONTEXT, "who ?", "king " * 60)],
    ids=["emoji", "20,000 words", "yes/no", "answer not in the context", "long answer"],
)  # fmt: skip
def test_edges_give_a_number_or_a_reason(form, item, models):
    record = dict(zip(("context", "question", "answer"), item, strict=True)) | {"id": "1"}
    result = elench.score([record], f"qascore[form={form}]", models=models, cache=False)
    spec = result.specs[0]
    assert result[spec, "1"] is not None or not result.unscored[spec]["1"].startswith("error:"), result.unscored


def test_the_mean_divides_the_sum_of_word_log_probabilities_by_the_words(models):
    record = {"id": "1", "context": CONTEXT, "question": "who wrote it ?", "answer": "jane austen , she did"}
    for form in ("paper", "causal"):
        total, mean = (
            elench.score([record], f"qascore[form={form},reduce={r}]", models=models, cache=False).outcomes[0]
            for r in ("sum", "mean")
        )
        (score,), (average,) = total.scores.values(), mean.scores.values()
        assert average.value == pytest.approx(score.value / 5) and len(score.evidence["words"]) == 5
    with pytest.raises(UsageError, match="reduce does not apply"):
        metric("qascore[form=code,reduce=mean]")


@pytest.mark.embedded
def test_the_shipped_masked_model_scores_every_word_of_the_answer():
    record = {"id": "1", "context": CONTEXT, "question": "who wrote it ?", "answer": "jane austen"}
    (line,) = elench.score([record], "qascore")
    words = line["evidence"]["qascore"]["words"]
    assert [word for word, _ in words] == ["jane", "austen"] and all(logprob < 0 for _, logprob in words)
    assert line["scores"]["qascore"] == pytest.approx(sum(logprob for _, logprob in words), abs=1e-4)  # eq. 12


SAINT_MIHIEL = (
    "The Battle of Saint-Mihiel was a major World War I battle fought from 12-15 September 1918, involving the American "
    "Expeditionary Force (AEF) and 110,000 French troops under the command of General John J. Pershing of the United "
    "States against German positions. John Joseph Pershing was a senior United States Army officer. His most famous post "
    "was when he served as the commander of the American Expeditionary Force (AEF) on the Western Front in World War I."
)
"""Written after Figure 3 of the paper, whose picture of the passage is not in its text."""


@pytest.mark.embedded
def test_section_3_2_the_question_that_asks_for_the_answer_makes_it_more_probable():
    """Inequality (7): P(q1 | p, a) > P(q2 | p, a), with the paper's answer and its two questions."""
    answer = "commander of the American Expeditionary Force (AEF) on the Western Front"
    questions = [
        "What was the most famous post of the man who commanded American and French troops against German positions "
        "during the Battle of Saint-Mihiel?",
        "What was the Battle of Saint-Mihiel?",
    ]
    records = [
        {"id": str(i), "context": SAINT_MIHIEL, "question": q, "answer": answer} for i, q in enumerate(questions)
    ]
    specs = ["qascore[form=causal]"] + (["qascore"] if family_entry("masked", "embedded") else [])
    result = elench.score(records, specs)
    for spec in specs:
        assert result[spec, "0"] > result[spec, "1"], spec
