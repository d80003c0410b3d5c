"""How good a reader is: exact match, F1 and answerability on question-answering files, roundtrip against people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from quaestor.models.base import Model
from quaestor.requests import Read, Reading
from quaestor.text.answers import exact, f1
from quaestor.train.examples import Example, read_squad


def read_all(model: Model, requests: Sequence[Read]) -> list[Reading]:
    """Readings of all requests, batched by the model's own rule."""
    unique = list(dict.fromkeys(requests))
    known: dict[Read, Reading] = {}
    for group in model.batches(unique):
        batch = [unique[i] for i in group]
        known.update(zip(batch, model.answer(batch), strict=True))
    return [known[r] for r in requests]


def auc(positive: Iterable[float], negative: Iterable[float]) -> float:
    """Probability that a positive case is ranked above a negative one; ties count half."""
    from scipy.stats import rankdata

    high, low = list(positive), list(negative)
    ranks = rankdata([*high, *low])
    return float((ranks[: len(high)].sum() - len(high) * (len(high) + 1) / 2) / (len(high) * len(low)))


def best_score(said: str, golds: Sequence[str]) -> tuple[float, float]:
    """(exact match, F1) against the nearest gold answer; without gold answers the right answer is none."""
    wanted = golds or ("",)
    return max(float(exact(said, g)) for g in wanted), max(f1(said, g) for g in wanted)


def shuffled(examples: Sequence[Example], seed: int) -> list[Example]:
    """Each question on a paragraph of another article, drawn by the seed."""
    rng = np.random.default_rng(seed)
    moved = []
    for e in examples:
        while (other := examples[int(rng.integers(len(examples)))]).group == e.group:
            pass
        moved.append(Example(e.id, other.context, e.question, (), -1, other.group))
    return moved


def score_file(model: Model, examples: Sequence[Example], seed: int = 7) -> dict[str, float]:
    """EM and F1 on answerable questions (forced answer), on all (may decline), and answerability AUC.

    The AUC compares answerable questions with the file's own unanswerable ones, if it has any, and (`auc_shuffled`)
    with the same questions on a paragraph of another article.
    """
    readings = read_all(model, [Read(e.question, e.context) for e in examples])
    has = [bool(e.answers) for e in examples]
    forced = [best_score(r.best, e.answers) for r, e in zip(readings, examples, strict=True) if e.answers]
    free = [best_score(r.answer, e.answers) for r, e in zip(readings, examples, strict=True)]
    answerable = [1 - r.unanswerable for r, h in zip(readings, has, strict=True) if h]
    moved = read_all(model, [Read(e.question, e.context) for e in shuffled([e for e in examples if e.answers], seed)])
    row = {
        "n": len(examples),
        "answerable": sum(has),
        "em": 100 * float(np.mean([x for x, _ in forced])),
        "f1": 100 * float(np.mean([x for _, x in forced])),
        "em_free": 100 * float(np.mean([x for x, _ in free])),
        "f1_free": 100 * float(np.mean([x for _, x in free])),
        "auc_shuffled": auc(answerable, [1 - r.unanswerable for r in moved]),
    }
    if not all(has):
        row["auc"] = auc(answerable, [1 - r.unanswerable for r, h in zip(readings, has, strict=True) if not h])
    return row


def score_roundtrip(model: Model, file: Path) -> dict[str, float]:
    """Pearson's r of roundtrip and its parts with human answer consistency and answerability."""
    from quaestor.metrics.roundtrip import RoundTrip
    from quaestor.records import read_records

    records = [r for r in read_records(file) if r.context and r.question and r.answer and r.human]
    readings = read_all(model, [Read(r.question or "", r.context or "", gold=r.answer) for r in records])
    row: dict[str, float] = {"n": len(records)}
    for view in ("both", "p", "f1"):
        values = [RoundTrip(view=view).join(x, r.answer or "").value for x, r in zip(readings, records, strict=True)]
        for dimension in ("answer_consistency", "answerability"):
            human = [float(r.human[dimension]) for r in records]
            row[f"{view} ~ {dimension}"] = float(np.corrcoef(values, human)[0, 1])
    unanswerable = [x.unanswerable for x in readings]
    row["-P(unanswerable) ~ answerability"] = -float(
        np.corrcoef(unanswerable, [float(r.human["answerability"]) for r in records])[0, 1]
    )
    return row


def report(model: Model, data: Path, judgements: Path | None, most: int = 0) -> str:
    """The figures as Markdown, with n; `most` bounds the questions taken from each file (0: all)."""
    lines = [
        "| file | n | answerable | EM | F1 | EM, may decline | F1, may decline | AUC own | AUC shuffled |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name in ("xquad_en.json", "squad2_cs224n_dev.json"):
        examples = read_squad(data / name)
        row = score_file(model, examples[:: max(1, len(examples) // most)] if most else examples)
        own = f"{row['auc']:.3f}" if "auc" in row else "–"
        lines.append(
            f"| {name} | {row['n']} | {row['answerable']} | {row['em']:.1f} | {row['f1']:.1f} | {row['em_free']:.1f} | "
            f"{row['f1_free']:.1f} | {own} | {row['auc_shuffled']:.3f} |"
        )
    if judgements:
        lines += ["", "| roundtrip, Pearson's r | value |", "|---|---|"]
        row = score_roundtrip(model, judgements)
        lines += [
            f"| {key} | {value:.0f} |" if key == "n" else f"| {key} | {value:.3f} |" for key, value in row.items()
        ]
    return "\n".join(lines)
