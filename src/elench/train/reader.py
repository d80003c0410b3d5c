"""Train the reader: which words of a text answer a question, and whether any do (`elench train reader`).

MiniLM with a span head; the [CLS] position means "no answer". Besides answerable questions it sees unanswerable
ones made by negative sampling (QuestEval §5.2): the question moved to another paragraph, to another paragraph of the
same article, to a part of its own paragraph without the answer, or with a name or number changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
import numpy as np

from elench.errors import UsageError
from elench.models.base import ModelChoice
from elench.models.checkpoints import find, need
from elench.models.reader import Fitted, SpanReader
from elench.models.shipped import CALIBRATED, LENGTHS, save_shipped
from elench.models.tokens import Tokens
from elench.models.torch_networks import Network
from elench.requests import Read
from elench.train.examples import Example, read_examples
from elench.train.loop import (
    BASES,
    Schedule,
    Trainer,
    TrainingRun,
    about_base,
    fit,
    freeze_words,
    halfway,
    load_checkpoint,
    schedule_of,
    start_from,
    started_from,
    taught_by,
    write_card,
)
from elench.train.options import (
    destination,
    family_option,
    file_option,
    start_option,
    teacher_option,
    train_options,
)
from elench.train.reader_examples import CLOZE, NEGATIVES, ROUNDS, EpochSampler, Piece, corpora, tokenised
from elench.train.reader_scores import (
    fit_belief,
    fit_lengths,
    length_scores,
    near_misses,
    score_file,
    show_quality,
    some,
    weighed,
)
from elench.train.reader_teacher import SpanTeacher

if TYPE_CHECKING:
    import torch
    from torch.nn import Module
    from transformers import PreTrainedTokenizerBase as Tokenizer


def collate(pieces: list[Piece], tokens: Tokens, teacher: SpanTeacher | None = None) -> dict[str, torch.Tensor]:
    """Padded tensors of a batch, question and text framed as the encoder expects; `allowed`: [CLS] and the text.

    With a teacher also its probabilities of the first and the last token (`soft`: 2 × pieces × tokens).
    """
    import torch

    rows = [tokens.pair(p.question, p.text) for p in pieces]
    shape = (len(pieces), max(len(ids) for ids, _ in rows))
    ids, types = torch.full(shape, tokens.filler), torch.zeros(shape, dtype=torch.long)
    attention, allowed = torch.zeros(shape, dtype=torch.long), torch.zeros(shape, dtype=torch.bool)
    start, end = torch.zeros(len(pieces), dtype=torch.long), torch.zeros(len(pieces), dtype=torch.long)
    for row, (p, (whole, begin)) in enumerate(zip(pieces, rows, strict=True)):
        ids[row, : len(whole)] = torch.tensor(whole)
        types[row, begin : len(whole)] = 1
        attention[row, : len(whole)] = 1
        allowed[row, 0] = True
        allowed[row, begin : begin + len(p.text)] = True
        if p.start >= 0:
            start[row], end[row] = begin + p.start, begin + p.end
    inputs = {"input_ids": ids, "attention_mask": attention} | ({"token_type_ids": types} if tokens.typed else {})
    batch = {**inputs, "allowed": allowed, "start": start, "end": end}
    if teacher is not None:
        batch["soft"] = torch.zeros(2, *shape)
        batch["soft"][:, allowed] = torch.from_numpy(teacher.probabilities(pieces))
    return batch


def span_loss(model: Module, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """Mean cross entropy of the right first and last token; half of it the teacher's, where there is one."""
    import torch

    out = model(**{k: v for k, v in batch.items() if k not in ("allowed", "start", "end", "soft")})
    shut = ~batch["allowed"]
    said = [logits.float().masked_fill(shut, -1e4) for logits in (out.start_logits, out.end_logits)]
    entropy = torch.nn.functional.cross_entropy
    hard = (entropy(said[0], batch["start"]) + entropy(said[1], batch["end"])) / 2
    if "soft" not in batch:
        return hard
    soft = (entropy(said[0], batch["soft"][0]) + entropy(said[1], batch["soft"][1])) / 2
    return (hard + soft) / 2


def new_reader(base: Path, seed: int) -> tuple[Module, Tokenizer]:
    """The untrained reader on a base encoder, and its tokenizer."""
    import torch
    from transformers import AutoModelForQuestionAnswering, AutoTokenizer, logging

    logging.set_verbosity_error()
    torch.manual_seed(seed)
    model = AutoModelForQuestionAnswering.from_pretrained(
        base, attention_probs_dropout_prob=0.0, hidden_dropout_prob=0.0, use_safetensors=True, dtype=torch.float32
    )
    freeze_words(model)
    return model, AutoTokenizer.from_pretrained(base)


def train(
    data: Path, base: Path, out: Path, schedule: Schedule, *, negatives: bool = True, more: Sequence[Path] = (),
    resume: bool = False, start: Path | None = None, family: str = "embedded", teacher: Path | None = None,
) -> tuple[Module, Tokenizer, TrainingRun]:  # fmt: skip
    """Fine-tune the reader from a base encoder, or further from the reader in `start`; checkpoints go to `out`.

    `teacher`: folder of a stored reader whose probabilities are learnt, too.
    """
    model, tokenizer = new_reader(base, schedule.seed)
    if start is not None:
        start_from(start, {n: p for n, p in model.named_parameters() if p.requires_grad})
    examples, _ = corpora(data, more)
    sources = tokenised(examples, tokenizer)
    order = np.random.default_rng(schedule.seed).permutation(len(sources))
    sampler = EpochSampler([sources[i] for i in order], tokenizer, negatives, 0 if start else ROUNDS[family])
    tokens = Tokens.from_transformers(tokenizer)
    taught = SpanTeacher.from_folder(teacher) if teacher else None
    trainer = Trainer[Piece](
        model=model,
        examples=sampler,
        length=lambda p: len(p.question) + len(p.text),
        loss=lambda m, pieces: span_loss(m, collate(pieces, tokens, taught)),
    )
    run = fit(trainer, schedule, out, resume=resume, log=lambda line: print(line, flush=True))
    return model, tokenizer, run


def pack(model: Module, base: Path, out: Path, family: str, fitted: Fitted, facts: dict[str, object]) -> None:
    """Store the trained reader with its card."""
    settings: dict[str, object] = {CALIBRATED: list(fitted.belief)}
    settings |= {LENGTHS: list(fitted.lengths)} if fitted.lengths else {}
    kind = "fp16" if family == "embedded" else "int8"
    size = save_shipped(model, out, base_name=BASES[family], base=base, settings=settings, kind=kind)
    write_card(
        out,
        {
            "name": "elench reader",
            "task": "extractive question answering with an unanswerable option, English",
            "base": about_base(family),
            "data": "SQuAD v1.1 train without the paragraphs of any rated file (84,534 questions, CC BY-SA 4.0), "
            "SquadShifts new_wiki, reddit and amazon (27,000 questions, no licence stated), every third explicit "
            "question of FairytaleQA (Apache-2.0)",
            "cloze questions": f"{CLOZE:g} of the examples",
            **facts,
            "bytes": size,
            "licence": "CC BY-SA 4.0 (from the training data)",
        },
    )


class Calibration(NamedTuple):
    """What was fitted after the training, and how good the reader is on articles kept back."""

    fitted: Fitted
    weight: float
    """Of the usual length of answers."""
    questions: int
    held: dict[str, float]


def _calibrate(network: Module, tokens: Tokens, parts: tuple[list[Example], list[Example]], most: int) -> Calibration:
    """First the weight of an answer's length, then the belief in "no answer"."""
    known, kept = parts
    raw = SpanReader(Network(network, tokens), tokens)
    usual = length_scores([len(ids) for ids in tokens.ids([e.answers[0] for e in known if e.start >= 0])])
    answerable = [e for e in kept if e.start >= 0]
    weight = fit_lengths(raw, usual, some(answerable, most or 400))
    fitted = Fitted(lengths=weighed(usual, weight))
    pairs = near_misses(answerable, most or 400)
    readings = SpanReader(raw.network, tokens, fitted=fitted).answer_all([Read(e.question, e.context) for e in pairs])
    belief = fit_belief([r.unanswerable for r in readings], [bool(e.answers) for e in pairs])
    fitted = fitted._replace(belief=belief)
    held = score_file(SpanReader(raw.network, tokens, fitted=fitted), some(kept, most or 100))
    return Calibration(fitted, weight, len(pairs), {k: round(held[k], 3) for k in ("n", "em", "f1", "auc")})


@click.command()
@train_options
@click.option(
    "--base", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Folder of the base encoder."
)
@click.option("--lr", type=click.FloatRange(0, min_open=True), default=2.5e-4, show_default=True)
@click.option("--batch", type=click.IntRange(1), default=32, show_default=True)
@click.option("--negatives/--no-negatives", default=True, help="Negative sampling (QuestEval §5.2).")
@file_option
@family_option
@start_option
@teacher_option
@click.option(
    "--halfway", "mean", is_flag=True, help="Store the mean of the weights of --start and of those at the end."
)
@click.option(
    "--pack", "pack_only", is_flag=True, help="Only store the last checkpoint as a model, without further training."
)
@click.option(
    "--evaluate", "evaluate", is_flag=True, help="Only print how good the reader in --out (or the shipped) is."
)
@click.option("--most", type=click.IntRange(0), default=0, help="Evaluate on at most this many questions of each file.")
def command(
    data: Path, out: Path | None, minutes: float, steps: int, seed: int, threads: int, resume: bool, base: Path | None,
    lr: float, batch: int, negatives: bool, more: tuple[Path, ...], family: str, start: Path | None,
    teacher: Path | None, mean: bool, pack_only: bool, evaluate: bool, most: int,
) -> None:  # fmt: skip
    """Train the reader, or say how good it is (--evaluate)."""
    need("torch", "transformers", "safetensors")
    import torch

    torch.set_num_threads(threads)
    if evaluate:
        return show_quality(data, out, most)
    out = destination(out)
    if mean and start is None:
        raise UsageError("--halfway needs --start, the model at the other end")
    base = base or find(ModelChoice("encoder", BASES[family])).folder
    schedule = schedule_of(minutes, steps, lr, batch, seed, threads, pack_only)
    if schedule is None:
        network, tokenizer = new_reader(base, seed)
        run = load_checkpoint(out, {n: p for n, p in network.named_parameters() if p.requires_grad})
        network.eval()
    else:
        network, tokenizer, run = train(
            data, base, out, schedule, negatives=negatives, more=more, resume=resume, start=start, family=family,
            teacher=teacher,
        )  # fmt: skip
    if mean and start is not None:
        halfway(start, {n: p for n, p in network.named_parameters() if p.requires_grad})
    found = _calibrate(network, Tokens.from_transformers(tokenizer), corpora(data, more), most)
    shares = ", ".join(f"{kind} {share:g}" for kind, share in NEGATIVES.items())
    facts = {
        "steps": run.step, "minutes": round(run.seconds / 60, 1), "examples": run.examples, "seed": seed,
        "negatives": f"{shares} per answerable one" if negatives else "none",
        "questions of other files": sum(len(read_examples(file)) for file in more),
        "learning rate": lr, "batch": batch, "machine": "2-core CPU machine, no GPU",
        "calibrated on": f"{found.questions} questions of the kept-back articles, half of them made unanswerable",
        "usual length of an answer": f"weight {found.weight:g}, the best on these articles",
        **started_from(start, mean), **taught_by(teacher), "kept-back articles": found.held,
    }  # fmt: skip
    pack(network, base, out, family, found.fitted, facts)
    click.echo(f"{out}: {run.step} steps, {run.seconds / 60:.1f} min; kept-back articles: {found.held}")
