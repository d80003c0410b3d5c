"""The sequence-to-sequence model: BARTScore's numbers, and greedy writing that no batch changes."""

from __future__ import annotations

from typing import Any

import pytest

from elench.models.base import ModelSet
from elench.requests import Generate, Translate
from tests.tiny import tiny

SOURCE, TARGET = "jane austen wrote the great old book in the city", "jane austen wrote it"


@pytest.fixture(scope="module", params=["t5", "bart"])
def seq2seq(request: pytest.FixtureRequest) -> Any:
    return ModelSet({"seq2seq": str(tiny(request.param))})["seq2seq"]


def test_log_probabilities_are_the_models_own_loss(seq2seq: Any) -> None:
    import torch

    (found,) = seq2seq.answer([Translate(SOURCE, TARGET)])
    source, target = (seq2seq.tokenizer(t, return_tensors="pt")["input_ids"] for t in (SOURCE, TARGET))
    with torch.inference_mode():
        loss = seq2seq.model(input_ids=source, labels=target).loss
    assert len(found.logprobs) == target.shape[1] == len(found.pieces)
    assert -found.total / len(found.logprobs) == pytest.approx(float(loss), abs=1e-5)


def test_no_answer_depends_on_its_batch(seq2seq: Any) -> None:
    asked = [
        Translate(SOURCE, TARGET),
        Translate("who?", SOURCE),
        Translate(SOURCE, "x"),
        Generate(SOURCE, 8),
        Generate("a", 8),
    ]
    assert sorted(i for group in seq2seq.batches(asked) for i in group) == [0, 1, 2, 3, 4]
    for request, found in zip(asked, seq2seq.answer(asked), strict=True):
        (alone,) = seq2seq.answer([request])
        if isinstance(request, Generate):
            assert alone == found
        else:
            assert alone.logprobs == pytest.approx(found.logprobs, abs=1e-5)


def test_long_texts_are_scored_whole_and_cuts_are_counted(seq2seq: Any) -> None:
    long = " ".join([SOURCE] * 150)
    (found,) = seq2seq.answer([Translate(long, long)])
    n = len(seq2seq.tokenizer(long)["input_ids"])
    assert len(found.logprobs) == n > seq2seq.window
    assert found.chunks == -(-n // seq2seq.window) and found.cut == n - seq2seq.window


def test_greedy_writing_is_what_transformers_writes(seq2seq: Any) -> None:
    coded = seq2seq.tokenizer(SOURCE, return_tensors="pt")
    inputs = {k: coded[k] for k in ("input_ids", "attention_mask")}
    out = seq2seq.model.generate(**inputs, max_new_tokens=8, do_sample=False, num_beams=1)
    expected = seq2seq.tokenizer.decode(out[0], skip_special_tokens=True).strip()
    assert seq2seq.answer([Generate(SOURCE, 8)]) == [expected]
