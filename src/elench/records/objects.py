"""Records from Python: dicts, dataclasses, Records, a dict of columns, a pandas, polars, pyarrow or datasets table."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from elench.errors import UsageError
from elench.records.judging import SAMPLE, Need, decide, has_field, lacking_fields
from elench.records.mapping import TEXT_FIELDS, named_columns, predicted_beside, suggest, system_hint, translate
from elench.records.record import Record, Reject
from elench.records.schemas import Recognised, recognise
from elench.records.spreadsheets import NESTED


def as_rows(
    source: object,
    metrics: Sequence[Need] = (),
    mapping: Mapping[str, str] | None = None,
    judge: str | None = None,
    any_language: bool = False,
) -> list[Record | Reject]:
    """Records, and rows that are not one, with what they judge decided as for a file."""
    given = [row if isinstance(row, Record) else _as_dict(row) for row in _rows(source)]
    schema = recognise([row for row in islice(given, 50) if isinstance(row, dict)])
    rows: list[Record | Reject] = []
    seen: dict[tuple[str, str | None], int] = {}
    for i, row in enumerate(given):
        try:
            record = row if isinstance(row, Record) else _as_record(row, i, schema, mapping or {})
        except UsageError as error:
            rows.append(Reject(i, str(error), row))
            continue
        key = (record.id, record.system)
        if key in seen:
            hint = "" if record.system else system_hint(row)
            rows.append(Reject(i, f"duplicate id {record.id!r}: already record {seen[key]}{hint}", row))
        else:
            seen[key] = i
            rows.append(record)
    records = [row for row in islice(rows, SAMPLE) if isinstance(row, Record) and not row.assumed]
    assumed = None if judge else decide(records, metrics, "records")
    return [_with(row, judge, assumed, any_language) if isinstance(row, Record) else row for row in rows]


def map_hint(records: Sequence[Record], metrics: Sequence[Need], mapping: Mapping[str, str]) -> str:
    """What to type where columns look like the fields that every metric lacks: `; try map={"answer": "pred"}`."""
    lacking = lacking_fields(records, metrics)
    present = [name for name in TEXT_FIELDS if any(has_field(record, name) for record in records)]
    unused = named_columns(record.extra for record in records)
    guess = suggest(unused, [name for name in TEXT_FIELDS if name not in present])
    guess |= predicted_beside(unused, present)
    return f"; try map={json.dumps({**mapping, **guess}, ensure_ascii=False)}" if set(guess) & set(lacking) else ""


def _with(record: Record, judge: str | None, assumed: str | None, any_language: bool) -> Record:
    changes: dict[str, Any] = {}
    if judge and record.judge != judge:
        changes["judge"] = judge
    if assumed and record.judge is None and record.assumed is None:
        changes["assumed"] = assumed
    if any_language:
        changes["any_language"] = True
    return dataclasses.replace(record, **changes) if changes else record


def _as_dict(row: object) -> object:
    return dataclasses.asdict(row) if dataclasses.is_dataclass(row) and not isinstance(row, type) else row


def _as_record(row: object, i: int, schema: Recognised | None, mapping: Mapping[str, str]) -> Record:
    if not isinstance(row, Mapping):
        raise UsageError(f"a record is a dict, a dataclass or a Record, not {type(row).__name__}")
    given = {str(k): _plain(v) for k, v in row.items()}
    if schema:
        given = schema.rename(given, mapping)
    elif mapping:
        given = translate(given, mapping)
    return Record.from_object(given, default_id=str(i))


def _rows(source: Any) -> Iterable[Any]:
    kind = type(source).__module__.split(".")[0]
    if kind == "pandas":
        return (_present(row) for row in source.to_dict("records"))
    if kind == "polars":
        frame = source.collect() if hasattr(source, "collect") else source
        return (_present(row) for row in frame.iter_rows(named=True))
    if kind == "pyarrow":
        return (_present(row) for row in source.to_pylist())
    if isinstance(source, Record):
        return [source]
    if isinstance(source, Mapping):
        return _columns(source)
    if not isinstance(source, Iterable):
        raise UsageError(f"cannot read records from {type(source).__name__}")
    return source


def _columns(source: Mapping[str, Any]) -> Iterable[Any]:
    """A dict is one record when a field holds text, else a dict of columns."""
    if not source or any(isinstance(value, (str, int, float)) for value in source.values()):
        return [source] if source else []
    lengths = {name: len(column) for name, column in source.items() if hasattr(column, "__len__")}
    if len(lengths) < len(source):
        wrong = next(name for name in source if name not in lengths)
        raise UsageError(f"column {wrong!r} is not a list")
    if len(set(lengths.values())) > 1:
        counted = ", ".join(f"{name} {n}" for name, n in lengths.items())
        raise UsageError(f"the columns have different lengths: {counted}")
    return (dict(zip(source, values, strict=True)) for values in zip(*source.values(), strict=True))


def _present(row: Mapping[str, Any]) -> dict[str, Any]:
    """A table row without its missing cells (None, NaN), `human.fluency` nested as in a CSV file."""
    found: dict[str, Any] = {}
    for name, value in row.items():
        if value is None or (isinstance(value, float) and value != value):
            continue
        outer, dot, inner = str(name).partition(".")
        if dot and outer in NESTED:
            found.setdefault(outer, {})[inner] = value
        else:
            found[str(name)] = value
    return found


def _plain(value: Any) -> Any:
    """Arrays and numpy numbers as Python values."""
    if type(value).__module__ == "numpy":
        return value.tolist()
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value
