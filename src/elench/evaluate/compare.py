"""Systems side by side: scores with intervals, and which differences are real.

Systems are compared on the items that all of them have and the metric could score. Items of one group (context) are
drawn and exchanged together. Tests are paired and two-sided, with Holm's correction over all pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from elench.engine.result import Result
from elench.engine.scoring import score
from elench.errors import UsageError
from elench.evaluate.compare_items import Items, items_of, pairing
from elench.evaluate.compare_tables import pair_grid, system_grid
from elench.metrics.base import Metric
from elench.stats.resampling import enough_draws
from elench.stats.significance import holm
from elench.stats.totals import Studentised, bootstrap_t, exchange_tests

if TYPE_CHECKING:
    from elench.grid import Grid
    from elench.models.base import ModelSet

Array = npt.NDArray[np.float64]
TESTS = ("randomisation", "bootstrap")
FAMILIES = ("metric", "all")
MOST_PAIRS = 10
"""Tables print at most this many pairs per metric unless all are asked for; JSON has them all."""


@dataclass(frozen=True)
class SystemPair:
    """The difference of two systems under one metric, on their common items."""

    first: str
    second: str
    difference: float
    low: float | None
    high: float | None
    """95 % bootstrap-t interval of the difference"""
    effect: float | None
    """The mean difference of item scores in their standard deviations (Cohen's d of paired differences)"""
    wins: float
    """Share of items on which the first scores higher; ties count half"""
    n: int
    """Items"""
    randomisation: float
    """p of exchanging the systems' outputs, group by group"""
    bootstrap: float | None
    """p of the bootstrap-t over groups; None with too few of them"""
    corrected: float = 1.0
    """The p-value of the chosen test after Holm's correction"""


@dataclass(frozen=True)
class MetricComparison:
    """One metric over all systems."""

    metric: str
    higher_is_better: bool
    scores: dict[str, float]
    intervals: dict[str, tuple[float, float] | None]
    n: int
    """Items that every system has and the metric scored"""
    groups: int
    coverage: dict[str, int]
    """Items scored per system, common or not"""
    pairs: list[SystemPair]
    plan: str
    notes: tuple[str, ...]

    def beaten(self, system: str, alpha: float) -> list[str]:
        """The systems that this one beats significantly."""
        sign = 1 if self.higher_is_better else -1
        wins = []
        for pair in self.pairs:
            if pair.corrected < alpha and system in (pair.first, pair.second):
                ahead = pair.first if pair.difference * sign > 0 else pair.second
                if ahead == system:
                    wins.append(pair.second if ahead == pair.first else pair.first)
        return wins


@dataclass(frozen=True)
class Comparison:
    """A table of systems × metrics; prints as text, Markdown, LaTeX or JSON."""

    systems: list[str]
    columns: list[MetricComparison]
    test: str
    alpha: float
    draws: int
    seed: int
    family: str = "metric"
    notes: list[str] = field(default_factory=list)
    all_pairs: bool = False
    added: tuple[Grid, ...] = ()
    """Further tables: what a difference buys, how the tests behave on files like this one"""
    extra: dict[str, Any] = field(default_factory=dict)
    """The same for JSON"""

    @property
    def most(self) -> int | None:
        """How many pairs a table prints."""
        return None if self.all_pairs else MOST_PAIRS

    def letters(self) -> dict[str, str]:
        """a, b, … z, aa, ab, …: the name of each system in superscripts."""
        alphabet = "abcdefghijklmnopqrstuvwxyz"
        names = [*alphabet, *(x + y for x in alphabet for y in alphabet)]
        return dict(zip(self.systems, names, strict=False))

    def explanation(self) -> str:
        counts = {column.n for column in self.columns}
        n = str(counts.pop()) if len(counts) == 1 else f"{min(counts)}–{max(counts)}"
        over = "all pairs of a metric" if self.family == "metric" else "all pairs and metrics"
        return (
            f"n = {n} items common to all systems; 95 % bootstrap-t intervals; letters: systems beaten with "
            f"p < {self.alpha:g} ({self.test}, paired, two-sided, {self.draws} draws, seed {self.seed}, "
            f"Holm over {over})."
        )

    def all_notes(self) -> list[str]:
        """How to read the table, the resampling plan, and what is missing."""
        plans = dict.fromkeys(f"{column.plan[0].upper()}{column.plan[1:]}." for column in self.columns)
        if len(plans) > 1:
            plans = dict.fromkeys(f"{column.metric}: {column.plan}." for column in self.columns)
        own = dict.fromkeys(note for column in self.columns for note in column.notes)
        return [self.explanation(), *plans, *self.notes, *own]

    def to_object(self) -> dict[str, Any]:
        return {
            "systems": self.systems, "test": self.test, "alpha": self.alpha, "draws": self.draws, "seed": self.seed,
            "family": self.family, "notes": self.notes, **self.extra,
            "metrics": {
                c.metric: {
                    "higher_is_better": c.higher_is_better, "n": c.n, "groups": c.groups, "plan": c.plan,
                    "notes": list(c.notes),
                    "systems": {
                        s: {"score": c.scores[s], "ci95": c.intervals[s], "scored": c.coverage[s],
                            "beats": c.beaten(s, self.alpha)}
                        for s in c.scores
                    },
                    "pairs": [asdict(p) for p in c.pairs],
                }
                for c in self.columns
            },
        }  # fmt: skip

    def grid(self) -> Grid:
        """Systems × metrics: score, letters of the systems beaten, interval."""
        return system_grid(self)

    def render(self, form: str = "text") -> str:
        """text, markdown, latex, json or html."""
        from elench.show.tables import render

        grids = [self.grid(), *(pair_grid(column, self.test, self.most) for column in self.columns), *self.added]
        return render(grids, self.all_notes(), form, 140, self.to_object())

    def __repr__(self) -> str:
        return self.render()

    def _repr_markdown_(self) -> str:
        return self.render("markdown")


def compare(
    records: Any,
    metrics: str | Metric | Sequence[str | Metric],
    *,
    test: str = "randomisation",
    draws: int = 2000,
    alpha: float = 0.05,
    seed: int = 0,
    family: str = "metric",
    calibrate: bool = False,
    rated: Any = None,
    all_pairs: bool = False,
    models: ModelSet | None = None,
) -> Comparison:
    """Compare the systems of `records` (their `system` field) under one or more metrics.

    `rated`: records with human ratings, from which it is estimated how often people prefer the metric's winner, and
    the mean ratings of the compared systems among them. `all_pairs`: print every pair, not only the first ten."""
    result = score(records, metrics, models=models)
    found = compare_result(result, test=test, draws=draws, alpha=alpha, seed=seed, family=family, calibrate=calibrate)
    found = replace(found, all_pairs=all_pairs)
    if rated is None:
        return found
    from elench.evaluate.worth import with_preferences

    return with_preferences(found, score(rated, metrics, models=models), result)


def compare_result(
    result: Result,
    *,
    test: str = "randomisation",
    draws: int = 2000,
    alpha: float = 0.05,
    seed: int = 0,
    family: str = "metric",
    calibrate: bool = False,
) -> Comparison:
    """Compare the systems of records that are scored already; `calibrate` adds simulations of the file's own design."""
    if test not in TESTS:
        raise UsageError(f"no test is called {test!r}; choose {' or '.join(TESTS)}")
    if family not in FAMILIES:
        raise UsageError(f"no family of tests is called {family!r}; choose {' or '.join(FAMILIES)}")
    systems = list(dict.fromkeys(r.system for r in result.records if r.system is not None))
    if len(systems) < 2:
        raise UsageError("comparing needs records of at least two systems: give each record a 'system'")
    keys, notes = pairing(result.records)
    items = [items_of(result, metric, systems, keys) for metric in result.metrics]
    tests = len(systems) * (len(systems) - 1) // 2 * (len(items) if family == "all" else 1)
    draws = enough_draws(draws, tests, alpha)
    columns = [_column(one, draws, seed) for one in items]
    unnamed = sum(r.system is None for r in result.records)
    if unnamed:
        notes.append(f"{unnamed} records have no system and were left out.")
    found = Comparison(systems, _corrected(columns, test, family), test, alpha, draws, seed, family, notes)
    return _checked(found, items) if calibrate else found


def _checked(found: Comparison, items: Sequence[Items]) -> Comparison:
    """With the behaviour of its tests and intervals on simulated files of this design."""
    from elench.evaluate.design_check import check_compare, grid

    checked = [check_compare(one, found.test, found.alpha, seed=found.seed) for one in items]
    extra = {**found.extra, "calibration": [asdict(one) for one in checked]}
    return replace(found, added=(*found.added, grid(checked, found.alpha)), extra=extra)


def _corrected(columns: list[MetricComparison], test: str, family: str) -> list[MetricComparison]:
    """Holm over the pairs of each metric, or over all of them together. A test without a p-value counts as 1."""

    def raw(column: MetricComparison) -> list[float]:
        return [1.0 if (p := getattr(pair, test)) is None else p for pair in column.pairs]

    together = [p for column in columns for p in raw(column)]
    joint = iter(holm(together).tolist())
    corrected = []
    for column in columns:
        own = [next(joint) for _ in column.pairs] if family == "all" else holm(raw(column)).tolist()
        pairs = [replace(pair, corrected=p) for pair, p in zip(column.pairs, own, strict=True)]
        corrected.append(replace(column, pairs=pairs))
    return corrected


def _column(items: Items, draws: int, seed: int) -> MetricComparison:
    systems, totals = items.systems, items.totals
    couples = list(combinations(range(len(systems)), 2))
    unit = np.eye(len(systems))
    contrasts = np.concatenate([unit, *(unit[[i]] - unit[[j]] for i, j in couples)])
    estimates = bootstrap_t(totals, contrasts, draws, seed)
    alone, gaps = estimates[: len(systems)], estimates[len(systems) :]
    exchanged = exchange_tests(totals, couples, draws, seed)
    pairs = [_pair(items, i, j, gap, p) for (i, j), gap, p in zip(couples, gaps, exchanged, strict=True)]
    low, high = items.metric.range
    intervals = {s: _clipped(e, low, high) for s, e in zip(systems, alone, strict=True)}
    effective = [items.plan.effective_n(items.values[:, i] - items.values[:, j]) for i, j in couples]
    known = [n for n in effective if n is not None]
    reasons = dict.fromkeys(e.reason for e in estimates if e.reason)
    notes = [*items.notes, *(f"Interval –: {reason}." for reason in reasons), *items.plan.warnings()]
    smallest = 2.0 ** (1 - totals.units)
    if smallest >= 0.05 / len(couples):
        what = "groups" if items.plan.grouped else "items"
        notes.append(f"With {totals.units} {what} to exchange, no randomisation p-value can fall below {smallest:.2g}.")
    return MetricComparison(
        str(items.metric), items.metric.higher_is_better,
        {s: e.value for s, e in zip(systems, alone, strict=True)}, intervals,
        len(items.values), totals.units, items.coverage, pairs,
        items.plan.describe(float(np.median(known)) if known else None), tuple(notes),
    )  # fmt: skip


def _clipped(estimate: Studentised, low: float, high: float) -> tuple[float, float] | None:
    if estimate.low is None or estimate.high is None:
        return None
    return max(low, estimate.low), min(high, estimate.high)


def _pair(items: Items, i: int, j: int, gap: Studentised, exchanged: float) -> SystemPair:
    difference = items.values[:, i] - items.values[:, j]
    spread = float(difference.std(ddof=1)) if len(difference) > 1 else 0.0
    equal = bool(np.allclose(difference, 0, atol=1e-12))
    low, high = items.metric.range
    limits = _clipped(gap, low - high, high - low)
    bottom, top = limits if limits else (None, None)
    return SystemPair(
        items.systems[i], items.systems[j], gap.value, bottom, top,
        float(difference.mean()) / spread if spread > 1e-12 else None,
        float(((difference > 1e-12) + (np.abs(difference) <= 1e-12) / 2).mean()), len(difference),
        1.0 if equal else exchanged, gap.p,
    )  # fmt: skip
