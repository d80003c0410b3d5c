"""Classifiers of pairs: what a teacher's probabilities add to the loss."""

from __future__ import annotations

from math import log
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from elench.train.claims import CONTRADICTED, UNSUPPORTED  # noqa: E402
from elench.train.pairs import Encoded, PairEncoder, Teacher, TextPair, pair_loss  # noqa: E402


class Fixed(torch.nn.Module):
    """A classifier that gives each text the same odds."""

    def __init__(self, chances: list[float]) -> None:
        super().__init__()
        self.config = object()
        self.odds = torch.tensor([log(c) for c in chances])

    def forward(self, input_ids: Any, **_: Any) -> Any:
        return type("Out", (), {"logits": self.odds.expand(len(input_ids), -1)})


def encoded(target: float) -> Encoded:
    return Encoded((1, 2, 3), 2, TextPair("a", "b", target))


class Words(PairEncoder):
    def __init__(self) -> None:
        pass

    def __call__(self, pairs: Any) -> list[Encoded]:
        return [Encoded((9, 9, 9, 9), 2, pair) for pair in pairs]


def test_a_class_or_any_but_the_first() -> None:
    model = Fixed([0.5, 0.3, 0.2])
    assert float(pair_loss(model, [encoded(CONTRADICTED)])) == pytest.approx(-log(0.3))
    assert float(pair_loss(model, [encoded(UNSUPPORTED)])) == pytest.approx(-log(0.5))  # 0.3 + 0.2


def test_half_of_the_loss_is_the_teachers() -> None:
    teacher = Teacher(Fixed([0.7, 0.2, 0.1]), Words())
    found = teacher.loss(Fixed([0.5, 0.25, 0.25]), [encoded(CONTRADICTED), encoded(CONTRADICTED)])
    soft = -(0.7 * log(0.5) + 0.3 * log(0.25))
    assert float(found) == pytest.approx((-log(0.25) + soft) / 2, abs=2e-3)  # the teacher answers in bfloat16


def test_a_teacher_of_a_number() -> None:
    class Fixed1(Fixed):
        def __init__(self, chance: float) -> None:
            super().__init__([chance / (1 - chance)])  # the logit of one output

    teacher = Teacher(Fixed1(0.8), Words())
    found = teacher.loss(Fixed1(0.5), [encoded(1.0), encoded(1.0)])
    soft = -(0.8 * log(0.5) + 0.2 * log(0.5))
    assert float(found) == pytest.approx((-log(0.5) + soft) / 2, abs=2e-3)
    sure = teacher.loss(Fixed1(0.9), [encoded(0.0)])
    assert float(sure) == pytest.approx((-log(0.1) - 0.8 * log(0.9) - 0.2 * log(0.1)) / 2, abs=5e-3)
