"""The encoder: vectors of a text's pieces at any layer, and how a question's pieces attend to a context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Protocol

import numpy as np

from elench.errors import Unscored, UsageError
from elench.models.base import Identity, Model, ModelChoice
from elench.models.catalog import bertscore_layer
from elench.models.checkpoints import checkpoint_identity
from elench.models.packing import pack
from elench.models.relating import reduce
from elench.models.tokens import Ints, Tokens, padded
from elench.models.transformer import even_parts, load_transformer, token_budget
from elench.requests import LAST, Embed, Floats, Relate, Relevance, Request, Span, TokenVectors

CODE_WINDOW = 512
"""Pieces that QRelScore's published program reads, whatever the model."""
PAIRS = 2048
"""Tokens of the pairs that are related in one pass."""


class Body(Protocol):
    """What runs the layers: ONNX Runtime (elench.models.bert) or torch (elench.models.torch_networks)."""

    depth: int
    window: int

    def states(self, rows: Sequence[Sequence[int]], *, layer: int) -> Floats: ...

    def relate(self, rows: Sequence[Sequence[int]], types: Ints, places: Ints) -> tuple[Floats, Floats]: ...


class Encoder(Model[Embed | Relate, TokenVectors | Relevance]):
    """Any BERT-like checkpoint; long texts are read in parts that fit its window."""

    role: ClassVar[str] = "encoder"

    def __init__(self, body: Body, tokens: Tokens, budget: int = 512) -> None:
        self.body, self.tokens, self.budget = body, tokens, budget
        self.depth, self.window = body.depth, min(body.window, tokens.limit)

    def lengths(self, requests: Sequence[Embed | Relate]) -> list[int]:
        """Exact lengths in pieces: a tokenizer is far cheaper than padding."""
        return [min(self._length(r) + 3, self.window) for r in requests]

    def _length(self, request: Embed | Relate) -> int:
        if isinstance(request, Embed):
            return len(self.tokens.pieces([request.text])[0][0])
        return sum(map(len, self.tokens.ids([request.question, request.context])))

    def batches(self, requests: Sequence[Embed | Relate]) -> list[list[int]]:
        """Like with like: the same layer in one batch, pairs in batches of their own."""
        kinds: dict[int | type[Relate] | None, list[int]] = {}
        for i, request in enumerate(requests):
            kinds.setdefault(request.layer if isinstance(request, Embed) else Relate, []).append(i)
        groups = []
        for kind, own in kinds.items():
            budget = max(PAIRS, self.budget) if kind is Relate else self.budget
            packed = pack(self.lengths([requests[i] for i in own]), budget)
            groups += [[own[i] for i in group] for group in packed]
        return groups

    def answer(self, batch: Sequence[Embed | Relate]) -> list[TokenVectors | Relevance]:
        """Vectors and relevances, in the order of the batch."""
        answers: dict[Request[object], TokenVectors | Relevance] = {}
        for layer in dict.fromkeys(r.layer for r in batch if isinstance(r, Embed)):
            asked = [r for r in batch if isinstance(r, Embed) and r.layer == layer]
            answers.update(zip(asked, self._embed([r.text for r in asked], layer), strict=True))
        pairs = [r for r in batch if isinstance(r, Relate)]
        answers.update(zip(pairs, self._relate(pairs), strict=True))
        return [answers[request] for request in batch]

    # --- vectors ----------------------------------------------------------------------------------------------------

    def _embed(self, texts: list[str], layer: int | None) -> list[TokenVectors]:
        wanted = bertscore_layer(self.name, self.depth) if layer is None else self.depth if layer == LAST else layer
        if not 0 <= wanted <= self.depth:
            raise UsageError(f"encoder {self.name} has layers 0 to {self.depth}, not {wanted}")
        coded = self.tokens.pieces(texts)
        before, after = self.tokens.frame
        rows: list[list[int]] = []
        owners: list[tuple[int, Span]] = []
        for t, (ids, _) in enumerate(coded):
            for a, b in even_parts(len(ids), self.window - len(before) - len(after)):
                rows.append([*before, *ids[a:b], *after])
                owners.append((t, (a, b)))
        found: list[list[Floats]] = [[] for _ in texts]
        vectors: dict[int, Floats] = {}
        for group in pack([len(row) for row in rows], max(self.budget, self.window)):
            states = self.body.states([rows[i] for i in group], layer=wanted)
            vectors.update({i: states[k, : len(rows[i])].copy() for k, i in enumerate(group)})
        for i, (t, (_, b)) in enumerate(owners):
            first = not found[t]
            last = b == len(coded[t][0])
            found[t].append(vectors[i][0 if first else len(before) : None if last else len(rows[i]) - len(after)])
        return [self._token_vectors(ids, spans, v) for (ids, spans), v in zip(coded, found, strict=True)]

    def _token_vectors(self, ids: list[int], spans: list[Span], vectors: list[Floats]) -> TokenVectors:
        before, after = self.tokens.frame
        whole = [*before, *ids, *after]
        special = (*(True,) * len(before), *(False,) * len(ids), *(True,) * len(after))
        places = (*((0, 0),) * len(before), *spans, *((0, 0),) * len(after))
        joined = vectors[0] if len(vectors) == 1 else np.concatenate(vectors)
        return TokenVectors(tuple(self.tokens.names(whole)), tuple(whole), places, special, joined)

    # --- relevance --------------------------------------------------------------------------------------------------

    def _relate(self, requests: list[Relate]) -> list[Relevance]:
        """Each question with each part of its context, attentions reduced at once; parts are averaged."""
        texts = list(dict.fromkeys(t for r in requests for t in (r.question, r.context)))
        coded = dict(zip(texts, self.tokens.ids(texts), strict=True)) if texts else {}
        jobs: list[tuple[int, list[int], list[int]]] = []
        for r, request in enumerate(requests):
            question, context = coded[request.question], coded[request.context]
            jobs += [(r, question, context[a:b]) for a, b in self._parts(question, context, request.form)]
        found: list[list[Relevance]] = [[] for _ in requests]
        results: dict[int, Relevance] = {}
        sizes = [len(q) + len(c) + 3 for _, q, c in jobs]
        for group in pack(sizes, max(PAIRS, self.budget, self.window)):
            results.update(zip(group, self._related(requests, [jobs[i] for i in group]), strict=True))
        for i, (r, *_) in enumerate(jobs):
            found[r].append(results[i])
        return [_mean(parts) for parts in found]

    def _related(self, requests: list[Relate], jobs: list[tuple[int, list[int], list[int]]]) -> list[Relevance]:
        framed = [self.tokens.pair(question, context) for _, question, context in jobs]
        rows = [row for row, _ in framed]
        start = len(self.tokens.pair_frame[0])
        types = padded([[int(k >= begin) for k in range(len(row))] for row, begin in framed])
        places = padded([range(start, start + len(question)) for _, question, _ in jobs], start)
        attention, cosine = self.body.relate(rows, types, places)
        answers = []
        for k, (r, question, context) in enumerate(jobs):
            at = (slice(None), k, slice(len(question)), slice(framed[k][1], framed[k][1] + len(context)))
            names = self.tokens.names(question), self.tokens.names(context)
            answers.append(reduce(requests[r], attention[at], cosine[at], *names))
        return answers

    def _parts(self, question: list[int], context: list[int], form: str) -> list[Span]:
        """The context in even parts that fit the window beside the question; the code form cuts what does not fit."""
        if not question or not context:
            raise Unscored("no scorable token in the question" if not question else "no scorable token in the context")
        window = min(CODE_WINDOW, self.window) if form == "code" else self.window
        room = window - len(question) - sum(map(len, self.tokens.pair_frame))
        if room < (2 if form == "code" else min(len(context), 32)):
            raise Unscored(f"the question has {len(question)} pieces; the encoder reads {self.window} at once")
        return [(0, min(room, len(context)))] if form == "code" else even_parts(len(context), room)


def _mean(parts: list[Relevance]) -> Relevance:
    """The mean of the parts' layer scores; per piece the best match of all parts."""
    if len(parts) == 1:
        return parts[0]
    layers = tuple(float(np.mean([p.layers[k] for p in parts])) for k in range(len(parts[0].layers)))
    matches, strengths = [], []
    for k in range(len(layers)):
        best = [max(range(len(parts)), key=lambda c: parts[c].strengths[k][m]) for m in range(len(parts[0].pieces))]
        matches.append(tuple(parts[c].matches[k][m] for m, c in enumerate(best)))
        strengths.append(tuple(parts[c].strengths[k][m] for m, c in enumerate(best)))
    return Relevance(layers, parts[0].pieces, tuple(matches), tuple(strengths), len(parts))


def resolve(choice: ModelChoice) -> Identity:
    """The encoder a run asks for."""
    return checkpoint_identity(choice, families=("minilm", "mpnet"))


def load(identity: Identity) -> Model[Embed | Relate, TokenVectors | Relevance]:
    if identity.runtime == "onnx":
        from elench.models.bert import bert

        return Encoder(bert(identity), Tokens.from_folder(identity.folder))
    from elench.models.torch_networks import Encoder as TorchEncoder

    loaded = load_transformer(identity, "AutoModel")
    tokens = Tokens.from_transformers(loaded.tokenizer)
    return Encoder(TorchEncoder(loaded, tokens), tokens, token_budget(loaded, 512))
