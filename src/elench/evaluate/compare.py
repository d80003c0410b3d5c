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
from elench.evaluate.compare_tables import pair_grid, system_grid
from elench.metrics.base import Metric
from elench.records.record import Record
from elench.stats.resampling_plan import ResamplingPlan, resampling_plan
from elench.stats.significance import holm
from elench.stats.totals import Studentised, Totals, bootstrap_t, exchange_test

if TYPE_CHECKING:
    from elench.grid import Grid
    from elench.models.base import ModelSet

Array = npt.NDArray[np.float64]
TESTS = ("randomisation", "bootstrap")
FAMILIES = ("metric", "all")
MOST_PAIRS = 10
"""Tables print at most this many pairs per metric unless all are asked for; JSON has them all."""


@dataclass(frozen=True)
class Pair:
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
    pairs: list[Pair]
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
        plans = dict.fromkeys(column.plan for column in self.columns)
        if len(plans) > 1:
            plans = dict.fromkeys(f"{column.metric}: {column.plan}" for column in self.columns)
        own = dict.fromkeys(note for column in self.columns for note in column.notes)
        return [self.explanation(), *(f"{plan}." for plan in plans), *self.notes, *own]

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

        most = None if self.all_pairs else MOST_PAIRS
        grids = [self.grid(), *(pair_grid(column, self.test, most) for column in self.columns), *self.added]
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
    models: ModelSet | None = None,
) -> Comparison:
    """Compare the systems of `records` (their `system` field) under one or more metrics.

    `rated`: records with human ratings, from which it is estimated how often people prefer the metric's winner, and
    the mean ratings of the compared systems among them."""
    result = score(records, metrics, models=models)
    found = compare_result(result, test=test, draws=draws, alpha=alpha, seed=seed, family=family, calibrate=calibrate)
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


def pairing(records: Sequence[Record]) -> tuple[list[str], list[str]]:
    """What pairs the items of two systems: their id, or their group when ids are never shared."""
    ids: dict[str, set[str | None]] = {}
    for record in records:
        if record.system is not None:
            ids.setdefault(record.id, set()).add(record.system)
    if any(len(systems) > 1 for systems in ids.values()):
        return [r.id for r in records], []
    if all(r.group is not None for r in records if r.system is not None):
        note = "Items are paired by group: a group's records of one system count together."
        return [r.group or "" for r in records], [note]
    raise UsageError(
        "the systems share no ids and the records have no group: nothing pairs them; "
        "give the same id to the same item of each system, or a 'group'"
    )


@dataclass(frozen=True)
class Items:
    """The common items of all systems under one metric."""

    metric: Metric
    systems: list[str]
    values: Array
    """items × systems: mean score of an item's records"""
    totals: Totals
    """Summed by group"""
    plan: ResamplingPlan
    """Over items: which group each belongs to"""
    coverage: dict[str, int]
    notes: tuple[str, ...]


def items_of(result: Result, metric: Metric, systems: list[str], keys: Sequence[str]) -> Items:
    """Line up what every system has; refuse with a reason where that is nothing."""
    spec = str(metric)
    rows: dict[str, dict[str, list[tuple[float, tuple[float, ...]]]]] = {system: {} for system in systems}
    groups: dict[str, str | None] = {}
    unscored = dict.fromkeys(systems, 0)
    for outcome, key in zip(result.scored, keys, strict=True):
        if outcome.system is None:
            continue
        groups.setdefault(key, outcome.record.group if outcome.record else None)
        if spec in outcome.scores:
            found = outcome.scores[spec]
            rows[outcome.system].setdefault(key, []).append((found.value, found.counts))
        else:
            unscored[outcome.system] += 1
    common = _common(rows, spec)
    first_counts = rows[systems[0]][common[0]][0][1]
    by_counts = bool(first_counts) and metric.corpus_score(first_counts) is not None
    plan = resampling_plan([groups[key] for key in common], [None] * len(common))
    width = len(first_counts) if by_counts else 2
    sums = np.zeros((plan.groups, len(systems), width))
    values = np.empty((len(common), len(systems)))
    for k, system in enumerate(systems):
        for i, key in enumerate(common):
            own = rows[system][key]
            values[i, k] = np.mean([value for value, _ in own])
            for value, counted in own:
                sums[plan.group[i], k] += counted if by_counts else (value, 1.0)
    totals = Totals(sums, _corpus_score(metric)) if by_counts else Totals(sums)
    coverage = {system: len(items) for system, items in rows.items()}
    return Items(metric, systems, values, totals, plan, coverage, _coverage_notes(spec, coverage, unscored, common))


def _common(rows: dict[str, dict[str, Any]], spec: str) -> list[str]:
    empty = [system for system, items in rows.items() if not items]
    if empty:
        raise UsageError(f"{spec} scored no record of {', '.join(empty)}: leave that system or metric out")
    first, *others = rows.values()
    common = [key for key in first if all(key in items for items in others)]
    if common:
        return common
    for (a, one), (b, two) in combinations(rows.items(), 2):
        if not one.keys() & two.keys():
            raise UsageError(f"{a} and {b} share no item that {spec} scored: their scores cannot be compared")
    raise UsageError(f"no item is scored by {spec} for all of {len(rows)} systems: compare fewer systems at a time")


def _coverage_notes(
    spec: str, coverage: dict[str, int], unscored: dict[str, int], common: Sequence[str]
) -> tuple[str, ...]:
    notes = []
    if max(coverage.values()) > len(common):
        per_system = ", ".join(f"{system} {n}" for system, n in coverage.items())
        notes.append(f"{spec}: compared on {len(common)} items that all systems have; scored items: {per_system}.")
    if any(unscored.values()):
        per_system = ", ".join(f"{system} {n}" for system, n in unscored.items() if n)
        notes.append(f"{spec}: unscored records: {per_system}.")
    return tuple(notes)


def _corpus_score(metric: Metric) -> Any:
    def scores(totals: Array) -> Array:
        flat = totals.reshape(-1, totals.shape[-1])
        found = np.array([metric.corpus_score(row) for row in flat.tolist()], dtype=np.float64)  # None becomes NaN
        return found.reshape(totals.shape[:-1])

    return scores


def _column(items: Items, draws: int, seed: int) -> MetricComparison:
    systems, totals = items.systems, items.totals
    couples = list(combinations(range(len(systems)), 2))
    unit = np.eye(len(systems))
    contrasts = np.concatenate([unit, *(unit[[i]] - unit[[j]] for i, j in couples)])
    estimates = bootstrap_t(totals, contrasts, draws, seed)
    alone, gaps = estimates[: len(systems)], estimates[len(systems) :]
    pairs = [_pair(items, i, j, gap, draws, seed) for (i, j), gap in zip(couples, gaps, strict=True)]
    low, high = items.metric.range
    intervals = {s: _clipped(e, low, high) for s, e in zip(systems, alone, strict=True)}
    effective = [items.plan.effective_n(items.values[:, i] - items.values[:, j]) for i, j in couples]
    known = [n for n in effective if n is not None]
    reasons = dict.fromkeys(e.reason for e in estimates if e.reason)
    notes = [*items.notes, *(f"interval –: {reason}" for reason in reasons), *items.plan.warnings()]
    smallest = 2.0 ** (1 - totals.units)
    if smallest >= 0.05 / len(couples):
        notes.append(f"with {totals.units} to exchange no randomisation p-value can fall below {smallest:.2g}")
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


def _pair(items: Items, i: int, j: int, gap: Studentised, draws: int, seed: int) -> Pair:
    difference = items.values[:, i] - items.values[:, j]
    spread = float(difference.std(ddof=1)) if len(difference) > 1 else 0.0
    equal = bool(np.allclose(difference, 0, atol=1e-12))
    return Pair(
        items.systems[i], items.systems[j], gap.value, gap.low, gap.high,
        float(difference.mean()) / spread if spread > 1e-12 else None,
        float(((difference > 1e-12) + (np.abs(difference) <= 1e-12) / 2).mean()), len(difference),
        1.0 if equal else exchange_test(items.totals, i, j, draws, seed), gap.p,
    )  # fmt: skip
