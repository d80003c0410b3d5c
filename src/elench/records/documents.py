"""JSON documents: a list of records, one record, a table as pandas writes it, records inside another object, SQuAD."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from elench.errors import UsageError
from elench.records.encoding import read_text
from elench.records.mapping import KNOWN_COLUMNS, normalised
from elench.records.record import Reject
from elench.records.spreadsheets import InputRow, constant

WRAPPERS = ("data", "records", "rows", "samples", "examples", "instances", "items", "results", "test_cases", "dataset")
"""Names under which other tools keep the list of records, likeliest first."""


def parse_document(path: Path) -> object:
    """The whole file as one JSON value; ValueError when it is not one, UsageError when it is not UTF-8."""
    try:
        text = read_text(path)
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not valid UTF-8 at byte {error.start + 1}: save the file as UTF-8") from None
    return json.loads(text or "[]", parse_constant=constant)


def rows_of(document: object, path: Path) -> Iterator[InputRow]:
    """The records of a JSON document; they are numbered from 1."""
    for number, row in enumerate(_rows(document, path), 1):
        yield number, row if isinstance(row, dict) else Reject(number, "a record must be a JSON object: {…}", row)


def _rows(document: Any, path: Path) -> Iterable[Any]:
    if isinstance(document, list):
        return document
    if not isinstance(document, dict):
        raise UsageError(f"{path}: neither an object nor a list of records")
    articles = document.get("data")
    if isinstance(articles, list) and any(isinstance(a, dict) and "paragraphs" in a for a in articles):
        return _squad(articles, path)
    table = _table(document)
    if table is not None:
        return table
    wrapped = _wrapped(document)
    if wrapped is not None:
        return wrapped
    if KNOWN_COLUMNS & {normalised(str(name)) for name in document}:
        return [document]
    names = ", ".join(str(name)[:60] for name in list(document)[:10]) or "none"
    texts = all(isinstance(value, str) for value in document.values()) and document
    hint = f"; if these are answers by id: elench score GOLD --predictions {path}" if texts else ""
    raise UsageError(f"{path}: no list of records in it; names found at the top: {names}{hint}")


def _table(document: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Rows of a table kept by column (lists, or pandas' {row: value}), or as pandas' {columns, data}."""
    columns, data = document.get("columns"), document.get("data")
    if isinstance(columns, list) and isinstance(data, list) and all(isinstance(row, list) for row in data):
        return [dict(zip(map(str, columns), row, strict=False)) for row in data]
    values = list(document.values())
    if not values or not any(normalised(str(name)) in KNOWN_COLUMNS for name in document):
        return None
    if all(isinstance(column, list) for column in values) and len({len(column) for column in values}) == 1:
        return [dict(zip(document, row, strict=True)) for row in zip(*values, strict=True)]
    if all(isinstance(column, dict) and column.keys() == values[0].keys() for column in values) and values[0]:
        return [{name: column[key] for name, column in document.items()} for key in values[0]]
    return None


def _wrapped(document: Mapping[str, Any]) -> list[Any] | None:
    """The list of objects that an object holds, or its values where they are records by id."""
    lists = {normalised(str(k)): v for k, v in document.items() if isinstance(v, list) and v and _objects(v)}
    if KNOWN_COLUMNS & {normalised(str(k)) for k, v in document.items() if isinstance(v, str)}:
        return None  # a record that has a list of objects, such as passages
    if not lists:  # promptfoo keeps its rows in results.results
        inside = [_wrapped(v) for k, v in document.items() if normalised(str(k)) in WRAPPERS and isinstance(v, dict)]
        if len(inside) == 1 and inside[0] is not None:
            return inside[0]
    if lists:
        named = next((name for name in WRAPPERS if name in lists), None)
        if named or len(lists) == 1:
            return lists[named or next(iter(lists))]
    records = list(document.values())
    if records and _objects(records) and all(KNOWN_COLUMNS & {normalised(str(k)) for k in r} for r in records):
        return [{"id": key, **record} for key, record in document.items()]
    return None


def _objects(values: Iterable[Any]) -> bool:
    return all(isinstance(value, dict) for value in values)


def _squad(articles: list[Any], path: Path) -> Iterator[dict[str, Any]]:
    for a, article in enumerate(articles):
        try:
            for p, paragraph in enumerate(article["paragraphs"]):
                for qa in paragraph["qas"]:
                    yield {
                        "id": qa["id"],
                        "context": paragraph["context"],
                        "question": qa["question"],
                        "group": f"{article.get('title', a)}-{p}",
                        **{k: v for k, v in qa.items() if k not in ("id", "question")},
                    }
        except (KeyError, TypeError, AttributeError) as error:
            raise UsageError(
                f"{path}: data[{a}] is not in SQuAD form: {error!r} is missing or of the wrong kind"
            ) from None
