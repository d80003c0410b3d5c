"""Tables of agreement with human judgements: correlations, ranked pairs, forward selection, fewer references."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elench.evaluate.judgements import Judgements, from_records
from elench.evaluate.replicate.results import PaperLine, PaperTable, number
from elench.evaluate.replicate.sources import Entry, Materials
from elench.evaluate.sanity_baselines import with_baselines
from elench.records.record import Record
from elench.stats.agreement import rank_pair_accuracy
from elench.stats.correlation import Estimates, coefficient, correlate
from elench.stats.redundancy import forward_selection
from elench.stats.resampling import fisher_interval
from elench.text.passages import sentences

Indices = NDArray[np.int64]
SANITY = "sanity baseline, not in the paper"


def ratings(records: list[Record], entry: Entry) -> Judgements:
    """The human judgements of some records, without any metric yet."""
    table = from_records(records, entry["data"]).choose((), entry.get("dimensions", ()))
    return Judgements(records, (), np.empty((len(records), 0)), {}, table.dimensions, table.human, table.source)


def groups(entry: Entry, source: Materials) -> Iterator[tuple[str, Indices]]:
    """The records that a table is about; with `by`, one group after the other."""
    records = source.records(entry["data"])
    everything = np.arange(len(records))
    if entry.get("by") == "question class":
        classes = np.array(source.question_classes(entry["data"]))
        for label, kinds in entry["classes"].items():
            yield label, everything[np.isin(classes, kinds)]
    elif entry.get("where") == "several sentences":
        yield "", np.array([k for k, r in enumerate(records) if any(len(sentences(t)) > 1 for t in r.references)])
    else:
        first, last = entry.get("slice", (0, np.inf))
        places = source.places(entry["data"])
        yield "", everything[(places >= first) & (places < last)]


def correlation(entry: Entry, source: Materials) -> PaperTable:
    """Metrics against people, with the sanity baselines below them."""
    lines: list[PaperLine] = []
    for group, chosen in groups(entry, source):
        lines += _correlated(entry, source, chosen, group)
    return PaperTable(entry["name"], tuple(entry["coefficients"]), tuple(lines), entry.get("note", ""))


@dataclass(frozen=True)
class _Rows:
    """The rows of a paper's table as columns of metric scores beside the ratings."""

    table: Judgements
    specs: Mapping[str, str]
    """Label of a row → the metric."""
    columns: Mapping[str, list[int]]
    """Label of a row → its columns in `table`, one per reference where each reference is taken alone."""
    reasons: Mapping[str, str]
    """Label of a row → why it could not be computed."""


def _rows(entry: Entry, source: Materials, chosen: Indices) -> _Rows:
    records = source.records(entry["data"])
    table = ratings([records[k] for k in chosen], entry)
    references: list[int | None] = [None]
    if entry.get("references") == "each":
        references = list(range(max((len(r.references) for r in records), default=0)))
    specs, columns, reasons = {}, {}, {}
    for label, row in entry["rows"].items():
        found = [source.column(entry["data"], row["spec"], k, row.get("models")) for k in references]
        specs[label] = found[0].spec
        values = [column.values[chosen] for column in found if column.values is not None]
        if len(values) < len(found):
            reasons[label] = next(column.reason or "" for column in found if column.values is None)
            continue
        columns[label] = list(range(len(table.metrics), len(table.metrics) + len(values)))
        table = table.with_metrics([f"{label} {k}" for k in range(len(values))], np.stack(values, 1), "metric")
    return _Rows(table if references != [None] else with_baselines(table), specs, columns, reasons)


def _correlated(entry: Entry, source: Materials, chosen: Indices, group: str) -> list[PaperLine]:
    """The lines of one group of records: per human dimension those of the paper, then the sanity baselines."""
    names = tuple(entry["coefficients"])
    rows = _rows(entry, source, chosen)
    table, level = rows.table, entry.get("level", "segment")
    found = correlate(table, level, coefficients=names, draws=1000, over="items") if table.metrics else None
    sanity = [m for m, name in enumerate(table.metrics) if table.kinds[name] == "sanity"]
    lines = []
    for d, dimension in enumerate(table.dimensions):
        part = group or dimension
        for label, row in entry["rows"].items():
            theirs = dict(zip(names, row.get(dimension, [None] * len(names)), strict=True))
            if found is None or label in rows.reasons:
                lines.append(PaperLine.missing(label, rows.specs[label], theirs, rows.reasons.get(label), part))
            else:
                line = _line(found, names, rows.columns[label], d)
                note = line.note or row.get("note", "")
                lines.append(replace(line, label=label, spec=rows.specs[label], part=part, theirs=theirs, note=note))
        if found is not None:
            lines += [replace(_line(found, names, [m], d), part=part, note=SANITY) for m in sanity]
    return lines


def _line(found: Estimates, names: Sequence[str], columns: Sequence[int], d: int) -> PaperLine:
    """Coefficients of a metric with a human dimension: of one column with its interval, of several their mean."""
    first = columns[0]
    ours = {name: number(np.mean(found.values[name][list(columns), d])) for name in names}
    low, high = (number(limit[names[0]][first, d]) for limit in (found.low, found.high))
    if len(columns) > 1:
        low = high = None
    name = found.metrics[first]
    note = found.reasons.get((first, d), "")
    return PaperLine(name, name, "", ours, dict.fromkeys(names), int(found.n[first, d]), low, high, note)


def rank_pairs(entry: Entry, source: Materials) -> PaperTable:
    records = source.records(entry["data"])
    human = [r.human.get(entry["dimension"], np.nan) for r in records]
    groups = [r.group for r in records]
    lines = []
    rows = {**entry["rows"], "novel-f1": {"spec": "novel-f1", "note": SANITY}}
    for label, row in rows.items():
        column = source.column(entry["data"], row["spec"])
        theirs = {"share": row.get("value")}
        if column.values is None:
            lines.append(PaperLine.missing(label, column.spec, theirs, column.reason))
            continue
        found = rank_pair_accuracy(human, column.values, groups, entry["gap"])
        note = row.get("note", "") or (f"{found.ties} ties count as misses" if found.ties else "")
        lines.append(
            PaperLine(label, column.spec, "", {"share": found.value}, theirs, found.n, found.low, found.high, note)
        )
    return PaperTable(entry["name"], ("share",), tuple(lines), entry.get("note", ""))


def selection(entry: Entry, source: Materials) -> PaperTable:
    """Forward selection over the metrics that can be computed."""
    records = source.records(entry["data"])
    table = ratings(records, {**entry, "dimensions": [entry["dimension"]]})
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
        PaperLine(
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
    return PaperTable(entry["name"], ("R²", "MSE"), tuple(lines), note)


def fewer_references(entry: Entry, source: Materials) -> PaperTable:
    """Mean correlation over all dimensions with k references, drawn at random; the best of the k counts."""
    records = source.records(entry["data"])
    human = ratings(records, entry).human
    most = min(len(r.references) for r in records)
    rng = np.random.default_rng(source.seed)
    draws = {
        k: [rng.choice(most, k, replace=False) for _ in range(entry["draws"] if k < most else 1)] for k in entry["k"]
    }
    lines = []
    for label, row in entry["rows"].items():
        columns = [source.column(entry["data"], row["spec"], k) for k in range(most)]
        singles = [c.values for c in columns if c.values is not None]
        for k, chosen in draws.items():
            part = f"{k} references" if k > 1 else "1 reference"
            theirs = {"r": row.get("values", {}).get(str(k))}
            if len(singles) < most:
                reason = next(c.reason or "" for c in columns if c.values is None)
                lines.append(PaperLine.missing(label, columns[0].spec, theirs, reason, part))
                continue
            found = [_mean_r(np.max([singles[i] for i in subset], axis=0), human) for subset in chosen]
            spread = f"{len(found)} draws, standard deviation {np.std(found, ddof=1):.3f}" if len(found) > 1 else ""
            ours = {"r": number(np.mean(found))}
            lines.append(PaperLine(label, columns[0].spec, part, ours, theirs, len(records), note=spread))
    return PaperTable(entry["name"], ("r",), tuple(lines), entry.get("note", ""))


def averages(entry: Entry, source: Materials) -> PaperTable:
    """Mean correlation over all dimensions; and with the first row's scores, which tells how much a choice matters."""
    human = ratings(source.records(entry["data"]), entry).human
    columns = {label: source.column(entry["data"], row["spec"]) for label, row in entry["rows"].items()}
    first = next(iter(columns.values())).values
    lines = []
    for label, row in entry["rows"].items():
        column, theirs = columns[label], {"r": row.get("value"), "r with the first": None}
        if column.values is None:
            lines.append(PaperLine.missing(label, column.spec, theirs, column.reason))
            continue
        alike = None if first is None else coefficient(column.values, first).value
        ours = {"r": number(_mean_r(column.values, human)), "r with the first": alike}
        n = int(np.isfinite(column.values).sum())
        lines.append(PaperLine(label, column.spec, "", ours, theirs, n))
    return PaperTable(entry["name"], ("r", "r with the first"), tuple(lines), entry.get("note", ""))


def _mean_r(scores: NDArray[np.float64], human: NDArray[np.float64]) -> float:
    found = [coefficient(scores, column).value for column in human.T]
    return float(np.mean([np.nan if value is None else value for value in found]))


def question_folds(entry: Entry, source: Materials) -> PaperTable:
    """QuestEval Table 3: shares of the source's questions that are important and/or answered, against a dimension."""
    records = source.records(entry["data"])
    human = ratings(records, entry).human[:, 0]
    lines = []
    for label, row in entry["rows"].items():
        explained = source.evidence(entry["data"], row["spec"])
        theirs = {"r": row.get("value")}
        if explained.evidence is None:
            lines.append(PaperLine.missing(label, explained.spec, theirs, explained.reason))
            continue
        shares = [_share(found, row["important"], row["answered"]) for found in explained.evidence]
        found = coefficient(shares, human)
        mean = float(np.nanmean(shares)) if np.isfinite(shares).any() else float("nan")
        note = found.reason or f"{mean:.0%} of the questions on average"
        low, high = _limits(found.value, found.n)
        lines.append(PaperLine(label, explained.spec, "", {"r": found.value}, theirs, found.n, low, high, note))
    return PaperTable(entry["name"], ("r",), tuple(lines), entry.get("note", ""))


def _limits(r: float | None, n: int) -> tuple[float | None, float | None]:
    """Fisher's interval of r, as if records were independent."""
    if r is None:
        return None, None
    low, high = fisher_interval(np.array(r), np.array(n), "pearson")
    return number(low), number(high)


def _share(evidence: Mapping[str, Any] | None, important: bool, answered: bool) -> float:
    """Share of the source's questions with W > .5 (or not) and P(unanswerable) < .5 (or not)."""
    asked = [q for q in (evidence or {}).get("questions", ()) if q["direction"] == "recall"]
    if not asked:
        return float("nan")
    here = [(q["weight"] > 0.5) == important and (q["unanswerable"] < 0.5) == answered for q in asked]
    return here.count(True) / len(here)
