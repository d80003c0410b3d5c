"""Train the well-formedness model (`elench train wellformed`): is this a question as people write them?

Rated queries (Faruqui and Das 2018, CC BY-SA 4.0): the share of five raters who called a question well formed. The
ratings are of lower-case queries with a blank before the question mark; a copy of each as people write it, with a
capital and no blank, has the same rating.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import click
import numpy as np
from scipy.stats import spearmanr

from elench.train.loop import schedule_of
from elench.train.options import destination
from elench.train.pairs import ClassifierTask, TextPair, classifier_options, predict, ship, train_classifier

LIMITS = (64, 0)


def rated(path: Path) -> list[TextPair]:
    """The questions of a file with their ratings."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines if line.strip()]
    return [TextPair(question, "", float(rating)) for question, rating in rows]


def as_written(pair: TextPair) -> TextPair:
    """With a capital at the beginning and no blank before the question mark."""
    text = pair.first.replace(" ?", "?").replace(" '", "'")
    return TextPair(text[:1].upper() + text[1:], "", pair.target)


@click.command()
@classifier_options(lr=2e-4, batch=32)
def command(
    data: Path, out: Path | None, minutes: float, steps: int, seed: int, threads: int, resume: bool, lr: float,
    batch: int, pack_only: bool,
) -> None:  # fmt: skip
    """Train the well-formedness model and print its rank correlation with the ratings of the test part."""
    out = destination(out)
    train, test = (rated(data / f"query_wellformedness_{part}.tsv.gz") for part in ("train", "test"))

    def draw(rng: np.random.Generator, epoch: int) -> list[TextPair]:
        return [p if rng.random() < 0.5 else as_written(p) for p in train]

    schedule = schedule_of(minutes, steps, lr, batch, seed, threads, pack_only)
    model, encoder, run, base = train_classifier(
        ClassifierTask(1, LIMITS, draw), schedule, out, seed=seed, resume=resume
    )
    shown = {}
    for name, pairs in (("test part", test), ("test part as written", [as_written(p) for p in test])):
        rho = spearmanr(predict(model, encoder(pairs))[:, 0], [p.target for p in pairs]).statistic
        shown[name] = {"n": len(pairs), "spearman": round(float(rho), 3)}
        click.echo(f"{name}: n {len(pairs)}, Spearman {rho:.3f}")
    facts = {
        "name": "elench wellformed",
        "task": "is a question well formed? 0 to 1, English",
        "data": "query well-formedness, training part, 17,500 questions (Faruqui and Das 2018, CC BY-SA 4.0)",
        "bad at": "sense: a well-formed question may still make none",
        "licence": "CC BY-SA 4.0 (from the training data)",
        **shown,
    }
    ship(model, base, out, run, schedule, {"labels": ["well formed"], "limits": list(LIMITS)}, facts)
