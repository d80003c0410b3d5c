"""File formats of records: JSONL, CSV, Parquet, Excel and JSON, read and written row by row."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

from elench.errors import MissingExtra, UsageError
from elench.records.documents import parse_document, rows_of
from elench.records.encoding import COMPRESSED, encoding_of, invalid, open_bytes, open_text, read_text, shown
from elench.records.record import Reject
from elench.records.spreadsheets import NESTED, InputRow, constant, read_csv, read_xlsx

_NOT_SPACE = re.compile(r"\S")


def read_jsonl(path: Path) -> Iterator[InputRow]:
    """One object per line, or a JSON document under this name."""
    with open_text(path) as file:
        file.reconfigure(newline="\n")
        start = next((text for line in file if (text := line.strip())), "")
        if start == "{" or start.startswith("["):
            try:
                document = parse_document(path)
            except (ValueError, RecursionError, UsageError):
                if objects := _objects(path):
                    yield from objects
                    return
                # lines after all: each bad one is named
            else:
                yield from rows_of(document, path)
                return
        file.seek(0)
        yield from _json_lines(file)


def _objects(path: Path) -> list[InputRow]:
    """Objects one after another over any lines, as jq prints them, numbered from 1; none where the text has others."""
    decoder, end = json.JSONDecoder(parse_constant=constant), 0
    found: list[InputRow] = []
    try:
        text = read_text(path)
        while begin := _NOT_SPACE.search(text, end):
            value, end = decoder.raw_decode(text, begin.start())
            found.append(_checked(len(found) + 1, value))
    except (ValueError, RecursionError):
        return []
    return found


def _json_lines(file: Iterable[str]) -> Iterator[InputRow]:
    for number, line in enumerate(file, 1):
        if not (text := line.strip()):
            continue
        if at := invalid(line):
            reason = f"not valid UTF-8 at byte {at} of the line: save the file as UTF-8"
            yield number, Reject(number, reason, shown(text))
            continue
        try:
            value = json.loads(text, parse_constant=constant)
        except (ValueError, RecursionError) as error:
            message = getattr(error, "msg", str(error))
            at_column = f" at column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
            hint = "; remove the comma after the object" if text.endswith("},") else ""
            yield number, Reject(number, f"not valid JSON{at_column}: {message}{hint}", text)
            continue
        yield _checked(number, value)


def _checked(line: int, value: Any) -> InputRow:
    return line, value if isinstance(value, dict) else Reject(line, "a line must be one JSON object: {…}", value)


def _pyarrow() -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra("Parquet", "parquet") from None
    return pyarrow


def read_parquet(path: Path) -> Iterator[InputRow]:
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


def read_json(path: Path) -> Iterator[InputRow]:
    """A JSON document (see `documents`), or one object per line under this name. Line numbers count its records."""
    try:
        document = parse_document(path)
    except RecursionError:
        raise UsageError(f"{path}: not valid JSON: nested too deeply") from None
    except ValueError as error:
        if "Extra data" not in str(error):
            raise UsageError(f"{path}: not valid JSON: {error}") from None
        if objects := _objects(path):
            yield from objects
            return
        with open_text(path) as file:
            file.reconfigure(newline="\n")
            yield from _json_lines(file)
        return
    yield from rows_of(document, path)


# --- writing ---------------------------------------------------------------------------------------------------------


def write_jsonl(objects: Iterable[dict[str, object]], path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        for item in objects:
            file.write(json.dumps(item, ensure_ascii=False) + "\n")


def flatten(item: dict[str, object]) -> dict[str, object]:
    """An object as a table row: {human: {fluency: 3}} becomes human.fluency; lists and other objects become JSON."""
    row: dict[str, Any] = {}
    for name, value in item.items():
        if name in ("human", "peers", "ratings", "scores", "unscored") and isinstance(value, dict):
            row.update({f"{name}.{k}": v for k, v in value.items()})
        else:
            row[name] = value
    return {k: json.dumps(v, ensure_ascii=False) if isinstance(v, (dict, list)) else v for k, v in row.items()}


def write_csv(objects: Iterable[dict[str, object]], path: Path) -> None:
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


READERS: dict[str, Callable[[Path], Iterator[InputRow]]] = {
    ".jsonl": read_jsonl,
    ".ndjson": read_jsonl,
    ".csv": read_csv,
    ".tsv": read_csv,
    ".parquet": read_parquet,
    ".json": read_json,
    ".xlsx": read_xlsx,
}
WRITERS: dict[str, Callable[[Iterable[dict[str, object]], Path], None]] = {
    ".jsonl": write_jsonl,
    ".csv": write_csv,
    ".tsv": write_csv,
    ".parquet": write_parquet,
}


def ending_of(path: Path) -> str:
    """The ending that names a file's format: of `x.csv.gz` it is .csv."""
    return (Path(path.stem) if path.suffix.lower() in COMPRESSED else path).suffix.lower()


def reader_of(path: Path) -> Callable[[Path], Iterator[InputRow]] | None:
    """The reader for a file's ending; a file with another ending may hold JSON."""
    reader = READERS.get(ending_of(path))
    if reader is None:
        with open_bytes(path) as file:
            head = file.read(1000)
        if re.match(r"\s*(\[\s*)?\{", head.decode(encoding_of(head), "replace")):
            return read_jsonl
    return reader
