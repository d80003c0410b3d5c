"""What kind of answer a question asks for: the two-level classes of Li & Roth (2002), 6 coarse and 50 fine.

The shipped model is MiniLM with one linear layer on [mean of all pieces; first piece] (`quaestor train classes`). A
coarse class is the sum of its fine classes. Any sequence classifier whose labels read `COARSE:fine` can take its place
(`--model classes=FOLDER`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from quaestor.errors import UsageError
from quaestor.models.base import Model, ModelChoice
from quaestor.requests import Classify, QuestionClass, Request

if TYPE_CHECKING:
    import torch

Rows = npt.NDArray[np.float64]
WINDOW = 128
"""Pieces read of a question; a longer one is read in parts of this size and their probabilities averaged."""


def build(base: Path, settings: Mapping[str, Any]) -> Any:
    """The encoder in a folder with an untrained head for `settings["labels"]`."""
    import torch
    from transformers import AutoModel, logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    encoder = AutoModel.from_pretrained(base, add_pooling_layer=False, attention_probs_dropout_prob=0.0)
    head = torch.nn.Linear(2 * encoder.config.hidden_size, len(settings["labels"]))
    torch.nn.init.normal_(head.weight, std=0.02)
    torch.nn.init.zeros_(head.bias)
    return torch.nn.ModuleDict({"encoder": encoder, "head": head})


def logits(net: Any, ids: torch.Tensor, mask: torch.Tensor, dropout: float = 0.0) -> torch.Tensor:
    """Fine-class logits of padded questions."""
    import torch

    states = net["encoder"](input_ids=ids, attention_mask=mask).last_hidden_state
    weights = mask.unsqueeze(-1).to(states.dtype)
    pooled = torch.cat([(states * weights).sum(1) / weights.sum(1), states[:, 0]], dim=-1)
    scores: torch.Tensor = net["head"](torch.nn.functional.dropout(pooled, dropout, net.training))
    return scores


def padded(rows: Sequence[Sequence[int]], pad: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids and attention mask of questions of different length."""
    import torch

    width = max(map(len, rows))
    ids = torch.tensor([[*row, *[pad] * (width - len(row))] for row in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
    return ids, mask


def softmax(scores: Rows, temperature: float = 1.0) -> Rows:
    """Probabilities of logits divided by a temperature."""
    scaled = scores / temperature
    powers = np.exp(scaled - scaled.max(axis=-1, keepdims=True))
    chances: Rows = powers / powers.sum(axis=-1, keepdims=True)
    return chances


def coarse_of(label: str) -> str:
    """`NUM:dist` → `NUM`."""
    return label.partition(":")[0]


class QuestionClasses(Model):
    """Answers `Classify` with calibrated probabilities at both levels."""

    role: ClassVar[str] = "classes"
    budget = 512

    def __init__(
        self,
        scores: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
        tokenizer: Any,
        labels: Sequence[str],
        name: str,
        sha256: str,
        temperature: float = 1.0,
    ) -> None:
        self.scores, self.tokenizer, self.labels = scores, tokenizer, tuple(labels)
        self.name, self.sha256, self.temperature = name, sha256, temperature

    def lengths(self, requests: Sequence[Request[Any]]) -> list[int]:
        texts = [r.question for r in requests if isinstance(r, Classify)]
        return [min(len(ids), WINDOW) for ids in self.tokenizer(texts, verbose=False)["input_ids"]]

    def answer(self, batch: Sequence[Request[Any]]) -> list[QuestionClass]:
        import torch

        questions = [r.question for r in batch if isinstance(r, Classify)]
        coded = self.tokenizer(
            questions, truncation=True, max_length=WINDOW, return_overflowing_tokens=True, verbose=False
        )
        rows, owners = coded["input_ids"], coded["overflow_to_sample_mapping"]
        with torch.inference_mode():
            scores = self.scores(*padded(rows, self.tokenizer.pad_token_id)).double().cpu().numpy()
        chances = softmax(scores, self.temperature)
        sums, counts = np.zeros((len(questions), len(self.labels))), np.bincount(owners, minlength=len(questions))
        np.add.at(sums, owners, chances)
        return [self._classes(row) for row in sums / counts[:, None]]

    def _classes(self, chances: Rows) -> QuestionClass:
        fine = {label: float(p) for label, p in zip(self.labels, chances, strict=True)}
        coarse: dict[str, float] = {}
        for label, p in fine.items():
            coarse[coarse_of(label)] = coarse.get(coarse_of(label), 0.0) + p
        return QuestionClass(coarse, fine)


def load(choice: ModelChoice) -> QuestionClasses:
    """The shipped classifier, one made by `quaestor train classes`, or any sequence classifier of the taxonomy."""
    from quaestor.models.checkpoints import find, need
    from quaestor.models.shipped import SHIPPED

    need("torch", "transformers", "safetensors")
    if choice.name is None:
        return load_folder(SHIPPED / "classes", pull=choice.pull)
    found = find(choice)
    if (found.folder / "weights.safetensors").exists():
        return load_folder(found.folder, found.name, pull=choice.pull)
    return _any_classifier(found.folder, found.name, found.sha256)


def load_folder(
    folder: Path, name: str = "quaestor-classes", base: Path | None = None, pull: bool = False
) -> QuestionClasses:
    """What `quaestor train classes` left in a folder; `base` is the base encoder's, if the catalog does not know it."""
    from transformers import AutoTokenizer

    from quaestor.models.shipped import load_shipped, shipped_config

    net, home, sha256 = load_shipped("classes", build, folder=folder, base=base, pull=pull)
    settings = shipped_config("classes", folder)["settings"]
    tokenizer = AutoTokenizer.from_pretrained(home)
    labels, temperature = settings["labels"], settings["temperature"]
    return QuestionClasses(lambda ids, mask: logits(net, ids, mask), tokenizer, labels, name, sha256, temperature)


def _any_classifier(folder: Path, name: str, sha256: str) -> QuestionClasses:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    try:
        model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    except (OSError, ValueError) as problem:
        raise UsageError(f"--model classes={name}: not a sequence classifier ({problem})") from None
    labels = [model.config.id2label[i] for i in range(model.config.num_labels)]
    if not all(":" in label for label in labels):
        raise UsageError(f"--model classes={name}: labels must read COARSE:fine, e.g. NUM:dist; got {labels[0]!r}")
    return QuestionClasses(
        lambda ids, mask: model(input_ids=ids, attention_mask=mask).logits,
        AutoTokenizer.from_pretrained(folder),
        labels,
        name,
        sha256,
    )
