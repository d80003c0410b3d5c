"""The masked language model: how well each word of an answer can be recovered from context and question (QAScore)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from quaestor.errors import Unscored, UsageError
from quaestor.models.base import Model, ModelChoice
from quaestor.models.packing import pack
from quaestor.models.transformer import (
    Loaded,
    even_parts,
    load_transformer,
    padded,
    padding_id,
    pieces,
    token_budget,
    window,
)
from quaestor.requests import Recover, Request, Span, TokenScores


@dataclass(frozen=True)
class Masking:
    """One input of the model: tokens with masks in them, and the true tokens at the places that are scored."""

    ids: tuple[int, ...]
    places: tuple[int, ...]
    truth: tuple[int, ...]


@dataclass(frozen=True)
class Plan:
    """All inputs of a request: for each part of the context, one per word (or piece) of the answer."""

    parts: tuple[tuple[Masking, ...], ...]
    names: tuple[str, ...]
    spans: tuple[Span, ...]
    mean: bool
    """code form: the mean over the scored places instead of their sum."""
    cut: int = 0


class Masked(Model):
    """Any checkpoint with a masked-language-model head (BERT, RoBERTa and their like)."""

    role: ClassVar[str] = "masked"

    def __init__(self, loaded: Loaded) -> None:
        self.model, self.tokenizer = loaded.model, loaded.tokenizer
        self.name, self.sha256 = loaded.name, loaded.sha256
        self.budget = token_budget(loaded, 1024)
        self.window = window(loaded)
        self.mask = self.tokenizer.mask_token_id
        self.separator = self.tokenizer.sep_token_id
        if self.mask is None or self.separator is None:
            raise UsageError(f"masked model {self.name} has no mask or separator token")

    def lengths(self, requests: Sequence[Request[Any]]) -> list[int]:
        """Roughly: the whole text once for each word of the answer."""
        asked = [r for r in requests if isinstance(r, Recover)]
        return [(len(f"{r.context}{r.question}{r.answer}") // 4 + 8) * (len(r.answer.split()) + 1) for r in asked]

    def answer(self, batch: Sequence[Request[Any]]) -> list[TokenScores]:
        plans = [self._plan(request) for request in batch]
        maskings = [m for plan in plans for part in plan.parts for m in part]
        scores: dict[int, list[float]] = {}
        for group in pack([len(m.ids) for m in maskings], max(self.budget, self.window)):
            scores.update(zip(group, self._logprobs([maskings[i] for i in group]), strict=True))
        found = iter(scores[i] for i in range(len(maskings)))
        answers = []
        for plan in plans:
            parts = [[next(found) for _ in part] for part in plan.parts]
            reduced = [[sum(v) / len(v) if plan.mean else sum(v) for v in part] for part in parts]
            best = max(reduced, key=sum)  # the part of a long context that supports the answer best
            answers.append(TokenScores(plan.names, plan.spans, tuple(best), len(parts), plan.cut))
        return answers

    def _plan(self, request: Request[Any]) -> Plan:
        assert isinstance(request, Recover)
        return self._code(request) if request.form == "code" else self._paper(request)

    def _paper(self, request: Recover) -> Plan:
        """[BOS] context SEP question SEP answer SEP, one whole word of the answer masked at a time (eq. 9–11)."""
        texts = [t.strip() for t in (request.context, request.question, request.answer)]
        # a blank in front makes byte-level tokenizers see the first word as a word
        (context, _), (question, _), (answer, places) = pieces(self.tokenizer, [f" {t}" for t in texts])
        lead = len(request.answer) - len(request.answer.lstrip()) - 1
        spans = [(a + lead, b + lead) for a, b in places]
        words = [m.span() for m in re.finditer(r"\S+", request.answer)]
        members = [[i for i, (a, b) in enumerate(spans) if a < end and b > start] for start, end in words]
        kept = [(word, own) for word, own in zip(words, members, strict=True) if own]
        if not kept:
            raise Unscored("no scorable token in the answer")
        sep, first = self.separator, self.tokenizer.bos_token_id
        head = [self.tokenizer.cls_token_id if first is None else first]
        room = self.window - len(head) - len(question) - len(answer) - 3
        if room < 16:
            raise Unscored(f"question and answer leave no room for the context; the model reads {self.window} tokens")
        parts = []
        for a, b in even_parts(len(context), room):
            before = [*head, *context[a:b], sep, *question, sep]
            parts.append(tuple(self._masking([*before, *answer, sep], len(before), own) for _, own in kept))
        names = tuple(request.answer[a:b] for (a, b), _ in kept)
        return Plan(tuple(parts), names, tuple(word for word, _ in kept), mean=False)

    def _masking(self, ids: list[int], offset: int, members: list[int]) -> Masking:
        places = tuple(offset + i for i in members)
        masked = tuple(self.mask if i in places else token for i, token in enumerate(ids))
        return Masking(masked, places, tuple(ids[i] for i in places))

    def _code(self, request: Recover) -> Plan:
        """The published program: no BOS, no final separator, the last 512 ids; each mask scores *all* positions."""
        texts = (request.context, request.question, request.answer)
        (context, _), (question, _), (answer, places) = pieces(self.tokenizer, texts)
        ids = [*context, self.separator, *question, self.separator, *answer]
        cut = max(0, len(ids) - min(512, self.window))
        ids = ids[cut:]
        own = range(max(0, len(ids) - len(answer)), len(ids))
        if not own:
            raise Unscored("no scorable token in the answer")
        whole, truth = tuple(range(len(ids))), tuple(ids)
        maskings = [Masking((*truth[:i], self.mask, *truth[i + 1 :]), whole, truth) for i in own]
        names = tuple(self.tokenizer.convert_ids_to_tokens([ids[i] for i in own]))
        return Plan((tuple(maskings),), names, tuple(places[-len(own) :]), mean=True, cut=cut)

    def _logprobs(self, maskings: list[Masking]) -> list[list[float]]:
        import torch

        device = self.model.device
        with torch.inference_mode():
            ids = padded([m.ids for m in maskings], padding_id(self.tokenizer), device)
            mask = padded([[1] * len(m.ids) for m in maskings], 0, device)
            logits = self.model(input_ids=ids, attention_mask=mask).logits
            found = []
            for row, m in enumerate(maskings):
                own = logits[row, list(m.places)].float()
                right = own.gather(1, torch.tensor(m.truth, device=device)[:, None])[:, 0]
                found.append([float(v) for v in right - own.logsumexp(1)])
        return found


def load(choice: ModelChoice) -> Model:
    """The masked language model a run asks for."""
    return Masked(load_transformer(choice, "AutoModelForMaskedLM"))
