"""Train a classifier of texts or pairs of texts: what `support`, `equivalent` and `wellformed` share."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from elench.errors import UsageError
from elench.models.base import ModelChoice
from elench.models.checkpoints import find, need
from elench.models.shipped import save_shipped
from elench.models.tokens import Tokens
from elench.requests import Floats
from elench.train.loop import (
    BASES,
    Schedule,
    Trainer,
    TrainingRun,
    about_base,
    fit,
    freeze_words,
    load_checkpoint,
    start_from,
    write_card,
)
from elench.train.options import train_options

if TYPE_CHECKING:
    import torch
    from torch.nn import Module
    from transformers import PreTrainedTokenizerBase as Tokenizer


@dataclass(frozen=True)
class TextPair:
    """One or two texts and what is to be said of them: a class, or a number from 0 to 1."""

    first: str
    second: str
    target: float
    kind: str = ""


@dataclass(frozen=True)
class Encoded:
    """A pair as token ids, framed as the encoder expects."""

    ids: tuple[int, ...]
    second: int
    """Where the second text begins; the length where there is none."""
    pair: TextPair

    @property
    def target(self) -> float:
        return self.pair.target


class PairEncoder:
    """Turns pairs into token ids, each text cut to its own limit."""

    def __init__(self, tokenizer: Tokenizer, limits: tuple[int, int]) -> None:
        self.tokens, self.limits = Tokens.from_transformers(tokenizer), limits

    def __call__(self, pairs: Sequence[TextPair]) -> list[Encoded]:
        firsts, seconds = (self.tokens.ids(texts) for texts in ([p.first for p in pairs], [p.second for p in pairs]))
        before, after = self.tokens.frame
        made = []
        for pair, a, b in zip(pairs, firsts, seconds, strict=True):
            first, second = a[: self.limits[0]], b[: self.limits[1]]
            whole = [*before, *first, *after]
            ids, begin = self.tokens.pair(first, second) if pair.second else (whole, len(whole))
            made.append(Encoded(tuple(ids), begin, pair))
        return made


def new_classifier(
    base: Path, labels: int, seed: int, start: Path | None = None, whole: bool = False
) -> tuple[Module, Tokenizer]:
    """A classifier on a base encoder, or on the model in `start` (its body, or the whole of it), and its tokenizer."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer, logging

    logging.set_verbosity_error()
    torch.manual_seed(seed)
    model = AutoModelForSequenceClassification.from_pretrained(
        base,
        num_labels=labels,
        attention_probs_dropout_prob=0.0,
        hidden_dropout_prob=0.0,
        use_safetensors=True,
        dtype=torch.float32,
    )
    freeze_words(model)
    if start is not None:
        wanted = {n: p for n, p in model.named_parameters() if p.requires_grad}
        start_from(start, wanted if whole else {n: p for n, p in wanted.items() if not n.startswith("classifier")})
    return model, AutoTokenizer.from_pretrained(base)


def logits(model: Module, batch: Sequence[Encoded]) -> torch.Tensor:
    """The classifier's raw output for a batch, padded to its longest."""
    import torch

    width = max(len(e.ids) for e in batch)
    ids = torch.tensor([[*e.ids, *[0] * (width - len(e.ids))] for e in batch])
    places = torch.arange(width)
    lengths = torch.tensor([[len(e.ids)] for e in batch])
    types = ((places >= torch.tensor([[e.second] for e in batch])) & (places < lengths)).long()
    typed = {"token_type_ids": types} if getattr(model.config, "type_vocab_size", 0) > 1 else {}
    found: torch.Tensor = model(input_ids=ids, attention_mask=(places < lengths).long(), **typed).logits
    return found.float()


def pair_loss(model: Module, batch: Sequence[Encoded]) -> torch.Tensor:
    """Cross entropy of the class, or of the number where the classifier has one output.

    A target beyond the last class means: any but the first.
    """
    return hard_loss(logits(model, batch), batch)


def hard_loss(said: torch.Tensor, batch: Sequence[Encoded]) -> torch.Tensor:
    """`pair_loss` of logits."""
    import torch

    if said.shape[1] == 1:
        wanted = torch.tensor([e.target for e in batch])
        loss: torch.Tensor = torch.nn.functional.binary_cross_entropy_with_logits(said[:, 0], wanted)
        return loss
    wanted = torch.tensor([int(e.target) for e in batch])
    logs = said.log_softmax(1)
    exact = logs.gather(1, wanted.clamp(max=said.shape[1] - 1)[:, None])[:, 0]
    return -torch.where(wanted < said.shape[1], exact, logs[:, 1:].logsumexp(1)).mean()


@dataclass(frozen=True)
class Teacher:
    """A larger model of the same labels, whose probabilities are half of what is learnt (soft labels)."""

    model: Module
    encoder: PairEncoder

    @classmethod
    def from_folder(cls, folder: Path, labels: Sequence[str], limits: tuple[int, int]) -> Teacher:
        if shipped_labels(folder) != list(labels):
            raise UsageError(f"--teacher {folder}: holds no stored model of the labels {', '.join(labels)}")
        base = json.loads((folder / "config.json").read_text(encoding="utf-8"))["base"]
        model, tokenizer = new_classifier(find(ModelChoice("encoder", base)).folder, len(labels), 0, folder, whole=True)
        return cls(model.eval(), PairEncoder(tokenizer, limits))

    def loss(self, model: Module, batch: Sequence[Encoded]) -> torch.Tensor:
        """Half the cross entropy of the true class (or number), half that of the teacher's probabilities."""
        import torch

        said = logits(model, batch)
        wanted = torch.from_numpy(predict(self.model, self.encoder([e.pair for e in batch])))
        if said.shape[1] == 1:
            soft = torch.nn.functional.binary_cross_entropy_with_logits(said, wanted)
        else:
            soft = -(wanted * said.log_softmax(1)).sum(1).mean()
        return (hard_loss(said, batch) + soft) / 2


@dataclass(frozen=True)
class ClassifierTask:
    """What a classifier is trained for: its outputs, its limits in tokens, and the pairs of each round."""

    labels: int
    limits: tuple[int, int]
    draw: Callable[[np.random.Generator, int], Sequence[TextPair]]
    start: Path | None = None
    """Folder of a model whose body it starts from, instead of the base encoder's."""
    whole: bool = False
    """Does it start from the head of that model too?"""
    family: str = "embedded"
    teacher: Teacher | None = None
    """Whose probabilities are learnt, too."""


def train_classifier(
    task: ClassifierTask, schedule: Schedule | None, out: Path, *, seed: int, resume: bool = False
) -> tuple[Module, PairEncoder, TrainingRun, Path]:
    """Train by the schedule (None: take the last checkpoint): the model, its encoder, the run, the base's folder."""
    need("torch", "transformers", "safetensors")
    base = find(ModelChoice("encoder", BASES[task.family])).folder
    model, tokenizer = new_classifier(base, task.labels, seed, task.start, task.whole)
    encoder = PairEncoder(tokenizer, task.limits)
    if schedule is None:
        run = load_checkpoint(out, {n: p for n, p in model.named_parameters() if p.requires_grad})
        model.eval()
        return model, encoder, run, base
    trainer = Trainer[Encoded](
        model=model,
        examples=lambda rng, epoch: encoder(task.draw(rng, epoch)),
        length=lambda e: len(e.ids),
        loss=task.teacher.loss if task.teacher else pair_loss,
    )
    return model, encoder, fit(trainer, schedule, out, resume=resume, log=lambda line: print(line, flush=True)), base


def ship(
    model: Module, base: Path, out: Path, run: TrainingRun, schedule: Schedule | None, settings: Mapping[str, Any],
    facts: Mapping[str, object], kind: str = "int8", family: str = "embedded",
) -> None:  # fmt: skip
    """Store a trained classifier with its card: `facts` first, then how it was trained."""
    size = save_shipped(model, out, base_name=BASES[family], base=base, settings=settings, kind=kind)
    trained = {
        "base": about_base(family),
        "steps": run.step, "minutes": round(run.seconds / 60, 1), "examples": run.examples,
        "machine": "2-core CPU machine, no GPU", "bytes": size,
    }  # fmt: skip
    if schedule is not None:
        trained |= {"seed": schedule.seed, "learning rate": schedule.lr, "batch": schedule.batch}
    write_card(out, {**facts, **trained})


def shipped_labels(folder: Path) -> list[str]:
    """The labels of a stored classifier; none where the folder holds only a checkpoint."""
    path = folder / "config.json"
    found: list[str] = json.loads(path.read_text())["settings"]["labels"] if path.exists() else []
    return found


def classifier_options(lr: float, batch: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The options of every classifier's trainer, with its own defaults."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in (
            click.option("--pack", "pack_only", is_flag=True, help="Only test and store the last checkpoint."),
            click.option("--batch", type=click.IntRange(1), default=batch, show_default=True),
            click.option("--lr", type=click.FloatRange(0, min_open=True), default=lr, show_default=True),
        ):
            command = option(command)
        return train_options(command)

    return decorate


def predict(model: Module, encoded: Sequence[Encoded], tokens: int = 3000) -> Floats:
    """Probabilities (n × classes, or n × 1) of encoded pairs, in their order."""
    import torch

    order = sorted(range(len(encoded)), key=lambda i: len(encoded[i].ids))
    found: dict[int, Floats] = {}
    at = 0
    with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
        while at < len(order):
            size = max(1, tokens // len(encoded[order[min(at + 24, len(order) - 1)]].ids))
            batch = order[at : at + size]
            said = logits(model, [encoded[i] for i in batch])
            probabilities = said.sigmoid() if said.shape[1] == 1 else said.softmax(1)
            for i, row in zip(batch, probabilities.numpy(), strict=True):
                found[i] = row
            at += size
    return np.stack([found[i] for i in range(len(encoded))])
