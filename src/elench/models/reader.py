"""The reader: answers a question from a text alone, says how probable it is that the text has no answer.

The shipped reader is MiniLM, in the large family DeBERTa, with a span head (`elench train reader`). Any extractive
question-answering checkpoint (`--model reader=FOLDER or hub name`) and T5 text-to-text readers can take its place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from elench.models.base import Identity, Model, ModelChoice
from elench.models.checkpoints import checkpoint_identity, find, is_text_to_text
from elench.models.long_texts import Windows, split, worth_reading
from elench.models.packing import pack
from elench.models.shipped import CALIBRATED, LENGTHS, WEIGHTS, shipped_config, shipped_identity
from elench.models.tokens import Tokens, padded
from elench.models.transformer import load_stored, load_transformer, token_budget
from elench.requests import Floats, Read, Reading, Span

ALIKE = {c: f"[{same}]" for same in ("'’‘`´", '"“”„', "\\-‐‑–—") for c in same.replace("\\", "")}
"""Characters that are written one for another."""
LONGEST = 30
"""Most tokens an answer may have."""


class Fitted(NamedTuple):
    """What is fitted on kept-back articles after the training (`train reader`)."""

    belief: tuple[float, float] = (1.0, 0.0)
    """How the log-odds of "no answer" are calibrated: factor and shift."""
    lengths: tuple[float, ...] = ()
    """What an answer of 1, 2, … tokens adds to its score; longer ones get the last. First and last token are
    guessed apart, so without it a span may begin with one answer and end with another."""


AS_IT_IS = Fitted()


@dataclass(frozen=True)
class Found:
    """What one window says: natural logs of probabilities over all spans of it and "no answer"."""

    best: float
    span: Span
    none: float
    gold: float | None
    overlap: float = 0.0
    """Expected F1, in tokens, of a span drawn by its probability with the gold one; not a log."""


def decode(start: Floats, end: Floats, none: float, gold: Sequence[Span], fitted: Fitted = AS_IT_IS) -> Found:
    """Best span, "no answer" and gold of one window from its logits over text tokens, on one common scale.

    P(i, j) ∝ exp(start_i + end_j + lengths_(j - i)) over i ≤ j < i + 30, P(no answer) ∝ exp(`none`), calibrated by
    `fitted`; gold is the sum over its places.
    """
    n = len(start)
    width = min(max([LONGEST, *(b - a + 1 for a, b in gold)]), n)
    padded = np.concatenate([end, np.full(width, -np.inf)])
    scores = start[:, None] + np.lib.stride_tricks.sliding_window_view(padded, width)[:n]
    if fitted.lengths:
        scores = scores + np.array(fitted.lengths)[np.minimum(np.arange(width), len(fitted.lengths) - 1)]
    some = float(np.logaddexp.reduce(scores, axis=None))
    none = some + fitted.belief[0] * (none - some) + fitted.belief[1]
    total = float(np.logaddexp(some, none))
    i, length = np.unravel_index(int(np.argmax(scores)), scores.shape)
    at_gold, overlap = None, 0.0
    if gold:
        logs = [float(scores[a, b - a]) for a, b in gold]
        at_gold = min(0.0, float(np.logaddexp.reduce(logs)) - total)
        overlap = float((np.exp(scores - total) * _shared(n, width, gold)).sum())
    return Found(float(scores[i, length]) - total, (int(i), int(i + length)), none - total, at_gold, min(1.0, overlap))


def _shared(n: int, width: int, gold: Sequence[Span]) -> npt.NDArray[np.float64]:
    """F1 of every span (its start × its length - 1) with the gold place it shares most with."""
    first = np.arange(n)[:, None]
    last = first + np.arange(width)
    best = np.zeros((n, width))
    for a, b in gold:
        both = np.clip(np.minimum(last, b) - np.maximum(first, a) + 1, 0, None)
        best = np.maximum(best, 2 * both / (last - first + b - a + 2))
    return best


class SpanReader(Model[Read, Reading]):
    """Reads with an extractive model: the answer is a span of the text, or the first token for "no answer"."""

    role: ClassVar[str] = "reader"
    window = 224
    """Text tokens read at once."""
    overlap = 64
    asked = 256
    """Most tokens of a question; of a longer one the end, where people put what they ask."""
    most = 4
    """Windows of a long text that are read; the others share less with the question."""

    def __init__(self, network: Any, tokens: Tokens, at_once: int = 512, fitted: Fitted = AS_IT_IS) -> None:
        """`network.spans(rows, types)` gives start and end logits; `at_once` bounds the tokens of one pass."""
        self.network, self.tokens, self.at_once, self.fitted = network, tokens, at_once, fitted
        self._windows = lru_cache(maxsize=512)(self._split)

    def lengths(self, requests: Sequence[Read]) -> list[int]:
        questions = self.tokens.ids([r.question for r in requests])
        windows = [self._windows(r.text) for r in requests]
        return [
            sum(min(len(question), self.asked) + b - a + 4 for a, b in text.ranges[: self.most])
            for question, text in zip(questions, windows, strict=True)
        ]

    def _split(self, text: str) -> Windows:
        ids, spans = self.tokens.pieces([text])[0]
        return split(text, ids, spans, self.window, self.overlap)

    def answer(self, batch: Sequence[Read]) -> list[Reading]:
        """Readings of the requests: all their windows, sorted by length, in as few passes as the budget allows."""
        jobs: list[tuple[int, Span, list[int]]] = []
        golds: list[list[Span]] = []
        texts = [self._windows(request.text) for request in batch]
        questions = self.tokens.ids([request.question for request in batch])
        for row, request in enumerate(batch):
            question = questions[row][-self.asked :]
            places = _places(request.gold, request.text, texts[row])
            golds.append(places)
            if not texts[row].ids:
                continue
            chosen = worth_reading(texts[row], request.question, self.most)
            holds = [k for k, (a, b) in enumerate(texts[row].ranges) if any(a <= i and j < b for i, j in places)]
            if holds and not set(holds) & set(chosen):
                chosen[-1] = holds[0]
            jobs += [(row, texts[row].ranges[k], question) for k in chosen]
        found: list[list[tuple[Found, int]]] = [[] for _ in batch]
        sizes = [len(question) + b - a + 4 for _, (a, b), question in jobs]
        for group in pack(sizes, self.at_once):
            logits = self.logits([(jobs[i][2], texts[jobs[i][0]].ids[slice(*jobs[i][1])]) for i in group])
            for i, (start, end) in zip(group, logits, strict=True):
                row, (a, b), _ = jobs[i]
                gold = [(x - a, y - a) for x, y in golds[row] if a <= x and y < b]
                none = float(start[0] + end[0])
                found[row].append((decode(start[1:], end[1:], none, gold, self.fitted), a))
        return [_reading(r, t, f, bool(g)) for r, t, f, g in zip(batch, texts, found, golds, strict=True)]

    def logits(self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> list[tuple[Floats, Floats]]:
        """Start and end logits of each question and text: of "no answer" first, then of the text's tokens."""
        framed = [self.tokens.pair(question, text) for question, text in pairs]
        rows = [row for row, _ in framed]
        types = padded([[int(k >= begin) for k in range(max(map(len, rows)))] for _, begin in framed])
        starts, ends = self.network.spans(rows, types)
        columns = [[0, *range(begin, begin + len(text))] for (_, begin), (_, text) in zip(framed, pairs, strict=True)]
        return [
            (s[at].astype(np.float64), e[at].astype(np.float64)) for s, e, at in zip(starts, ends, columns, strict=True)
        ]


def _places(gold: str | None, text: str, windows: Windows) -> list[Span]:
    """Token ranges (last included) where the gold answer occurs in the text, whatever its case, blanks, kind of
    quotation marks and dashes, and final stop. Scripts without blanks between words have no word boundary."""
    wanted = (gold or "").strip().rstrip(".").strip()
    if not wanted:
        return []
    pattern = r"\s+".join("".join(ALIKE.get(c, re.escape(c)) for c in word) for word in wanted.split())
    before, after = (r"\w" if c.isalnum() and ord(c) < 0x2E80 else r"(?!)" for c in (wanted[0], wanted[-1]))
    starts = {a: i for i, (a, _) in enumerate(windows.spans)}
    ends = {b: i for i, (_, b) in enumerate(windows.spans)}
    found = re.finditer(rf"(?<!{before}){pattern}(?!{after})", text, re.IGNORECASE)
    return [(starts[m.start()], ends[m.end()]) for m in found if m.start() in starts and m.end() in ends]


def _reading(request: Read, windows: Windows, found: list[tuple[Found, int]], has_gold: bool) -> Reading:
    """Join the windows of a text: the most probable span wins; there is no answer if no window has one."""
    if not found:
        return Reading("", None, 1.0, 0.0, None)
    best, offset = max(found, key=lambda f: f[0].best)
    unanswerable = float(np.exp(min(f.none for f, _ in found)))
    golds = [f for f, _ in found if f.gold is not None]
    gold = float(np.exp(max(f.gold for f in golds if f.gold is not None))) if golds and has_gold else None
    overlap = max(f.overlap for f in golds) if gold is not None else None
    span = windows.spans[best.span[0] + offset][0], windows.spans[best.span[1] + offset][1]
    words = request.text[slice(*span)].strip()  # DeBERTa has pieces that are only a blank
    start = request.text.find(words, span[0])
    span = start, start + len(words)
    confidence = float(np.exp(best.best))
    if unanswerable > 0.5:
        return Reading("", None, unanswerable, confidence, gold, words, overlap)
    return Reading(words, span, unanswerable, confidence, gold, words, overlap)


def resolve(choice: ModelChoice) -> Identity:
    """The reader a run asks for: the shipped one, or any checkpoint by name or folder."""
    if choice.name is None and choice.family != "paper":
        return shipped_identity(choice)
    found = find(choice)
    if (found.folder / WEIGHTS).exists():
        return shipped_identity(choice, found.folder)
    return checkpoint_identity(choice, "text" if is_text_to_text(found.folder) else "checkpoint", found)


def _fitted(identity: Identity) -> Fitted:
    if identity.kind != "shipped":
        return AS_IT_IS
    settings = shipped_config(identity.role, identity.folder)["settings"]
    factor, shift = settings.get(CALIBRATED, AS_IT_IS.belief)
    return Fitted((float(factor), float(shift)), tuple(settings.get(LENGTHS, ())))


def load(identity: Identity) -> Model[Read, Reading]:
    if identity.runtime == "onnx":
        from elench.models.deberta import network

        assert identity.base
        return SpanReader(network(identity), Tokens.from_folder(identity.base), fitted=_fitted(identity))
    if identity.kind == "text":
        from elench.models.text_reader import TextReader

        return TextReader(load_transformer(identity, "AutoModelForSeq2SeqLM"))
    from elench.models.torch_networks import Network, build_reader

    if identity.kind == "shipped":
        loaded = load_stored(identity, build_reader)
    else:
        loaded = load_transformer(identity, "AutoModelForQuestionAnswering")
    tokens = Tokens.from_transformers(loaded.tokenizer)
    return SpanReader(Network(loaded.model, tokens), tokens, token_budget(loaded, 512), _fitted(identity))
