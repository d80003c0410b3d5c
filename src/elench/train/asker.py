"""Train the asker: questions whose answer is a given part of a text (`elench train asker`).

SmolLM2 with LoRA adapters, trained on reversed question answering data (QuestEval §5.2): text and answer
are given, the human question is to be written. The text comes first, so that all answers of a passage share it: in
training, too, a passage is read once and its questions branch off, each blind to the others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from elench.errors import UsageError
from elench.models.asker import passage_ids, target_ids, wish_ids
from elench.models.base import ModelChoice, load_model
from elench.models.checkpoints import find, need
from elench.models.shipped import save_shipped
from elench.models.tokens import Tokens
from elench.text.passages import passage_of, passages
from elench.train.branching import Branched, collate
from elench.train.examples import Example, read_examples, read_paragraphs
from elench.train.loop import (
    Schedule,
    Trainer,
    TrainingRun,
    fit,
    load_checkpoint,
    start_from,
    started_from,
    write_card,
)
from elench.train.lora import adapt
from elench.train.options import destination, file_option, start_option, train_options

if TYPE_CHECKING:
    import torch
    from torch.nn import Module
    from transformers import PreTrainedTokenizerBase as Tokenizer

BASE = "smollm2-135m-instruct"
HELD_OUT = 2
"""Articles of the SQuAD file kept back for judging (the reader's, too)."""
LONGEST = 8
"""Words of an answer, at most: at work, answers are names and noun phrases."""
BRANCHES = 8
"""Questions on one passage in one example, at most; bounds the memory of a step."""

FEWEST = 5
"""Questions a passage must have to be learnt from, where processor time is scarce: a question then costs 44 tokens
instead of 55, because more of them share a passage."""


def corpora(data: Path) -> tuple[list[Example], list[Example]]:
    """Examples to learn from, and those of the articles kept back."""
    squad = [e for e in read_paragraphs(data / "squad11_train.jsonl.gz") if e.start >= 0]
    kept = sorted({e.group for e in squad})[:HELD_OUT]
    train = [e for e in squad if e.group not in kept and len(e.answers[0].split()) <= LONGEST]
    return train, [e for e in squad if e.group in kept]


def branched(examples: list[Example], tokenizer: Tokenizer) -> list[Branched]:
    """Passages with their questions; a text is cut into passages as it will be when questions are asked."""
    found: dict[str, list[Example]] = defaultdict(list)
    cut = {text: passages(text) for text in {e.context for e in examples}}
    for e in examples:
        found[passage_of(e.context, e.start, cut[e.context])].append(e)
    made = []
    tokens = Tokens.from_transformers(tokenizer)
    for passage, group in found.items():
        branches = [
            (tuple(wish_ids(tokens, e.answers[0])), tuple(target_ids(tokens, e.question)))
            for e in {(e.answers[0], e.question): e for e in group}.values()
        ]
        ids = tuple(passage_ids(tokens, passage))
        made += [Branched(ids, tuple(branches[at : at + BRANCHES])) for at in range(0, len(branches), BRANCHES)]
    return made


def question_loss(model: Module, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """Mean cross entropy of the questions' tokens; only their positions meet the vocabulary."""
    import torch

    hidden = model.model(
        input_ids=batch["ids"], attention_mask=batch["mask"], position_ids=batch["positions"], use_cache=False
    ).last_hidden_state
    rows, columns = batch["wanted"].unbind(1)
    loss: torch.Tensor = torch.nn.functional.cross_entropy(model.lm_head(hidden[rows, columns]), batch["labels"])
    return loss


SHAPE = {"rank": 16, "scale": 2.0, "skip": 10}
"""Of the corrections: their rank and scale, and how many of the lowest of the 30 blocks go without."""


def new_asker(base: Path, shape: Mapping[str, Any], seed: int = 7) -> tuple[Module, Tokenizer]:
    """The base language model with untrained corrections, and its tokenizer."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32, use_safetensors=True)
    return adapt(model, **shape), AutoTokenizer.from_pretrained(base)


def half_and_half(given: list[Branched], squad: list[Branched], rng: np.random.Generator) -> list[Branched]:
    """All given passages, and as many others."""
    return [*given, *(squad[int(i)] for i in rng.permutation(len(squad))[: len(given)])]


def train(
    data: Path, base: Path, out: Path, schedule: Schedule, *, resume: bool = False, start: Path | None = None,
    more: Sequence[Path] = (),
) -> tuple[Module, Tokenizer, TrainingRun]:  # fmt: skip
    """Train the asker's corrections on a base language model, or those in `start` further; checkpoints go to `out`.

    Of the files in `more` (such as `elench augment` writes of the asker's own questions) each round has all passages,
    and as many of SQuAD's, so that it does not forget how people ask.
    """
    model, tokenizer = new_asker(base, SHAPE, schedule.seed)
    if start is not None:
        start_from(start, {n: p for n, p in model.named_parameters() if p.requires_grad})
    examples, _ = corpora(data)
    made = [example for example in branched(examples, tokenizer) if len(example.branches) >= FEWEST]
    given = branched([e for file in more for e in read_examples(file) if e.start >= 0], tokenizer)
    if more and not given:
        raise UsageError(f"{more[0]}: no question whose answer occurs in its context")
    pad = tokenizer.eos_token_id

    def epoch(rng: np.random.Generator, number: int) -> list[Branched]:
        return half_and_half(given, made, rng) if given else made

    trainer = Trainer[Branched](
        model=model,
        examples=epoch,
        length=lambda example: example.length,
        loss=lambda m, batch: question_loss(m, collate(batch, pad)),
    )
    run = fit(trainer, schedule, out, resume=resume, log=lambda line: print(line, flush=True))
    return model, tokenizer, run


def pack(model: Module, base: Path, out: Path, facts: dict[str, object]) -> None:
    """Store the trained corrections with their card."""
    size = save_shipped(model, out, base_name=BASE, base=base, settings=SHAPE)
    write_card(
        out,
        {
            "name": "elench asker",
            "task": "writes an English question whose answer is a given part of a passage",
            "base": f"{BASE} (Apache-2.0), as its Q4_1 weights give it",
            "adapted": f"all linear layers of the upper {30 - SHAPE['skip']} of 30 blocks, rank {SHAPE['rank']}",
            "data": "SQuAD v1.1 train without the paragraphs of any rated file (CC BY-SA 4.0), answers of at most 8 "
            f"words, passages with at least {FEWEST} questions; two articles kept back for judging",
            **facts,
            "bytes": size,
            "licence": "CC BY-SA 4.0 (from the training data)",
        },
    )


def _train_on(data: Path, base: Path, out: Path, spec: str, steps: int, seed: int) -> None:
    """Self-critical training of the shipped asker; the model and the curve of its reward go to `out`."""
    from elench.models.asker import build
    from elench.models.shipped import load_shipped, shipped_identity
    from elench.train import selfcritical
    from elench.train.asker_reward import learn_from_reward

    network = load_shipped(shipped_identity(ModelChoice("asker"), base=base), build)
    _, tokenizer = new_asker(base, SHAPE, seed)
    examples, kept = corpora(data)
    curve = learn_from_reward(
        network, tokenizer, examples, kept, spec, selfcritical.RewardSchedule(steps=steps, seed=seed), out
    )
    facts = {"reward": spec, "steps": steps, "seed": seed, "held-back reward": [round(r, 4) for r in curve.rewards]}
    pack(network, base, out, facts)
    click.echo(f"{out}: mean {spec} on {curve.n} held-back passages {curve.rewards[0]:.4f} → {curve.rewards[-1]:.4f}")


@click.command()
@train_options
@click.option("--base", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Folder of the base model.")
@start_option
@file_option
@click.option("--lr", type=click.FloatRange(0, min_open=True), default=6e-4, show_default=True)
@click.option(
    "--batch",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    help="Passages per step, each with up to 8 questions.",
)
@click.option(
    "--pack", "pack_only", is_flag=True, help="Only store the last checkpoint as a model, without further training."
)
@click.option("--evaluate", is_flag=True, help="Only print how good the asker in --out (or the shipped one) is.")
@click.option(
    "--most",
    type=click.IntRange(0),
    default=300,
    show_default=True,
    help="Evaluate on about this many questions of each file.",
)
@click.option(
    "--show", type=click.IntRange(0), default=0, help="With --evaluate: also print this many of its questions."
)
@click.option("--reward", metavar="SPEC", help="Further train the shipped asker with a metric as reward, for --steps.")
def command(
    data: Path, out: Path | None, minutes: float, steps: int, seed: int, threads: int, resume: bool, base: Path | None,
    lr: float, batch: int, pack_only: bool, evaluate: bool, most: int, show: int, reward: str | None,
    start: Path | None, more: tuple[Path, ...],
) -> None:  # fmt: skip
    """Train the asker, or say how good it is (--evaluate)."""
    need("torch", "transformers", "safetensors")
    import torch

    torch.set_num_threads(threads)
    if evaluate:
        from elench.models import asker
        from elench.train.asker_scores import report

        model = load_model(ModelChoice("asker", str(out) if out else asker.TRAINED))
        click.echo(report(model, load_model(ModelChoice("reader")), data, most, show, seed))
        return
    out = destination(out)
    base = base or find(ModelChoice("causal", BASE)).folder
    if reward:
        _train_on(data, base, out, reward, steps or 100, seed)
        return
    if pack_only:
        network, _ = new_asker(base, SHAPE, seed)
        run = load_checkpoint(out, {n: p for n, p in network.named_parameters() if p.requires_grad})
    else:
        if minutes <= 0 and steps <= 0:
            raise UsageError("give --minutes or --steps: how long to train")
        schedule = Schedule(
            steps=steps, minutes=minutes, lr=lr, batch=batch, seed=seed, threads=threads, warmup=0.04, decay=0.0,
            log_steps=20,
        )  # fmt: skip
        network, _, run = train(data, base, out, schedule, resume=resume, start=start, more=more)
    facts: dict[str, object] = {
        "steps": run.step,
        "minutes": round(run.seconds / 60, 1),
        "passages": run.examples,
        "seed": seed,
    }
    facts |= {"loss, every 20 steps": " ".join(f"{loss:.2f}" for loss in run.losses), **started_from(start)}
    if more:
        facts["half of the passages"] = f"{', '.join(file.name for file in more)}: questions that elench augment kept"
    how = {"learning rate": lr, "batch": batch, "machine": "2-core CPU machine, no GPU, one thread"}
    pack(network, base, out, {**facts, **how})
    click.echo(f"{out}: {run.step} steps, {run.seconds / 60:.1f} min, loss {run.losses[-1:] or '?'}")
