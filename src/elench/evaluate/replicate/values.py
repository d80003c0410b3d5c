"""Tables of scores: means, shares, printed system scores, printed examples."""

from __future__ import annotations

import operator
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from elench.errors import UsageError
from elench.evaluate.replicate.results import OURS, PROGRAM, PaperLine, PaperTable, number, with_form
from elench.evaluate.replicate.sources import Entry, Materials
from elench.metrics import metric
from elench.records.record import Record
from elench.stats.agreement import wilson
from elench.stats.correlation import coefficient

Array = NDArray[np.float64]
PAIRS = 200
"""Unrelated pairs of each data set, unless --limit says otherwise."""
_COMPARE = {"=": operator.eq, ">=": operator.ge, "<": operator.lt}


def means(entry: Entry, source: Materials) -> PaperTable:
    """Mean and standard deviation of scores over the records that a condition selects."""
    chosen = _where(source.records(entry["data"]), entry["where"])
    lines = []
    for label, row in entry["rows"].items():
        column = source.column(entry["data"], row["spec"])
        theirs = {"mean": row.get("value"), "deviation": row.get("deviation")}
        values = None if column.values is None else column.values[chosen]
        lines.append(_mean(label, column.spec, "", values, theirs, column.reason or ""))
    return PaperTable(entry["name"], ("mean", "deviation"), tuple(lines), entry.get("note", ""))


def _mean(
    label: str, spec: str, part: str, given: Array | None, theirs: dict[str, float | None], note: str
) -> PaperLine:  # fmt: skip
    """Mean and standard deviation of what was scored, with the normal interval of the mean."""
    values = np.empty(0) if given is None else given[np.isfinite(given)]
    n = len(values)
    if n < 2:
        return PaperLine(label, spec, part, {"mean": None, "deviation": None}, theirs, n, note=note)
    mean, deviation = float(values.mean()), float(values.std(ddof=1))
    half = 1.96 * deviation / n**0.5
    return PaperLine(
        label, spec, part, {"mean": mean, "deviation": deviation}, theirs, n, mean - half, mean + half, note
    )  # fmt: skip


def unrelated(entry: Entry, source: Materials) -> PaperTable:
    """QRelScore Table 9: the mean of its parts over questions paired with contexts of other records."""
    from elench.evaluate.rescaling import unrelated_pairs

    lines = []
    for name, data in entry["data"].items():
        pairs, left_out = unrelated_pairs(source.all_records(data), source.limit or PAIRS, source.seed, data)
        for label, row in entry["rows"].items():
            column = source.inline(row["spec"], pairs, row.get("models"))
            theirs = {"mean": row.get(name), "deviation": None}
            note = column.reason or f"{left_out} pairs left out for shared words"
            lines.append(_mean(label, column.spec, name, column.values, theirs, note))
    return PaperTable(entry["name"], ("mean", "deviation"), tuple(lines), entry.get("note", ""))


def shares(entry: Entry, source: Materials) -> PaperTable:
    """Share of the selected records that lie on the right side of one half."""
    records = source.records(entry["data"])
    column = source.column(entry["data"], entry["spec"])
    lines = []
    for label, row in entry["rows"].items():
        theirs = {"share": row["value"]}
        if column.values is None:
            lines.append(PaperLine.missing(label, column.spec, theirs, column.reason))
            continue
        values = column.values[_where(records, row["where"])]
        values = values[np.isfinite(values)]
        right = int((values >= 0.5).sum() if row["above"] else (values < 0.5).sum())
        low, high = wilson(right, len(values)) if len(values) else (None, None)
        ours = {"share": right / len(values) if len(values) else None}
        lines.append(
            PaperLine(label, column.spec, "", ours, theirs, len(values), low, high, f"{row['theirs_n']} there")
        )
    return PaperTable(entry["name"], ("share",), tuple(lines), entry.get("note", ""))


def published(entry: Entry, source: Materials) -> PaperTable:
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
        lines.append(PaperLine(label, "published scores", "", ours, beside, found[names[0]].n))
    return PaperTable(entry["name"], names, tuple(lines), entry.get("note", ""))


def items(entry: Entry, source: Materials) -> PaperTable:
    """Examples that the paper prints with a score each, in every form that the metrics have."""
    records = [Record.from_object({"id": str(k), **item["record"]}) for k, item in enumerate(entry["items"])]
    lines = []
    for base in entry["specs"]:
        part = base if len(entry["specs"]) > 1 else ""
        for suffix, spec in _forms(base, entry.get("forms", ())).items():
            column = source.inline(spec, records)
            for k, (item, record) in enumerate(zip(entry["items"], records, strict=True)):
                score = None if column.values is None else number(column.values[k])
                theirs = None if suffix == OURS else item["values"].get(base.split("[")[0])
                shown = item.get("label") or f"{record.question} | {(record.references or (record.context or '',))[0]}"
                n, note = int(score is not None), column.reason or ""
                lines.append(
                    PaperLine(shown + suffix, column.spec, part, {"score": score}, {"score": theirs}, n, note=note)
                )
    return PaperTable(entry["name"], ("score",), tuple(lines), entry.get("note", ""))


def _forms(spec: str, forms: list[str]) -> dict[str, str]:
    """Label suffix → spec, for the forms that the metric has."""
    found = {"": spec}
    for form in forms:
        try:
            found[OURS if form == "ours" else PROGRAM] = metric(with_form(spec, form)).spec()
        except UsageError:
            continue
    return found


def _where(records: list[Record], conditions: Mapping[str, str]) -> NDArray[np.bool_]:
    """Which records' ratings fulfil conditions such as {duplicate = "= 1"}."""
    chosen = np.ones(len(records), dtype=bool)
    for dimension, condition in conditions.items():
        sign, bound = condition.split()
        values = np.array([r.human.get(dimension, np.nan) for r in records])
        chosen &= _COMPARE[sign](values, float(bound))
    return chosen
