"""The whole meta-evaluation of a file: every metric against every dimension, who beats the baselines, who differs."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elench.errors import UsageError
from elench.evaluate.judgements import Judgements
from elench.evaluate.slices import slices
from elench.stats.correlation import Estimates, correlate, scale_of
from elench.stats.letters import letters
from elench.stats.levels import COEFFICIENTS, SOFT
from elench.stats.resampling import outward
from elench.stats.significance import CORRECTIONS

Array = NDArray[np.float64]


@dataclass(frozen=True)
class MetricAgreement:
    """One metric and one human dimension."""

    part: str
    """Which slice of the file (`--by`); empty for all of it"""
    dimension: str
    metric: str
    kind: str
    n: int
    records: int
    """Records with both a score and a rating"""
    groups: int | None
    """At group level: groups large enough to be averaged; n of them have a value"""
    values: dict[str, float | None]
    low: dict[str, float | None]
    high: dict[str, float | None]
    epsilon: float | None
    p: float | None
    """Corrected p-value of the difference to the best sanity baseline"""
    mark: str
    """"≤ length" when the metric does not beat the best sanity baseline significantly; empty when it does"""
    cluster: str
    """Metrics of one dimension that share a letter do not differ significantly"""
    reason: str | None
    """Why there are no numbers"""


@dataclass(frozen=True)
class Evaluation:
    """What `elench meta` found, with everything needed to print it."""

    source: str
    level: str
    coefficient: str
    """The coefficient that ranks, marks and clusters"""
    coefficients: tuple[str, ...]
    rows: tuple[MetricAgreement, ...]
    records: int
    method: str
    correction: str
    alpha: float
    notes: tuple[str, ...]

    def to_object(self) -> dict[str, Any]:
        """As plain JSON values."""
        from dataclasses import asdict

        return asdict(self)


def evaluate(
    table: Judgements,
    *,
    level: str = "segment",
    by: str | None = None,
    coefficient: str = "pearson",
    coefficients: Sequence[str] = COEFFICIENTS,
    over: str | None = None,
    draws: int = 1000,
    seed: int = 0,
    correction: str = "holm",
    alpha: float = 0.05,
    interval: str = "bootstrap",
) -> Evaluation:
    """Correlate, rank, mark and cluster the metrics of a table, whole or by the values of a field."""
    coefficients = _used(level, coefficient, coefficients)
    if not table.metrics:
        raise UsageError(
            f"{table.source}: no metric to judge: give --scores FILE (from `elench score`) or records with peers"
        )
    rows: list[MetricAgreement] = []
    notes, methods = list(table.notes), []
    warned: dict[str, None] = {}
    for part, records in slices(table, by):
        try:
            found = correlate(
                records, level, over=over, draws=draws, seed=seed, coefficients=tuple(coefficients), method=interval
            )
        except UsageError as error:
            if by is None:
                raise
            notes.append(f"{by} = {part}: left out, {error}")
            continue
        methods.append(found.method)
        warned.update(dict.fromkeys(found.sampling.plan.warnings()))
        rows += _rows(part, records, found, coefficient, correction, alpha)
    if not any(row.reason is None for row in rows):
        reasons = sorted({row.reason for row in rows if row.reason}) or notes[-1:]
        raise UsageError(f"{table.source}: nothing can be correlated: {'; '.join(reasons)}")
    notes += [*warned, *_gaps(table), *_undefined_groups(rows), *_against(rows, coefficient)]
    if level == "segment" and "accuracy" in coefficients:
        ties = ", ".join(f"{name} {_tied(table.human[:, d]):.0%}" for d, name in enumerate(table.dimensions))
        notes.append(f"Pairs rated equal by people, which is also the acc of a metric that ties everything: {ties}.")
    method = methods[0] if by is None else methods[0] + " (each part on its own)"
    return Evaluation(
        table.source, level, coefficient, tuple(coefficients), tuple(rows), len(table.records), method, correction,
        alpha, tuple(notes),
    )  # fmt: skip


def _used(level: str, main: str, others: Sequence[str]) -> tuple[str, ...]:
    """The coefficients of the table, the main one first; the soft accuracy joins them at system level."""
    every = [*others, SOFT] if level == "system" and tuple(others) == COEFFICIENTS else list(others)
    return (main, *(name for name in every if name != main))


def _rows(
    part: str, table: Judgements, found: Estimates, main: str, correction: str, alpha: float
) -> list[MetricAgreement]:
    rows = []
    for d, dimension in enumerate(table.dimensions):
        value = found.values[main][:, d]
        defined = [m for m in range(len(table.metrics)) if np.isfinite(value[m])]
        order = sorted(defined, key=lambda m: -value[m])
        shared = dict(zip(order, _letters(order, found, d, main, correction, alpha), strict=True))
        marks = _marks(table, order, found, d, main, correction, alpha)
        undefined = [m for m in range(len(table.metrics)) if m not in shared]
        for m in order + undefined:
            p, mark = marks.get(m, (None, ""))
            rows.append(
                MetricAgreement(
                    part=part,
                    dimension=dimension,
                    metric=table.metrics[m],
                    kind=table.kinds[table.metrics[m]],
                    n=int(found.n[m, d]),
                    records=int(found.records[m, d]),
                    groups=int(found.groups[m, d]) if found.level == "group" else None,
                    values={name: _number(v[m, d]) for name, v in found.values.items()},
                    low={name: _number(v[m, d]) for name, v in found.low.items()},
                    high={name: _number(v[m, d]) for name, v in found.high.items()},
                    epsilon=_number(found.epsilon[m, d]),
                    p=p,
                    mark=mark,
                    cluster=shared.get(m, ""),
                    reason=found.reasons.get((m, d)),
                )
            )
    return rows


def _letters(order: list[int], found: Estimates, d: int, main: str, correction: str, alpha: float) -> list[str]:
    """Letters of the ranked metrics, from paired tests of all pairs on their common records, corrected together."""
    i, j = np.triu_indices(len(order), 1)
    pairs = [(order[a], order[b]) for a, b in zip(i.tolist(), j.tolist(), strict=True)]
    differs = np.zeros((len(order), len(order)), dtype=bool)
    differs[i, j] = CORRECTIONS[correction](found.gap_ps(pairs, d, main)) < alpha
    return letters(differs)


def _marks(
    table: Judgements, order: list[int], found: Estimates, d: int, main: str, correction: str, alpha: float
) -> dict[int, tuple[float, str]]:
    """Which metrics do not beat the best sanity baseline. A baseline of a correlation may count with reversed sign
    (shorter is better): its sign is taken as found; a metric must agree with people in its own direction."""
    baselines = [m for m in order if table.kinds[table.metrics[m]] == "sanity"]
    others = [m for m in order if m not in baselines]
    if not baselines or not others:
        return {}
    turn = scale_of(main) == "fisher"
    value = outward(found.values[main][:, d], scale_of(main))
    best = max(baselines, key=lambda m: abs(value[m]) if turn else value[m])
    sign = 1.0 if value[best] >= 0 or not turn else -1.0
    p = CORRECTIONS[correction](found.gap_ps([(m, best) for m in others], d, main, sign))
    name = ("" if sign > 0 else "−") + table.metrics[best]
    return {
        m: (float(q), "" if q < alpha and value[m] > sign * value[best] else f"≤ {name}")
        for m, q in zip(others, p, strict=True)
    }


def _gaps(table: Judgements) -> list[str]:
    missing = np.isnan(table.scores).sum(axis=0).tolist()
    found = [
        f"{count} of {len(table.records)} records are unscored by {name}: left out there; its differences from other "
        "metrics are tested on common records."
        for name, count in zip(table.metrics, missing, strict=True)
        if count
    ]
    return found


def _undefined_groups(rows: Sequence[MetricAgreement]) -> list[str]:
    """Metrics that have no coefficient in a tenth or more of the groups: their mean is over the rest."""
    lacking: dict[tuple[str, str, int, int], list[str]] = {}
    for row in rows:
        if row.groups and row.n < 0.9 * row.groups and row.reason is None:
            lacking.setdefault((row.part, row.dimension, row.groups - row.n, row.groups), []).append(row.metric)
    return [
        f"{part + ': ' if part else ''}{dimension}: no coefficient in {missing} of {groups} groups, where scores or "
        f"ratings are constant; the mean is over the others ({_listed(metrics)})."
        for (part, dimension, missing, groups), metrics in lacking.items()
    ]


def _listed(names: Sequence[str], most: int = 3) -> str:
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest


def _against(rows: Sequence[MetricAgreement], main: str) -> list[str]:
    """Metrics that people contradict throughout: their direction may be the other one."""
    known = [row for row in rows if row.kind != "sanity" and row.reason is None]
    turned = [
        metric
        for metric in dict.fromkeys(row.metric for row in known)
        if scale_of(main) == "fisher" and all((row.high[main] or 0.0) < 0 for row in known if row.metric == metric)
    ]
    if not turned:
        return []
    options = " ".join(f"--lower-is-better {shlex.quote(name)}" for name in turned)
    return [f"Agrees with people in reverse: {_listed(turned)}. If lower is better, add {options}."]


def _tied(ratings: Array) -> float:
    """The share of pairs of records with equal ratings."""
    _, counts = np.unique(ratings[np.isfinite(ratings)], return_counts=True)
    n = int(counts.sum())
    return float((counts * (counts - 1)).sum() / max(1, n * (n - 1)))


def _number(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None
