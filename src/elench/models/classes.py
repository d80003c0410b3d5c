"""What kind of answer a question asks for: the two-level classes of Li & Roth (2002), 6 coarse and 50 fine.

The shipped model is MiniLM with one linear layer on [mean of all pieces; first piece] (`elench train classes`). A
coarse class is the sum of its fine classes. Any sequence classifier whose labels read `COARSE:fine` can take its place
(`--model classes=FOLDER`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from elench.errors import UsageError
from elench.models.base import Identity, Model, ModelChoice
from elench.models.checkpoints import checkpoint_identity, find
from elench.models.classifier import softmax
from elench.models.shipped import WEIGHTS, shipped_config, shipped_identity
from elench.models.tokens import Tokens, padded, present
from elench.models.transformer import load_stored, load_transformer
from elench.requests import ClassifyQuestion, Floats, QuestionClass

if TYPE_CHECKING:
    from torch.nn import Module

Rows = npt.NDArray[np.float64]
WINDOW = 128
"""Pieces read of a question; a longer one is read in parts of this size and their probabilities averaged."""


def coarse_of(label: str) -> str:
    """`NUM:dist` → `NUM`."""
    return label.partition(":")[0]


class QuestionClasses(Model[ClassifyQuestion, QuestionClass]):
    """Answers `ClassifyQuestion` with calibrated probabilities at both levels."""

    role: ClassVar[str] = "classes"
    budget = 512

    def __init__(
        self,
        scores: Callable[[Sequence[Sequence[int]]], Floats],
        tokens: Tokens,
        labels: Sequence[str],
        temperature: float = 1.0,
    ) -> None:
        self.scores, self.tokens, self.labels = scores, tokens, tuple(labels)
        self.temperature = temperature

    def lengths(self, requests: Sequence[ClassifyQuestion]) -> list[int]:
        frame = sum(map(len, self.tokens.frame))
        texts = [r.question for r in requests]
        return [min(len(ids) + frame, WINDOW) for ids in self.tokens.ids(texts)]

    def answer(self, batch: Sequence[ClassifyQuestion]) -> list[QuestionClass]:
        questions = [r.question for r in batch]
        before, after = self.tokens.frame
        room = WINDOW - len(before) - len(after)
        rows, owners = [], []
        for i, ids in enumerate(self.tokens.ids(questions)):
            for a in range(0, max(len(ids), 1), room):
                rows.append([*before, *ids[a : a + room], *after])
                owners.append(i)
        chances = softmax(self.scores(rows).astype(np.float64), self.temperature)
        sums, counts = np.zeros((len(questions), len(self.labels))), np.bincount(owners, minlength=len(questions))
        np.add.at(sums, owners, chances)
        return [self._classes(row) for row in sums / counts[:, None]]

    def _classes(self, chances: Rows) -> QuestionClass:
        fine = {label: float(p) for label, p in zip(self.labels, chances, strict=True)}
        coarse: dict[str, float] = {}
        for label, p in fine.items():
            coarse[coarse_of(label)] = coarse.get(coarse_of(label), 0.0) + p
        return QuestionClass(coarse, fine)


def resolve(choice: ModelChoice) -> Identity:
    """The shipped classifier, one made by `elench train classes`, or any sequence classifier of the taxonomy."""
    if choice.name is None:
        return shipped_identity(choice)
    found = find(choice)
    return shipped_identity(choice, found.folder) if (found.folder / WEIGHTS).exists() else checkpoint_identity(choice)


def load(identity: Identity) -> QuestionClasses:
    if identity.kind == "shipped":
        settings = shipped_config("classes", identity.folder)["settings"]
        labels, temperature = settings["labels"], settings["temperature"]
        if identity.runtime == "onnx":
            from elench.models.bert import bert

            assert identity.base
            return QuestionClasses(bert(identity).logits, Tokens.from_folder(identity.base), labels, temperature)
        from elench.models.torch_networks import build_classes

        stored = load_stored(identity, build_classes)
        tokens = Tokens.from_transformers(stored.tokenizer)
        return QuestionClasses(torch_scores(stored.model), tokens, labels, temperature)
    from elench.models.torch_networks import Network

    loaded = load_transformer(identity, "AutoModelForSequenceClassification")
    config, tokens = loaded.model.config, Tokens.from_transformers(loaded.tokenizer)
    labels = [config.id2label[i] for i in range(config.num_labels)]
    if not all(":" in label for label in labels):
        raise UsageError(
            f"--model classes={identity.asked}: labels must read COARSE:fine, e.g. NUM:dist; got {labels[0]!r}"
        )
    return QuestionClasses(Network(loaded.model, tokens).logits, tokens, labels)


def torch_scores(net: Module) -> Callable[[Sequence[Sequence[int]]], Floats]:
    """The scores of a network in training, or of one on another base than the embedded encoder."""

    def scores(rows: Sequence[Sequence[int]]) -> Floats:
        import torch

        from elench.models.torch_networks import class_logits

        with torch.inference_mode():
            ids, mask = torch.from_numpy(padded(rows)), torch.from_numpy(present(rows))
            found: Floats = class_logits(net, ids, mask).float().numpy()
        return found

    return scores
