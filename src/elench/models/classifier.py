"""Classifiers of one text or of a pair of texts: support, equivalent, wellformed, and any that is stored like them.

The shipped ones are MiniLM or, in the large family, DeBERTa with a small head. Two heads are known by the names of the
stored tensors: `classifier.*` is that of transformers' sequence classifiers (two layers on the first piece), `head.*`
one layer on the first piece, or on [mean of all pieces; first piece] where it is twice as wide. Any sequence classifier
in a folder or on the hub can take a role (`--model support=NAME`) if its labels are those that the metric expects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from elench.models.base import Identity, Model, ModelChoice
from elench.models.checkpoints import checkpoint_identity, find
from elench.models.packing import pack
from elench.models.shipped import WEIGHTS, shipped_config, shipped_identity
from elench.models.tokens import Ints, Tokens, padded
from elench.models.transformer import even_parts, load_stored, load_transformer
from elench.requests import Classify, Floats

Rows = npt.NDArray[np.float64]
Pair = tuple[tuple[int, ...], tuple[int, ...]]
WINDOW = 256
LEAST = 16
"""Pieces of the longer text that a part must have room for."""


def softmax(scores: Rows, temperature: float = 1.0) -> Rows:
    """Probabilities of logits divided by a temperature."""
    scaled = scores / temperature
    powers = np.exp(scaled - scaled.max(axis=-1, keepdims=True))
    chances: Rows = powers / powers.sum(axis=-1, keepdims=True)
    return chances


def probabilities(scores: Rows, temperature: float = 1.0) -> Rows:
    """Of several labels one holds (softmax); a single label holds or not (logistic)."""
    if scores.shape[-1] > 1:
        return softmax(scores, temperature)
    chances: Rows = 1.0 / (1.0 + np.exp(-scores / temperature))
    return chances


class Classifier(Model[Classify, dict[str, float]]):
    """Answers `Classify` with the probability of each label."""

    budget = 512

    def __init__(
        self,
        logits: Callable[[Sequence[Sequence[int]], Ints], Floats],
        tokens: Tokens,
        labels: Sequence[str],
        temperature: float = 1.0,
        window: int = WINDOW,
    ) -> None:
        self.logits, self.tokens, self.labels = logits, tokens, tuple(labels)
        self.temperature, self.window = temperature, window

    def lengths(self, requests: Sequence[Classify]) -> list[int]:
        return [sum(len(a) + len(b) + 3 for a, b in parts) for parts in self._parts(requests)]

    def answer(self, batch: Sequence[Classify]) -> list[dict[str, float]]:
        parts = self._parts(batch)
        rows = [self._row(pair) for pairs in parts for pair in pairs]
        chances = np.zeros((len(rows), len(self.labels)))
        for group in pack([len(ids) for ids, _ in rows], max(self.budget, self.window)):
            types = padded([rows[i][1] for i in group])
            scores = self.logits([rows[i][0] for i in group], types).astype(np.float64)
            chances[group] = probabilities(scores, self.temperature)
        found, at = [], 0
        for pairs in parts:
            mean = chances[at : at + len(pairs)].mean(axis=0)
            found.append({label: float(p) for label, p in zip(self.labels, mean, strict=True)})
            at += len(pairs)
        return found

    def _row(self, pair: Pair) -> tuple[list[int], list[int]]:
        """Token ids and token types: [CLS] first [SEP], and second [SEP] where there is one."""
        first, second = pair
        if not second:
            before, after = self.tokens.frame
            ids = [*before, *first, *after]
            return ids, [0] * len(ids)
        ids, begin = self.tokens.pair(first, second)
        return ids, [int(k >= begin) for k in range(len(ids))]

    def _parts(self, requests: Sequence[Classify]) -> list[list[Pair]]:
        """Each pair in as many parts as fit the window: the longer text is split, the shorter cut only if it must."""
        texts = list(dict.fromkeys(t for r in requests for t in (r.first, r.second)))
        ids = dict(zip(texts, map(tuple, self.tokens.ids(texts)), strict=True)) if texts else {}
        return [self._split(ids[r.first], ids[r.second]) for r in requests]

    def _split(self, first: tuple[int, ...], second: tuple[int, ...]) -> list[Pair]:
        room = self.window - sum(map(len, self.tokens.pair_frame))
        if len(first) + len(second) <= room:
            return [(first, second)]
        turned = len(first) > len(second)
        short, long = (second, first) if turned else (first, second)
        short = short[: max(room // 2, room - len(long))]
        pieces = [long[a:b] for a, b in even_parts(len(long), max(LEAST, room - len(short)))]
        return [(piece, short) if turned else (short, piece) for piece in pieces]


def resolve(choice: ModelChoice) -> Identity:
    """The shipped classifier of a role, one trained by elench (a folder), or any sequence classifier."""
    if choice.name is None:
        return shipped_identity(choice)
    found = find(choice)
    return shipped_identity(choice, found.folder) if (found.folder / WEIGHTS).exists() else checkpoint_identity(choice)


def load(identity: Identity) -> Model[Classify, dict[str, float]]:
    if identity.kind == "shipped":
        settings = shipped_config(identity.role, identity.folder)["settings"]
        limits = settings.get("limits")
        window = sum(limits) + 3 if limits else int(settings.get("window", WINDOW))
        more = settings["labels"], float(settings.get("temperature", 1.0)), window
        if identity.runtime == "onnx":
            from elench.models.deberta import network

            assert identity.base
            found = Classifier(network(identity).logits, Tokens.from_folder(identity.base), *more)
        else:
            from elench.models.torch_networks import Network, build_classifier

            loaded = load_stored(identity, build_classifier)
            tokens = Tokens.from_transformers(loaded.tokenizer)
            tokens.typed = getattr(loaded.model.config, "type_vocab_size", 0) > 1
            found = Classifier(Network(loaded.model, tokens).logits, tokens, *more)
    else:
        from elench.models.torch_networks import Network

        loaded = load_transformer(identity, "AutoModelForSequenceClassification")
        config, tokens = loaded.model.config, Tokens.from_transformers(loaded.tokenizer)
        labels = [config.id2label[i] for i in range(config.num_labels)]
        widest = min(512, config.max_position_embeddings)
        found = Classifier(Network(loaded.model, tokens).logits, tokens, labels, window=widest)
    found.role = identity.role  # type: ignore[misc]  # one class serves several roles
    return found
