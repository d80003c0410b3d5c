"""How good a reader is: exact match, F1 and answerability on question-answering files."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click
import numpy as np

from elench.grid import Grid
from elench.models.base import Model, ModelChoice, load_model
from elench.models.reader import LONGEST, Fitted, SpanReader
from elench.requests import Read, Reading
from elench.show.tables import render
from elench.stats.roc import Bin, auc, calibration_error, reliability
from elench.text.answers import exact, f1
from elench.train.changes import changed
from elench.train.examples import Example, read_squad
from elench.train.loop import write_card

NEAR = 6
"""Paragraphs of the same article from which the one nearest to the question is taken as a near miss."""
LENGTH_WEIGHTS = (0.0, 0.15, 0.3, 0.5, 0.7)
"""Of the usual length of answers, tried on articles kept back."""


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


def score_file(model: Model[Read, Reading], examples: Sequence[Example], seed: int = 7) -> dict[str, float]:
    """EM and F1 on answerable questions (forced answer), on all (may decline), and answerability AUC.

    The AUC compares answerable questions with the file's own unanswerable ones; if it has none, with the same
    questions on a paragraph of another article.
    """
    readings = model.answer_all([Read(e.question, e.context) for e in examples])
    has = [bool(e.answers) for e in examples]
    forced = [best_score(r.best, e.answers) for r, e in zip(readings, examples, strict=True) if e.answers]
    free = [best_score(r.answer, e.answers) for r, e in zip(readings, examples, strict=True)]
    without = [r for r, h in zip(readings, has, strict=True) if not h]
    if not without:
        without = model.answer_all([Read(e.question, e.context) for e in shuffled(examples, seed)])
    return {
        "n": len(examples),
        "answerable": sum(has),
        "em": 100 * float(np.mean([x for x, _ in forced])),
        "f1": 100 * float(np.mean([x for _, x in forced])),
        "em_free": 100 * float(np.mean([x for x, _ in free])),
        "f1_free": 100 * float(np.mean([x for _, x in free])),
        "auc": auc(
            [1 - r.unanswerable for r, h in zip(readings, has, strict=True) if h], [1 - r.unanswerable for r in without]
        ),
    }


def fit_belief(unanswerable: Sequence[float], answerable: Sequence[bool]) -> tuple[float, float]:
    """Factor and shift of the log-odds of "no answer" that make them most probable (Platt scaling)."""
    from scipy.optimize import minimize

    if len(set(answerable)) < 2:
        return 1.0, 0.0
    chances = np.clip(np.asarray(unanswerable, dtype=np.float64), 1e-9, 1 - 1e-9)
    odds, none = np.log(chances / (1 - chances)), 1.0 - np.asarray(answerable, dtype=np.float64)

    def cost(belief: np.ndarray) -> float:  # type: ignore[type-arg]  # scipy passes a plain array
        z = belief[0] * odds + belief[1]
        return float(np.mean(np.logaddexp(0.0, z) - none * z)) + 1e-3 * float((belief[0] - 1) ** 2)

    factor, shift = minimize(cost, np.array([1.0, 0.0]), method="Nelder-Mead").x
    return round(float(factor), 4), round(float(shift), 4)


def length_scores(lengths: Sequence[int]) -> list[float]:
    """Log shares of answers of 1 to LONGEST tokens, with half an answer of each length added."""
    counts = np.bincount(np.clip(lengths, 1, LONGEST), minlength=LONGEST + 1)[1:] + 0.5
    return [float(x) for x in np.log(counts / counts.sum())]


def fit_lengths(reader: SpanReader, scores: Sequence[float], kept: Sequence[Example]) -> float:
    """How much the usual length of answers shall weigh: the weight whose answers to kept-back questions have the
    highest mean F1, the lowest of equals."""

    def worth(weight: float) -> float:
        fitted = Fitted(lengths=weighed(scores, weight))
        readings = SpanReader(reader.network, reader.tokens, reader.at_once, fitted).answer_all(requests)
        return sum(best_score(r.best, e.answers)[1] for r, e in zip(readings, kept, strict=True))

    requests = [Read(e.question, e.context) for e in kept]
    return max(LENGTH_WEIGHTS, key=worth)


def weighed(scores: Sequence[float], weight: float) -> tuple[float, ...]:
    return tuple(round(weight * x, 4) for x in scores) if weight else ()


def near_misses(examples: Sequence[Example], n: int, seed: int = 1) -> list[Example]:
    """As many answerable questions as unanswerable ones: half with one thing changed, half on a near paragraph."""
    rng, groups = np.random.default_rng(seed), defaultdict(list)
    for e in examples:
        groups[e.group].append(e)
    made: list[Example] = []
    for k in rng.permutation(len(examples))[:n]:
        e = examples[int(k)]
        if len(made) % 4 == 1:
            question = changed(e, rng)
            if question is None:
                continue
            made += [e, replace(e, question=question, answers=())]
        else:
            pool = groups[e.group]
            others = [o.context for o in (pool[int(i)] for i in rng.integers(len(pool), size=NEAR))]
            others = [text for text in others if e.answers[0].lower() not in text.lower()]
            if others:
                words = set(e.question.lower().split())
                near = max(others, key=lambda text: len(words & set(text.lower().split())))
                made += [e, replace(e, context=near, answers=(), start=-1)]
    return made


def answerability_curve(model: Model[Read, Reading], examples: Sequence[Example]) -> list[Bin]:
    """How often questions are answerable that the reader calls answerable with a given probability."""
    readings = model.answer_all([Read(e.question, e.context) for e in examples])
    return reliability([1 - r.unanswerable for r in readings], [bool(e.answers) for e in examples])


def some(items: list[Example], most: int) -> list[Example]:
    """At most `most` examples, evenly taken (0: all)."""
    return items[:: -(-len(items) // most)] if most else items


UNANSWERABLE = "squad2_cs224n_dev.json"
FILES = ("xquad_en.json", UNANSWERABLE)
"""The part of SQuAD that no model of elench is trained on."""
HEADER = ("file", "n", "answerable", "EM", "F1", "EM, may decline", "F1, may decline", "AUC", "against")


def show_quality(data: Path, out: Path | None, most: int) -> None:
    """Print how good a reader is on files it was not trained on, and how far its probability of "answerable" can be
    believed; both go into the card of a model in `out`."""
    model = load_model(ModelChoice("reader", str(out) if out else None))
    found = {name: score_file(model, some(read_squad(data / name), most)) for name in FILES}
    curve = answerability_curve(model, some(read_squad(data / UNANSWERABLE), most))
    error = calibration_error(curve)
    rows = tuple((f"{said:.3f}", f"{true:.3f}", str(n)) for said, true, n in curve)
    title = f"Reliability on {UNANSWERABLE}, calibration error {error:.3f}"
    reliable = Grid(title, ("P(answerable)", "answerable", "n"), rows, "r")
    quality = Grid("", HEADER, tuple(_row(name, figures) for name, figures in found.items()), "lrrrrrrrl")
    click.echo(render([quality, reliable], [], "markdown"))
    if out and (out / "card.json").exists():
        card = json.loads((out / "card.json").read_text())
        card |= {name: {key: round(value, 3) for key, value in row.items()} for name, row in found.items()}
        card[f"reliability on {UNANSWERABLE}"] = "; ".join(f"{p:.2f} → {true:.2f} (n {n})" for p, true, n in curve)
        write_card(out, {**card, "calibration error": round(error, 3)})


def _row(name: str, row: dict[str, float]) -> tuple[str, ...]:
    against = "other articles' paragraphs" if row["answerable"] == row["n"] else "its unanswerable questions"
    figures = (f"{row[key]:.1f}" for key in ("em", "f1", "em_free", "f1_free"))
    return (name, f"{row['n']:.0f}", f"{row['answerable']:.0f}", *figures, f"{row['auc']:.3f}", against)
