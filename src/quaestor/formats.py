"""File formats of records: JSONL, CSV, Parquet and SQuAD JSON, read row by row and written likewise."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

from quaestor.errors import MissingExtra, UsageError
from quaestor.records import Reject

Row = tuple[int, "dict[str, Any] | Reject"]
NESTED = ("human", "peers", "ratings")
"""Fields that CSV spreads over columns such as human.fluency."""


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number; leave the field out if it is missing")


def read_jsonl(path: Path) -> Iterator[Row]:
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            if not raw.strip():
                continue
            try:
                text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as wrong:
                reason = f"not valid UTF-8 at byte {wrong.start + 1} of the line: save the file as UTF-8"
                yield number, Reject(number, reason, raw.decode("utf-8", "backslashreplace").rstrip("\n"))
                continue
            try:
                value = json.loads(text, parse_constant=_no_constant)
            except (ValueError, RecursionError) as wrong:
                said = getattr(wrong, "msg", str(wrong))
                at = f" at column {wrong.colno}" if isinstance(wrong, json.JSONDecodeError) else ""
                yield number, Reject(number, f"not valid JSON{at}: {said}", text.rstrip("\n"))
                continue
            if not isinstance(value, dict):
                yield number, Reject(number, "a line must be one JSON object: {…}", value)
                continue
            yield number, value


def read_csv(path: Path) -> Iterator[Row]:
    """A header names the fields; references is a JSON list or one text; human.X, peers.X, ratings.X are columns."""
    csv.field_size_limit(2**31 - 1)
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        reader = csv.reader(file, delimiter=delimiter)
        header = next(reader, None)
        if header is None:
            return
        if len(set(header)) < len(header):
            raise UsageError(f"{path}:1: a column name stands twice in the header")
        try:
            for cells in reader:
                if cells:
                    yield reader.line_num, _csv_row(header, cells, reader.line_num)
        except csv.Error as wrong:
            raise UsageError(f"{path}:{reader.line_num}: not valid CSV: {wrong}") from None


def _csv_row(header: list[str], cells: list[str], line: int) -> dict[str, Any] | Reject:
    raw = dict(zip(header, cells, strict=False))
    if len(cells) != len(header):
        return Reject(line, f"the row has {len(cells)} cells, the header {len(header)}", raw)
    row: dict[str, Any] = {}
    for name, cell in raw.items():
        if cell == "":
            continue
        if any("\udc80" <= c <= "\udcff" for c in cell):
            shown = {
                k: v.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace") for k, v in raw.items()
            }
            return Reject(line, f"field '{name}' is not valid UTF-8: save the file as UTF-8", shown)
        outer, dot, inner = name.partition(".")
        try:
            if name == "references":
                row[name] = json.loads(cell) if cell.lstrip().startswith("[") else [cell]
            elif name in NESTED:
                row[name] = json.loads(cell, parse_constant=_no_constant)
            elif dot and outer in NESTED:
                row.setdefault(outer, {})[inner] = json.loads(cell, parse_constant=_no_constant)
            else:
                row[name] = cell
        except (ValueError, RecursionError):
            wanted = "a JSON list of strings" if name == "references" else "a number or JSON"
            return Reject(line, f"field '{name}' must be {wanted}, not {cell[:40]!r}", raw)
    return row


def _pyarrow() -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra("Parquet", "parquet") from None
    return pyarrow


def read_parquet(path: Path) -> Iterator[Row]:
    arrow = _pyarrow()
    try:
        file = arrow.parquet.ParquetFile(path)
    except (arrow.ArrowInvalid, OSError) as wrong:
        raise UsageError(f"{path}: not a Parquet file: {str(wrong).splitlines()[0]}") from None
    number = 0
    for batch in file.iter_batches(batch_size=1024):
        for row in batch.to_pylist():
            number += 1
            yield number, {k: _from_arrow(k, v) for k, v in row.items() if v is not None}


def _from_arrow(name: str, value: Any) -> Any:
    if name in NESTED and isinstance(value, list):  # an Arrow map comes as (key, value) pairs
        return dict(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value


def read_json(path: Path) -> Iterator[Row]:
    """A SQuAD file ({"data": [{"paragraphs": …}]}) or a list of record objects. Line numbers count its questions."""
    try:
        document = json.loads(path.read_bytes() or b"[]", parse_constant=_no_constant)
    except UnicodeDecodeError as wrong:
        raise UsageError(f"{path}: not valid UTF-8 at byte {wrong.start + 1}: save the file as UTF-8") from None
    except (ValueError, RecursionError) as wrong:
        hint = "; one object per line is JSONL: name it .jsonl" if "Extra data" in str(wrong) else ""
        raise UsageError(f"{path}: not valid JSON: {wrong}{hint}") from None
    if isinstance(document, dict) and isinstance(document.get("data"), list):
        rows: Iterable[Any] = _squad(document["data"], path)
    elif isinstance(document, list):
        rows = document
    else:
        raise UsageError(f"{path}: neither a SQuAD file (an object with 'data') nor a list of records")
    for number, row in enumerate(rows, 1):
        yield number, row if isinstance(row, dict) else Reject(number, "a record must be a JSON object: {…}", row)


def _squad(articles: list[Any], path: Path) -> Iterator[dict[str, Any]]:
    for a, article in enumerate(articles):
        try:
            for p, paragraph in enumerate(article["paragraphs"]):
                for qa in paragraph["qas"]:
                    answers = [answer["text"] for answer in qa.get("answers", [])]
                    yield {
                        "id": qa["id"],
                        "context": paragraph["context"],
                        "question": qa["question"],
                        **({"answer": answers[0]} if answers else {}),
                        "group": f"{article.get('title', a)}-{p}",
                        **{k: v for k, v in qa.items() if k not in ("id", "question")},
                    }
        except (KeyError, TypeError) as wrong:
            raise UsageError(
                f"{path}: data[{a}] is not in SQuAD form: {wrong!r} is missing or of the wrong kind"
            ) from None


# --- writing ---------------------------------------------------------------------------------------------------------


def write_jsonl(objects: Iterable[dict[str, Any]], path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        for item in objects:
            file.write(json.dumps(item, ensure_ascii=False) + "\n")


def flatten(item: dict[str, Any]) -> dict[str, Any]:
    """An object as a table row: {human: {fluency: 3}} becomes human.fluency; lists and other objects become JSON."""
    row: dict[str, Any] = {}
    for name, value in item.items():
        if name in ("human", "peers", "ratings", "scores", "unscored") and isinstance(value, dict):
            row.update({f"{name}.{k}": v for k, v in value.items()})
        else:
            row[name] = value
    return {k: json.dumps(v, ensure_ascii=False) if isinstance(v, (dict, list)) else v for k, v in row.items()}


def write_csv(objects: Iterable[dict[str, Any]], path: Path) -> None:
    """Columns are those of the first 1,000 rows; a later row with a new column is an error, not a silent loss."""
    rows = (flatten(item) for item in objects)
    head = list(islice(rows, 1000))
    columns = list(dict.fromkeys(name for row in head for name in row))
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="", delimiter=delimiter)
        writer.writeheader()
        try:
            writer.writerows(chain(head, rows))
        except ValueError as wrong:
            raise UsageError(f"{path}: a later record has fields the first 1,000 lack ({wrong}); write JSONL") from None


def write_parquet(objects: Iterable[dict[str, Any]], path: Path) -> None:
    """Streams row groups of 4,096; nested fields stay nested. The first group fixes the columns."""
    arrow = _pyarrow()
    rows, writer = ({k: v for k, v in item.items() if v != {}} for item in objects), None
    try:
        while group := list(islice(rows, 4096)):
            try:
                table = arrow.Table.from_pylist(group, schema=writer.schema if writer else None)
            except (arrow.ArrowInvalid, arrow.ArrowTypeError) as wrong:
                raise UsageError(f"{path}: a field has values of different kinds ({wrong}); write JSONL") from None
            writer = writer or arrow.parquet.ParquetWriter(path, table.schema)
            writer.write_table(table)
    finally:
        if writer:
            writer.close()


READERS: dict[str, Callable[[Path], Iterator[Row]]] = {
    ".jsonl": read_jsonl,
    ".ndjson": read_jsonl,
    ".csv": read_csv,
    ".tsv": read_csv,
    ".parquet": read_parquet,
    ".json": read_json,
}
WRITERS: dict[str, Callable[[Iterable[dict[str, Any]], Path], None]] = {
    ".jsonl": write_jsonl,
    ".csv": write_csv,
    ".tsv": write_csv,
    ".parquet": write_parquet,
}
