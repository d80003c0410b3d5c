"""`quaestor.score(...)`: metrics from Python, on whatever holds the records, with a result that prints well."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quaestor.errors import UsageError
from quaestor.metrics import metric as parse_metric
from quaestor.metrics.base import Metric
from quaestor.records import Record, read_records

if TYPE_CHECKING:
    from quaestor.engine.windows import Outcome
    from quaestor.models.base import ModelSet


def as_records(source: Any) -> list[Record]:
    """Records from a path, a pandas/polars/datasets table, a dict of columns, or dicts, dataclasses and Records."""
    if isinstance(source, (str, Path)):
        return list(read_records(source))
    records: list[Record] = []
    seen: set[tuple[str, str | None]] = set()
    for i, row in enumerate(_rows(source)):
        if isinstance(row, Record):
            record = row
        else:
            given = dataclasses.asdict(row) if dataclasses.is_dataclass(row) and not isinstance(row, type) else row
            if not isinstance(given, Mapping):
                raise UsageError(f"record {i}: a record is a dict, a dataclass or a Record, not {type(row).__name__}")
            try:
                record = Record.from_object({k: _plain(v) for k, v in given.items()}, default_id=str(i))
            except UsageError as wrong:
                raise UsageError(f"record {i}: {wrong}") from None
        if (record.id, record.system) in seen:
            raise UsageError(f"record {i}: field 'id': {record.id!r} stands twice; ids must differ")
        seen.add((record.id, record.system))
        records.append(record)
    if not records:
        raise UsageError("no records given")
    return records


def _rows(source: Any) -> Iterable[Any]:
    kind = type(source).__module__.split(".")[0]
    if kind == "pandas":
        return (_present(row) for row in source.to_dict("records"))
    if kind == "polars":
        frame = source.collect() if hasattr(source, "collect") else source
        return (_present(row) for row in frame.iter_rows(named=True))
    if kind == "pyarrow":
        return (_present(row) for row in source.to_pylist())
    if isinstance(source, Mapping):
        lengths = {name: len(column) for name, column in source.items()}
        if len(set(lengths.values())) > 1:
            told = ", ".join(f"{name} {n}" for name, n in lengths.items())
            raise UsageError(f"the columns have different lengths: {told}")
        return (dict(zip(source, values, strict=True)) for values in zip(*source.values(), strict=True))
    if not isinstance(source, Iterable):
        raise UsageError(f"cannot read records from {type(source).__name__}")
    return source


def _present(row: Mapping[str, Any]) -> dict[str, Any]:
    """A table row without its missing cells (None, NaN)."""
    return {str(k): v for k, v in row.items() if v is not None and not (isinstance(v, float) and v != v)}


def _plain(value: Any) -> Any:
    """Arrays and numpy numbers as Python values."""
    if type(value).__module__ == "numpy":
        return value.tolist()
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, tuple):
        return list(value)
    return value


def score(
    records: Any,
    metrics: str | Metric | Sequence[str | Metric],
    *,
    models: ModelSet | None = None,
    cache: bool = True,
) -> Result:
    """Score records with one or more metrics; a record that cannot be scored keeps its reason."""
    from quaestor.engine.drive import Driver
    from quaestor.engine.windows import gather_corpora, score_window, windows
    from quaestor.engine.workers import open_cache
    from quaestor.metrics import split_specs
    from quaestor.models.base import ModelSet

    given = [metrics] if isinstance(metrics, (str, Metric)) else list(metrics)
    chosen = [parse_metric(s) for spec in given for s in (split_specs(spec) if isinstance(spec, str) else [spec])]
    if not chosen:
        raise UsageError("no metric given")
    found = as_records(records)
    driver = Driver(models or ModelSet(), open_cache(chosen) if cache else None)
    corpora = gather_corpora(found, chosen, driver)
    outcomes = [o for window in windows(found) for o in score_window(window, chosen, driver, corpora)]
    return Result(found, chosen, outcomes, driver.models)


class Result:
    """Scores of every record: prints as a table, indexes by metric and id, becomes a pandas table."""

    def __init__(
        self, records: Sequence[Record], metrics: Sequence[Metric], outcomes: Sequence[Outcome], models: ModelSet
    ) -> None:
        self.records, self.metrics, self.outcomes, self.models = records, metrics, outcomes, models
        self.specs = [str(m) for m in metrics]

    def __len__(self) -> int:
        return len(self.outcomes)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """One output line per record, as `quaestor score --explain` writes it."""
        return (outcome.to_object(self.specs, explain=True) for outcome in self.outcomes)

    def __getitem__(self, key: str | tuple[str, str]) -> Any:
        """`result["bleu"]`: {id: number or None}; `result["bleu", "q1"]`: one; `result["q1"]`: a record's."""
        if isinstance(key, tuple):
            return self[key[0]][key[1]]
        if key in self.specs or str(_spec(key)) in self.specs:
            spec = key if key in self.specs else str(_spec(key))
            return {o.id: o.scores[spec].value if spec in o.scores else None for o in self.outcomes}
        for outcome in self.outcomes:
            if outcome.id == key:
                return outcome.to_object(self.specs)["scores"]
        raise KeyError(f"{key!r} is neither a metric of this result ({', '.join(self.specs)}) nor a record id")

    def values(self, spec: str) -> list[float | None]:
        """Scores in record order; None where unscored."""
        return [o.scores[spec].value if spec in o.scores else None for o in self.outcomes]

    @property
    def unscored(self) -> dict[str, dict[str, str]]:
        """{metric: {id: reason}} of what has no number."""
        return {s: {o.id: o.unscored[s] for o in self.outcomes if s in o.unscored} for s in self.specs}

    @property
    def signatures(self) -> dict[str, str]:
        from quaestor.engine.run import signature

        return {str(m): signature(m, self.models) for m in self.metrics}

    def summary(self) -> dict[str, Any]:
        """Per metric: n, unscored, mean with 95 % interval, corpus score, and the same per system."""
        from quaestor.engine.tally import Tally

        tally = Tally(list(self.metrics))
        for outcome in self.outcomes:
            tally.add(outcome)
        return tally.summary()

    def to_pandas(self) -> Any:
        """One row per record: id, system, a column per metric."""
        import pandas

        rows = [{"id": o.id, "system": o.system} for o in self.outcomes]
        return pandas.DataFrame(rows).assign(**{spec: self.values(spec) for spec in self.specs})

    def _table(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = [("metric", "mean", "95 % interval", "corpus", "n", "unscored")]
        for spec, s in self.summary().items():
            interval = "–" if s["ci95"] is None else f"{s['ci95'][0]:.4f} … {s['ci95'][1]:.4f}"
            mean, corpus = ("–" if s[k] is None else f"{s[k]:.4f}" for k in ("mean", "corpus"))
            rows.append((spec, mean, interval, corpus, str(s["n"]), str(s["unscored"])))
        return rows

    def __repr__(self) -> str:
        rows = self._table()
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        return "\n".join(
            "  ".join(
                cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
            )
            for row in rows
        )

    def _repr_html_(self) -> str:
        head, *body = self._table()
        cells = "".join(f"<th>{escape(c)}</th>" for c in head)
        lines = "".join("<tr>" + "".join(f"<td>{escape(c)}</td>" for c in row) + "</tr>" for row in body)
        return f"<table><thead><tr>{cells}</tr></thead><tbody>{lines}</tbody></table>"


def _spec(key: str) -> Metric | str:
    try:
        return parse_metric(key)
    except UsageError:
        return key
