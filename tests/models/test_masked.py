"""The masked model: each word of the answer recovered, in the paper's form and in the published program's."""

from __future__ import annotations

from typing import Any

import pytest

from elench.errors import Unscored, UsageError
from elench.models.base import ModelSet
from elench.requests import Recover
from tests.tiny import tiny

CONTEXT, QUESTION, ANSWER = "The old king was in the city.", "Who was in the city?", "the old  king"


@pytest.fixture(scope="module", params=["roberta-mlm", "bert-mlm"])
def masked(request: pytest.FixtureRequest) -> Any:
    return ModelSet({"masked": str(tiny(request.param))})["masked"]


def logs(masked: Any, ids: list[int]) -> Any:
    import torch

    with torch.inference_mode():
        return masked.network.model(input_ids=torch.tensor([ids])).logits[0].double().log_softmax(-1)


def test_each_word_is_masked_whole(masked: Any) -> None:
    (found,) = masked.answer([Recover(CONTEXT, QUESTION, ANSWER)])
    assert found.pieces == ("the", "old", "king")
    assert [ANSWER[a:b] for a, b in found.spans] == ["the", "old", "king"]
    context, question, *words = (masked.tokens.ids([f" {t}"])[0] for t in (CONTEXT, QUESTION, *ANSWER.split()))
    cls, sep, mask = masked.tokens.cls, masked.tokens.sep, masked.tokens.mask
    if (
        masked.network.model.config.model_type == "roberta"
    ):  # two blanks: the tokenizer keeps the first as a piece of its own
        assert all(v < 0 for v in found.logprobs)
        return
    before = [cls, *context, sep, *question, sep]
    for w in range(3):
        ids, at = list(before), []
        for k, word in enumerate(words):
            if k == w:
                at = list(range(len(ids), len(ids) + len(word)))
            ids += [mask] * len(word) if k == w else word
        scores = logs(masked, [*ids, sep])
        assert found.logprobs[w] == pytest.approx(
            sum(float(scores[p, t]) for p, t in zip(at, words[w], strict=True)), abs=1e-4
        )


def test_the_published_program_scores_all_positions(masked: Any) -> None:
    (found,) = masked.answer([Recover(CONTEXT, QUESTION, "king", "code")])
    context, question, answer = (masked.tokens.ids([t])[0] for t in (CONTEXT, QUESTION, "king"))
    ids = [*context, masked.separator, *question, masked.separator, *answer]
    expected = []
    for i in range(len(ids) - len(answer), len(ids)):
        scores = logs(masked, [*ids[:i], masked.mask, *ids[i + 1 :]])
        expected.append(sum(float(scores[p, t]) for p, t in enumerate(ids)) / len(ids))
    assert found.logprobs == pytest.approx(expected, abs=1e-5)


def test_no_answer_depends_on_its_batch_and_long_contexts_are_read_in_parts(masked: Any) -> None:
    asked = [
        Recover(CONTEXT, QUESTION, ANSWER),
        Recover(CONTEXT * 20, QUESTION, "city"),
        Recover(CONTEXT * 20, "who?", "king", "code"),
    ]
    together = masked.answer(asked)
    assert together[1].chunks > 1 and together[2].cut > 0
    for request, found in zip(asked, together, strict=True):
        assert masked.answer([request])[0].logprobs == pytest.approx(found.logprobs, abs=1e-5, rel=1e-5)


def test_what_cannot_be_recovered_says_why(masked: Any) -> None:
    for form in ("paper", "code"):
        with pytest.raises(Unscored, match="answer"):
            masked.answer([Recover(CONTEXT, QUESTION, "", form)])
    asked = [Recover(CONTEXT, QUESTION, ""), Recover(CONTEXT, QUESTION, "king")]
    assert sorted(i for group in masked.batches(asked) for i in group) == [0, 1]  # packing never fails
    with pytest.raises(UsageError, match="cannot serve as masked"):  # no head: its weights would be made up
        ModelSet({"masked": str(tiny("bert"))})["masked"]
    with pytest.raises(UsageError, match="masked"):
        ModelSet({"masked": str(tiny("gpt2"))})["masked"]
