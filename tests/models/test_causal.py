"""The causal model's answers: the plain log-probabilities, however the requests were packed."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elench.models.base import ModelSet
from elench.models.sharing import alike, lay_out, share
from elench.requests import Continue
from tests.tiny import tiny

PASSAGE = "Jane Austen wrote the great old book in the city by the river."


@pytest.fixture(scope="module", params=["gpt2", "llama"])
def causal(request: pytest.FixtureRequest) -> Any:
    return ModelSet({"causal": str(tiny(request.param))})["causal"]


def plain(causal: Any, prefix: str, target: str, end: bool = False) -> list[float]:
    """One sequence at a time through transformers' own model."""
    import torch

    before, after = (causal.tokens.ids([t])[0] for t in (prefix, target))
    ids = [0, *before, *after, *([0] if end else [])]
    with torch.inference_mode():
        logs = causal.network.model(torch.tensor([ids])).logits[0].double().log_softmax(-1)
    return [float(logs[i - 1, ids[i]]) for i in range(1 + len(before), len(ids))]


def test_many_targets_on_one_passage_get_the_plain_numbers(causal: Any) -> None:
    targets = [" who wrote it?", " when?", " where was the king?", " who was the king in the city?", ""]
    asked = [Continue(PASSAGE, t) for t in targets] + [Continue("", PASSAGE, end=True), Continue("who?", PASSAGE)]
    (together, *rest) = causal.batches(asked)
    assert not rest and sorted(together) == list(range(len(asked)))
    for request, found in zip(asked, causal.answer(asked), strict=True):
        expected = plain(causal, request.prefix, request.target, request.end)
        assert found.logprobs == pytest.approx(expected, abs=1e-5, rel=1e-5)
        assert len(found.pieces) == len(found.spans) == len(expected)
        assert "".join(request.target[a:b] for a, b in found.spans) == request.target.replace(" ", "")
        assert causal.answer([request])[0].logprobs == pytest.approx(found.logprobs, abs=1e-5, rel=1e-5)


def test_questions_inside_the_prompt_share_the_passage_too(causal: Any) -> None:
    asked = [
        Continue(f"{PASSAGE} {q}?", f" {a}") for q in ("who", "when", "where was it") for a in ("jane", "the city")
    ]
    rows = share([text.parts[0][0] for text in causal._texts(asked)], 1024)
    assert len(rows) == 1 and rows[0].common > 16
    for request, found in zip(asked, causal.answer(asked), strict=True):
        assert found.logprobs == pytest.approx(plain(causal, request.prefix, request.target), abs=1e-5, rel=1e-5)


def test_a_long_target_is_scored_whole_in_parts(causal: Any) -> None:
    target = " ".join([PASSAGE] * 20)
    (found,) = causal.answer([Continue("who?", target)])
    assert len(found.logprobs) == len(causal.tokens.ids([target])[0]) > 2 * causal.window
    assert found.chunks > 2 and found.cut == 0
    room = causal.window - 1 - len(causal.tokens.ids(["who?"])[0])
    head = target[: found.spans[room - 1][1]]
    assert found.logprobs[:room] == pytest.approx(plain(causal, "who?", head), abs=1e-5, rel=1e-5)


def test_a_long_prefix_is_cut_from_the_left_and_says_so(causal: Any) -> None:
    prefix = " ".join([PASSAGE] * 20)
    (found,) = causal.answer([Continue(prefix, " when?")])
    n, kept = len(causal.tokens.ids([prefix])[0]), causal.window - 1 - len(found.pieces)
    assert found.cut == n - kept > 0


def test_a_model_with_more_between_state_and_logits_is_asked_whole(causal: Any) -> None:
    (before,) = causal.answer([Continue(PASSAGE, " when?")])
    head, causal.network.head = causal.network.head, None
    try:
        assert head is not None
        assert causal.answer([Continue(PASSAGE, " when?")])[0].logprobs == pytest.approx(before.logprobs, abs=1e-5)
    finally:
        causal.network.head = head


@given(st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=40).map(tuple), max_size=12))
def test_rows_hold_every_sequence_once(paths: list[tuple[int, ...]]) -> None:
    rows = share(paths, 60)
    assert sorted(m for row in rows for m in row.members) == list(range(len(paths)))
    for row in rows:
        layout = lay_out(row, paths)
        assert len(layout.ids) == row.length
        assert len(row.members) == 1 or row.length <= 60
        for m, member in enumerate(row.members):
            own = layout.ids[layout.starts[m] :][: len(paths[member]) - row.common]
            assert (*layout.ids[: row.common], *own) == paths[member]
        assert all(alike(paths[a], paths[b]) >= row.common for a, b in pairwise(row.members))
