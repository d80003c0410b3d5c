"""The report's numbers: means, systems, agreement with people, perturbations, signatures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from html import escape
from typing import Any, ClassVar

import numpy as np

from quaestor.errors import QuaestorError, Unscored
from quaestor.metrics.base import Metric, Score
from quaestor.records import Record
from quaestor.report import Run, svg
from quaestor.report.page import note, section, table

INTERVAL = "95 % interval"


def overview(run: Run) -> tuple[str, str]:
    """Mean, interval and counts per metric."""
    rows = []
    for spec in run.specs:
        told = run.meta.get("metrics", {}).get(spec)
        values = np.array([v for line in run.lines if (v := line["scores"].get(spec)) is not None], dtype=float)
        missing = len(run.lines) - len(values)
        if not len(values):
            rows.append([escape(spec), "–", "–", "–", "0", str(missing)])
            continue
        low, high = (told or {}).get("ci95") or (np.nan, np.nan)
        interval = "–" if np.isnan(low) else f"{low:.4f} … {high:.4f}"
        corpus = (told or {}).get("corpus")
        shown = "–" if corpus is None else f"{corpus:.4f}"
        rows.append([escape(spec), f"{values.mean():.4f}", interval, shown, str(len(values)), str(missing)])
    head = ("metric", "mean", INTERVAL, "corpus score", "n", "unscored")
    reasons = _reasons(run)
    return section("Scores", table(head, rows), note("Intervals: t interval of the mean over records."), reasons)


def _reasons(run: Run) -> str:
    counts: dict[tuple[str, str], int] = {}
    for line in run.lines:
        for spec, why in line.get("unscored", {}).items():
            counts[spec, why] = counts.get((spec, why), 0) + 1
    if not counts:
        return ""
    rows = [[escape(spec), escape(why), str(n)] for (spec, why), n in sorted(counts.items(), key=lambda x: -x[1])[:40]]
    body = table(("metric", "why unscored", "records"), rows)
    return f"<details><summary>Why records are unscored</summary>{body}</details>"


@dataclass(frozen=True)
class Column(Metric):
    """A column of scores made earlier, whether or not its metric is known here."""

    title: str

    def spec(self, full: bool = False) -> str:
        return self.title

    async def score(self, record: Record) -> Score:
        raise Unscored("scored already")


class LowerColumn(Column):
    """A column in which less is better."""

    higher_is_better: ClassVar[bool] = False


def systems(run: Run, draws: int, seed: int) -> Iterator[tuple[str, str]]:
    """Systems side by side, one table per thing judged."""
    from quaestor.comparison import compare_result
    from quaestor.engine.windows import Outcome
    from quaestor.metrics import higher_is_better
    from quaestor.models.base import ModelSet
    from quaestor.scoring import Result

    titles = {"question": "Systems: questions", "answer": "Systems: answers", "summary": "Systems: summaries"}
    by_judge: dict[str, list[tuple[Any, Outcome]]] = {}
    for line in run.lines:
        record = run.record(line)
        if record is None or record.system is None:
            continue
        scores = {spec: Score(value) for spec, value in line["scores"].items() if value is not None}
        judged = record.judge or record.guess_judge()
        by_judge.setdefault(judged, []).append((record, Outcome(record.id, record.system, scores)))
    for judged, pairs in by_judge.items():
        used = [spec for spec in run.specs if any(spec in outcome.scores for _, outcome in pairs)]
        if not used or len({record.system for record, _ in pairs}) < 2:
            continue
        try:
            chosen = [Column(spec) if higher_is_better(spec) else LowerColumn(spec) for spec in used]
            found = compare_result(
                Result([r for r, _ in pairs], chosen, [o for _, o in pairs], ModelSet()), draws=draws, seed=seed
            )
        except QuaestorError as why:
            yield section(titles[judged], note(f"No comparison: {why}"))
            continue
        letters = found.letters()
        rows = [
            [f"{letters[name]} {escape(name)}",
             *(f"{s}{f'<sup>{w}</sup>' if w else ''}<br><small>{i}</small>" for s, i, w in cells)]
            for name, cells in zip(found.systems, found.cells(), strict=True)
        ]  # fmt: skip
        head = ("system", *(escape(column.metric) for column in found.columns))
        notes = "".join(note(n) for n in found.notes)
        yield section(titles[judged], table(head, rows), note(found.explanation()), notes)


def judgements(run: Run) -> Any:
    """The run's scores lined up with the human ratings of its records; None where there are none."""
    from quaestor.meta.judgements import from_records

    records = [
        replace(record, extra={**record.extra, "scores": line["scores"]})
        for line in run.lines
        if (record := run.record(line)) and (record.human or record.ratings)
    ]
    if len(records) < 3:
        return None
    try:
        return from_records(records, run.name)
    except QuaestorError:
        return None


def agreement(run: Run, draws: int, seed: int) -> Iterator[tuple[str, str]]:
    """How metrics follow people: correlations with intervals, distributions per rating, scatter, redundancy."""
    from quaestor.meta.evaluation import evaluate
    from quaestor.meta.redundancy import forward_selection, likeness
    from quaestor.meta.sanity import with_baselines
    from quaestor.meta.tables import evaluation_grids, evaluation_notes

    ratings = judgements(run)
    if ratings is None:
        return
    ratings = with_baselines(ratings)
    try:
        found = evaluate(ratings, draws=draws, seed=seed, coefficients=("pearson", "spearman", "kendall-b"))
    except QuaestorError as why:
        yield section("Agreement with people", note(f"No correlations: {why}"))
        return
    names, dimensions = list(ratings.metrics), list(ratings.dimensions)
    values = np.full((len(names), len(dimensions)), np.nan)
    for row in found.rows:
        value = row.values["pearson"]
        if value is not None:
            values[names.index(row.metric), dimensions.index(row.dimension)] = value
    grids = "".join(
        f"<details{' open' if k == 0 else ''}><summary>{escape(grid.title)}</summary>{_grid(grid)}</details>"
        for k, grid in enumerate(evaluation_grids(found))
    )
    notes = "".join(note(n) for n in evaluation_notes(found))
    heat = svg.heat_map(names, dimensions, values, "Pearson correlation of metrics with human dimensions")
    yield section("Agreement with people", heat, grids, notes)
    yield section("Distributions", *_distributions(ratings, values))
    if len(names) > 2:
        alike = likeness(ratings)
        parts = [svg.heat_map(alike.metrics, alike.metrics, np.asarray(alike.matrix), "Correlation between metrics")]
        for dimension in dimensions[:3]:
            try:
                chosen = forward_selection(ratings, dimension, steps=8, seed=seed)
            except QuaestorError as why:
                parts.append(note(f"{dimension}: {why}"))
                continue
            parts.append(f"<h3>{escape(dimension)}: variance explained as metrics are added (n={chosen.n})</h3>")
            parts.append(
                svg.curve([s.metric for s in chosen.steps], [s.r2 for s in chosen.steps], "cross-validated R²")
            )
        yield section("Redundancy", *parts)


def _grid(grid: Any) -> str:
    """A table of correlations; a coefficient without an interval says why."""
    at = grid.header.index(INTERVAL) if INTERVAL in grid.header else 0
    rows = [[c if c or k != at else "–" for k, c in enumerate(row)] for row in grid.rows]
    few = any(not row[at] and row[at - 1] != "–" for row in grid.rows)
    told = note("Interval –: too few to resample.") if few else ""
    return table([escape(h) for h in grid.header], [[escape(c) for c in row] for row in rows]) + told


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


def perturbations(run: Run, draws: int, seed: int) -> Iterator[tuple[str, str]]:
    """AUC per metric and per kind of perturbation."""
    from quaestor.meta.adversarial import areas
    from quaestor.metrics import higher_is_better

    pairs = [(r, line) for line in run.lines if (r := run.record(line)) and "perturbed" in r.extra]
    if not pairs:
        return
    columns = {spec: [line["scores"].get(spec) for _, line in pairs] for spec in run.specs}
    try:
        found = areas([r for r, _ in pairs], columns, {s: higher_is_better(s) for s in run.specs}, draws, seed)
    except QuaestorError as why:
        yield section("Perturbations", note(str(why)))
        return
    kinds = list(dict.fromkeys(a.kind for a in found))
    cells = {(a.metric, a.kind): a for a in found}
    rows = [
        [escape(spec), *(f"{a.auc:.3f}<br><small>{a.low:.3f}–{a.high:.3f}, n={a.negatives}</small>"
                         if (a := cells.get((spec, kind))) else "–" for kind in kinds)]
        for spec in run.specs
    ]  # fmt: skip
    told = note("AUC: how often a good text outscores a broken one; .5 is chance. 95 % bootstrap over originals.")
    yield section("Perturbations", table(("metric", *map(escape, kinds)), rows), told)


def signatures(run: Run) -> Iterator[tuple[str, str]]:
    """What each number was computed with."""
    told = run.meta.get("signatures", {})
    if told:
        lines = "\n".join(told.values())
        yield section("Signatures", f"<pre>{escape(lines)}</pre>", note("Everything that could change a number."))
