"""The causal language model: log-probabilities of a text after another, common beginnings read once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

from elench.errors import UsageError
from elench.models.base import Identity, Model, ModelChoice
from elench.models.checkpoints import checkpoint_identity
from elench.models.packing import pack
from elench.models.sharing import Layout, lay_out, place, share
from elench.models.tokens import Tokens
from elench.models.transformer import load_transformer, token_budget, window
from elench.requests import Continue, Span, TokenScores

WINDOW = 2048
"""Tokens read at once, however long the model's own window: memory stays bounded on texts of any length."""
ROW = 1024
"""Tokens of a row that several sequences share."""


@dataclass(frozen=True)
class Text:
    """A request in tokens: what is read, in one or more parts, and which tokens of each part are scored."""

    parts: tuple[tuple[tuple[int, ...], int], ...]
    """(tokens, index of the first scored one); the scored ones of all parts are the target."""
    target: tuple[int, ...]
    spans: tuple[Span, ...]
    cut: int


class Network(Protocol):
    """What reads the rows: ONNX Runtime (elench.models.llama) or torch."""

    def logprobs(
        self, layouts: Sequence[Layout], wanted: Sequence[tuple[int, int]], tokens: Sequence[int]
    ) -> list[float]: ...


class Causal(Model[Continue, TokenScores]):
    """Any decoder-only checkpoint (GPT-2, Llama and their like)."""

    role: ClassVar[str] = "causal"

    def __init__(self, network: Network, tokens: Tokens, window: int = WINDOW, budget: int = 2048) -> None:
        self.network, self.tokens, self.window, self.budget = network, tokens, window, budget
        if tokens.eos is None:
            raise UsageError("its tokenizer has no end-of-text token")
        self.first, self.last = tokens.eos if tokens.bos is None else tokens.bos, tokens.eos

    def lengths(self, requests: Sequence[Continue]) -> list[int]:
        return [sum(len(ids) for ids, _ in text.parts) for text in self._texts(requests)]

    def batches(self, requests: Sequence[Continue]) -> list[list[int]]:
        """Requests that begin alike stay together; rows of like length share a batch."""
        texts = self._texts(requests)
        groups = [[i] for i, text in enumerate(texts) if len(text.parts) > 1]
        short = [i for i, text in enumerate(texts) if len(text.parts) == 1]
        rows = share([texts[i].parts[0][0] for i in short], ROW)
        for packed in pack([row.length for row in rows], self.budget):
            groups.append([short[member] for r in packed for member in rows[r].members])
        return groups

    def answer(self, batch: Sequence[Continue]) -> list[TokenScores]:
        texts = self._texts(batch)
        paths = [part for text in texts for part in text.parts]
        scores = iter(self._score(paths))
        answers = []
        for text in texts:
            logprobs = [value for _ in text.parts for value in next(scores)]
            names = tuple(self.tokens.names(text.target))
            answers.append(TokenScores(names, text.spans, tuple(logprobs), len(text.parts), text.cut))
        return answers

    def _texts(self, requests: Sequence[Continue]) -> list[Text]:
        distinct = list(dict.fromkeys(text for r in requests for text in (r.prefix, r.target)))
        coded = dict(zip(distinct, self.tokens.pieces(distinct), strict=True))
        return [self._text(coded[r.prefix][0], *coded[r.target], r.end) for r in requests]

    def _text(self, prefix: list[int], target: list[int], spans: list[Span], end: bool) -> Text:
        """A long target is scored in parts, each after the prefix and the half window of target before it."""
        ids = (*target, self.last) if end else tuple(target)
        places = (*spans, *(((0, 0),) if end else ()))
        keep = max(self.window // 2, self.window - len(ids)) - 1
        cut = max(0, len(prefix) - keep)
        head = (self.first, *prefix[cut:])
        room = self.window - len(head)
        parts = [((*head, *ids[:room]), len(head))]
        step = max(1, room // 2)
        for a in range(room, len(ids), step):
            seen = ids[a - (room - step) : a]
            parts.append(((*head, *seen, *ids[a : a + step]), len(head) + len(seen)))
        return Text(tuple(parts), ids, places, cut)

    def _score(self, paths: list[tuple[tuple[int, ...], int]]) -> list[list[float]]:
        """Log-probabilities of the scored tokens of each path, in passes of at most `budget` tokens."""
        sequences = [ids for ids, _ in paths]
        rows = share(sequences, ROW)
        found: list[list[float]] = [[] for _ in paths]
        for group in pack([row.length for row in rows], max(self.budget, self.window)):
            chosen = [rows[r] for r in group]
            layouts = [lay_out(row, sequences) for row in chosen]
            wanted: list[tuple[int, int]] = []
            tokens: list[int] = []
            owners: list[int] = []
            for r, (row, layout) in enumerate(zip(chosen, layouts, strict=True)):
                for m, member in enumerate(row.members):
                    ids, first = paths[member]
                    wanted += [(r, place(layout, row, m, p - 1)) for p in range(first, len(ids))]
                    tokens += ids[first:]
                    owners += [member] * (len(ids) - first)
            if wanted:
                for owner, value in zip(owners, self.network.logprobs(layouts, wanted, tokens), strict=True):
                    found[owner].append(value)
        return found


def resolve(choice: ModelChoice) -> Identity:
    """The causal language model a run asks for. int8 is too coarse for sums of log-probabilities (a context's gain fell
    from .010 to 0): with `--dtype int8` it stays in float32, and the signature says so."""
    if choice.dtype == "int8":
        choice = replace(choice, dtype="float32")
    return checkpoint_identity(choice, families=("smollm",))


def load(identity: Identity) -> Causal:
    if identity.runtime == "onnx":
        from elench.models.llama import llama

        return Causal(llama(identity), Tokens.from_folder(identity.folder))
    from elench.models.torch_networks import CausalNetwork

    loaded = load_transformer(identity, "AutoModelForCausalLM")
    tokens = Tokens.from_transformers(loaded.tokenizer)
    return Causal(CausalNetwork(loaded.model, tokens), tokens, window(loaded, WINDOW), token_budget(loaded, 2048))
