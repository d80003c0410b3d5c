"""Cutting a file of records into parts: by system, by any field of its own, by length or by question word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from elench.errors import UsageError
from elench.evaluate.judgements import Judgements
from elench.records.record import Record

MOST_PARTS = 12
"""Numbers with more distinct values than this are cut into quarters; lengths with more than four."""

_QUESTION_WORDS = re.compile(r"\b(how (?:many|much|long|old|far|often)|who|whom|whose|what|which|when|where|why|how)\b")


def slices(table: Judgements, by: str | None) -> Iterator[tuple[str, Judgements]]:
    """The parts of a table by a field's values (the whole table where no field is given)."""
    if by is None:
        yield "", table
        return
    labels = labels_of(table, by)
    for label in _ordered(set(labels)):
        yield label, table.where([own == label for own in labels])


def labels_of(table: Judgements, by: str) -> list[str]:
    """Which part each record belongs to. Besides fields: `length` (words of what is judged), `question-word`."""
    if by == "question-word":
        return [question_word(record.question or "") for record in table.records]
    values = [_length(record) if by == "length" else _field(record, by) for record in table.records]
    if all(value is None for value in values):
        known = sorted({key for record in table.records for key in record.extra} | {"system", "group", "judge"})
        raise UsageError(
            f"{table.source}: no record has the field {by!r}; there are: {', '.join(known)}, length, question-word"
        )
    numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    if len(set(numbers)) > (4 if by == "length" else MOST_PARTS):
        return _quarters(values)
    return ["(none)" if value is None else str(value) for value in values]


def question_word(question: str) -> str:
    """The first question word, `how many` and its like kept together; "other" without one."""
    found = _QUESTION_WORDS.search(question.lower())
    return found.group(1) if found else "other"


def _field(record: Record, name: str) -> object:
    """A field of the record, of its unknown fields, or inside one of them (`meta.type`)."""
    if name in ("id", "system", "group", "judge", "context", "question", "answer", "summary"):
        return getattr(record, name)
    value: Any = record.extra
    for step in name.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    if isinstance(value, list | dict):
        raise UsageError(f"field {name!r} of record {record.id!r} is not a single value")
    return value


def _length(record: Record) -> int:
    text = record.judged_text
    return len(text.split())


def _quarters(values: list[object]) -> list[str]:
    numbers = np.array([v if isinstance(v, int | float) else np.nan for v in values], dtype=np.float64)
    edges = np.unique(np.nanquantile(numbers, [0.25, 0.5, 0.75]))
    cut = np.searchsorted(edges, numbers, side="left")
    names = [f"≤ {edges[0]:g}", *(f"{a:g} – {b:g}" for a, b in pairwise(edges)), f"> {edges[-1]:g}"]
    return ["(none)" if np.isnan(v) else names[k] for v, k in zip(numbers, cut, strict=True)]


def _ordered(labels: set[str]) -> list[str]:
    """Buckets by their numbers, names by the alphabet, records without the field last."""

    def key(label: str) -> tuple[bool, bool, float, str]:
        number = re.fullmatch(r"[≤>]?\s*(-?\d+(?:\.\d+)?)(?: – .*)?", label)
        return label == "(none)", number is None, (float(number[1]) - (label[0] == "≤")) if number else 0.0, label

    return sorted(labels, key=key)
