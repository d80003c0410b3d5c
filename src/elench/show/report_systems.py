"""The report's systems: for each thing judged who wins, means with intervals, distributions, and metrics alike."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import combinations_with_replacement
from typing import ClassVar

import numpy as np

from elench.engine.result import Result
from elench.errors import ElenchError, Unscored
from elench.evaluate.compare import Comparison, compare_result
from elench.grid import Grid
from elench.metrics import higher_is_better
from elench.metrics.base import Metric, Score
from elench.records.record import Record
from elench.runs.summary import known
from elench.show import plots
from elench.show.page import Section, folded, note
from elench.show.report import ReportRecord, View
from elench.show.tables import as_html
from elench.show.winners import how_tested, sentences, winner_grid
from elench.stats.correlation import coefficient

ALPHA = 0.05
TITLES = {"question": "Questions", "answer": "Answers", "summary": "Summaries", "": "Records"}
MOST_METRICS = 24
"""More metrics than this make pictures that nobody can read; the tables have them all."""


@dataclass(frozen=True)
class Scored(Metric):
    """A column of scores that another tool made, or a metric that is not installed here."""

    title: str

    def spec(self, full: bool = False) -> str:
        return self.title

    async def score(self, record: Record) -> Score:
        raise Unscored("scored already")


class ScoredLower(Scored):
    """The same, where less is better."""

    higher_is_better: ClassVar[bool] = False


def judge_sections(view: View, draws: int, seed: int) -> Iterator[Section]:
    """A section for each thing judged."""
    for judge in view.judges:
        rows = [row for row in view.rows if row.judge == judge]
        specs = [s for s in view.specs if any(s in row.outcome.scores for row in rows)]
        parts = []
        if not specs:
            parts.append(note("Nothing could be scored; the reasons are below."))
        else:
            parts += _compared(rows, specs, draws, seed)
            parts += _pictures(rows, specs)
        parts.append(scores(rows, specs))
        yield Section(TITLES[judge], "".join(parts))


def comparison(rows: Sequence[ReportRecord], specs: Sequence[str], draws: int, seed: int) -> Comparison:
    """The systems of the rows side by side."""
    metrics = [known(s) or (Scored(s) if higher_is_better(s) else ScoredLower(s)) for s in specs]
    outcomes = [replace(row.outcome, system=row.system, record=replace(row.record, system=row.system)) for row in rows]
    return compare_result(Result(outcomes, list(specs), metrics=metrics), draws=draws, seed=seed)


def _compared(rows: Sequence[ReportRecord], specs: Sequence[str], draws: int, seed: int) -> Iterator[str]:
    """Who wins, and the tables behind it; a metric that cannot be compared is named with the reason."""
    systems = {row.system for row in rows if row.system is not None}
    if len(systems) < 2:
        yield '<p class="lead">One system: nothing to compare. The lowest scores are listed under Every record.</p>'
        return
    pairs = len(systems) * (len(systems) - 1) // 2
    draws = max(draws, math.ceil(2 * pairs / ALPHA))  # fewer could not be significant after Holm's correction
    usable, reasons = list(specs), []
    try:
        found = comparison(rows, usable, draws, seed)
    except ElenchError:
        usable = []
        for spec in specs:  # a metric that did not score every system must not spoil the others
            try:
                comparison(rows, [spec], 100, seed)
                usable.append(spec)
            except ElenchError as why:
                reasons.append(f"{spec} is not compared: {why}")
        if not usable:
            yield "".join(map(note, dict.fromkeys(reasons)))
            return
        found = comparison(rows, usable, draws, seed)
    for part in sentences(found):
        yield f'<p class="lead">{escape(part)}</p>'
    yield note(how_tested(found)) + as_html(winner_grid(found), "wrap")
    if any(limits is None for column in found.columns for limits in column.intervals.values()):
        yield note("No interval: fewer than five groups of records to resample, or all groups score the same.")
    yield "".join(map(note, reasons))
    panels = [
        plots.dots([(s, c.scores[s], *(c.intervals[s] or (None, None))) for s in c.scores], c.metric)
        for c in found.columns[:MOST_METRICS]
    ]
    yield f'<h3>Score of each system with its 95 % interval</h3><div class="flow">{"".join(panels)}</div>'
    whole = as_html(found.grid()) + "".join(map(note, found.all_notes()))
    yield folded("All scores, with letters for the systems beaten", whole)


def _pictures(rows: Sequence[ReportRecord], specs: Sequence[str]) -> Iterator[str]:
    """Distributions, and which metrics say the same."""
    panels = []
    for spec in specs[:MOST_METRICS]:
        groups: dict[str, list[float]] = {}
        for row in rows:
            value = row.outcome.value(spec)
            if value is not None:
                groups.setdefault(row.system or "all records", []).append(value)
        panels.append(plots.violins([(name, np.array(values)) for name, values in groups.items()], spec))
    legend = note("Width: how many records have such a score; bar: middle half; orange line: median.")
    yield folded("Distribution of scores", f'{legend}<div class="flow">{"".join(panels)}</div>')
    shown = specs[:MOST_METRICS]
    if len(shown) > 1:
        values, most = rank_correlations(rows, shown)
        about = "Spearman correlation between metrics, over records"
        map_ = plots.heat_map(shown, shown, values, about)
        yield folded("Which metrics say the same?", note(f"{about}; n up to {most}.") + map_)


def rank_correlations(rows: Sequence[ReportRecord], specs: Sequence[str]) -> tuple[plots.Array, int]:
    """Spearman's correlation of each pair of metrics over the records that both scored, and the largest n."""
    table = np.array(
        [[np.nan if (v := row.outcome.value(s)) is None else v for s in specs] for row in rows], dtype=float
    )
    found = np.full((len(specs), len(specs)), np.nan)
    most = 0
    for i, j in combinations_with_replacement(range(len(specs)), 2):
        rho = coefficient(table[:, i], table[:, j], "spearman")
        most = max(most, rho.n)
        if rho.value is not None and rho.n > 4:
            found[i, j] = found[j, i] = rho.value
    return found, most


def scores(rows: Sequence[ReportRecord], specs: Sequence[str]) -> str:
    """Mean, interval, corpus score and counts per metric, and why records are unscored."""
    outcomes = [row.outcome for row in rows]
    summary = Result(outcomes, list(specs)).summary()
    body = []
    for spec, found in summary.items():
        mean, corpus = ("–" if found[k] is None else f"{found[k]:.4f}" for k in ("mean", "corpus"))
        interval = "–" if found["ci95"] is None else f"{found['ci95'][0]:.4f} … {found['ci95'][1]:.4f}"
        body.append((spec, mean, interval, corpus, str(found["n"]), str(found["unscored"])))
    header = ("metric", "mean", "95 % interval", "corpus score", "n", "unscored")
    reasons: dict[tuple[str, str], int] = {}
    for outcome in outcomes:
        for spec, why in outcome.unscored.items():
            reasons[spec, why] = reasons.get((spec, why), 0) + 1
    ordered = sorted(reasons.items(), key=lambda item: -item[1])[:40]
    why_not = Grid("", ("metric", "why unscored", "records"), tuple((s, w, str(n)) for (s, w), n in ordered), "ll")
    means = as_html(Grid("", header, tuple(body))) + note("Intervals: t interval of the mean over records.")
    part = folded("Scores over all systems", means)
    return part + (folded("Why records are unscored", as_html(why_not)) if ordered else "")


def signatures(view: View) -> Iterator[Section]:
    """What each number was computed with."""
    parts = []
    for name, run in zip(view.names, view.runs, strict=True):
        if run.signatures:
            head = f"<h3>{escape(name)}</h3>" if len(view.runs) > 1 else ""
            parts.append(f"{head}<pre>{escape(chr(10).join(run.signatures.values()))}</pre>")
    if parts:
        yield Section("Signatures", "".join(parts) + note("Everything that could change a number."))
