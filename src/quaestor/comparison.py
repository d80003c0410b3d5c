"""Systems side by side: means with intervals, and which differences are real (paired tests, Holm over all pairs)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from quaestor.errors import UsageError
from quaestor.meta.significance import holm
from quaestor.metrics.base import Metric
from quaestor.records import Record
from quaestor.scoring import Result, score

if TYPE_CHECKING:
    from quaestor.models.base import ModelSet

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Pair:
    """The difference of two systems under one metric."""

    first: str
    second: str
    difference: float
    n: int
    bootstrap: float
    """p of the paired bootstrap (two-sided)."""
    randomisation: float
    """p of approximate randomisation (two-sided)."""
    corrected: float
    """The p-value of the chosen test after Holm's correction over all pairs of this metric."""


@dataclass(frozen=True)
class Column:
    """One metric over all systems."""

    metric: str
    higher_is_better: bool
    scores: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    n: dict[str, int]
    pairs: list[Pair]
    unscored: int

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
    columns: list[Column]
    test: str
    alpha: float
    draws: int
    seed: int
    notes: list[str] = field(default_factory=list)

    def letters(self) -> dict[str, str]:
        """a, b, … z, aa, ab, …: the name of each system in superscripts."""
        alphabet = "abcdefghijklmnopqrstuvwxyz"
        names = [*alphabet, *(x + y for x in alphabet for y in alphabet)]
        return dict(zip(self.systems, names, strict=False))

    def cells(self) -> list[list[tuple[str, str, str]]]:
        """Per system, per metric: score, interval, letters of the systems beaten."""
        letters = self.letters()
        rows = []
        for system in self.systems:
            row = []
            for column in self.columns:
                if system not in column.scores:
                    row.append(("–", "", ""))
                    continue
                low, high = column.intervals[system]
                wins = ",".join(letters[s] for s in column.beaten(system, self.alpha))
                row.append((f"{column.scores[system]:.4f}", f"{low:.4f} … {high:.4f}", wins))
            rows.append(row)
        return rows

    def explanation(self) -> str:
        counts = {n for column in self.columns for n in column.n.values()}
        n = str(counts.pop()) if len(counts) == 1 else f"{min(counts, default=0)}–{max(counts, default=0)}"
        return (
            f"n = {n} items per system; 95 % percentile bootstrap intervals over items; letters: systems beaten with "
            f"p < {self.alpha:g} ({self.test}, two-sided, {self.draws} draws, seed {self.seed}, Holm over all pairs)."
        )

    def to_object(self) -> dict[str, Any]:
        return {
            "systems": self.systems, "test": self.test, "alpha": self.alpha, "draws": self.draws, "seed": self.seed,
            "notes": self.notes,
            "metrics": {
                c.metric: {
                    "higher_is_better": c.higher_is_better, "unscored": c.unscored,
                    "systems": {
                        s: {"score": c.scores[s], "ci95": list(c.intervals[s]), "n": c.n[s],
                            "beats": c.beaten(s, self.alpha)}
                        for s in c.scores
                    },
                    "pairs": [
                        {"first": p.first, "second": p.second, "difference": p.difference, "n": p.n,
                         "p_bootstrap": p.bootstrap, "p_randomisation": p.randomisation, "p_corrected": p.corrected}
                        for p in c.pairs
                    ],
                }
                for c in self.columns
            },
        }  # fmt: skip

    def to_json(self) -> str:
        return json.dumps(self.to_object(), indent=2, ensure_ascii=False)

    def to_text(self) -> str:
        head = ["", "system", *(c.metric for c in self.columns)]
        body = [
            [letter, system, *(f"{score} {f'^{wins}' if wins else ''} [{interval}]" if interval else score
                               for score, interval, wins in row)]
            for (system, letter), row in zip(self.letters().items(), self.cells(), strict=True)
        ]  # fmt: skip
        widths = [max(len(row[i]) for row in [head, *body]) for i in range(len(head))]
        lines = [
            "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in [head, *body]
        ]
        return "\n".join([*lines, self.explanation(), *self.notes])

    def to_markdown(self) -> str:
        head = ["", "system", *(c.metric for c in self.columns)]
        lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
        for (system, letter), row in zip(self.letters().items(), self.cells(), strict=True):
            cells = [f"{s}{f'<sup>{w}</sup>' if w else ''} <small>{i}</small>" if i else s for s, i, w in row]
            lines.append("| " + " | ".join([letter, system.replace("|", "\\|"), *cells]) + " |")
        return "\n".join([*lines, "", self.explanation(), *self.notes])

    def to_latex(self) -> str:
        def safe(text: str) -> str:
            return "".join(f"\\{c}" if c in "&%$#_{}" else c for c in text)

        lines = [f"\\begin{{tabular}}{{ll{'r' * len(self.columns)}}}", "\\hline"]
        lines.append(" & ".join(["", "system", *(safe(c.metric) for c in self.columns)]) + " \\\\ \\hline")
        for (system, letter), row in zip(self.letters().items(), self.cells(), strict=True):
            cells = [f"{s.replace('–', '--')}{f'$^{{{w}}}$' if w else ''}" for s, _, w in row]
            lines.append(" & ".join([letter, safe(system), *cells]) + " \\\\")
        return "\n".join([*lines, "\\hline", "\\end{tabular}", f"% {self.explanation()}"])

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_markdown_(self) -> str:
        return self.to_markdown()


def compare(
    records: Any,
    metrics: str | Metric | Sequence[str | Metric],
    *,
    test: str = "randomisation",
    draws: int = 2000,
    alpha: float = 0.05,
    seed: int = 0,
    models: ModelSet | None = None,
) -> Comparison:
    """Compare the systems of `records` (their `system` field) under one or more metrics."""
    return compare_result(score(records, metrics, models=models), test=test, draws=draws, alpha=alpha, seed=seed)


def compare_result(
    result: Result, *, test: str = "randomisation", draws: int = 2000, alpha: float = 0.05, seed: int = 0
) -> Comparison:
    """Compare the systems of records that are scored already."""
    if test not in ("randomisation", "bootstrap"):
        raise UsageError(f"no test is called {test!r}; randomisation or bootstrap")
    systems = list(dict.fromkeys(r.system for r in result.records if r.system is not None))
    if len(systems) < 2:
        raise UsageError("comparing needs records of at least two systems: give each record a 'system'")
    keys, notes = _pairing(result.records)
    columns = [_column(result, metric, systems, keys, test, draws, seed) for metric in result.metrics]
    unnamed = sum(r.system is None for r in result.records)
    if unnamed:
        notes.append(f"{unnamed} records have no system and were left out.")
    return Comparison(systems, columns, test, alpha, draws, seed, notes)


def _pairing(records: Sequence[Record]) -> tuple[list[str], list[str]]:
    """What pairs the items of two systems: their id, or their group when ids are never shared."""
    ids: dict[str, set[str | None]] = {}
    for record in records:
        ids.setdefault(record.id, set()).add(record.system)
    if any(len(systems) > 1 for systems in ids.values()):
        return [r.id for r in records], []
    if all(r.group is not None for r in records if r.system is not None):
        return [r.group or "" for r in records], ["Items are paired by group (several items of a group are averaged)."]
    raise UsageError(
        "the systems share no ids and the records have no group: nothing pairs them; "
        "give the same id to the same item of each system, or a 'group'"
    )


def _column(
    result: Result, metric: Metric, systems: list[str], keys: list[str], test: str, draws: int, seed: int
) -> Column:
    spec = str(metric)
    rows: dict[str, dict[str, list[tuple[float, tuple[float, ...]]]]] = {system: {} for system in systems}
    unscored = 0
    for record, outcome, key in zip(result.records, result.outcomes, keys, strict=True):
        if record.system is None:
            continue
        if spec in outcome.scores:
            found = outcome.scores[spec]
            rows[record.system].setdefault(key, []).append((found.value, found.counts))
        else:
            unscored += 1
    tables = {system: _Table(metric, items) for system, items in rows.items() if items}
    rng = np.random.default_rng(seed)
    intervals = {}
    for system, table in tables.items():
        n = len(table.keys)
        resampled = np.concatenate([table.scores(rng.integers(0, n, (block, n))) for block in _blocks(draws, n)])
        intervals[system] = (float(np.quantile(resampled, 0.025)), float(np.quantile(resampled, 0.975)))
    pairs = []
    for first, second in combinations(tables, 2):
        shared = [key for key in tables[first].keys if key in tables[second].index]
        if len(shared) > 1:
            pairs.append(_pair(tables[first].only(shared), tables[second].only(shared), first, second, draws, seed))
    corrected: Sequence[float] = list(holm([getattr(p, test) for p in pairs])) if pairs else []
    pairs = [
        Pair(p.first, p.second, p.difference, p.n, p.bootstrap, p.randomisation, float(c))
        for p, c in zip(pairs, corrected, strict=True)
    ]
    scores = {system: table.whole() for system, table in tables.items()}
    items = {system: sum(map(len, rows[system].values())) for system in tables}
    return Column(spec, metric.higher_is_better, scores, intervals, items, pairs, unscored)


def _blocks(draws: int, n: int) -> list[int]:
    """Draws in blocks that keep memory bounded however many items there are."""
    size = max(1, min(draws, 5_000_000 // max(n, 1)))
    return [min(size, draws - at) for at in range(0, draws, size)]


class _Table:
    """The item scores of one system as arrays: any resample is an index and a sum."""

    def __init__(self, metric: Metric, items: dict[str, list[tuple[float, tuple[float, ...]]]]) -> None:
        self.metric = metric
        self.keys = list(items)
        self.index = {key: i for i, key in enumerate(self.keys)}
        self.values: Array = np.array([np.mean([v for v, _ in found]) for found in items.values()])
        first_counts = next(iter(items.values()))[0][1]
        by_counts = bool(first_counts) and metric.corpus_score(first_counts) is not None
        self.counts: Array | None = (
            np.array([np.sum([c for _, c in found], axis=0) for found in items.values()]) if by_counts else None
        )

    def only(self, keys: list[str]) -> _Table:
        chosen = [self.index[key] for key in keys]
        table = object.__new__(_Table)
        table.metric, table.keys, table.index = self.metric, keys, {key: i for i, key in enumerate(keys)}
        table.values = self.values[chosen]
        table.counts = None if self.counts is None else self.counts[chosen]
        return table

    def _from_totals(self, totals: Array) -> Array:
        return np.array([self.metric.corpus_score(row) or 0.0 for row in totals.tolist()])

    def scores(self, draws: npt.NDArray[np.int64]) -> Array:
        """The system's score in each resample (draws × items of indices)."""
        if self.counts is None:
            means: Array = self.values[draws].mean(axis=1)
            return means
        return self._from_totals(np.stack([self.counts[draw].sum(axis=0) for draw in draws]))

    def mixed(self, other: _Table, swap: npt.NDArray[np.bool_]) -> Array:
        """This system's score when the items flagged in `swap` (draws × items) come from the other system."""
        if self.counts is None or other.counts is None:
            exchanged: Array = self.values.mean() + swap @ (other.values - self.values) / len(self.values)
            return exchanged
        return self._from_totals(self.counts.sum(axis=0) + swap @ (other.counts - self.counts))

    def whole(self) -> float:
        return float(self.scores(np.arange(len(self.keys))[None, :])[0])


def _pair(a: _Table, b: _Table, first: str, second: str, draws: int, seed: int) -> Pair:
    n = len(a.keys)
    difference = a.whole() - b.whole()
    rng = np.random.default_rng([seed, n])
    turned = [0, 0]
    extreme = 0
    for block in _blocks(draws, n):
        picks = rng.integers(0, n, (block, n))
        resampled = a.scores(picks) - b.scores(picks)
        turned = [turned[0] + int((resampled <= 0).sum()), turned[1] + int((resampled >= 0).sum())]
        swap = rng.random((block, n)) < 0.5
        shuffled = a.mixed(b, swap) - b.mixed(a, swap)
        extreme += int((np.abs(shuffled) >= abs(difference) - 1e-12).sum())
    # A two-sided p from the bootstrap: how often the difference changes sign, doubled; +1 because the data themselves
    # are one of the resamples, so that no p-value is ever zero.
    bootstrap = min(1.0, 2 * (min(turned) + 1) / (draws + 1))
    return Pair(first, second, difference, n, bootstrap, (extreme + 1) / (draws + 1), 1.0)
