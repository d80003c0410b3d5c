"""Train the equivalence model (`elench train equivalent`): does an answer say the same as a reference, to a question?

Judged answers of EVOUNA-NQ, SemEval-2013 task 7 and SAS, a fifth of whose questions is kept back; copies of references
with a negation, number or name changed count as wrong. It starts from the body of the support model: "question
reference" is the text, "question answer" the claim. KPQA's MS-MARCO and SemEval files are not trained on.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import click
import numpy as np

from elench.evaluate.kept_back import is_kept_back
from elench.stats.roc import auc
from elench.text.answers import f1, with_question
from elench.train.changes import EDITS
from elench.train.loop import schedule_of, started_from
from elench.train.options import destination, family_option, start_option
from elench.train.pairs import (
    ClassifierTask,
    PairEncoder,
    TextPair,
    classifier_options,
    predict,
    ship,
    shipped_labels,
    train_classifier,
)

if TYPE_CHECKING:
    from torch.nn import Module

LABELS = ["equivalent"]
LIMITS = (128, 128)
FILES = {"evouna_nq.jsonl": "correct", "semeval2013.jsonl": "correct", "sas.jsonl": "similarity"}
HIGHEST = {"sas.jsonl": 2.0}
MADE = 0.25
"""Changed copies per judged answer."""


class JudgedAnswer(TypedDict):
    """A rated answer of one of FILES."""

    question: str
    answer: str
    references: list[str]
    file: str
    rating: float
    """From 0 to 1."""


def judged(folder: Path) -> tuple[list[JudgedAnswer], list[JudgedAnswer]]:
    """Judged answers to train on, and those to the questions kept back (one in five, by question)."""
    parts: tuple[list[JudgedAnswer], list[JudgedAnswer]] = ([], [])
    for name, dimension in FILES.items():
        for line in (folder / name).read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if not row.get("references") or not row.get("question") or not str(row.get("answer", "")).strip():
                continue
            rating = row["human"][dimension] / HIGHEST.get(name, 1.0)
            kept = is_kept_back(name.removesuffix(".jsonl"), row["question"], "")
            answer = JudgedAnswer(
                question=row["question"], answer=row["answer"], references=row["references"], file=name, rating=rating
            )
            parts[kept].append(answer)
    return parts


def pair_of(question: str, reference: str, answer: str, target: float) -> TextPair:
    """How a judged answer is shown to the model."""
    return TextPair(with_question(question, reference), with_question(question, answer), target)


def nearest(row: JudgedAnswer) -> str:
    """The reference that shares most with the answer."""
    found: str = max(row["references"], key=lambda r: f1(row["answer"], r))
    return found


class Draw:
    """Each round: every judged answer once with its nearest reference, and some changed or repeated references."""

    def __init__(self, rows: Sequence[JudgedAnswer]) -> None:
        self.rows = rows

    def __call__(self, rng: np.random.Generator, epoch: int) -> list[TextPair]:
        pairs = [pair_of(r["question"], nearest(r), r["answer"], r["rating"]) for r in self.rows]
        texts = [ref for r in self.rows for ref in r["references"]]
        for i in rng.choice(len(self.rows), round(MADE * len(self.rows)), replace=False):
            row = self.rows[int(i)]
            said = row["references"][int(rng.integers(len(row["references"])))]
            if rng.random() < 0.25:
                pairs.append(pair_of(row["question"], said, said, 1.0))
                continue
            around = " and ".join(texts[int(k)] for k in rng.integers(len(texts), size=6))
            edit = list(EDITS.values())[int(rng.integers(len(EDITS)))]
            other = edit(f"x {said}", f"x {around}", rng)  # a capital after another word is a name
            if other is not None and other.startswith("x "):
                pairs.append(pair_of(row["question"], said, other[2:], 0.0))
        return pairs


def figures(model: Module, encoder: PairEncoder, rows: Sequence[JudgedAnswer]) -> dict[str, dict[str, float]]:
    """Per file: AUC of right against wrong answers to the questions kept back (best reference), beside token F1's."""
    groups: dict[str, list[JudgedAnswer]] = defaultdict(list)
    for row in rows:
        groups[row["file"]].append(row)
    found = {}
    for name, part in groups.items():
        pairs = [
            (i, pair_of(r["question"], ref, r["answer"], 0)) for i, r in enumerate(part) for ref in r["references"]
        ]
        said = predict(model, encoder([p for _, p in pairs]))[:, 0]
        best = [0.0] * len(part)
        for (i, _), value in zip(pairs, said, strict=True):
            best[i] = max(best[i], float(value))
        overlap = [max(f1(r["answer"], ref) for ref in r["references"]) for r in part]
        right = [r["rating"] > 0.5 for r in part]
        figure: dict[str, float] = {"n": len(part)}
        for label, values in (("auc", best), ("auc of f1", overlap)):
            high = [v for v, good in zip(values, right, strict=True) if good]
            low = [v for v, good in zip(values, right, strict=True) if not good]
            figure[label] = round(auc(high, low), 3)
        found[name] = figure
    return found


@click.command()
@classifier_options(lr=1.5e-4, batch=32)
@click.option(
    "--judgements", type=click.Path(exists=True, file_okay=False, path_type=Path), required=True,
    help="Folder of the judged answers.",
)  # fmt: skip
@family_option
@start_option
def command(
    data: Path, out: Path | None, minutes: float, steps: int, seed: int, threads: int, resume: bool, lr: float,
    batch: int, pack_only: bool, judgements: Path, family: str, start: Path | None,
) -> None:  # fmt: skip
    """Train the equivalence model and print its AUC on the questions kept back."""
    out = destination(out)
    train, test = judged(judgements)
    schedule = schedule_of(minutes, steps, lr, batch, seed, threads, pack_only)
    same_task = start is not None and shipped_labels(start) == LABELS
    task = ClassifierTask(len(LABELS), LIMITS, Draw(train), start, whole=same_task, family=family)
    model, encoder, run, base = train_classifier(task, schedule, out, seed=seed, resume=resume)
    shown = figures(model, encoder, test)
    for name, row in shown.items():
        click.echo(f"{name}: n {row['n']}, AUC {row['auc']:.3f} (token F1 {row['auc of f1']:.3f})")
    facts = {
        "name": "elench equivalent",
        "task": "does an answer say the same as a reference, to a question? 0 to 1, English",
        "data": "EVOUNA-NQ (Apache-2.0), SemEval-2013 task 7 training part (CC BY-SA), SAS (no licence stated), "
        "without the questions kept back; changed copies of their references; body of elench support",
        **started_from(start),
        "bad at": "answers that need knowledge the reference does not give",
        "licence": "CC BY-SA 4.0 (from the training data)",
        **{f"questions kept back, {name}": row for name, row in shown.items()},
    }
    ship(model, base, out, run, schedule, {"labels": LABELS, "limits": list(LIMITS)}, facts, family=family)
