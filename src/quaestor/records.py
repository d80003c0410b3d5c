"""What is judged: one record per line, strictly checked, with unknown fields kept."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from quaestor.errors import UsageError

JUDGES = ("question", "answer", "summary")
TEXTS = ("context", "question", "answer", "summary", "system", "group")


@dataclass(frozen=True, slots=True)
class Record:
    """One item to judge. Which of question, answer and summary is judged stands in `judge` or follows from the rest."""

    id: str
    context: str | None = None
    question: str | None = None
    answer: str | None = None
    summary: str | None = None
    references: tuple[str, ...] = ()
    """References of what is judged."""
    judge: str | None = None
    system: str | None = None
    group: str | None = None
    """Records about the same context share a group."""
    human: Mapping[str, float] = field(default_factory=dict)
    """Human rating per dimension."""
    ratings: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)
    """Single ratings per dimension, one per rater (None where a rater gave none)."""
    peers: Mapping[str, float] = field(default_factory=dict)
    """Other tools' scores."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Unknown fields, passed through."""
    references_given: bool = True
    """False when the input had no `references` field at all."""
    line: int = 0
    """Line (or row) of the input file; 0 when the record came from elsewhere."""

    @property
    def has_references(self) -> bool:
        return self.references_given or bool(self.references)

    def guess_judge(self) -> str:
        """What a record without `judge` is about: its summary; else its answer, or its question when a context is given
        (question generation) or there is no answer."""
        if self.summary is not None:
            return "summary"
        if self.question is not None and (self.context is not None or self.answer is None):
            return "question"
        return "answer"

    def to_object(self) -> dict[str, Any]:
        """The record as a JSON object, absent fields left out."""
        own = {
            f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("extra", "references_given", "line")
        }
        own["references"] = list(self.references) if self.has_references else None
        own["ratings"] = {k: list(v) for k, v in self.ratings.items()}
        return {**{k: v for k, v in own.items() if v is not None and v != {}}, **self.extra}

    @classmethod
    def from_object(cls, given: Mapping[str, Any], line: int = 0, default_id: str | None = None) -> Record:
        """Check a JSON object and make it a record; UsageError names the field and says what to do."""
        values: dict[str, Any] = {}
        extra: dict[str, Any] = {}
        for name, value in given.items():
            if name in _CHECKS:
                values[name] = _CHECKS[name](name, value)
            else:
                extra[str(name)] = value
        if values.get("id") is None:
            if default_id is None:
                raise UsageError("field 'id' is missing: give every record an id")
            values["id"] = default_id
        references = values.pop("references", None)
        return cls(
            **values, references=references or (), references_given=references is not None, extra=extra, line=line
        )


@dataclass(frozen=True, slots=True)
class Reject:
    """A line that is not a record: where it stands, why, and what it said."""

    line: int
    reason: str
    raw: Any


def read(path: str | Path) -> Iterator[Record | Reject]:
    """Every record of a JSONL, CSV, Parquet or SQuAD JSON file, and every line that is none, in file order.

    Streams: memory does not grow with the file (SQuAD JSON, one document, is the exception).
    """
    from quaestor import formats

    path = Path(path)
    if not path.is_file():
        raise UsageError(f"{path}: no such file")
    read_rows = formats.READERS.get(path.suffix.lower())
    if read_rows is None:
        raise UsageError(f"{path}: unknown kind of file; use one of {', '.join(formats.READERS)}")
    seen: dict[int, int] = {}
    empty = True
    for line, row in read_rows(path):
        empty = False
        if isinstance(row, Reject):
            yield row
            continue
        try:
            record = Record.from_object(row, line, default_id=str(line))
        except UsageError as wrong:
            yield Reject(line, str(wrong), row)
            continue
        key = hash((record.id, record.system))
        if key in seen:
            also = f" of system {record.system!r}" if record.system else ""
            yield Reject(line, f"field 'id': {record.id!r}{also} is already on line {seen[key]}; ids must differ", row)
            continue
        seen[key] = line
        yield record
    if empty:
        raise UsageError(f"{path}: the file is empty: no records in it")


def read_records(path: str | Path) -> Iterator[Record]:
    """Every record of a file; the first bad line raises UsageError with file, line and field."""
    for item in read(path):
        if isinstance(item, Reject):
            raise UsageError(f"{path}:{item.line}: {item.reason}")
        yield item


def write_records(records: Iterable[Record], path: str | Path) -> None:
    """Write records as JSONL, CSV or Parquet, by the file's ending."""
    from quaestor import formats

    path = Path(path)
    write = formats.WRITERS.get(path.suffix.lower())
    if write is None:
        raise UsageError(f"{path}: cannot write this kind of file; use one of {', '.join(formats.WRITERS)}")
    write((record.to_object() for record in records), path)


# --- checking fields -------------------------------------------------------------------------------------------------


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "true/false", type(None): "null"}
    return names.get(type(value), "a number")


def _wrong(name: str, wanted: str, value: Any) -> UsageError:
    return UsageError(f"field '{name}' must be {wanted}, not {_kind(value)}")


def _check_id(name: str, value: Any) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if value is None:
        return None
    if not isinstance(value, str):
        raise _wrong(name, "a string", value)
    if not value:
        raise UsageError("field 'id' is empty: give every record an id")
    return _check_text(name, value)


def _check_text(name: str, value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise _wrong(name, "a string", value)
    if value and not _encodes(value):
        raise UsageError(f"field '{name}' holds half a surrogate pair, which is no text: repair the escape \\ud8xx")
    return value


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_references(name: str, value: Any) -> tuple[str, ...] | None:
    if value is None:
        return None
    if isinstance(value, str):
        raise UsageError(f"field '{name}' is one string; write a list of strings: [\"…\"]")
    if not isinstance(value, (list, tuple)):
        raise _wrong(name, "a list of strings", value)
    for i, item in enumerate(value):
        if not isinstance(item, str):
            raise _wrong(f"{name}[{i}]", "a string", item)
        _check_text(f"{name}[{i}]", item)
    return tuple(value)


def _check_judge(name: str, value: Any) -> str | None:
    if value is not None and value not in JUDGES:
        raise UsageError(f"field '{name}' must be one of {', '.join(JUDGES)}, not {value!r}")
    return None if value is None else str(value)


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _wrong(name, "a number", value)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        shown = value if isinstance(value, float) else "one of hundreds of digits"
        raise UsageError(f"field '{name}' must be a finite number, not {shown}; leave it out if it is missing")
    return number


def _check_numbers(name: str, value: Any) -> dict[str, float]:
    """{dimension: number}; null means missing."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise _wrong(name, "an object {name: number}", value)
    return {str(k): _number(f"{name}.{k}", v) for k, v in value.items() if v is not None}


def _check_ratings(name: str, value: Any) -> dict[str, tuple[float | None, ...]]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise _wrong(name, "an object {dimension: [numbers]}", value)
    checked: dict[str, tuple[float | None, ...]] = {}
    for dimension, numbers in value.items():
        if numbers is None:
            continue
        if not isinstance(numbers, (list, tuple)):
            raise _wrong(f"{name}.{dimension}", "a list of numbers", numbers)
        checked[str(dimension)] = tuple(
            None if n is None else _number(f"{name}.{dimension}[{i}]", n) for i, n in enumerate(numbers)
        )
    return checked


_CHECKS = {
    "id": _check_id,
    **dict.fromkeys(TEXTS, _check_text),
    "references": _check_references,
    "judge": _check_judge,
    "human": _check_numbers,
    "peers": _check_numbers,
    "ratings": _check_ratings,
}
