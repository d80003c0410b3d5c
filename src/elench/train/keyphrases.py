"""Train the keyphrase model: which words of an answer carry it, given the question (`elench train keyphrases`).

KPQA §3.1 with MiniLM: each piece of the answer is key or not. The examples are made anew for each epoch by
`keyphrase_examples.Mixture`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

from elench.models.base import ModelChoice
from elench.models.checkpoints import find, need
from elench.models.tokens import Tokens, padded, present
from elench.train.examples import Example, read_examples, read_jsonl, read_paragraphs
from elench.train.keyphrase_examples import AnswerSentences, Marked, Mixture, definitions
from elench.train.loop import (
    FROZEN,
    Schedule,
    Trainer,
    TrainingRun,
    fit,
    freeze,
    load_checkpoint,
    schedule_of,
    write_card,
)
from elench.train.options import destination, file_option, train_options

if TYPE_CHECKING:
    import torch
    from torch.nn import Module
    from transformers import PreTrainedTokenizerBase as Tokenizer

    from elench.models.keyphrases import KeyphraseModel, Sheet

BASE = "all-minilm-l6-v2"
HELD_OUT = 2
"""Articles of the SQuAD file kept back."""
KEPT_BACK = 800
"""How many kept-back questions are scored at most."""


def corpora(data: Path, more: Sequence[Path] = ()) -> tuple[list[Example], list[Example]]:
    """What the keyphrase model may be trained on, and the part kept back: two SQuAD articles and FairytaleQA's val."""
    squad = read_paragraphs(data / "squad11_train.jsonl.gz")
    kept = sorted({e.group for e in squad})[:HELD_OUT]
    train = [e for e in squad if e.group not in kept]
    train += read_jsonl(data / "fairytaleqa_train.jsonl") + read_jsonl(data / "hotpot_qg.jsonl")
    for path in more:
        train += read_examples(path)
    held = [e for e in squad if e.group in kept] + read_jsonl(data / "fairytaleqa_val.jsonl")
    return [e for e in train if e.answers], held


@dataclass(frozen=True)
class MarkedSheet:
    """A marked answer as pieces, ready for a batch; `targets` per piece, -1 where none is asked for."""

    sheet: Sheet
    targets: tuple[float, ...]


def marked_sheets(marked: Sequence[Marked], tokenizer: Tokenizer) -> list[MarkedSheet]:
    """Marked answers as pieces; those beyond one pass are left out."""
    from elench.models.keyphrases import WINDOW, lay_out

    sheets = lay_out([(m.question, m.answer) for m in marked], Tokens.from_transformers(tokenizer))
    return [
        MarkedSheet(s, tuple(m.key[o] if o >= 0 else -1.0 for o in s.owners))
        for m, s in zip(marked, sheets, strict=True)
        if len(s.question) + len(s.answer) + 3 <= WINDOW
    ]


def key_loss(network: Module, batch: Sequence[MarkedSheet], cls: int, sep: int) -> torch.Tensor:
    """Mean cross entropy over the pieces of the answers' words."""
    import torch

    from elench.models.keyphrases import collate

    made = collate([item.sheet.rows()[0] for item in batch], cls, sep)
    arrays = {
        "input_ids": padded(made.rows), "attention_mask": present(made.rows), "token_type_ids": made.types,
        "facts": made.facts,
    }  # fmt: skip
    inputs = {name: torch.from_numpy(values) for name, values in arrays.items()}
    targets = torch.full(inputs["input_ids"].shape, -1.0)
    for i, item in enumerate(batch):
        begin = len(item.sheet.question) + 2
        targets[i, begin : begin + len(item.targets)] = torch.tensor(item.targets)
    logits = network(**inputs)
    wanted = targets >= 0
    margin = (logits[..., 1] - logits[..., 0])[wanted]
    return torch.nn.functional.binary_cross_entropy_with_logits(margin, targets[wanted])


def new_network(base: Path, seed: int) -> tuple[Module, Tokenizer]:
    """The untrained keyphrase model on a base encoder, and its tokenizer."""
    import torch
    from transformers import AutoTokenizer

    from elench.models.torch_networks import build_keyphrases

    torch.manual_seed(seed)
    network = build_keyphrases(base, {})
    freeze(network, *FROZEN)
    return network, AutoTokenizer.from_pretrained(base)


def without_facts(made: Sequence[MarkedSheet]) -> list[MarkedSheet]:
    """Sheets that tell the network nothing but the pieces, as in the paper; its fact vectors then stay zero."""
    return [replace(m, sheet=replace(m.sheet, facts=(0,) * len(m.sheet.facts))) for m in made]


def train(
    examples: Sequence[Example],
    base: Path,
    out: Path,
    schedule: Schedule,
    *,
    recipe: str = "ours",
    resume: bool = False,
) -> tuple[Module, Tokenizer, TrainingRun]:
    """Fine-tune the keyphrase model from a base encoder; checkpoints go to `out`.

    recipe: ours, paper (answer sentences with their spans, no word facts, no unit labels) or paper-kp (the same without
    the question: the paper's KP ablation).
    """
    network, tokenizer = new_network(base, schedule.seed)
    mixture = (
        Mixture(examples, definitions(examples))
        if recipe == "ours"
        else AnswerSentences(examples, question=recipe == "paper")
    )
    shown = marked_sheets if recipe == "ours" else lambda marked, coder: without_facts(marked_sheets(marked, coder))
    cls, sep = tokenizer.cls_token_id, tokenizer.sep_token_id
    trainer = Trainer[MarkedSheet](
        model=network,
        examples=lambda rng, epoch: shown(mixture(rng, epoch), tokenizer),
        length=lambda item: len(item.sheet.question) + len(item.sheet.answer),
        loss=lambda model, batch: key_loss(model, batch, cls, sep),
    )
    run = fit(trainer, schedule, out, resume=resume, log=lambda line: print(line, flush=True))
    return network, tokenizer, run


def key_f1(model: KeyphraseModel, marked: Sequence[Marked]) -> dict[str, float]:
    """Precision, recall and F1 of the key words (weight above one half), over all words of all answers."""
    found = model.weigh([(m.question, m.answer) for m in marked])
    said = np.array([w > 0.5 for f in found for w in f.weights])
    true = np.array([k > 0.5 for m in marked for k in m.key])
    hits = float((said & true).sum())
    precision, recall = hits / max(said.sum(), 1), hits / max(true.sum(), 1)
    return {
        "n": len(marked),
        "precision": precision,
        "recall": recall,
        "f1": 2 * hits / max(said.sum() + true.sum(), 1),
    }


def report(model: KeyphraseModel, held: Sequence[Example], seed: int = 7) -> dict[str, dict[str, float]]:
    """Key-word F1 on kept-back answers, by kind, with the question and without it, beside the plain rule.

    The rule says: key is every word that is neither in the question nor a stop word.
    """
    from elench.models.keyphrases import facts_of
    from elench.text.roots import words_of

    rng = np.random.default_rng(seed)
    some = [held[i] for i in sorted(rng.permutation(len(held))[:KEPT_BACK])]
    marked = Mixture(some, definitions(some), silent=0.0)(rng, 0)
    kinds = sorted({m.kind for m in marked})
    scores = {kind: key_f1(model, [m for m in marked if m.kind == kind]) for kind in kinds}
    scores["all"] = key_f1(model, marked)
    scores["all, no question"] = key_f1(model, [Marked("", m.answer, m.key, m.kind) for m in marked])
    rule = [f in (1, 5) for m in marked for f in facts_of(m.question, [w for w, _ in words_of(m.answer)])]
    true = [k > 0.5 for m in marked for k in m.key]
    hits = sum(r and t for r, t in zip(rule, true, strict=True))
    scores["all, plain rule"] = {"n": len(marked), "f1": 2 * hits / max(sum(rule) + sum(true), 1)}
    return {kind: {k: round(v, 3) for k, v in found.items()} for kind, found in scores.items()}


SHAPES = {
    "ours": "as sentences, statements, phrases, definitions and yes/no answers",
    "paper": "as the sentence that holds the answer span (KPQA §3.1)",
    "paper-kp": "as the sentence that holds the answer span, without the question (the KP ablation, KPQA §5.3)",
}
"""What the answers of the corpora are made into, by recipe."""


def pack(network: Module, base: Path, out: Path, stored: str, facts: dict[str, object]) -> None:
    """Store the trained model with its card."""
    from elench.models.shipped import save_shipped

    size = save_shipped(network, out, base_name=BASE, base=base, kind=stored)
    write_card(
        out,
        {
            "name": "elench keyphrases",
            "task": "which words of an answer carry it, given the question (KPQA), English",
            "base": f"{BASE} (Apache-2.0), its word and position embeddings unchanged",
            "data": "SQuAD v1.1 train part of Du et al. (CC BY-SA 4.0), FairytaleQA (Apache-2.0), HotpotQA questions "
            f"of the QAScore examples (CC BY-SA 4.0), {SHAPES[str(facts['recipe'])]}",
            **facts,
            "stored": stored,
            "bytes": size,
            "licence": "CC BY-SA 4.0 (from the training data)",
        },
    )


@click.command()
@train_options
@click.option(
    "--base", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Folder of the base encoder."
)
@file_option
@click.option("--lr", type=click.FloatRange(0, min_open=True), default=1.5e-4, show_default=True)
@click.option("--batch", type=click.IntRange(1), default=16, show_default=True)
@click.option(
    "--recipe",
    type=click.Choice(["ours", "paper", "paper-kp"]),
    default="ours",
    show_default=True,
    help="ours; paper: spans of answer sentences, no hand-made features; paper-kp: the same without the question.",
)
@click.option("--stored", type=click.Choice(["int8", "fp16"]), default="int8", show_default=True)
@click.option("--pack", "pack_only", is_flag=True, help="Only store the last checkpoint, without further training.")
@click.option("--evaluate", is_flag=True, help="Only print how good the model in --out (or the shipped one) is.")
def command(
    data: Path, out: Path | None, minutes: float, steps: int, seed: int, threads: int, resume: bool, base: Path | None,
    more: tuple[Path, ...], lr: float, batch: int, recipe: str, stored: str, pack_only: bool, evaluate: bool,
) -> None:  # fmt: skip
    """Train the keyphrase model behind the KPQA metrics, or say how good it is (--evaluate)."""
    need("torch", "transformers", "safetensors")
    import torch

    from elench.models import keyphrases
    from elench.models.shipped import shipped_identity
    from elench.models.torch_networks import TrainedKeyphrases

    torch.set_num_threads(threads)
    examples, held = corpora(data, more)
    if evaluate:
        model = keyphrases.load(shipped_identity(ModelChoice("keyphrases"), out, base=base))
        for kind, found in report(model, held).items():
            click.echo(f"{kind}: " + ", ".join(f"{k} {v:g}" for k, v in found.items()))
        return
    out = destination(out)
    base = base or find(ModelChoice("encoder", BASE)).folder
    schedule = schedule_of(minutes, steps, lr, batch, seed, threads, pack_only)
    if schedule is None:
        network, tokenizer = new_network(base, seed)
        run = load_checkpoint(out, {n: p for n, p in network.named_parameters() if p.requires_grad})
        network.eval()
    else:
        network, tokenizer, run = train(examples, base, out, schedule, recipe=recipe, resume=resume)
    tokens = Tokens.from_transformers(tokenizer)
    scores = report(keyphrases.KeyphraseModel(TrainedKeyphrases(network), tokens), held)
    shown = {f"key-word F1, {kind}": f"{found['f1']} (n={found['n']:g})" for kind, found in scores.items()}
    facts = {
        "recipe": recipe,
        "steps": run.step,
        "minutes": round(run.seconds / 60, 1),
        "examples": run.examples,
        "seed": seed,
    }
    how = {"learning rate": f"{lr:g}", "batch": batch, "machine": "2-core CPU machine, no GPU"}
    pack(network, base, out, stored, {**facts, **how, "kept back": "2 SQuAD articles and FairytaleQA val", **shown})
    whole = scores["all"]
    click.echo(f"{out}: {run.step} steps, {run.seconds / 60:.1f} min; key-word F1 {whole['f1']} (n={whole['n']:g})")
