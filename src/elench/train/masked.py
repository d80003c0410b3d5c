"""Train a masked-word head on an encoder (`elench train masked`): which word is behind the mask?

Half of the examples are stretches of the corpora's paragraphs with 15 % of their words masked; the other half are a
passage, a question and its answer, joined as QAScore joins them, with words of the answer masked. All pieces of a
word are masked together. The output matrix is the encoder's own word embeddings; only a small transform and a bias
are new. Of MiniLM all layers are trained, of MPNet (the large family) the uppermost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

from elench.models.base import ModelChoice
from elench.models.checkpoints import find, need
from elench.models.shipped import save_shipped
from elench.train.examples import Example, read_paragraphs
from elench.train.loop import FROZEN, Trainer, TrainingRun, fit, freeze, load_checkpoint, schedule_of, write_card
from elench.train.options import destination, train_options

if TYPE_CHECKING:
    import torch
    from torch.nn import Module
    from transformers import PreTrainedTokenizerBase as Tokenizer

BASES = {"embedded": "all-minilm-l6-v2", "large": "all-mpnet-base-v2"}
TRAINED = 4
"""Layers of MPNet that are trained, from the top."""
FILES = ("squad11_train.jsonl.gz", "squadshifts_new_wiki.jsonl.gz", "squadshifts_reddit.jsonl.gz", "subjqa.jsonl.gz")
HELD_OUT = 6
"""Articles of SQuAD kept back for the figures in the card."""
ROUND = 8000
"""Examples of one round (the loop's epoch)."""
LONGEST = 160
MASKED = 0.15
IGNORED = -100


@dataclass(frozen=True)
class Blanked:
    """Token ids with masks, and what is behind them (IGNORED elsewhere)."""

    ids: tuple[int, ...]
    wanted: tuple[int, ...]


def corpora(data: Path) -> tuple[list[Example], list[Example]]:
    """Examples to train on, and those of the articles kept back."""
    squad = read_paragraphs(data / FILES[0])
    kept = set(sorted({e.group for e in squad})[:HELD_OUT])
    others = [e for name in FILES[1:] for e in read_paragraphs(data / name)]
    return [e for e in [*squad, *others] if e.group not in kept], [e for e in squad if e.group in kept]


class Blanker:
    """Makes examples from texts: which words are masked is drawn by the generator."""

    def __init__(self, examples: Sequence[Example], tokenizer: Tokenizer) -> None:
        self.examples, self.tokenizer = examples, tokenizer
        self.cls, self.sep, self.mask = (tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.mask_token_id)

    def __call__(self, rng: np.random.Generator, epoch: int) -> list[Blanked]:
        chosen = [self.examples[int(i)] for i in rng.integers(len(self.examples), size=ROUND)]
        made = [self.plain(e.context, rng) if rng.random() < 0.5 else self.answered(e, rng) for e in chosen]
        return [m for m in made if any(w != IGNORED for w in m.wanted)]

    def pieces(self, text: str) -> tuple[list[int], list[int | None]]:
        """Token ids of a text and the word each belongs to."""
        coded = self.tokenizer(text, add_special_tokens=False, verbose=False)
        return coded["input_ids"], coded.word_ids()

    def plain(self, text: str, rng: np.random.Generator) -> Blanked:
        """A stretch of a text with some of its words masked."""
        ids, words = self.pieces(text)
        begin = int(rng.integers(max(1, len(ids) - LONGEST + 1)))
        ids, words = ids[begin : begin + LONGEST], words[begin : begin + LONGEST]
        known = sorted({w for w in words if w is not None})
        hidden = {w for w in known if rng.random() < MASKED}
        if known and not hidden:
            hidden = {known[int(rng.integers(len(known)))]}
        return self.frame([(ids, [w in hidden for w in words])])

    def answered(self, example: Example, rng: np.random.Generator) -> Blanked:
        """Passage, question and answer; one word of the answer is masked, now and then all."""
        if example.start < 0:
            return self.plain(example.context, rng)
        answer, words = self.pieces(example.answers[0])
        known = sorted({w for w in words if w is not None})
        if not known:
            return self.plain(example.context, rng)
        hidden = set(known) if rng.random() < 0.15 else {known[int(rng.integers(len(known)))]}
        question = self.pieces(example.question)[0][:40]
        room = max(40, LONGEST - len(question) - len(answer))
        left = max(0, example.start - int(rng.integers(room * 4)))
        passage = self.pieces(example.context[left : left + room * 6])[0][:room]
        return self.frame(
            [
                (passage, [False] * len(passage)),
                (question, [False] * len(question)),
                (answer, [w in hidden for w in words]),
            ]
        )

    def frame(self, parts: Sequence[tuple[Sequence[int], Sequence[bool]]]) -> Blanked:
        """[CLS] part [SEP] part … [SEP], the marked tokens masked."""
        ids, wanted = [self.cls], [IGNORED]
        for tokens, marked in parts:
            ids += [self.mask if hide else token for token, hide in zip(tokens, marked, strict=True)] + [self.sep]
            wanted += [token if hide else IGNORED for token, hide in zip(tokens, marked, strict=True)] + [IGNORED]
        return Blanked(tuple(ids), tuple(wanted))


def logits(model: Module, batch: Sequence[Blanked]) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits at the masked places only, and the tokens there."""
    import torch

    width = max(len(b.ids) for b in batch)
    ids = torch.tensor([[*b.ids, *[0] * (width - len(b.ids))] for b in batch])
    wanted = torch.tensor([[*b.wanted, *[IGNORED] * (width - len(b.wanted))] for b in batch])
    attention = torch.tensor([[1] * len(b.ids) + [0] * (width - len(b.ids)) for b in batch])
    hidden = model.base_model(input_ids=ids, attention_mask=attention).last_hidden_state
    places = wanted != IGNORED
    head = model.lm_head if hasattr(model, "lm_head") else model.cls
    return head(hidden[places]), wanted[places]


def masked_loss(model: Module, batch: Sequence[Blanked]) -> torch.Tensor:
    """Mean cross entropy of the masked tokens."""
    import torch

    said, wanted = logits(model, batch)
    loss: torch.Tensor = torch.nn.functional.cross_entropy(said.float(), wanted)
    return loss


def new_masked(base: Path, seed: int) -> tuple[Module, Tokenizer]:
    """An encoder with an untrained head tied to its word embeddings, and its tokenizer."""
    import torch
    from transformers import AutoModelForMaskedLM, AutoTokenizer, logging

    logging.set_verbosity_error()
    torch.manual_seed(seed)
    model = AutoModelForMaskedLM.from_pretrained(
        base, attention_probs_dropout_prob=0.0, hidden_dropout_prob=0.0, use_safetensors=True, dtype=torch.float32
    )
    freeze(model, *FROZEN)
    if model.config.model_type == "mpnet":
        top = tuple(f"encoder.layer.{n}." for n in range(model.config.num_hidden_layers))[-TRAINED:]
        for name, p in model.named_parameters():
            p.requires_grad_(p.requires_grad and (name.startswith("lm_head.") or any(part in name for part in top)))
    return model, AutoTokenizer.from_pretrained(base)


def figures(model: Module, tokenizer: Tokenizer, kept: Sequence[Example], seed: int = 1) -> dict[str, dict[str, float]]:
    """Perplexity and top-1 accuracy of masked tokens on articles kept back: in plain text and in answers."""
    import torch

    rng, blanker = np.random.default_rng(seed), Blanker(kept, tokenizer)
    some = [kept[int(i)] for i in rng.permutation(len(kept))[:400]]
    found = {}
    for kind, made in (
        ("plain text", [blanker.plain(e.context, rng) for e in some]),
        ("answers", [blanker.answered(e, rng) for e in some]),
    ):
        loss = right = n = 0.0
        with torch.inference_mode():
            for at in range(0, len(made), 16):
                said, wanted = logits(model, made[at : at + 16])
                loss += float(torch.nn.functional.cross_entropy(said.float(), wanted, reduction="sum"))
                right += float((said.argmax(-1) == wanted).sum())
                n += len(wanted)
        found[kind] = {"n": n, "perplexity": round(math.exp(loss / n), 2), "top-1": round(right / n, 3)}
    return found


@click.command()
@train_options
@click.option("--lr", type=click.FloatRange(0, min_open=True), default=4e-4, show_default=True)
@click.option("--batch", type=click.IntRange(1), default=24, show_default=True)
@click.option(
    "--family",
    type=click.Choice(list(BASES)),
    default="embedded",
    show_default=True,
    help="The base: MiniLM (embedded) or MPNet (large).",
)
@click.option("--pack", "pack_only", is_flag=True, help="Only store the last checkpoint as a model.")
def command(
    data: Path, out: Path | None, minutes: float, steps: int, seed: int, threads: int, resume: bool, lr: float,
    batch: int, family: str, pack_only: bool,
) -> None:  # fmt: skip
    """Train the masked-word head, and print perplexity and accuracy on text kept back."""
    need("torch", "transformers", "safetensors")
    import torch

    out = destination(out)
    torch.set_num_threads(threads)
    base_name = BASES[family]
    base = find(ModelChoice("encoder", base_name)).folder
    model, tokenizer = new_masked(base, seed)
    examples, kept = corpora(data)
    schedule = schedule_of(minutes, steps, lr, batch, seed, threads, pack_only)
    if schedule is None:
        run: TrainingRun = load_checkpoint(out, {n: p for n, p in model.named_parameters() if p.requires_grad})
        model.eval()
    else:
        trainer = Trainer[Blanked](model, Blanker(examples, tokenizer), lambda b: len(b.ids), masked_loss)
        run = fit(trainer, schedule, out, resume=resume, log=lambda line: print(line, flush=True))
    shown = figures(model, tokenizer, kept)
    kept_as_is = f"all but the upper {TRAINED} layers unchanged" if family == "large" else "its embeddings unchanged"
    size_of = {"embedded": 22, "large": 110}[family]
    size = save_shipped(model, out, base_name=base_name, base=base, kind="int8")
    write_card(
        out,
        {
            "name": "elench masked",
            "task": "log-probability of masked words, English",
            "base": f"{base_name} (Apache-2.0), {kept_as_is}; head tied to its word embeddings",
            "data": "SQuAD v1.1 train without the paragraphs of any rated file (CC BY-SA 4.0), SquadShifts new_wiki "
            "and reddit, SubjQA (no licence stated); half plain text, half passage + question + answer",
            "steps": run.step, "minutes": round(run.seconds / 60, 1), "examples": run.examples, "seed": seed,
            "learning rate": lr, "batch": batch, "machine": "2-core CPU machine, no GPU", "articles kept back": shown,
            "bytes": size,
            "bad at": f"rare names: it has {size_of} M parameters, the paper's RoBERTa-large 355 M",
            "licence": "CC BY-SA 4.0 (from the training data)",
        },
    )  # fmt: skip
    click.echo(f"{out}: {run.step} steps, {run.seconds / 60:.1f} min; articles kept back: {shown}")
