"""The report's human side: how metrics agree with human judgements, where they differ, and what they notice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from html import escape
from typing import Any

import numpy as np

from elench.errors import ElenchError
from elench.grid import Grid
from elench.show import plots as svg
from elench.show.evidence import evidence_html
from elench.show.page import Section, folded, note
from elench.show.report import View
from elench.show.report_records import texts
from elench.show.report_systems import TITLES
from elench.show.tables import as_html

SHOWN = 8
"""Records per metric."""
INTERVAL = "95 % interval"


def judgements(view: View) -> Any:
    """The scores lined up with the human ratings of the records; None where there are fewer than three."""
    from elench.evaluate.judgements import from_records

    records = [
        replace(
            row.record,
            system=row.system,
            extra={**row.record.extra, "scores": {s: row.outcome.value(s) for s in row.outcome.scores}},
        )
        for row in view.rows
        if row.record.human or row.record.ratings
    ]
    if len(records) < 3:
        return None
    try:
        return from_records(records, ", ".join(view.names))
    except ElenchError:
        return None


def agreement(view: View, judge: str, draws: int, seed: int) -> Iterator[Section]:
    """How metrics agree with human judgements: correlations, distributions per rating, scatter, redundancy."""
    from elench.evaluate.meta import evaluate
    from elench.evaluate.sanity_baselines import with_baselines
    from elench.show.meta_tables import evaluation_grids, evaluation_notes

    ratings = judgements(view)
    if ratings is None:
        return
    title = "Agreement with human judgements" + (f": {TITLES[judge].lower()}" if judge else "")
    ratings = with_baselines(ratings)
    try:
        found = evaluate(ratings, draws=draws, seed=seed, coefficients=("pearson", "spearman", "kendall-b"))
    except ElenchError as why:
        yield Section(title, note(f"No correlations: {why}"))
        return
    names, dimensions = list(ratings.metrics), list(ratings.dimensions)
    values = np.full((len(names), len(dimensions)), np.nan)
    for row in found.rows:
        value = row.values["pearson"]
        if value is not None:
            values[names.index(row.metric), dimensions.index(row.dimension)] = value
    grids = "".join(folded(grid.title, _grid(grid), k == 0) for k, grid in enumerate(evaluation_grids(found)))
    notes = "".join(note(n) for n in evaluation_notes(found))
    heat = svg.heat_map(names, dimensions, values, "Pearson correlation of metrics with human dimensions")
    spread = folded("Scores per rating", "".join(_distributions(ratings, values)))
    alike = "".join(_redundancy(ratings, seed)) if len(names) > 2 else ""
    about = note("Pearson's r of each metric with each rating: blue agrees with people, orange goes against them.")
    yield Section(title, about + heat + grids + notes + spread + alike)


def _redundancy(ratings: Any, seed: int) -> Iterator[str]:
    """Which metrics correlate, and how much each adds to the others."""
    from elench.stats.redundancy import forward_selection, likeness

    alike = likeness(ratings)
    parts = [svg.heat_map(alike.metrics, alike.metrics, np.asarray(alike.matrix), "Correlation between metrics")]
    for dimension in ratings.dimensions[:3]:
        try:
            chosen = forward_selection(ratings, dimension, steps=8, seed=seed)
        except ElenchError as why:
            parts.append(note(f"{dimension}: {why}"))
            continue
        parts.append(f"<h3>{escape(dimension)}: variance explained as metrics are added (n={chosen.n})</h3>")
        parts.append(svg.curve([s.metric for s in chosen.steps], [s.r2 for s in chosen.steps], "cross-validated R²"))
    yield folded("How much each metric adds", "".join(parts))


def _grid(grid: Grid) -> str:
    """A table of correlations; a coefficient without an interval says why."""
    at = grid.header.index(INTERVAL) if INTERVAL in grid.header else 0
    rows = tuple(tuple(c if c or k != at else "–" for k, c in enumerate(row)) for row in grid.rows)
    few = any(row[at] in ("", "–") and row[at - 1] != "–" for row in grid.rows)
    remark = note("Interval –: too few to resample.") if few else ""
    return as_html(replace(grid, title="", rows=rows)) + remark


def _distributions(ratings: Any, values: Any) -> Iterator[str]:
    """For each dimension its best metric: a box per rating, and a scatter with a fitted line."""
    for d, dimension in enumerate(ratings.dimensions):
        if np.isnan(values[:, d]).all():
            continue
        best = int(np.nanargmax(np.abs(values[:, d])))
        score, human = ratings.scores[:, best], ratings.human[:, d]
        both = np.isfinite(score) & np.isfinite(human)
        score, human = score[both], human[both]
        levels = np.unique(human)
        if len(levels) > 8:
            edges = np.unique(np.quantile(human, np.linspace(0, 1, 6)))
            bins = np.clip(np.searchsorted(edges, human, "right") - 1, 0, len(edges) - 2)
            groups = [
                (f"{edges[k]:.2g}–{edges[k + 1]:.2g}", score[bins == k])
                for k in range(len(edges) - 1)
                if (bins == k).any()
            ]
        else:
            groups = [(f"{level:.3g}", score[human == level]) for level in levels]
        name = ratings.metrics[best]
        yield f"<h3>{escape(dimension)}: {escape(name)} (r = {values[best, d]:.3f}, n = {both.sum()})</h3>"
        yield f'<div class="flow"><div>{svg.boxes(groups, f"{name} per rating of {dimension}")}</div>'
        yield f"<div>{svg.scatter(human, score, dimension, name)}</div></div>"


def perturbations(view: View) -> Iterator[Section]:
    """AUC per metric and per kind of perturbation."""
    from elench.evaluate.auc import areas, grid, notes
    from elench.metrics import higher_is_better

    rows = [row for row in view.rows if "perturbed" in row.record.extra]
    if not rows:
        return
    columns = {spec: [row.outcome.value(spec) for row in rows] for spec in view.specs}
    directions = {spec: higher_is_better(spec) for spec in view.specs}
    try:
        found = areas([row.record for row in rows], columns, directions)
    except ElenchError as why:
        yield Section("Perturbations", note(str(why)))
        return
    remark = note("AUC: how often a good text outscores a broken one; .5 is chance.")
    yield Section("Perturbations", as_html(grid(found)) + remark + "".join(map(note, notes(found))))


def disagreements(view: View, judge: str) -> Iterator[Section]:
    """The records whose metric score is farthest from their human rating, both as z-scores."""
    ratings = judgements(view)
    if ratings is None:
        return
    rows = {(row.record.id, row.system): row for row in view.rows}
    parts: list[str] = []
    overall = _mean(_z(ratings.human), axis=1)
    if not np.isfinite(overall).any():
        parts.append(note("The human ratings do not vary, so no record is farther from them than the rest."))
    for k, spec in enumerate(ratings.metrics):
        if ratings.kinds[spec] != "metric":
            continue
        scores = _z(ratings.scores[:, [k]])[:, 0]
        gap = scores - overall
        order = [int(i) for i in np.argsort(-np.abs(np.nan_to_num(gap)))[:SHOWN] if np.isfinite(gap[i])]
        items = []
        for i in order:
            record = ratings.records[i]
            side = "metric higher than ratings" if gap[i] > 0 else "ratings higher than metric"
            rated = zip(ratings.dimensions, ratings.human[i], strict=True)
            human = ", ".join(f"{name} {value:.3g}" for name, value in rated if np.isfinite(value))
            head = f"<b>{escape(record.id)}</b> {escape(record.system or '')}: {side} by {abs(gap[i]):.1f} σ"
            score = rows[record.id, record.system].outcome.scores[spec]
            shown = f"<p>score {score.value:.4f}; ratings: {escape(human)}</p>"
            body = texts(record) + evidence_html(score.evidence, record)
            items.append(f"<details><summary>{head}</summary>{shown}{body}</details>")
        if items:
            parts.append(f"<h3>{escape(spec)}</h3>" + "".join(items))
        elif np.isfinite(overall).any():
            parts.append(note(f"{spec}: {_why_none(ratings.scores[:, k], scores)}"))
    title = "Worst disagreements with human judgements" + (f": {TITLES[judge].lower()}" if judge else "")
    yield Section(title, note("z-scores; the mean over the human dimensions.") + "".join(parts))


def _why_none(given: Any, standard: Any) -> str:
    """Why a metric has no gap to the ratings on any record."""
    if not np.isfinite(given).any():
        return "no rated record has a score."
    if not np.isfinite(standard).any():
        return "every rated record has the same score, so none is farther from the ratings than the rest."
    return "no record has both a score and a rating that varies."


def _z(values: Any) -> Any:
    """Distance from the column's mean in deviations; NaN for a column that does not vary (but for rounding)."""
    mean = _mean(values, axis=0)
    centred = values - mean
    deviation = np.sqrt(_mean(centred**2, axis=0))
    return centred / np.where(deviation > 1e-12 * np.abs(mean), deviation, np.nan)


def _mean(values: Any, axis: int) -> Any:
    """The mean of what is there; NaN, without a warning, where nothing is."""
    count = np.isfinite(values).sum(axis=axis)
    return np.where(count > 0, np.nansum(values, axis=axis) / np.maximum(count, 1), np.nan)
