"""What is compared: the items that all systems have, lined up and summed by group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from elench.engine.result import Result
from elench.errors import UsageError
from elench.metrics.base import Metric
from elench.records.record import Record
from elench.stats.resampling_plan import ResamplingPlan, resampling_plan
from elench.stats.totals import Totals

Array = npt.NDArray[np.float64]


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
    plan = resampling_plan([groups[key] for key in common], [None] * len(common), single="items")
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
