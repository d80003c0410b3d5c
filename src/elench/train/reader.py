"""Train the reader: which words of a text answer a question, and whether any do (`elench train reader`).

MiniLM with a span head; the [CLS] position means "no answer". Besides answerable questions it sees unanswerable
ones made by negative sampling (QuestEval §5.2): the question moved to another paragraph, to another paragraph of the
same article, to a part of its own paragraph without the answer, or with a name or number changed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
import numpy as np

from elench.models.base import ModelChoice
from elench.models.checkpoints import find, need
from elench.models.shipped import CALIBRATED, save_shipped
from elench.models.tokens import Tokens
from elench.models.torch_networks import Network
from elench.requests import Read
from elench.text.cloze import cloze_question
from elench.train.changes import changed
from elench.train.examples import Example, read_examples, read_jsonl, read_paragraphs
from elench.train.loop import (
    BASES,
    Schedule,
    Trainer,
    TrainingRun,
    about_base,
    fit,
    freeze_words,
    load_checkpoint,
    schedule_of,
    start_from,
    started_from,
    write_card,
)
from elench.train.options import destination, family_option, file_option, start_option, train_options
from elench.train.reader_scores import NEAR, fit_belief, near_misses, score_file, show_quality, some

if TYPE_CHECKING:
    import torch
    from torch.nn import Module
    from transformers import PreTrainedTokenizerBase as Tokenizer

SHARDS = 8
"""A round (the loop's epoch) is an eighth of the data."""
ROUNDS = {"embedded": 8, "large": 2}
"""Rounds during which texts grow longer."""
HELD_OUT = 6
"""Articles of the SQuAD file kept back for a sanity check."""
OTHERS = 3
"""Of the tales every third question is used: training is best spent on encyclopaedic and web text."""
NEGATIVES = {"elsewhere": 0.05, "article": 0.12, "window": 0.10, "changed": 0.16}
"""Unanswerable examples per answerable one, by how they are made."""
CLOZE = 0.2
"""Share of examples asked in the default asker's way: the answer's sentence with a question word in it, and up to half
of its words left out, since the text that is read will say it in other words."""


@dataclass(frozen=True)
class Piece:
    """A question and a stretch of text as token ids; `start` and `end` are -1 if it holds no answer."""

    question: tuple[int, ...]
    text: tuple[int, ...]
    start: int = -1
    end: int = -1


@dataclass(frozen=True)
class TokenisedExample:
    """A whole example as token ids, before cropping."""

    example: Example
    question: tuple[int, ...]
    text: tuple[int, ...]
    start: int
    end: int
    breaks: tuple[int, ...]
    """Token positions where sentences begin."""


FILES = (
    "squad11_train.jsonl.gz",
    "squadshifts_new_wiki.jsonl.gz",
    "squadshifts_reddit.jsonl.gz",
    "squadshifts_amazon.jsonl.gz",
)


def corpora(data: Path, more: Sequence[Path] = ()) -> tuple[list[Example], list[Example]]:
    """What the reader may be trained on, and a small part kept back. `more`: files such as `augment` writes."""
    squad = read_paragraphs(data / FILES[0])
    kept = sorted({e.group for e in squad})[:HELD_OUT]
    shifts = [e for name in FILES[1:] for e in read_paragraphs(data / name)]
    tales = [e for e in read_jsonl(data / "fairytaleqa_train.jsonl", kind="explicit") if e.start >= 0]
    article = {e.context: e.group for e in sorted(squad, key=lambda e: e.group in kept)}
    given = [replace(e, group=article.get(e.context, e.group)) for file in more for e in read_examples(file)]
    asked = [e for e in [*squad, *shifts, *given] if e.start >= 0 and e.group not in kept]
    return asked + tales[::OTHERS], [e for e in squad if e.group in kept]


def tokenised(examples: list[Example], tokenizer: Tokenizer) -> list[TokenisedExample]:
    """Token ids and answer positions of examples; those whose answer does not fall on tokens are left out."""
    texts = list(dict.fromkeys(e.context for e in examples))
    coded = tokenizer(texts, add_special_tokens=False, return_offsets_mapping=True)
    known = {text: (coded["input_ids"][i], coded["offset_mapping"][i]) for i, text in enumerate(texts)}
    questions = tokenizer([e.question for e in examples], add_special_tokens=False)["input_ids"]
    stops = set(tokenizer.convert_tokens_to_ids([".", "!", "?"]))
    sources = []
    for example, question in zip(examples, questions, strict=True):
        ids, places = known[example.context]
        inside = [i for i, (a, b) in enumerate(places) if a < example.end and b > example.start]
        if not inside:
            continue
        breaks = (0, *(i + 1 for i, token in enumerate(ids) if token in stops))
        sources.append(TokenisedExample(example, tuple(question[:48]), tuple(ids), inside[0], inside[-1], breaks))
    return sources


def crop(source: TokenisedExample, size: int, rng: np.random.Generator) -> Piece:
    """The example on a random window of about `size` tokens around its answer, begun at a sentence where possible."""
    n, length = len(source.text), source.end - source.start + 1
    size = max(size, length + 16)
    if n <= size:
        return Piece(source.question, source.text, source.start, source.end)
    margin = min(16, (size - length) // 2)
    left = int(rng.integers(margin, max(margin + 1, size - length - margin + 1)))
    begin = min(max(0, source.start - left), n - size)
    begin = max((b for b in source.breaks if begin - 20 <= b <= begin), default=begin)
    text = source.text[begin : max(begin + size, source.end + 1)]
    return Piece(source.question, text, source.start - begin, source.end - begin)


def stretch(text: tuple[int, ...], breaks: tuple[int, ...], size: int, rng: np.random.Generator) -> tuple[int, ...]:
    """Any window of about `size` tokens of a text."""
    starts = [b for b in breaks if b <= len(text) - size] or [0]
    begin = starts[int(rng.integers(len(starts)))]
    return text[begin : begin + size]


def contains(text: tuple[int, ...], part: tuple[int, ...]) -> bool:
    """Does this sequence of tokens occur in the text?"""
    return any(text[i : i + len(part)] == part for i in range(len(text) - len(part) + 1))


@dataclass(frozen=True)
class EpochSampler:
    """Gives each epoch its examples: cropped texts that grow longer, and freshly sampled negatives."""

    sources: list[TokenisedExample]
    tokenizer: Tokenizer
    negatives: bool = True
    rounds: int = ROUNDS["embedded"]
    """Rounds that begin with short texts; none for a reader that is further trained."""

    def sizes(self, epoch: int) -> tuple[int, int]:
        """Shortest and longest window of a round, in tokens."""
        grown = min(epoch / self.rounds, 1.0) if self.rounds else 1.0
        return round(40 + 60 * grown), round(84 + 140 * grown)

    def __call__(self, rng: np.random.Generator, epoch: int) -> list[Piece]:
        low, high = self.sizes(epoch)
        chosen = self.sources[epoch % SHARDS :: SHARDS]
        pieces = [self.asked(s, crop(s, int(rng.integers(low, high)), rng), rng) for s in chosen]
        if not self.negatives:
            return pieces
        groups: dict[str, list[TokenisedExample]] = defaultdict(list)
        for s in self.sources:
            groups[s.example.group].append(s)
        for kind, share in NEGATIVES.items():
            for i in rng.choice(len(chosen), round(share * len(chosen)), replace=False):
                piece = self.negative(kind, chosen[i], groups, int(rng.integers(low, high)), rng)
                if piece is not None:
                    pieces.append(piece if kind == "changed" else self.asked(chosen[i], piece, rng))
        return pieces

    def asked(self, source: TokenisedExample, piece: Piece, rng: np.random.Generator) -> Piece:
        """The piece as it is, or now and then with a cloze question."""
        if rng.random() >= CLOZE:
            return piece
        example, left_out = source.example, rng.uniform(0, 0.5)
        words = cloze_question(example.context, example.answers[0], example.start).split()
        kept = [word for word in words if rng.random() >= left_out] or words
        ids = self.tokenizer(" ".join(kept), add_special_tokens=False)["input_ids"][:64]
        return replace(piece, question=tuple(ids))

    def negative(
        self, kind: str, source: TokenisedExample, groups: dict[str, list[TokenisedExample]], size: int,
        rng: np.random.Generator,
    ) -> Piece | None:  # fmt: skip
        """The source's question made unanswerable, or None if this one does not lend itself to it."""
        answer = source.text[source.start : source.end + 1]
        if kind == "changed":
            question = changed(source.example, rng)
            if question is None:
                return None
            ids = self.tokenizer(question, add_special_tokens=False)["input_ids"][:48]
            return replace(crop(source, size, rng), question=tuple(ids), start=-1, end=-1)
        pool = {"elsewhere": self.sources, "article": groups[source.example.group], "window": [source]}[kind]
        others = [pool[int(i)] for i in rng.integers(len(pool), size=NEAR if kind == "article" else 1)]
        others = [o for o in others if kind == "window" or o.text != source.text]
        if not others:
            return None
        asked = set(source.question)
        other = max(others, key=lambda o: len(asked & set(o.text)))
        text = stretch(other.text, other.breaks, size, rng)
        return None if contains(text, answer) else Piece(source.question, text)


def collate(pieces: list[Piece], tokens: Tokens) -> dict[str, torch.Tensor]:
    """Padded tensors of a batch, question and text framed as the encoder expects; `allowed`: [CLS] and the text."""
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
    return {**inputs, "allowed": allowed, "start": start, "end": end}


def span_loss(model: Module, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """Mean cross entropy of the right first and last token."""
    import torch

    out = model(**{k: v for k, v in batch.items() if k not in ("allowed", "start", "end")})
    shut = ~batch["allowed"]
    first, last = (logits.float().masked_fill(shut, -1e4) for logits in (out.start_logits, out.end_logits))
    loss: torch.Tensor = torch.nn.functional.cross_entropy(first, batch["start"])
    return (loss + torch.nn.functional.cross_entropy(last, batch["end"])) / 2


def new_reader(base: Path, seed: int) -> tuple[Module, Tokenizer]:
    """The untrained reader on a base encoder, and its tokenizer."""
    import torch
    from transformers import AutoModelForQuestionAnswering, AutoTokenizer, logging

    logging.set_verbosity_error()
    torch.manual_seed(seed)
    model = AutoModelForQuestionAnswering.from_pretrained(
        base, attention_probs_dropout_prob=0.0, hidden_dropout_prob=0.05, use_safetensors=True, dtype=torch.float32
    )
    freeze_words(model)
    return model, AutoTokenizer.from_pretrained(base)


def train(
    data: Path, base: Path, out: Path, schedule: Schedule, *, negatives: bool = True, more: Sequence[Path] = (),
    resume: bool = False, start: Path | None = None, family: str = "embedded",
) -> tuple[Module, Tokenizer, TrainingRun]:  # fmt: skip
    """Fine-tune the reader from a base encoder, or further from the reader in `start`; checkpoints go to `out`."""
    model, tokenizer = new_reader(base, schedule.seed)
    if start is not None:
        start_from(start, {n: p for n, p in model.named_parameters() if p.requires_grad})
    examples, _ = corpora(data, more)
    sources = tokenised(examples, tokenizer)
    order = np.random.default_rng(schedule.seed).permutation(len(sources))
    sampler = EpochSampler([sources[i] for i in order], tokenizer, negatives, 0 if start else ROUNDS[family])
    tokens = Tokens.from_transformers(tokenizer)
    trainer = Trainer[Piece](
        model=model,
        examples=sampler,
        length=lambda p: len(p.question) + len(p.text),
        loss=lambda m, pieces: span_loss(m, collate(pieces, tokens)),
    )
    run = fit(trainer, schedule, out, resume=resume, log=lambda line: print(line, flush=True))
    return model, tokenizer, run


def pack(
    model: Module, base: Path, out: Path, family: str, belief: tuple[float, float], facts: dict[str, object]
) -> None:
    """Store the trained reader with its card."""
    settings, kind = {CALIBRATED: list(belief)}, "fp16" if family == "embedded" else "int8"
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
    """How the probability of "no answer" was fitted, and how good the reader is on articles kept back."""

    belief: tuple[float, float]
    questions: int
    held: dict[str, float]


def _calibrate(network: Module, tokens: Tokens, kept: list[Example], most: int) -> Calibration:
    from elench.models import reader

    raw = reader.SpanReader(Network(network, tokens), tokens)
    pairs = near_misses([e for e in kept if e.start >= 0], most or 400)
    readings = raw.answer_all([Read(e.question, e.context) for e in pairs])
    belief = fit_belief([r.unanswerable for r in readings], [bool(e.answers) for e in pairs])
    calibrated = reader.SpanReader(raw.network, tokens, belief=belief)
    held = score_file(calibrated, some(kept, most or 100))
    return Calibration(belief, len(pairs), {k: round(held[k], 3) for k in ("n", "em", "f1", "auc")})


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
@click.option(
    "--pack", "pack_only", is_flag=True, help="Only store the last checkpoint as a model, without further training."
)
@click.option(
    "--evaluate", "evaluate", is_flag=True, help="Only print how good the reader in --out (or the shipped) is."
)
@click.option("--most", type=click.IntRange(0), default=0, help="Evaluate on at most this many questions of each file.")
def command(
    data: Path, out: Path | None, minutes: float, steps: int, seed: int, threads: int, resume: bool, base: Path | None,
    lr: float, batch: int, negatives: bool, more: tuple[Path, ...], family: str, start: Path | None, pack_only: bool,
    evaluate: bool, most: int,
) -> None:  # fmt: skip
    """Train the reader, or say how good it is (--evaluate)."""
    need("torch", "transformers", "safetensors")
    import torch

    torch.set_num_threads(threads)
    if evaluate:
        return show_quality(data, out, most)
    out = destination(out)
    base = base or find(ModelChoice("encoder", BASES[family])).folder
    schedule = schedule_of(minutes, steps, lr, batch, seed, threads, pack_only)
    if schedule is None:
        network, tokenizer = new_reader(base, seed)
        run = load_checkpoint(out, {n: p for n, p in network.named_parameters() if p.requires_grad})
        network.eval()
    else:
        network, tokenizer, run = train(
            data, base, out, schedule, negatives=negatives, more=more, resume=resume, start=start, family=family
        )
    found = _calibrate(network, Tokens.from_transformers(tokenizer), corpora(data)[1], most)
    shares = ", ".join(f"{kind} {share:g}" for kind, share in NEGATIVES.items())
    facts = {
        "steps": run.step, "minutes": round(run.seconds / 60, 1), "examples": run.examples, "seed": seed,
        "negatives": f"{shares} per answerable one" if negatives else "none",
        "questions of other files": sum(len(read_examples(file)) for file in more),
        "learning rate": lr, "batch": batch, "machine": "2-core CPU machine, no GPU",
        "calibrated on": f"{found.questions} questions of the kept-back articles, half of them made unanswerable",
        **started_from(start), "kept-back articles": found.held,
    }  # fmt: skip
    pack(network, base, out, family, found.belief, facts)
    click.echo(f"{out}: {run.step} steps, {run.seconds / 60:.1f} min; kept-back articles: {found.held}")
