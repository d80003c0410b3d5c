"""The cheap ideas that a clever metric must beat, computed for any file of records."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from elench.errors import ElenchError
from elench.evaluate.judgements import Judgements

Array = NDArray[np.float64]

BASELINES = {
    "question": ("length", "answer-leak", "near-answer"),
    "answer": ("length", "novel-f1"),
    "summary": ("length", "source-overlap[n=2]", "lead-overlap"),
}
"""What is judged → the sanity baselines that apply (METRICS.md §6b)."""


def with_baselines(table: Judgements) -> Judgements:
    """The table with its sanity baselines as further metrics; a note says which could not be computed, and why."""
    judged = sorted({record.judged for record in table.records})
    names, columns, notes = [], [], []
    for spec in dict.fromkeys(spec for judge in judged for spec in BASELINES[judge]):
        try:
            name, column, why = _score(table, spec)
        except ElenchError as error:
            notes.append(f"sanity baseline {spec} is not in this table: {error}")
            continue
        if not np.isfinite(column).any():
            notes.append(f"sanity baseline {spec} is not in this table: {why}")
            continue
        names.append(name)
        columns.append(column)
    known = [
        name for name in names if name in table.metrics
    ]  # scored before: the same numbers, now marked as baselines
    table = replace(table, kinds={**table.kinds, **dict.fromkeys(known, "sanity")})
    matrix = np.stack(columns, axis=1) if columns else np.empty((len(table.records), 0))
    return table.with_metrics(names, matrix, "sanity", notes)


def _score(table: Judgements, spec: str) -> tuple[str, Array, str]:
    """The baseline's canonical name, its scores (NaN where unscored), and the most common reason for a gap."""
    import elench
    from elench.metrics import metric

    name = metric(spec).spec()
    with warnings.catch_warnings():  # a baseline that cannot score the file is noted below the table
        warnings.simplefilter("ignore", UserWarning)
        result = elench.score(table.records, [spec], cache=False)
    column = np.array([np.nan if value is None else value for value in result.values(name)], dtype=np.float64)
    reasons = Counter(result.unscored[name].values())
    return name, column, "; ".join(reason for reason, _ in reasons.most_common(2))
