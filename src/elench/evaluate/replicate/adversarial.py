"""QRelScore Table 4: can a metric, or a trained classifier, tell paraphrased questions from broken ones?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elench.errors import UsageError
from elench.evaluate.auc import Area, areas
from elench.evaluate.replicate.results import PaperLine, PaperTable
from elench.evaluate.replicate.sources import Entry, Materials
from elench.metrics import higher_is_better
from elench.records.record import Record

Array = NDArray[np.float64]
FOLDS = 5
PENALTY = 1.0
"""Of the squared weights, on features of unit variance; not searched."""


def table(entry: Entry, source: Materials) -> PaperTable:
    """AUC of every metric over all negatives, and of a classifier trained on the other folds."""
    records = broken(entry, source)
    columns: dict[str, list[float | None]] = {}
    reasons: dict[str, str] = {}
    for label, row in entry["rows"].items():
        if row["spec"] == "supervised":
            scores = supervised(records, source)
            columns[label] = [float(value) for value in scores]
            continue
        column = source.inline(row["spec"], records)
        if column.values is None:
            reasons[label] = column.reason or ""
        else:
            columns[label] = [None if np.isnan(value) else float(value) for value in column.values]
    better = {label: higher_is_better(row["spec"]) for label, row in entry["rows"].items()}
    found = {area.metric: area for area in areas(records, columns, better) if area.kind == "all"}
    lines = [_line(label, row, found.get(label), reasons.get(label, "")) for label, row in entry["rows"].items()]
    return PaperTable(entry["name"], ("AUC",), tuple(lines), entry.get("note", ""))


def _line(label: str, row: Mapping[str, Any], area: Area | None, reason: str) -> PaperLine:
    theirs = {"AUC": row.get("value")}
    if area is None:
        return PaperLine.missing(label, row["spec"], theirs, reason)
    note = f"{area.positives} positives, {area.negatives} negatives"
    n = area.positives + area.negatives
    return PaperLine(label, row["spec"], "", {"AUC": area.auc}, theirs, n, area.low, area.high, row.get("note", note))


def broken(entry: Entry, source: Materials) -> list[Record]:
    """Paraphrases (positive) and broken versions (negative) of the same questions."""
    from elench.perturb import Skipped, perturb
    from elench.perturb.paraphrase import paired

    if source.lexical:
        raise UsageError("asks models (a parser), left out by --lexical")
    originals = source.records(entry["data"])
    given, _ = paired(originals, source.all_records(entry["paraphrases"]))
    source.tell(f"{len(originals)} questions, paraphrased and broken")
    made = perturb(originals, ["given", *entry["negatives"]], source.seed, given, source.models)
    return [record for record in made if not isinstance(record, Skipped)]


def supervised(records: Sequence[Record], source: Materials) -> Array:
    """For each record, the log-odds of being a paraphrase that a logistic regression gives which was trained on the
    other folds. Everything made from one original, and every original on one context, is in one fold."""
    features = _features(records, source)
    good = np.array([r.extra["perturbed"]["label"] == "positive" for r in records])
    contexts = {text: k for k, text in enumerate(dict.fromkeys(r.context for r in records))}
    order = np.random.default_rng(source.seed).permutation(len(contexts))
    fold = np.array([order[contexts[r.context]] % FOLDS for r in records])
    scores = np.empty(len(records))
    for k in range(FOLDS):
        held = fold == k
        if held.any():
            scores[held] = _fitted(features[~held], good[~held], features[held])
    return scores


def _features(records: Sequence[Record], source: Materials) -> Array:
    """Frozen sentence vectors of question and context: the question's, and both multiplied."""
    from elench.engine.session import Session
    from elench.metrics.grounding import vector
    from elench.requests import Embed, result_of

    texts = list(dict.fromkeys(text for r in records for text in (r.question or "", r.context or "")))
    session = Session(source.models) if source.models else Session()

    async def embed(text: str) -> Array:
        return vector(await Embed(text)).astype(np.float64)

    vectors = {text: result_of(found[0]) for text, found in session.map(texts, lambda text: [embed(text)])}
    rows = [(vectors[r.question or ""], vectors[r.context or ""]) for r in records]
    return np.array([np.concatenate([question, question * context]) for question, context in rows])


def _fitted(features: Array, good: NDArray[np.bool_], other: Array) -> Array:
    """Logistic regression with a penalty on the weights, as log-odds of other rows."""
    from scipy.optimize import minimize

    centre, scale = features.mean(0), np.maximum(features.std(0), 1e-9)
    x = np.column_stack([(features - centre) / scale, np.ones(len(features))])
    sign = np.where(good, 1.0, -1.0)

    def loss(w: Array) -> tuple[float, Array]:
        margin = sign * (x @ w)
        pull = -sign / (1 + np.exp(np.clip(margin, -500, 500)))
        gradient = x.T @ pull + PENALTY * np.append(w[:-1], 0.0)
        return float(np.logaddexp(0, -margin).sum() + PENALTY / 2 * w[:-1] @ w[:-1]), gradient

    best = minimize(loss, np.zeros(x.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 200}).x
    return np.asarray(np.column_stack([(other - centre) / scale, np.ones(len(other))]) @ best)
