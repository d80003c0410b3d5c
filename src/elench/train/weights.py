"""Train the weighter: which questions about a source a summary should answer (`elench train weights`).

Labels as in QuestEval §4.2: a question made from an article is important if the article's human summary answers it,
as the reader sees it. No person labels anything.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
import numpy.typing as npt

from elench.errors import UsageError
from elench.metrics.questeval_questions import candidates, spread
from elench.models.base import ModelSet
from elench.models.weights import FEATURES, FILE, FeatureWeighter, features
from elench.records.record import read_records
from elench.requests import Ask, Parse, Read
from elench.stats.roc import auc
from elench.train.loop import write_card
from elench.train.options import train_options

Matrix = npt.NDArray[np.float64]
LABELS = "labels.jsonl"


@dataclass(frozen=True)
class Label:
    """A question on an article, and how surely the human summary answers it."""

    article: str
    source: str
    question: str
    answer: str
    answered: float

    @property
    def important(self) -> bool:
        return self.answered > 0.5


def make_labels(file: Path, most: int, models: ModelSet) -> list[Label]:
    """Questions on each article, read in its human summary."""
    articles = [(str(r.id), r.context, next(iter(r.references), None) or r.summary) for r in read_records(file)]
    usable = [(i, source, summary) for i, source, summary in articles if source and summary]
    if not usable:
        raise UsageError(f"{file}: no record has a context and a summary")
    parsed = models["parser"].answer_all([Parse(source) for _, source, _ in usable])
    wanted = [
        (number, c)
        for number, (_, source, _) in enumerate(usable)
        for c in spread(candidates(source, parsed[number]), most)
    ]
    written = models["asker"].answer_all([Ask(usable[i][1], c.text, c.start) for i, c in wanted])
    asked = [(i, c, v[0]) for (i, c), v in zip(wanted, written, strict=True) if v]
    readings = models["reader"].answer_all([Read(q, str(usable[i][2])) for i, _, q in asked])
    return [
        Label(usable[i][0], str(usable[i][1]), q, c.text, 1 - r.unanswerable)
        for (i, c, q), r in zip(asked, readings, strict=True)
    ]


def fit(x: Matrix, y: Matrix, penalty: float = 3.0, rounds: int = 30) -> dict[str, object]:
    """Logistic regression by Newton's method, features standardised, weights (not the bias) held small."""
    mean, scale = x.mean(0), np.maximum(x.std(0), 1e-6)
    z = np.column_stack([(x - mean) / scale, np.ones(len(x))])
    ridge = np.diag([penalty] * x.shape[1] + [1e-6])
    w = np.zeros(z.shape[1])
    for _ in range(rounds):
        p = 1 / (1 + np.exp(-z @ w))
        step = np.linalg.solve(z.T @ (z * (p * (1 - p))[:, None]) + ridge, z.T @ (y - p) - ridge @ w)
        w = w + step
        if np.abs(step).max() < 1e-8:
            break
    return {
        "features": list(FEATURES),
        "mean": mean.round(6).tolist(),
        "scale": scale.round(6).tolist(),
        "weights": w[:-1].round(6).tolist(),
        "bias": round(float(w[-1]), 6),
    }


def judged(labels: list[Label], folds: int, seed: int) -> dict[str, float]:
    """AUC on articles left out of training, fold by fold; a weight that is the same for all has .5."""
    names = sorted({label.article for label in labels})
    order = np.random.default_rng(seed).permutation(len(names))
    fold = {names[i]: k % folds for k, i in enumerate(order)}
    x = np.array([features(label.source, label.question, label.answer) for label in labels])
    y = np.array([float(label.important) for label in labels])
    at = np.array([fold[label.article] for label in labels])
    scores = np.zeros(len(labels))
    for k in range(folds):
        model = fit(x[at != k], y[at != k])
        z = (x[at == k] - np.array(model["mean"])) / np.array(model["scale"])
        scores[at == k] = z @ np.array(model["weights"]) + model["bias"]
    place = -x[:, 0]
    return {
        "articles": len(names),
        "questions": len(labels),
        "important": float(y.mean()),
        "auc": auc(scores[y == 1], scores[y == 0]),
        "auc of the place alone": auc(place[y == 1], place[y == 0]),
    }


@click.command()
@train_options
@click.option(
    "--questions", type=click.IntRange(1), default=12, show_default=True, help="Questions per article, spread over it."
)
@click.option("--asker", default=None, help="Asker to make the questions with (folder or hub name).")
@click.option("--reader", default=None, help="Reader to label them with (folder or hub name).")
def command(
    data: Path, out: Path | None, minutes: float, steps: int, seed: int, threads: int, resume: bool,
    questions: int, asker: str | None, reader: str | None,
) -> None:  # fmt: skip
    """Train the weighter on articles with human summaries (news_summaries.jsonl in --data)."""
    if out is None:
        raise UsageError("--out names the folder for labels and the model")
    out.mkdir(parents=True, exist_ok=True)
    models = ModelSet(names={role: name for role, name in (("asker", asker), ("reader", reader)) if name})
    made_by = {role: models.fingerprint(role).partition("=")[2] for role in ("asker", "reader")}
    stored = out / LABELS
    if resume and stored.exists():
        labels = [Label(**json.loads(line)) for line in stored.read_text().splitlines()]
    else:
        import torch

        torch.set_num_threads(threads)
        labels = make_labels(data / "news_summaries.jsonl", questions, models)
        stored.write_text("".join(json.dumps(vars(label)) + "\n" for label in labels))
    x = np.array([features(label.source, label.question, label.answer) for label in labels])
    y = np.array([float(label.important) for label in labels])
    if not 0 < y.mean() < 1:
        raise UsageError(f"{stored}: all {len(y)} questions have the same label; nothing to learn")
    (out / FILE).write_text(json.dumps(fit(x, y), indent=1) + "\n")
    row = judged(labels, 5, seed)
    shown = {k: round(v, 3) for k, v in row.items()}
    write_card(
        out,
        {
            "name": "elench weighter",
            "task": "probability that a question about a source is one a summary should answer, English news",
            "model": f"logistic regression on {len(FEATURES)} plain features",
            "data": f"{row['articles']} news articles with human summaries (research use), labelled by the reader",
            "asker": made_by["asker"],
            "reader": made_by["reader"],
            "left-out articles (5 folds)": shown,
            "seed": seed,
            "licence": "CC BY-SA 4.0 (from asker and reader)",
        },
    )
    click.echo(f"{out}: {shown} (a uniform weight has AUC .5)")
    FeatureWeighter(out / FILE)
