"""Recompute one table of a paper, by its kind."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elench.errors import UsageError
from elench.evaluate.judgements import Judgements, from_records
from elench.evaluate.replicate.scores import Source
from elench.evaluate.sanity_baselines import with_baselines
from elench.records.record import Record
from elench.stats.agreement import rank_pair_accuracy, wilson
from elench.stats.correlation import coefficient, correlate
from elench.stats.redundancy import forward_selection

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Array = NDArray[np.float64]
PAPERS = ("qrelscore", "questeval", "kpqa", "qascore", "qsts")


@dataclass(frozen=True)
class Line:
    """One number, or several of one metric, beside the paper's."""

    label: str
    spec: str
    part: str
    """Human dimension, where the table has several"""
    ours: dict[str, float | None]
    theirs: dict[str, float | None]
    n: int
    low: float | None = None
    high: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Table:
    """A table of the paper, recomputed as far as possible."""

    name: str
    columns: tuple[str, ...]
    lines: tuple[Line, ...]
    note: str = ""
    reason: str | None = None
    """Why nothing could be computed"""
    status: str = "done"
    """done, or other data: the same table on other data than the paper's"""


@dataclass(frozen=True)
class Replication:
    """All tables of one paper."""

    paper: str
    models: str
    tables: tuple[Table, ...]
    cannot: tuple[tuple[str, str], ...]
    """Table → why it cannot be replicated"""
    elsewhere: tuple[tuple[str, str], ...] = ()
    """Table → the command or test that repeats it"""
    signatures: dict[str, str] = field(default_factory=dict)


def replicate(paper: str, source: Source) -> Replication:
    """Every table of a paper that the data at hand can support."""
    if paper not in PAPERS:
        raise UsageError(f"no paper {paper!r}: choose {', '.join(PAPERS)}")
    plan = tomllib.loads(
        files("elench.evaluate.replicate").joinpath("tables", f"{paper}.toml").read_text(encoding="utf-8")
    )
    tables = []
    for entry in plan["table"]:
        status = entry.get("status", "done")
        entry = {**entry, "rows": _all_forms(entry.get("rows", {}))}
        try:
            tables.append(replace(KINDS[entry["kind"]](entry, source), status=status))
        except UsageError as error:
            tables.append(Table(entry["name"], (), (), entry.get("note", ""), str(error), status))
    cannot, elsewhere = (
        tuple((entry["name"], entry["reason"]) for entry in plan.get(kind, ())) for kind in ("cannot", "elsewhere")
    )
    return Replication(plan["paper"], plan["models"], tuple(tables), cannot, elsewhere, dict(source.signatures))


def _all_forms(rows: Mapping[str, Any]) -> dict[str, Any]:
    """A row with `forms` also as the authors' program computes it, beside the same figures, and in our own form, beside
    none: what we improved is not the paper's."""
    found: dict[str, Any] = {}
    for label, row in rows.items():
        found[label] = row
        for form in row.get("forms", ()):
            spec = row["spec"]
            inside = f"{spec[:-1]},form={form}]" if spec.endswith("]") else f"{spec}[form={form}]"
            if form == "ours":
                found[f"{label} · ours"] = {"spec": inside, "note": "our improvement, not in the paper"}
            else:
                found[f"{label} · {'program' if form == 'code' else form}"] = {**row, "spec": inside}
    return found


def _correlation(entry: Mapping[str, Any], source: Source) -> Table:
    """Metrics against people, with the sanity baselines below them."""
    names = tuple(entry["coefficients"])
    level = entry.get("level", "segment")
    first, last = entry.get("slice", (0, None))
    records = source.records(entry["data"])[first:last]
    table = from_records(records, entry["data"])
    table = table.choose((), entry.get("dimensions", ()))
    table = Judgements(records, (), np.empty((len(records), 0)), {}, table.dimensions, table.human, table.source)
    alone = entry.get("references") == "each"
    reasons: dict[str, str] = {}
    spec_of: dict[str, str] = {}
    copies = max((len(r.references) for r in records), default=0) if alone else 1
    for label, row in entry["rows"].items():
        for k in range(copies):
            column = source.column(entry["data"], row["spec"], k if alone else None)
            spec_of[label] = column.spec
            if column.values is None:
                reasons[label] = column.reason or ""
                break
            table = table.with_metrics([f"{label} {k}"], column.values[first:last, None], "metric")
    if not alone:
        table = with_baselines(table)
    found = correlate(table, level, coefficients=names, draws=1000, over="items") if table.metrics else None
    lines = []
    for d, dimension in enumerate(table.dimensions):
        for label, row in entry["rows"].items():
            theirs = dict(zip(names, row.get(dimension, [None] * len(names)), strict=True))
            if found is None or label in reasons:
                none: dict[str, float | None] = dict.fromkeys(names)
                lines.append(Line(label, spec_of[label], dimension, none, theirs, 0, note=reasons.get(label, "")))
                continue
            at = [table.metrics.index(f"{label} {k}") for k in range(copies)]
            ours = {name: _number(float(np.mean(found.values[name][at, d]))) for name in names}
            low, high = (_number(limit[names[0]][at[0], d]) if not alone else None for limit in (found.low, found.high))
            note = found.reasons.get((at[0], d), "") or row.get("note", "")
            lines.append(Line(label, spec_of[label], dimension, ours, theirs, int(found.n[at[0], d]), low, high, note))
        for m, name in enumerate(table.metrics):
            if found is not None and table.kinds[name] == "sanity":
                ours = {c: _number(found.values[c][m, d]) for c in names}
                low, high = _number(found.low[names[0]][m, d]), _number(found.high[names[0]][m, d])
                note = "sanity baseline, not in the paper"
                lines.append(
                    Line(name, name, dimension, ours, dict.fromkeys(names), int(found.n[m, d]), low, high, note)
                )
    return Table(entry["name"], names, tuple(lines), entry.get("note", ""))


def _rank_pairs(entry: Mapping[str, Any], source: Source) -> Table:
    records = source.records(entry["data"])
    human = [r.human.get(entry["dimension"], np.nan) for r in records]
    groups = [r.group for r in records]
    lines = []
    rows = {**entry["rows"], "novel-f1": {"spec": "novel-f1", "note": "sanity baseline, not in the paper"}}
    for label, row in rows.items():
        column = source.column(entry["data"], row["spec"])
        theirs = {"share": row.get("value")}
        if column.values is None:
            lines.append(Line(label, column.spec, "", {"share": None}, theirs, 0, note=column.reason or ""))
            continue
        found = rank_pair_accuracy(human, column.values, groups, entry["gap"])
        note = row.get("note", "") or (f"{found.ties} ties count as misses" if found.ties else "")
        lines.append(Line(label, column.spec, "", {"share": found.value}, theirs, found.n, found.low, found.high, note))
    return Table(entry["name"], ("share",), tuple(lines), entry.get("note", ""))


def _means(entry: Mapping[str, Any], source: Source) -> Table:
    """Mean and standard deviation of scores over the records that a condition selects."""
    chosen = _where(source.records(entry["data"]), entry["where"])
    lines = []
    for label, row in entry["rows"].items():
        column = source.column(entry["data"], row["spec"])
        theirs = {"mean": row.get("value"), "deviation": row.get("deviation")}
        ours: dict[str, float | None] = dict.fromkeys(theirs)
        n = 0
        low = high = None
        if column.values is not None:
            values = column.values[chosen]
            values = values[np.isfinite(values)]
            n = len(values)
            if n > 1:
                mean, deviation = float(values.mean()), float(values.std(ddof=1))
                ours = {"mean": mean, "deviation": deviation}
                low, high = mean - 1.96 * deviation / n**0.5, mean + 1.96 * deviation / n**0.5
        lines.append(Line(label, column.spec, "", ours, theirs, n, low, high, column.reason or ""))
    return Table(entry["name"], ("mean", "deviation"), tuple(lines), entry.get("note", ""))


def _shares(entry: Mapping[str, Any], source: Source) -> Table:
    """Share of the selected records that lie on the right side of one half."""
    records = source.records(entry["data"])
    column = source.column(entry["data"], entry["spec"])
    lines = []
    for label, row in entry["rows"].items():
        theirs = {"share": row["value"]}
        if column.values is None:
            lines.append(Line(label, column.spec, "", {"share": None}, theirs, 0, note=column.reason or ""))
            continue
        values = column.values[_where(records, row["where"])]
        values = values[np.isfinite(values)]
        right = int((values >= 0.5).sum() if row["above"] else (values < 0.5).sum())
        low, high = wilson(right, len(values)) if len(values) else (None, None)
        ours = {"share": right / len(values) if len(values) else None}
        lines.append(Line(label, column.spec, "", ours, theirs, len(values), low, high, f"{row['theirs_n']} there"))
    return Table(entry["name"], ("share",), tuple(lines), entry.get("note", ""))


def _published(entry: Mapping[str, Any], source: Source) -> Table:
    """Correlations recomputed from system scores that the paper prints."""
    names = tuple(entry["coefficients"])
    columns = entry["columns"]
    rows = [row + [None] * (len(columns) - len(row)) for row in entry["systems"].values()]
    matrix = np.array([[np.nan if v is None else v for v in row] for row in rows], dtype=np.float64)
    target = matrix[:, columns.index(entry["target"])]
    lines = []
    for label, theirs in entry["theirs"].items():
        found = {name: coefficient(matrix[:, columns.index(label)], target, name) for name in names}
        ours = {name: c.value for name, c in found.items()}
        beside = dict(zip(names, theirs, strict=True))
        lines.append(Line(label, "published scores", "", ours, beside, found[names[0]].n))
    return Table(entry["name"], names, tuple(lines), entry.get("note", ""))


def _selection(entry: Mapping[str, Any], source: Source) -> Table:
    """Forward selection over the metrics that can be computed."""
    records = source.records(entry["data"])
    base = from_records(records, entry["data"]).choose((), [entry["dimension"]])
    table = Judgements(records, (), np.empty((len(records), 0)), {}, base.dimensions, base.human, base.source)
    missing = []
    for spec in entry["specs"]:
        column = source.column(entry["data"], spec)
        if column.values is None:
            missing.append(column.spec)
        else:
            table = table.with_metrics([column.spec], column.values[:, None], "metric")
    found = forward_selection(table, entry["dimension"], steps=entry["steps"])
    none: dict[str, float | None] = {"R²": None, "MSE": None}
    lines = [
        Line(
            f"{k}. {s.metric}",
            s.metric,
            "",
            {"R²": s.r2, "MSE": s.mse},
            none,
            found.n,
            note=f"in {s.share:.0%} of repeats",
        )
        for k, s in enumerate(found.steps, 1)
    ]
    note = entry.get("note", "") + (f" Not computed: {', '.join(missing)}." if missing else "")
    return Table(entry["name"], ("R²", "MSE"), tuple(lines), note)


def _items(entry: Mapping[str, Any], source: Source) -> Table:
    """Examples that the paper prints with a score each; one part of the table per form."""
    records = [Record.from_object({"id": str(k), **item["record"]}) for k, item in enumerate(entry["items"])]
    lines = []
    for spec in entry["specs"]:
        column = source.inline(spec, records)
        for k, (item, record) in enumerate(zip(entry["items"], records, strict=True)):
            ours = None if column.values is None else _number(column.values[k])
            theirs = None if "form=ours" in spec else item["values"].get(spec.split("[")[0])
            label = item.get("label") or f"{record.question} | {(record.references or (record.context or '',))[0]}"
            note = column.reason or ""
            lines.append(
                Line(label, column.spec, spec, {"score": ours}, {"score": theirs}, int(ours is not None), note=note)
            )
    return Table(entry["name"], ("score",), tuple(lines), entry.get("note", ""))


KINDS: dict[str, Callable[[Mapping[str, Any], Source], Table]] = {
    "correlation": _correlation,
    "rank-pairs": _rank_pairs,
    "means": _means,
    "shares": _shares,
    "published": _published,
    "selection": _selection,
    "items": _items,
}

_COMPARE = {"=": operator.eq, ">=": operator.ge, "<": operator.lt}


def _where(records: list[Record], conditions: Mapping[str, str]) -> NDArray[np.bool_]:
    """Which records' ratings fulfil conditions such as {duplicate = "= 1"}."""
    chosen = np.ones(len(records), dtype=bool)
    for dimension, condition in conditions.items():
        sign, bound = condition.split()
        values = np.array([r.human.get(dimension, np.nan) for r in records])
        chosen &= _COMPARE[sign](values, float(bound))
    return chosen


def _number(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None
