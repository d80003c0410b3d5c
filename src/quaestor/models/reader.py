"""The reader: answers a question from a text alone, says how probable it is that the text has no answer.

The shipped reader is MiniLM with a span head (`quaestor train reader`). Any extractive question-answering checkpoint
(`--model reader=FOLDER or hub name`) and T5 text-to-text readers can take its place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from quaestor.models.base import Model, ModelChoice
from quaestor.models.checkpoints import find, need
from quaestor.models.packing import pack
from quaestor.models.shipped import load_shipped
from quaestor.models.windows import Windows, split, worth_reading
from quaestor.requests import Floats, Read, Reading, Span

ALIKE = {c: f"[{same}]" for same in ("'’‘`´", '"“”„', "\\-‐‑–—") for c in same.replace("\\", "")}
"""Characters that are written one for another."""
LONGEST = 30
"""Most tokens an answer may have."""


@dataclass(frozen=True)
class Found:
    """What one window says: natural logs of probabilities over all spans of it and "no answer"."""

    best: float
    span: Span
    none: float
    gold: float | None
    overlap: float = 0.0
    """Expected F1, in tokens, of a span drawn by its probability with the gold one; not a log."""


def decode(start: Floats, end: Floats, none: float, gold: Sequence[Span]) -> Found:
    """Best span, "no answer" and gold of one window from its logits over text tokens, on one common scale.

    P(i, j) ∝ exp(start_i + end_j) over i ≤ j < i + 30, P(no answer) ∝ exp(`none`); gold is the sum over its places.
    """
    n = len(start)
    width = min(max([LONGEST, *(b - a + 1 for a, b in gold)]), n)
    padded = np.concatenate([end, np.full(width, -np.inf)])
    scores = start[:, None] + np.lib.stride_tricks.sliding_window_view(padded, width)[:n]
    total = float(np.logaddexp(np.logaddexp.reduce(scores, axis=None), none))
    i, length = np.unravel_index(int(np.argmax(scores)), scores.shape)
    at_gold, overlap = None, 0.0
    if gold:
        logs = [float(start[a] + end[b]) for a, b in gold]
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


class SpanReader(Model):
    """Reads with an extractive model: the answer is a span of the text, or the first token for "no answer"."""

    role: ClassVar[str] = "reader"
    window = 224
    """Text tokens read at once."""
    overlap = 64
    asked = 256
    """Most tokens of a question; of a longer one the end, where people put what they ask."""
    at_once = 512
    """Tokens of one pass: few enough that a layer's values stay in a processor's cache."""
    most = 4
    """Windows of a long text that are read; the others share less with the question."""

    def __init__(self, model: Any, tokenizer: Any, name: str, sha256: str) -> None:
        self.model, self.tokenizer, self.name = model, tokenizer, name
        self.sha256 = sha256
        self.typed = "token_type_ids" in tokenizer.model_input_names
        self.frame = _frame(tokenizer)
        if model.device.type == "cuda":
            self.at_once = 16 * self.at_once
        self._windows = lru_cache(maxsize=512)(self._split)

    def lengths(self, requests: Sequence[Any]) -> list[int]:
        most = self.most * self.window
        return [8 + len(r.question) // 4 + min(len(r.text) // 4, most) for r in requests]

    def _split(self, text: str) -> Windows:
        coded = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        spans = [(int(a), int(b)) for a, b in coded["offset_mapping"]]
        return split(text, coded["input_ids"], spans, self.window, self.overlap)

    def answer(self, batch: Sequence[Any]) -> list[Reading]:
        """Readings of the requests: all their windows, sorted by length, in as few passes as the budget allows."""
        jobs: list[tuple[int, Span, list[int]]] = []
        golds: list[list[Span]] = []
        texts = [self._windows(request.text) for request in batch]
        for row, request in enumerate(batch):
            question = self.tokenizer(request.question, add_special_tokens=False, verbose=False)["input_ids"]
            question = question[-self.asked :]
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
            logits = self._logits([(jobs[i][2], texts[jobs[i][0]].ids[slice(*jobs[i][1])]) for i in group])
            for i, (start, end, none) in zip(group, logits, strict=True):
                row, (a, b), _ = jobs[i]
                gold = [(x - a, y - a) for x, y in golds[row] if a <= x and y < b]
                found[row].append((decode(start, end, none, gold), a))
        return [_reading(r, t, f, bool(g)) for r, t, f, g in zip(batch, texts, found, golds, strict=True)]

    def _logits(self, pairs: list[tuple[list[int], tuple[int, ...]]]) -> list[tuple[Floats, Floats, float]]:
        """Start and end logits over the text tokens of each pair, and the logit of "no answer"."""
        import torch

        before, between, after = self.frame
        rows = [[*before, *question, *between, *text, *after] for question, text in pairs]
        begins = [len(before) + len(question) + len(between) for question, _ in pairs]
        width = max(map(len, rows))
        pad = self.tokenizer.pad_token_id
        inputs = {
            "input_ids": torch.tensor([ids + [pad] * (width - len(ids)) for ids in rows]),
            "attention_mask": torch.tensor([[1] * len(ids) + [0] * (width - len(ids)) for ids in rows]),
        }
        if self.typed:
            inputs["token_type_ids"] = torch.tensor([[int(k >= b) for k in range(width)] for b in begins])
        with torch.inference_mode():
            out = self.model(**{k: v.to(self.model.device) for k, v in inputs.items()})
        starts, ends = out.start_logits.float().cpu().numpy(), out.end_logits.float().cpu().numpy()
        return [
            (s[b : b + len(t)].astype(np.float64), e[b : b + len(t)].astype(np.float64), float(s[0]) + float(e[0]))
            for s, e, b, (_, t) in zip(starts, ends, begins, pairs, strict=True)
        ]


def _frame(tokenizer: Any) -> tuple[list[int], list[int], list[int]]:
    """The special tokens that this model wants before, between and after question and text."""
    question, text = (tokenizer(w, add_special_tokens=False)["input_ids"] for w in ("who", "me"))
    pair = tokenizer("who", "me")["input_ids"]
    first = next(i for i in range(len(pair)) if pair[i : i + len(question)] == question)
    rest = first + len(question)
    second = next(i for i in range(rest, len(pair)) if pair[i : i + len(text)] == text)
    return pair[:first], pair[rest:second], pair[second + len(text) :]


def _places(gold: str | None, text: str, windows: Windows) -> list[Span]:
    """Token ranges (last included) where the gold answer stands in the text, whatever its case, blanks, kind of
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
    words = request.text[slice(*span)]
    confidence = float(np.exp(best.best))
    if unanswerable > 0.5:
        return Reading("", None, unanswerable, confidence, gold, words, overlap)
    return Reading(words, span, unanswerable, confidence, gold, words, overlap)


def build(base: Path, settings: Mapping[str, Any]) -> Any:
    """The untrained span model on a base encoder."""
    from transformers import AutoModelForQuestionAnswering, logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    return AutoModelForQuestionAnswering.from_pretrained(base)


def load(choice: ModelChoice) -> Model:
    """The reader a run asks for: the shipped one, or any checkpoint by name or folder."""
    need("torch", "transformers", "safetensors")
    from transformers import AutoConfig, AutoTokenizer

    if choice.name is None and choice.family == "embedded":
        model, base, digest = load_shipped("reader", build, pull=choice.pull)
        return SpanReader(model, AutoTokenizer.from_pretrained(base), "shipped-reader", digest)
    checkpoint = find(choice)
    if (checkpoint.folder / "weights.safetensors").exists():
        model, base, digest = load_shipped("reader", build, pull=choice.pull, folder=checkpoint.folder)
        return SpanReader(model, AutoTokenizer.from_pretrained(base), checkpoint.name, digest)
    tokenizer = AutoTokenizer.from_pretrained(checkpoint.folder)
    if AutoConfig.from_pretrained(checkpoint.folder).is_encoder_decoder:
        from quaestor.models.text_reader import TextReader

        return TextReader(checkpoint.folder, tokenizer, checkpoint.name, checkpoint.sha256, choice)
    import torch

    model = build(checkpoint.folder, {}).to(dtype=getattr(torch, choice.dtype), device=choice.device or "cpu")
    return SpanReader(model.eval(), tokenizer, checkpoint.name, checkpoint.sha256)
