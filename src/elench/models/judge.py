"""The judge: a language model that chooses between options after a prompt. Here: any causal model, read locally.

The embedded one, SmolLM2 with 135 million parameters, is weak: it follows instructions poorly and its choices agree
little with people's. `--model judge=URL` brings a better one; `elench certify` says how good it is.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from elench.models import causal
from elench.models.base import Identity, Model, ModelChoice
from elench.requests import Choice, Choose, Continue

TEMPLATE = "<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n"
"""ChatML, which SmolLM2 and Qwen2.5 were trained with."""


class LocalJudge(Model[Choose, Choice]):
    """Scores each option as the continuation of the prompt, in one pass for all options of a prompt."""

    role: ClassVar[str] = "judge"

    def __init__(self, model: causal.Causal) -> None:
        self.model = model
        self.chat = model.tokens.backend.token_to_id("<|im_start|>") is not None

    def lengths(self, requests: Sequence[Choose]) -> list[int]:
        return [len(r.prompt) // 4 + 8 for r in requests]

    def answer(self, batch: Sequence[Choose]) -> list[Choice]:
        parts = [Continue(self._prefix(r.prompt), self._target(o)) for r in batch for o in r.options]
        totals = iter([scores.total for scores in self.model.answer_all(parts)])
        return [_choice(r.options, [next(totals) for _ in r.options]) for r in batch]

    def _prefix(self, prompt: str) -> str:
        return TEMPLATE.format(prompt=prompt) if self.chat else f"{prompt}\nAnswer:"

    def _target(self, option: str) -> str:
        return option if self.chat else f" {option}"


def _choice(options: Sequence[str], totals: Sequence[float]) -> Choice:
    most = max(totals)
    shares = [math.exp(total - most) for total in totals]
    chances = {option: share / sum(shares) for option, share in zip(options, shares, strict=True)}
    return Choice(chances, max(chances, key=chances.__getitem__), True)


def resolve(choice: ModelChoice) -> Identity:
    """The causal model that judges; what is written around the prompt changes its answers, so it counts too."""
    found = causal.resolve(replace(choice, role="causal"))
    digest = hashlib.sha256(f"{found.sha256} {TEMPLATE}".encode()).hexdigest()
    return replace(found, role="judge", sha256=digest)


def load(identity: Identity) -> Model[Choose, Choice]:
    return LocalJudge(causal.load(replace(identity, role="causal")))
