"""The outcome of `elench meta` as tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from elench.evaluate.meta import Evaluation, MetricAgreement
from elench.grid import HEADS, Grid, limits, number, span
from elench.show.tables import render
from elench.stats.correlation import CLOSED, scale_of
from elench.stats.resampling_plan import FEWEST_UNITS

if TYPE_CHECKING:
    from elench.evaluate.meta_sections import MetaSection

_CORRECTIONS = {"holm": "Holm's correction", "bh": "Benjamini–Hochberg", "none": "no correction"}


def render_evaluation(
    found: Evaluation, form: str = "text", width: int = 120, added: Sequence[MetaSection] = ()
) -> str:
    """The outcome of `elench meta` in one of the formats."""
    grids = evaluation_grids(found) + [grid for section in added for grid in section.grids]
    notes = evaluation_notes(found) + [note for section in added for note in section.notes]
    content = {**found.to_object(), **{section.name: section.content for section in added}}
    return render(grids, notes, form, width, content)


def evaluation_grids(found: Evaluation) -> list[Grid]:
    """For every part: an overview over the dimensions (when there are several), then one table per dimension."""
    grids = []
    for part in dict.fromkeys(row.part for row in found.rows):
        rows = [row for row in found.rows if row.part == part]
        dimensions = list(dict.fromkeys(row.dimension for row in rows))
        where = f" · {part}" if part else ""
        if len(dimensions) > 1:
            grids.append(_overview(found, rows, dimensions, where))
        grids += [_detail(found, [r for r in rows if r.dimension == d], d + where) for d in dimensions]
    return grids


def _overview(found: Evaluation, rows: Sequence[MetricAgreement], dimensions: Sequence[str], where: str) -> Grid:
    main = found.coefficient
    cells = {(row.metric, row.dimension): row for row in rows}
    metrics = list(dict.fromkeys(row.metric for row in rows))

    def mean(metric: str) -> float | None:
        values = [cells[metric, d].values[main] for d in dimensions]
        numbers = [v for v in values if v is not None]
        return sum(numbers) / len(numbers) if len(numbers) == len(values) else None

    # mean() is None or not, both times
    metrics.sort(key=lambda m: -(mean(m) if mean(m) is not None else -2.0))  # type: ignore[operator]
    judged = any(row.p is not None for row in rows)
    body = []
    for metric in metrics:
        own = [cells[metric, d] for d in dimensions]
        shown = [number(r.values[main]) + ("*" if r.p is not None and not r.mark else "") for r in own]
        body.append((_label(own[0]), *shown, number(mean(metric)), span([r.n for r in own])))
    star = ", * beats the best sanity baseline" if judged else ""
    title = f"{HEADS[main]} at {found.level} level{where}{star}"
    return Grid(title, ("metric", *dimensions, "mean", "n"), tuple(body))


def _detail(found: Evaluation, rows: Sequence[MetricAgreement], title: str) -> Grid:
    main = found.coefficient
    others = [name for name in found.coefficients if name != main]
    judged = any(row.p is not None for row in rows)
    header = ["metric", HEADS[main], "95 % interval", *(HEADS[name] for name in others), "n", "same"]
    body = []
    for row in rows:
        cells = [number(row.values[main]), limits(row.low[main], row.high[main]) or "–"]
        cells += [number(row.values[name]) for name in others]
        cells += [str(row.n), row.cluster]
        if judged:
            verdict = "baseline" if row.kind == "sanity" else (row.mark or "beats baselines")
            cells.append(row.reason or verdict)
        elif row.reason:
            cells[-1] = row.reason
        body.append((_label(row), *cells))
    return Grid(title, (*header, "verdict") if judged else tuple(header), tuple(body))


def _label(row: MetricAgreement) -> str:
    return row.metric if row.kind == "metric" else f"{row.metric} ({row.kind})"


def evaluation_notes(found: Evaluation) -> list[str]:
    """What a reader must know beside the numbers."""
    n = {"segment": "n counts records", "group": "n counts groups averaged", "system": "n counts systems"}[found.level]
    scale = "the log-odds" if scale_of(found.coefficient) == "logit" else "Fisher's z"
    how = found.method if found.method.startswith(CLOSED) else f"t on {scale} scale, {found.method}"
    notes = [f"{found.source}: {found.records} records; {found.level} level, {n}; intervals: {how}."]
    same = f"'same': metrics sharing a letter do not differ in {HEADS[found.coefficient]}"
    notes.append(f"{same} (paired bootstrap, {_CORRECTIONS[found.correction]}, p < {found.alpha:g}).")
    if any(row.reason is None and row.low[found.coefficient] is None for row in found.rows):
        notes.append(f"Interval –: fewer than {FEWEST_UNITS} units to resample, or no spread among them.")
    if any(row.p is not None for row in found.rows):
        notes.append(
            "'≤ X': does not beat the best sanity baseline X significantly "
            "(a baseline with − is counted with reversed sign)."
        )
    elif not any(row.kind == "sanity" for row in found.rows):
        notes.append("There is no sanity baseline in the table, so no metric could be compared with one.")
    return notes + list(found.notes)
