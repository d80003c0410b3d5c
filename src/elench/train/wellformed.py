"""Train the well-formedness model (`elench train wellformed`): is this a question as people write them?

Three sources. Rated queries (Faruqui and Das 2018, CC BY-SA 4.0): the share of five raters who called a question well
formed; the ratings are of lower-case queries with a blank before the question mark, and a copy of each as people write
it, with a capital and no blank, has the same rating. Questions of SQuAD v1.1 train (CC BY-SA 4.0), which people wrote.
And bad questions made of these (`bad_questions`), which have a low target.
"""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np
from scipy.stats import spearmanr

from elench.models.base import ModelSet
from elench.requests import Parse
from elench.stats.roc import auc
from elench.train.bad_questions import KINDS, Asked, BadQuestions
from elench.train.examples import Example, read_paragraphs
from elench.train.loop import schedule_of, started_from, taught_by
from elench.train.options import destination, family_option, start_option, teacher_option
from elench.train.pairs import (
    ClassifierTask,
    Teacher,
    TextPair,
    classifier_options,
    predict,
    ship,
    shipped_labels,
    train_classifier,
)

LABELS = ["well formed"]
LIMITS = (64, 0)
SHARES = {"rated": 0.26, "real": 0.34, "bad": 0.4}
REAL = 0.95
"""Target of a question that a person wrote: some have faults."""
ROUND = 24_000
PARSED = 16_000
"""Questions that are parsed, to be made bad."""
HELD_OUT = 20
"""Articles whose questions are only tested on."""


def rated(path: Path) -> list[TextPair]:
    """The questions of a file with their ratings."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines if line.strip()]
    return [TextPair(question, "", float(rating)) for question, rating in rows]


def as_written(pair: TextPair) -> TextPair:
    """With a capital at the beginning and no blank before the question mark."""
    text = pair.first.replace(" ?", "?").replace(" '", "'")
    return TextPair(text[:1].upper() + text[1:], "", pair.target)


class QuestionMixture:
    """A round's questions: rated, real and bad ones in fixed shares."""

    def __init__(self, train: Sequence[TextPair], examples: Sequence[Example], models: ModelSet, seed: int = 0) -> None:
        self.train = train
        usable = [e for e in examples if e.question.endswith("?")]
        kept = set(sorted({e.group for e in usable})[:HELD_OUT])
        self.real = [e for e in usable if e.group not in kept]
        self.kept = [e for e in usable if e.group in kept]
        rng = np.random.default_rng(seed)
        self.bad = self._bad(self.real, PARSED, models, rng)
        self.kept_bad = self._bad(self.kept, PARSED // 10, models, rng)

    @staticmethod
    def _bad(examples: Sequence[Example], most: int, models: ModelSet, rng: np.random.Generator) -> BadQuestions:
        chosen = [examples[int(i)] for i in sorted(rng.permutation(len(examples))[:most])]
        parsed = models["parser"].answer_all([Parse(e.question) for e in chosen])
        asked = [Asked(e.question, p, e.answers[0], e.group) for e, p in zip(chosen, parsed, strict=True)]
        return BadQuestions(asked, [(e.group, e.question) for e in examples])

    def __call__(self, rng: np.random.Generator, epoch: int) -> list[TextPair]:
        sizes = {name: round(share * ROUND) for name, share in SHARES.items()}
        rated = [self.train[int(i)] for i in rng.choice(len(self.train), sizes["rated"])]
        real = [self.real[int(i)] for i in rng.choice(len(self.real), sizes["real"], replace=False)]
        return [
            *(p if rng.random() < 0.5 else as_written(p) for p in rated),
            *(TextPair(e.question, "", REAL) for e in real),
            *(TextPair(b.text, "", b.target, b.kind) for b in self.bad.draw(sizes["bad"], rng)),
        ]

    def tests(self, seed: int = 1) -> tuple[list[TextPair], list[TextPair]]:
        """Real questions of the articles kept back, and bad ones made of them."""
        made = self.kept_bad.draw(2000, np.random.default_rng(seed))
        return [TextPair(e.question, "", 1.0) for e in self.kept], [TextPair(b.text, "", 0.0, b.kind) for b in made]


@click.command()
@classifier_options(lr=2e-4, batch=32)
@family_option
@start_option
@teacher_option
def command(
    data: Path, out: Path | None, minutes: float, steps: int, seed: int, threads: int, resume: bool, lr: float,
    batch: int, family: str, start: Path | None, teacher: Path | None, pack_only: bool,
) -> None:  # fmt: skip
    """Train the well-formedness model; print its rank correlation with the ratings of the test part, and how often it
    ranks a real question above a bad one."""
    out = destination(out)
    train, test = (rated(data / f"query_wellformedness_{part}.tsv.gz") for part in ("train", "test"))
    schedule = schedule_of(minutes, steps, lr, batch, seed, threads, pack_only)
    mixture = QuestionMixture(train, read_paragraphs(data / "squad11_train.jsonl.gz"), ModelSet())
    taught = Teacher.from_folder(teacher, LABELS, LIMITS) if teacher else None
    same_task = start is not None and shipped_labels(start) == LABELS
    task = ClassifierTask(len(LABELS), LIMITS, mixture, start, whole=same_task, family=family, teacher=taught)
    model, encoder, run, base = train_classifier(task, schedule, out, seed=seed, resume=resume)
    shown: dict[str, dict[str, float]] = {}
    for name, pairs in (("test part", test), ("test part as written", [as_written(p) for p in test])):
        rho = spearmanr(predict(model, encoder(pairs))[:, 0], [p.target for p in pairs]).statistic
        shown[name] = {"n": len(pairs), "spearman": round(float(rho), 3)}
        click.echo(f"{name}: n {len(pairs)}, Spearman {rho:.3f}")
    real, bad = mixture.tests()
    high, low = (predict(model, encoder(pairs))[:, 0].tolist() for pairs in (real, bad))
    shown["articles kept back, real above bad"] = {"n": len(real) + len(bad), "auc": round(auc(high, low), 3)}
    for kind in KINDS:
        of_kind = [value for value, pair in zip(low, bad, strict=True) if pair.kind == kind]
        click.echo(f"{kind}: n {len(of_kind)}, AUC {auc(high, of_kind):.3f}")
    facts = {
        "name": "elench wellformed",
        "task": "is a question well formed, and does it make sense? 0 to 1, English",
        "data": "query well-formedness, training part, 17,500 questions (Faruqui and Das 2018, CC BY-SA 4.0); "
        "questions of SQuAD v1.1 train (CC BY-SA 4.0), as written and made bad by rules: " + ", ".join(KINDS),
        "shares": SHARES,
        **started_from(start),
        **taught_by(teacher),
        "bad at": 'questions of two or three words ("Who ran?"), which it takes for unfinished; sense that needs '
        "knowledge of the world; a wrong fact in a sensible question",
        "licence": "CC BY-SA 4.0 (from the training data)",
        **shown,
    }
    ship(model, base, out, run, schedule, {"labels": LABELS, "limits": list(LIMITS)}, facts, family=family)
