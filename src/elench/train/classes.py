"""Teach the embedded encoder what kind of answer a question asks for: the TREC questions, 6 coarse and 50 fine classes.

The network is the encoder with one linear layer on [mean of all pieces; first piece]. A coarse class is the sum of its
fine classes, so both levels always agree. Part of the training questions is kept back to find the temperature that
makes the probabilities honest; then the network is trained once more, on all of them. The test questions are only ever
scored.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

from elench.errors import UsageError
from elench.models.base import ModelChoice
from elench.models.checkpoints import find, need
from elench.models.classes import QuestionClasses, coarse_of, load, torch_scores
from elench.models.classifier import softmax
from elench.models.shipped import save_shipped, shipped_identity
from elench.models.tokens import Tokens, padded, present
from elench.models.torch_networks import build_classes, class_logits
from elench.requests import ClassifyQuestion, QuestionClass
from elench.stats.roc import calibration_error, reliability
from elench.train.loop import FROZEN, Schedule, Trainer, TrainingRun, fit, freeze, write_card
from elench.train.options import destination, train_options

if TYPE_CHECKING:
    import torch
    from torch.nn import Module
    from transformers import PreTrainedTokenizerBase as Tokenizer

BASE = "all-minilm-l6-v2"
KEPT = 0.1
"""Share of the training questions kept back for choosing options and for calibration."""
AVERAGE = 0.995
"""Decay of the running average of the weights: about the last two hundred steps."""


@dataclass(frozen=True)
class Labelled:
    """A question and its fine class, such as NUM:dist."""

    question: str
    label: str


@dataclass(frozen=True)
class ClassOptions:
    """What the trainer may choose, beyond the schedule; chosen on kept-back training questions."""

    dropout: float = 0.2
    """Of the pooled vector."""
    smoothing: float = 0.05
    """Label smoothing of the fine classes."""
    coarse: float = 0.5
    """Weight of the coarse loss."""
    bare: float = 0.15
    """How often a question loses its question mark."""
    masked: float = 0.08
    """Share of the pieces replaced by [MASK] in training."""


def read_trec(path: Path) -> list[Labelled]:
    """Questions of a TREC file: `COARSE:fine question` per line (Latin-1)."""
    try:
        lines = path.read_text(encoding="latin-1").splitlines()
    except OSError as problem:
        raise UsageError(f"{path}: cannot be read ({problem.strerror})") from None
    found = []
    for number, line in enumerate(lines, 1):
        label, _, question = line.strip().partition(" ")
        if ":" not in label or not question:
            raise UsageError(f"{path}:{number}: not a line `COARSE:fine question`")
        found.append(Labelled(question.strip(), label))
    return found


def part(items: Sequence[Labelled], share: float, seed: int) -> tuple[list[Labelled], list[Labelled]]:
    """The items to train on and those kept back; the same question is never on both sides."""
    texts = sorted({item.question.lower() for item in items})
    rng = np.random.default_rng(seed)
    kept = {texts[i] for i in rng.permutation(len(texts))[: round(share * len(texts))]}
    return [i for i in items if i.question.lower() not in kept], [i for i in items if i.question.lower() in kept]


def new_net(base: Path, labels: Sequence[str], seed: int) -> tuple[Module, Tokenizer]:
    """The encoder with an untrained head, and its tokenizer."""
    import torch
    from transformers import AutoTokenizer

    torch.manual_seed(seed)
    net = build_classes(base, {"labels": labels})
    freeze(net, *FROZEN)
    return net, AutoTokenizer.from_pretrained(base)


@dataclass(frozen=True)
class TokenisedQuestion:
    """A question as token ids, with the index of its class."""

    ids: tuple[int, ...]
    target: int


def train(
    items: Sequence[Labelled], base: Path, out: Path, schedule: Schedule, options: ClassOptions, *, resume: bool = False
) -> tuple[Module, Tokenizer, list[str], TrainingRun]:
    """Fine-tune on labelled questions: the network, its tokenizer, the fine classes in order, and what was done."""
    import torch

    labels = sorted({item.label for item in items})
    net, tokenizer = new_net(base, labels, schedule.seed)
    coarse = sorted({coarse_of(label) for label in labels})
    of_fine = torch.tensor([coarse.index(coarse_of(label)) for label in labels])
    summed = torch.nn.functional.one_hot(of_fine).float()
    coded = [
        TokenisedQuestion(tuple(ids), labels.index(item.label))
        for item, ids in zip(items, tokenizer([i.question for i in items])["input_ids"], strict=True)
    ]
    mark, mask_id = tokenizer.convert_tokens_to_ids("?"), tokenizer.mask_token_id

    def epoch_items(rng: np.random.Generator, epoch: int) -> list[TokenisedQuestion]:
        return [TokenisedQuestion(_worn(item.ids, rng, options, mark, mask_id), item.target) for item in coded]

    def loss(model: Module, batch: list[TokenisedQuestion]) -> torch.Tensor:
        rows = [i.ids for i in batch]
        inputs = torch.from_numpy(padded(rows)), torch.from_numpy(present(rows))
        scores = class_logits(model, *inputs, options.dropout)
        target = torch.tensor([i.target for i in batch])
        fine = torch.nn.functional.cross_entropy(scores, target, label_smoothing=options.smoothing)
        level = torch.log(scores.softmax(-1) @ summed + 1e-9)
        return fine + options.coarse * torch.nn.functional.nll_loss(level, of_fine[target])

    trainer = Trainer[TokenisedQuestion](net, epoch_items, lambda i: len(i.ids), loss)
    run = fit(trainer, schedule, out, resume=resume, log=lambda line: print(line, flush=True))
    return net, tokenizer, labels, run


def _worn(
    ids: tuple[int, ...], rng: np.random.Generator, options: ClassOptions, mark: int, mask: int
) -> tuple[int, ...]:
    """The question as careless people write it: perhaps without its question mark, some pieces unreadable."""
    inner = list(ids[1:-1])
    if len(inner) > 1 and inner[-1] == mark and rng.random() < options.bare:
        inner.pop()
    hidden = rng.random(len(inner)) < options.masked
    hidden[: 1 if rng.random() < 0.8 else 0] = False
    return (ids[0], *(mask if h else i for i, h in zip(inner, hidden, strict=True)), ids[-1])


def fitted_temperature(answers: Sequence[QuestionClass], labels: Sequence[str]) -> float:
    """The temperature under which the right classes are most probable, on a fine grid from 0.3 to 3.

    The logarithms of probabilities are logits up to a constant, so the answers themselves can be tempered.
    """
    scores = np.log(np.array([list(a.fine.values()) for a in answers]) + 1e-30)
    names = list(answers[0].fine)
    rows = [(i, names.index(label)) for i, label in enumerate(labels) if label in names]
    at = tuple(np.array(rows).T)
    grid = np.geomspace(0.3, 3.0, 231)
    costs = [-np.log(softmax(scores, t)[at] + 1e-12).mean() for t in grid]
    return float(grid[int(np.argmin(costs))])


def answering(net: Module, tokenizer: Tokenizer, labels: Sequence[str]) -> QuestionClasses:
    """The network as the model that answers, before calibration."""
    net.eval()
    return QuestionClasses(torch_scores(net), Tokens.from_transformers(tokenizer), labels)


def report(model: QuestionClasses, items: Sequence[Labelled]) -> dict[str, float]:
    """Accuracy and calibration error at both levels, with the number of questions."""
    answers = ask(model, items)
    found: dict[str, float] = {"n": len(items)}
    for level, labels in (("coarse", [coarse_of(i.label) for i in items]), ("fine", [i.label for i in items])):
        chosen = [max(getattr(a, level).items(), key=lambda pair: pair[1]) for a in answers]
        right = np.array([label == wanted for (label, _), wanted in zip(chosen, labels, strict=True)])
        found[level] = float(right.mean())
        found[f"{level}_ece"] = calibration_error(reliability([p for _, p in chosen], right, bins=15))
    return found


def ask(model: QuestionClasses, items: Sequence[Labelled]) -> list[QuestionClass]:
    """The model's answers on labelled questions, in order."""
    return model.answer_all([ClassifyQuestion(item.question) for item in items])


@click.command()
@train_options
@click.option(
    "--base", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Folder of the base encoder."
)
@click.option("--epochs", default=8.0, show_default=True, help="Passes over the questions, unless --steps is given.")
@click.option("--lr", type=click.FloatRange(0, min_open=True), default=2e-4, show_default=True)
@click.option("--batch", type=click.IntRange(1), default=32, show_default=True)
@click.option(
    "--refit/--no-refit", default=True, show_default=True, help="Retrain on all questions and store that model."
)
@click.option("--stored", type=click.Choice(["int8", "fp16"]), default="int8", show_default=True)
@click.option("--evaluate", is_flag=True, help="Only print how good the model in --out (or the shipped one) is.")
def command(
    data: Path, out: Path | None, minutes: float, steps: int, seed: int, threads: int, resume: bool, base: Path | None,
    epochs: float, lr: float, batch: int, refit: bool, stored: str, evaluate: bool,
) -> None:  # fmt: skip
    """Train the question classes behind QSTS on the TREC questions, or say how good they are (--evaluate)."""
    need("torch", "transformers", "safetensors")
    import torch

    torch.set_num_threads(threads)
    test = read_trec(data / "trec_test.txt")
    if evaluate:
        model = load(shipped_identity(ModelChoice("classes"), out, base=base))
        click.echo(_line("trec_test", report(model, test)))
        return
    out = destination(out)
    items, kept = part(read_trec(data / "trec_train.txt"), KEPT, seed)
    base = base or find(ModelChoice("encoder", BASE)).folder
    bound = 0 if minutes > 0 and steps <= 0 else steps or math.ceil(epochs * math.ceil(len(items) / batch))
    schedule = Schedule(steps=bound, minutes=minutes, lr=lr, batch=batch, seed=seed, threads=threads, average=AVERAGE)
    options = ClassOptions()
    net, tokenizer, labels, run = train(items, base, out, schedule, options, resume=resume)
    model = answering(net, tokenizer, labels)
    model.temperature = temperature = fitted_temperature(ask(model, kept), [i.label for i in kept])
    found = report(model, kept)
    click.echo(_line("kept back", found))
    if refit:
        net, tokenizer, labels, run = train([*items, *kept], base, out / "all", schedule, options, resume=resume)
    size = save_shipped(
        net, out, base_name=BASE, base=base, settings={"labels": labels, "temperature": temperature}, kind=stored
    )
    final = load(shipped_identity(ModelChoice("classes"), out, base=base))
    facts = {
        "name": "elench-classes",
        "what": "question classes of Li & Roth (2002): 6 coarse, 50 fine",
        "base": f"{BASE} (Apache-2.0), word and position embeddings left alone",
        "data": f"TREC questions (Li & Roth 2002, research use): {len(items)} to train on, {len(kept)} kept back for "
        f"the temperature{', then all of them' if refit else ''}",
        "steps": run.step,
        "minutes": run.seconds / 60,
        "examples": run.examples,
        "seed": seed,
        "learning rate": lr,
        "batch": batch,
        "options": asdict(options),
        "temperature": temperature,
        "kept back": _rounded(found),
        "test": _rounded(report(final, test)),
        "stored": f"{stored}, {size / 1e6:.1f} MB",
        "machine": "2-core CPU machine, no GPU",
    }
    write_card(out, facts)
    click.echo(_line("trec_test", report(final, test)))


def _rounded(found: dict[str, float]) -> dict[str, float]:
    return {k: round(v, 4) for k, v in found.items()}


def _line(what: str, found: dict[str, float]) -> str:
    shown = ", ".join(f"{k} {v:.4f}" for k, v in found.items() if k != "n")
    return f"{what}: {shown} (n={found['n']:g})"
