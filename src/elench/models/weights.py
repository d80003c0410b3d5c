"""The weighter: how probable it is that a question about a source is one a summary should answer.

The shipped one is a logistic regression on nine plain features (`elench train weights`). QuestEval's T5 weighter
can take its place (`--model weights=FOLDER or hub name`).
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

from elench.errors import MissingModel
from elench.models.base import Identity, Model, ModelChoice
from elench.models.checkpoints import checkpoint_identity, find, remembered_hash
from elench.models.long_texts import COMMON
from elench.models.shipped import SHIPPED
from elench.models.transformer import Loaded, load_transformer
from elench.requests import Importance
from elench.text.passages import passage_of, passages, sentences

FILE = "weights.json"
LEAD = 3
"""Sentences that make up the lead of a text."""
WORD = re.compile(r"\w+")
FEATURES = (
    "place of the answer", "sentence of the answer", "answer in the lead", "answer's count", "answer's words",
    "answer has a digit", "question in the lead", "question's frequency", "most frequent word",
)  # fmt: skip


@lru_cache(maxsize=512)
def _source(source: str) -> tuple[str, Counter[str], frozenset[str], tuple[tuple[int, int], ...]]:
    low = source.lower()
    counts = Counter(w for w in WORD.findall(low) if w not in COMMON)
    spans = sentences(source)
    end = spans[:LEAD][-1][1] if spans else 0
    return low, counts, frozenset(WORD.findall(low[:end])), tuple(spans)


def features(source: str, question: str, answer: str) -> list[float]:
    """What the weighter looks at, in the order of FEATURES; letter case plays no part."""
    low, counts, lead, spans = _source(source)
    wanted, asked = answer.lower().strip(), question.lower()
    at = low.find(wanted) if wanted else -1
    place = at / max(len(low), 1) if at >= 0 else 1.0
    sentence = sum(1 for a, _ in spans if a <= at) if at >= 0 else len(spans) + 1
    content = [w for w in WORD.findall(asked) if w not in COMMON]
    often = [math.log1p(counts[w]) for w in content] or [0.0]
    return [
        place,
        math.log1p(sentence),
        float(at >= 0 and sentence <= LEAD),
        math.log1p(low.count(wanted)) if wanted else 0.0,
        math.log1p(len(answer.split())),
        float(any(c.isdigit() for c in answer)),
        sum(w in lead for w in content) / max(len(content), 1),
        sum(often) / len(often),
        max(often),
    ]


class FeatureWeighter(Model[Importance, float]):
    """A logistic regression on `features`, as a small JSON file."""

    role: ClassVar[str] = "weights"

    def __init__(self, path: Path) -> None:
        stored = json.loads(path.read_text())
        if stored["features"] != list(FEATURES):
            raise MissingModel(f"{path}: made for other features; retrain it: elench train weights")
        self.mean, self.scale = stored["mean"], stored["scale"]
        self.weights, self.bias = stored["weights"], stored["bias"]

    def lengths(self, requests: Sequence[Importance]) -> list[int]:
        return [1] * len(requests)

    def answer(self, batch: Sequence[Importance]) -> list[float]:
        return [self.probability(features(r.source, r.question, r.answer)) for r in batch]

    def probability(self, row: Sequence[float]) -> float:
        """1 / (1 + exp(−(bias + Σ weight · standardised feature)))."""
        z = self.bias + sum(
            w * (x - m) / s for w, x, m, s in zip(self.weights, row, self.mean, self.scale, strict=True)
        )
        return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, z))))


class TextWeighter(Model[Importance, float]):
    """QuestEval's T5 weighter: reads "ANSWER </s> QUESTION </s> TEXT", says how probable "true" is."""

    role: ClassVar[str] = "weights"
    window = 512
    words = 350

    def __init__(self, loaded: Loaded) -> None:
        self.model, self.tokenizer = loaded.model, loaded.tokenizer

    def lengths(self, requests: Sequence[Importance]) -> list[int]:
        return [min(len(r.source) // 4 + 32, self.window) for r in requests]

    def answer(self, batch: Sequence[Importance]) -> list[float]:
        import torch

        texts = [
            passage_of(r.source, max(r.source.find(r.answer), 0), passages(r.source, self.words))
            if len(r.source.split()) > self.words
            else r.source
            for r in batch
        ]
        lines = [f"{r.answer} </s> {r.question} </s> {t}" for r, t in zip(batch, texts, strict=True)]
        inputs = self.tokenizer(lines, truncation=True, max_length=self.window, padding=True, return_tensors="pt")
        inputs = {k: v.to(self.model.device) for k, v in inputs.items() if k != "token_type_ids"}
        true = self.tokenizer("true", add_special_tokens=False)["input_ids"][0]
        start = torch.full((len(batch), 1), self.model.config.decoder_start_token_id, device=self.model.device)
        with torch.inference_mode():
            logits = self.model(**inputs, decoder_input_ids=start).logits[:, 0]
        return [float(p) for p in logits.float().softmax(-1)[:, true]]


def resolve(choice: ModelChoice) -> Identity:
    """The weighter a run asks for: the shipped one, one trained here (a folder), or a text-to-text checkpoint."""
    shipped = choice.name is None and choice.family != "paper"
    folder = SHIPPED / "weights" if shipped else Path(choice.name or "").expanduser()
    if (shipped or choice.name) and (folder / FILE).exists():
        name = "shipped-weights" if shipped else folder.name
        return Identity("weights", name, remembered_hash(folder / FILE), kind="features", folder=folder)
    if shipped:
        raise MissingModel(f"no shipped weighter in {folder}; make one: elench train weights")
    return checkpoint_identity(choice, "text", find(choice))


def load(identity: Identity) -> Model[Importance, float]:
    if identity.kind == "features":
        return FeatureWeighter(identity.folder / FILE)
    return TextWeighter(load_transformer(identity, "AutoModelForSeq2SeqLM"))
