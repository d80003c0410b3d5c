"""The encoder: vectors of a text's pieces at any layer, and how a question's pieces attend to a context."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from quaestor.errors import Unscored, UsageError
from quaestor.models.base import Model, ModelChoice
from quaestor.models.catalog import bertscore_layer
from quaestor.models.packing import pack
from quaestor.models.relating import relate
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
from quaestor.requests import Embed, Floats, Relate, Relevance, Request, Span, TokenVectors

ATTENTION_FLOATS = 48_000_000
"""How many attention values (layers × heads × tokens²) one pass may hold: some 200 MB."""

PLAIN = ("bert", "roberta", "xlm-roberta", "electra", "camembert")
"""Encoders with nothing between the last layer and the output: layers above the one asked for can be left out."""


class Encoder(Model):
    """Any BERT-like checkpoint; long texts are read in parts that fit its window."""

    role: ClassVar[str] = "encoder"

    def __init__(self, loaded: Loaded) -> None:
        self.model, self.tokenizer = loaded.model, loaded.tokenizer
        self.name, self.sha256 = loaded.name, loaded.sha256
        self.budget = token_budget(loaded, 512)
        self.window = window(loaded)
        self.depth = int(getattr(self.model.config, "num_hidden_layers", 0) or self.model.config.n_layer)
        self.heads = int(getattr(self.model.config, "num_attention_heads", 0) or self.model.config.n_head)
        self.frame = _frame(self.tokenizer)
        self.stack = self.model.encoder if self.model.config.model_type in PLAIN else None

    def lengths(self, requests: Sequence[Request[Any]]) -> list[int]:
        """Exact lengths in pieces: a tokenizer is far cheaper than padding."""
        texts = [r.text if isinstance(r, Embed) else f"{r.question} {r.context}" for r in map(_known, requests)]
        return [min(len(ids) + 3, self.window) for ids, _ in pieces(self.tokenizer, texts)]

    def batches(self, requests: Sequence[Request[Any]]) -> list[list[int]]:
        """Like with like: the same layer in one batch, and few enough pairs that their attentions fit in memory."""
        kinds: dict[Any, list[int]] = {}
        for i, request in enumerate(requests):
            kinds.setdefault(request.layer if isinstance(request, Embed) else Relate, []).append(i)
        groups = []
        for kind, own in kinds.items():
            lengths = self.lengths([requests[i] for i in own])
            if kind is Relate:
                squares = [n * n for n in lengths]
                packed = pack(squares, ATTENTION_FLOATS // (self.depth * self.heads))
            else:
                packed = pack(lengths, self.budget)
            groups += [[own[i] for i in group] for group in packed]
        return groups

    def answer(self, batch: Sequence[Request[Any]]) -> list[TokenVectors | Relevance]:
        """Vectors and relevances, in the order of the batch."""
        answers: dict[Request[Any], TokenVectors | Relevance] = {}
        for layer in dict.fromkeys(r.layer for r in batch if isinstance(r, Embed)):
            asked = [r for r in batch if isinstance(r, Embed) and r.layer == layer]
            answers.update(zip(asked, self._embed([r.text for r in asked], layer), strict=True))
        pairs = [r for r in batch if isinstance(r, Relate)]
        answers.update(zip(pairs, self._relate(pairs), strict=True))
        return [answers[request] for request in batch]

    # --- vectors ----------------------------------------------------------------------------------------------------

    def _embed(self, texts: list[str], layer: int | None) -> list[TokenVectors]:
        wanted = bertscore_layer(self.name, self.depth) if layer is None else layer
        if not 0 <= wanted <= self.depth:
            raise UsageError(f"encoder {self.name} has layers 0 to {self.depth}, not {wanted}")
        coded = pieces(self.tokenizer, texts)
        before, after = self.frame
        rows: list[list[int]] = []
        owners: list[tuple[int, Span]] = []
        for t, (ids, _) in enumerate(coded):
            for a, b in even_parts(len(ids), self.window - len(before) - len(after)):
                rows.append([*before, *ids[a:b], *after])
                owners.append((t, (a, b)))
        found: list[list[Floats]] = [[] for _ in texts]
        vectors: dict[int, Floats] = {}
        for group in pack([len(row) for row in rows], max(self.budget, self.window)):
            for i, row in zip(group, self._states([rows[i] for i in group], wanted), strict=True):
                vectors[i] = row
        for i, (t, (_, b)) in enumerate(owners):
            first = not found[t]
            last = b == len(coded[t][0])
            found[t].append(vectors[i][0 if first else len(before) : None if last else len(rows[i]) - len(after)])
        return [self._told(ids, spans, v) for (ids, spans), v in zip(coded, found, strict=True)]

    def _told(self, ids: list[int], spans: list[Span], vectors: list[Floats]) -> TokenVectors:
        before, after = self.frame
        whole = [*before, *ids, *after]
        special = (*(True,) * len(before), *(False,) * len(ids), *(True,) * len(after))
        places = (*((0, 0),) * len(before), *spans, *((0, 0),) * len(after))
        words = tuple(self.tokenizer.convert_ids_to_tokens(whole))
        joined = vectors[0] if len(vectors) == 1 else np.concatenate(vectors)
        return TokenVectors(words, tuple(whole), places, special, joined)

    def _states(self, rows: list[list[int]], layer: int) -> list[Floats]:
        """Hidden states of each row at one layer (0: the embeddings), padding left out."""
        import torch

        with torch.inference_mode():
            ids = padded(rows, padding_id(self.tokenizer), self.model.device)
            mask = padded([[1] * len(row) for row in rows], 0, self.model.device)
            with self._only(layer):
                whole = layer == len(self.stack.layer) if self.stack is not None else layer == self.depth
                out = self.model(input_ids=ids, attention_mask=mask, output_hidden_states=not whole)
            states = out.last_hidden_state if whole else out.hidden_states[layer]
            values = states.float().cpu().numpy()
        return [values[i, : len(row)].copy() for i, row in enumerate(rows)]

    @contextmanager
    def _only(self, layer: int) -> Iterator[None]:
        """While it holds, layers above the wanted one are not computed, where that cannot change the answer."""
        if self.stack is None or layer == self.depth:
            yield
            return
        whole = self.stack.layer
        self.stack.layer = whole[:layer]
        try:
            yield
        finally:
            self.stack.layer = whole

    # --- relevance --------------------------------------------------------------------------------------------------

    def _relate(self, requests: list[Relate]) -> list[Relevance]:
        """Each question with each part of its context, attentions reduced at once; parts are averaged."""
        jobs: list[tuple[int, str]] = []
        for r, request in enumerate(requests):
            jobs += [(r, part) for part in self._parts(request)]
        found: list[list[Relevance]] = [[] for _ in requests]
        sizes = self.lengths([Relate(requests[r].question, part) for r, part in jobs])
        room = ATTENTION_FLOATS // (self.depth * self.heads)
        results: dict[int, Relevance] = {}
        for group in pack([n * n for n in sizes], room):
            related = relate(self.model, self.tokenizer, [(requests[jobs[i][0]], jobs[i][1]) for i in group])
            results.update(zip(group, related, strict=True))
        for i, (r, _) in enumerate(jobs):
            found[r].append(results[i])
        return [_mean(parts) for parts in found]

    def _parts(self, request: Relate) -> list[str]:
        """The context in parts that fit the window beside the question, cut between words."""
        (question, _), (context, spans) = pieces(self.tokenizer, [request.question, request.context])
        if not question or not context:
            raise Unscored("no scorable token in the question" if not question else "no scorable token in the context")
        room = self.window - len(question) - len(self.tokenizer("a", "b")["input_ids"]) + 2
        if len(context) <= room:
            return [request.context]
        room -= 8  # a part begins anew, which can cost a piece or two
        if room < 32:
            raise Unscored(f"the question has {len(question)} pieces; the encoder reads {self.window} at once")
        ends = [0, *(spans[b - 1][1] for _, b in even_parts(len(context), room))]
        while len(ends) > 2 and ends[-1] == ends[-2]:
            ends.pop()
        return [request.context[a:b] for a, b in pairwise(ends)]


def _known(request: Request[Any]) -> Embed | Relate:
    assert isinstance(request, Embed | Relate)
    return request


def _frame(tokenizer: Any) -> tuple[list[int], list[int]]:
    """The special tokens that this model wants before and after a text."""
    plain, whole = (tokenizer("a", add_special_tokens=s)["input_ids"] for s in (False, True))
    at = next(i for i in range(len(whole)) if whole[i : i + len(plain)] == plain)
    return whole[:at], whole[at + len(plain) :]


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


def load(choice: ModelChoice) -> Model:
    """The encoder a run asks for."""
    return Encoder(load_transformer(choice, "AutoModel"))
