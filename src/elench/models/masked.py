"""The masked language model: how well each word of an answer can be recovered from context and question (QAScore)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from elench.errors import Unscored, UsageError
from elench.models.base import Identity, Model, ModelChoice
from elench.models.checkpoints import checkpoint_identity, find
from elench.models.packing import pack
from elench.models.shipped import WEIGHTS, shipped_identity
from elench.models.tokens import Tokens
from elench.models.transformer import even_parts, load_stored, load_transformer, token_budget, window
from elench.requests import Recover, Span, TokenScores


@dataclass(frozen=True)
class Masking:
    """One input of the model: the true tokens, the places that are hidden, and those that are scored."""

    ids: tuple[int, ...]
    hidden: tuple[int, ...]
    scored: tuple[int, ...]

    def row(self, mask: int) -> list[int]:
        """What the model reads."""
        row = list(self.ids)
        for i in self.hidden:
            row[i] = mask
        return row


@dataclass(frozen=True)
class MaskingPlan:
    """All inputs of a request: for each part of the context, one per word (or piece) of the answer."""

    parts: tuple[tuple[Masking, ...], ...]
    names: tuple[str, ...]
    spans: tuple[Span, ...]
    mean: bool
    """code form: the mean over the scored places instead of their sum."""
    cut: int = 0


class Masked(Model[Recover, TokenScores]):
    """Any checkpoint with a masked-language-model head (BERT, RoBERTa and their like)."""

    role: ClassVar[str] = "masked"

    def __init__(self, network: Any, tokens: Tokens, window: int, budget: int = 1024) -> None:
        """`network.masked(rows, places, truth)` gives the log-probability of the true token at each place."""
        self.network, self.tokens, self.window, self.budget = network, tokens, window, budget
        if tokens.mask is None or tokens.sep is None:
            raise UsageError("its tokenizer has no mask or separator token")
        self.mask, self.separator = tokens.mask, tokens.sep
        self.plan = lru_cache(maxsize=1024)(self._plan)

    def lengths(self, requests: Sequence[Recover]) -> list[int]:
        """The whole text once for each word of the answer."""
        return [self._length(request) for request in requests]

    def _length(self, request: Recover) -> int:
        try:
            return sum(len(masking.ids) for part in self.plan(request).parts for masking in part)
        except Unscored:  # `answer` says so again
            return 1

    def answer(self, batch: Sequence[Recover]) -> list[TokenScores]:
        plans = [self.plan(request) for request in batch]
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

    def _plan(self, request: Recover) -> MaskingPlan:
        return self._code(request) if request.form == "code" else self._paper(request)

    def _paper(self, request: Recover) -> MaskingPlan:
        """[BOS] context SEP question SEP answer SEP, one whole word of the answer masked at a time (eq. 9–11)."""
        texts = [t.strip() for t in (request.context, request.question, request.answer)]
        # a blank in front makes byte-level tokenizers see the first word as a word
        (context, _), (question, _), (answer, places) = self.tokens.pieces([f" {t}" for t in texts])
        lead = len(request.answer) - len(request.answer.lstrip()) - 1
        spans = [(a + lead, b + lead) for a, b in places]
        words = [m.span() for m in re.finditer(r"\S+", request.answer)]
        members = [[i for i, (a, b) in enumerate(spans) if a < end and b > start] for start, end in words]
        kept = [(word, own) for word, own in zip(words, members, strict=True) if own]
        if not kept:
            raise Unscored("no scorable token in the answer")
        sep, first = self.separator, self.tokens.cls if self.tokens.bos is None else self.tokens.bos
        head = [] if first is None else [first]
        room = self.window - len(head) - len(question) - len(answer) - 3
        if room < 16:
            raise Unscored(f"question and answer leave no room for the context; the model reads {self.window} tokens")
        parts = []
        for a, b in even_parts(len(context), room):
            before = [*head, *context[a:b], sep, *question, sep]
            ids = (*before, *answer, sep)
            masked = [tuple(len(before) + i for i in own) for _, own in kept]
            parts.append(tuple(Masking(ids, places, places) for places in masked))
        names = tuple(request.answer[a:b] for (a, b), _ in kept)
        return MaskingPlan(tuple(parts), names, tuple(word for word, _ in kept), mean=False)

    def _code(self, request: Recover) -> MaskingPlan:
        """The published program: no BOS, no final separator, the last 512 ids; each mask scores *all* positions."""
        texts = (request.context, request.question, request.answer)
        (context, _), (question, _), (answer, places) = self.tokens.pieces(texts)
        ids = [*context, self.separator, *question, self.separator, *answer]
        cut = max(0, len(ids) - min(512, self.window))
        ids = ids[cut:]
        own = range(max(0, len(ids) - len(answer)), len(ids))
        if not own:
            raise Unscored("no scorable token in the answer")
        whole, truth = tuple(range(len(ids))), tuple(ids)
        maskings = [Masking(truth, (i,), whole) for i in own]
        names = tuple(self.tokens.names([ids[i] for i in own]))
        return MaskingPlan((tuple(maskings),), names, tuple(places[-len(own) :]), mean=True, cut=cut)

    def _logprobs(self, maskings: list[Masking]) -> list[list[float]]:
        places = [(row, place) for row, m in enumerate(maskings) for place in m.scored]
        truth = [m.ids[place] for m in maskings for place in m.scored]
        values = iter(self.network.masked([m.row(self.mask) for m in maskings], places, truth))
        return [[float(next(values)) for _ in m.scored] for m in maskings]


def resolve(choice: ModelChoice) -> Identity:
    """The masked language model a run asks for: the shipped one, one trained by elench (a folder), any checkpoint."""
    if choice.name is None and choice.family != "paper":
        return shipped_identity(choice)
    found = find(choice)
    if (found.folder / WEIGHTS).exists():
        return shipped_identity(choice, found.folder)
    return checkpoint_identity(choice, found=found)


def load(identity: Identity) -> Model[Recover, TokenScores]:
    if identity.runtime == "onnx":
        from elench.models.bert import bert

        assert identity.base
        network = bert(identity)
        return Masked(network, Tokens.from_folder(identity.base), network.window)
    from elench.models.torch_networks import Network, build_masked

    if identity.kind == "shipped":
        loaded = load_stored(identity, build_masked)
    else:
        loaded = load_transformer(identity, "AutoModelForMaskedLM")
    tokens = Tokens.from_transformers(loaded.tokenizer)
    return Masked(Network(loaded.model, tokens), tokens, window(loaded), token_budget(loaded, 1024))
