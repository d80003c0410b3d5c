"""MoverScore and the likelihood score by hand on tiny models; every promise of a metric for the three baselines."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

import elench
from elench.models.base import ModelSet
from elench.requests import Continue, Embed, Translate
from elench.testing import check_metric
from tests.tiny import tiny

RECORD = {
    "id": "1",
    "context": "Jane Austen wrote the book in the city.",
    "question": "who wrote the book?",
    "references": ["who is the king of the river?", "who wrote it?"],
    "judge": "question",
}


@pytest.fixture(scope="module")
def models() -> ModelSet:
    return ModelSet({"encoder": str(tiny("bert")), "causal": str(tiny("gpt2")), "seq2seq": str(tiny("bart"))})


SPECS = ["bertscore", "bertscore[part=R,idf=on]", "moverscore", "likelihood", "likelihood[model=seq2seq]"]


@pytest.mark.parametrize("spec", SPECS)
def test_a_metric_keeps_its_promises(spec: str, models: ModelSet) -> None:
    check_metric(spec, models)


def value(spec: str, models: ModelSet, **changed: Any) -> float:
    found = elench.score([{**RECORD, **changed}], [spec], models=models, cache=False)
    return float(found[spec]["1"])


def test_moverscore_of_equally_long_texts_is_the_best_assignment(models: ModelSet) -> None:
    texts = ("king river book", "city austen old")
    own, other = (models["encoder"].answer([Embed(f" {t}")])[0] for t in texts)
    a, b = (v.vectors[1:-1] / np.linalg.norm(v.vectors[1:-1], axis=1, keepdims=True) for v in (own, other))
    assert len(a) == len(b) <= 6
    distances = np.linalg.norm(a[:, None] - b[None], axis=2)
    best = min(np.mean([distances[i, j] for i, j in enumerate(order)]) for order in permutations(range(len(b))))
    found = value("moverscore[idf=off]", models, question=texts[0], references=[texts[1]])
    assert found == pytest.approx(1 - best, abs=1e-5)


def test_pieces_that_all_texts_have_weigh_nothing(models: ModelSet) -> None:
    pairs = [("king", "book"), ("river", "austen"), ("old", "new")]
    records = [{"id": a, "question": f"the {a}", "references": [f"the {b}"], "judge": "question"} for a, b in pairs]
    found = elench.score(records, ["moverscore"], models=models, cache=False)["moverscore"]
    for a, b in pairs:
        x, y = (v.vectors[2] for v in models["encoder"].answer([Embed(f" the {a}"), Embed(f" the {b}")]))
        distance = np.linalg.norm(x / np.linalg.norm(x) - y / np.linalg.norm(y))
        assert found[a] == pytest.approx(1 - distance, abs=1e-5)


def test_equal_texts_score_one_and_the_better_reference_wins(models: ModelSet) -> None:
    for spec in ("bertscore", "moverscore[idf=off]"):
        assert value(spec, models, references=["old river", RECORD["question"]]) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("model", ["causal", "seq2seq"])
def test_each_direction_reads_and_writes_the_right_texts(model: str, models: ModelSet) -> None:
    question, context, references = RECORD["question"], RECORD["context"], RECORD["references"]
    pairs = {
        "faithful": [(context, question)],
        "recall": [(question, r) for r in references],
        "precision": [(r, question) for r in references],
    }
    for direction, read_written in pairs.items():
        asked = [Continue(f"{x}\n", y) if model == "causal" else Translate(str(x), str(y)) for x, y in read_written]
        means = [s.total / len(s.logprobs) for s in models[model].answer(asked)]
        assert value(f"likelihood[direction={direction},model={model}]", models) == pytest.approx(max(means), abs=1e-5)


def test_against_the_context(models: ModelSet) -> None:
    direct = value("bertscore", models, references=[RECORD["context"]])
    assert value("bertscore[against=context]", models, references=[]) == pytest.approx(direct, abs=1e-6)
