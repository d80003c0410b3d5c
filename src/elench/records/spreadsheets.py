"""CSV as Excel and others write it, and .xlsx workbooks."""

from __future__ import annotations

import ast
import csv
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from elench.errors import MissingExtra, UsageError
from elench.records.encoding import invalid, open_text, shown
from elench.records.fields import number_text
from elench.records.mapping import KNOWN_COLUMNS, normalised
from elench.records.record import Reject

InputRow = tuple[int, "dict[str, Any] | Reject"]
NESTED = ("human", "peers", "ratings")
"""Fields that a table spreads over columns such as human.fluency."""
LISTS = ("references", "context")
"""Fields that a cell may hold as a JSON list."""
_LIST = re.compile(r"\s*\[.*\]\s*", re.DOTALL)
_DECIMAL_COMMA = {";": re.compile(r"-?\d+,\d+"), "\t": re.compile(r"-?\d+,(?!\d{3}$)\d+")}
"""Numbers as Excel writes them in half of the world; between tabs 1,234 may be a thousand, so it is refused."""


def constant(name: str) -> None:
    """For json.loads: NaN, which Python and pandas write for a missing value, is null; Infinity is refused."""
    if name != "NaN":
        raise ValueError(f"{name} is not a JSON number; leave the field out if it is missing")


def read_csv(path: Path) -> Iterator[InputRow]:
    """A header names the fields; the delimiter is what the header uses most: comma, semicolon, tab or bar."""
    csv.field_size_limit(2**31 - 1)
    with open_text(path) as file:
        start = file.readline()
        declared = re.fullmatch(r'"?sep=(.)"?\s*', start)  # a first line that Excel understands
        if not declared:
            file.seek(0)
        delimiter = declared.group(1) if declared else _delimiter(start, path)
        reader = csv.reader(file, delimiter=delimiter)
        skipped = 1 if declared else 0
        try:
            header = [name.strip() for name in next(reader, [])]
            _check_header(header, path)
            for cells in reader:
                if any(cells):
                    line = reader.line_num + skipped
                    yield line, _row(header, cells, line, delimiter)
        except csv.Error as error:
            raise UsageError(f"{path}:{reader.line_num + skipped}: not valid CSV: {error}") from None


def _delimiter(header: str, path: Path) -> str:
    unquoted = re.sub(r'"[^"]*"', "", header)
    counts = {mark: unquoted.count(mark) for mark in ("\t" if path.suffix.lower() == ".tsv" else ",", ";", "\t", "|")}
    best = max(counts, key=lambda mark: counts[mark])
    return best if counts[best] else next(iter(counts))


def _check_header(header: list[str], path: Path) -> None:
    named = [name for name in header if name]
    twice = next((name for name in named if named.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"{path}:1: column '{shown(twice)}' appears twice in the header; rename one")
    if any(invalid(name) for name in header):
        raise UsageError(f"{path}:1: the header is not valid UTF-8: save the file as UTF-8")


def _row(header: list[str], cells: list[str], line: int, delimiter: str) -> dict[str, object] | Reject:
    raw = {name: shown(cell) for name, cell in zip(header, cells, strict=False)}
    if len(cells) != len(header) and any(cells[len(header) :]):
        return Reject(line, f"the row has {len(cells)} cells, the header {len(header)}", raw)
    if len(cells) < len(header):
        return Reject(line, f"the row has {len(cells)} cells, the header {len(header)}", raw)
    row: dict[str, object] = {}
    for name, cell in zip(header, cells, strict=False):
        if cell == "" or not name:
            continue
        if invalid(cell):
            return Reject(line, f"field '{name}' is not valid UTF-8: save the file as UTF-8", raw)
        try:
            set_cell(row, name, cell, _DECIMAL_COMMA.get(delimiter))
        except (ValueError, RecursionError):
            return Reject(line, f"field '{name}' must be a number or JSON, not {cell[:40]!r}", raw)
    return row


def printed_list(text: str) -> list[Any] | None:
    """A list that a cell holds as JSON or as Python prints it (which is what pandas writes); None for other text."""
    if not _LIST.fullmatch(text):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        try:
            value = ast.literal_eval(_with_commas(text.strip()))
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            return None
    return value if isinstance(value, list) else None


def with_lists(row: Mapping[str, object]) -> dict[str, object]:
    """The row with references and context as lists where a cell holds a printed list of texts."""
    found = {name: printed_list(cell) for name in LISTS if isinstance(cell := row.get(name), str)}
    lists = {name: v for name, v in found.items() if v is not None and all(isinstance(text, str) for text in v)}
    return {**row, **lists}


def _with_commas(text: str) -> str:
    """numpy prints ['a' 'b'], which Python would read as one string."""
    import io
    import tokenize

    try:
        read = tokenize.generate_tokens(io.StringIO(text).readline)
        tokens = [token for token in read if token.type != tokenize.NL]
    except (tokenize.TokenError, SyntaxError, ValueError):
        return text
    parts: list[str] = []
    for before, token in zip([None, *tokens], tokens, strict=False):
        if before and before.type == token.type == tokenize.STRING:
            parts.append(",")
        parts.append(token.string)
    return "".join(parts)


def set_cell(row: dict[str, object], name: str, cell: str, decimal_comma: re.Pattern[str] | None = None) -> None:
    """Put a cell into its field: nested objects are JSON, `human.fluency` is a number inside `human`."""
    outer, dot, inner = name.partition(".")
    if name in NESTED:
        row[name] = json.loads(cell, parse_constant=constant)
    elif dot and outer in NESTED:
        if decimal_comma and decimal_comma.fullmatch(cell.strip()):
            cell = cell.replace(",", ".")
        inside = row.setdefault(outer, {})
        if not isinstance(inside, dict):
            raise ValueError(f"columns '{outer}' and '{name}' exclude each other")
        inside[inner] = json.loads(cell, parse_constant=constant)
    else:
        row[name] = cell


def read_xlsx(path: Path) -> Iterator[InputRow]:
    """The sheet of a workbook that holds the records; a row above the first record names the fields."""
    with _open_book(path) as book:
        sheet, start = _table_in(book)
        rows = enumerate(sheet.iter_rows(min_row=start, values_only=True), start)
        header = [_cell_text(name).strip() for name in next(rows, (0, ()))[1]]
        _check_header(header, path)
        for line, cells in rows:
            if any(cell is not None for cell in cells):
                yield line, _row(header, [_cell_text(cell) for cell in cells], line, ";")


def sheet_note(path: Path) -> str:
    """Which sheet of a workbook is read, where it has several."""
    with _open_book(path) as book:
        read = _table_in(book)[0].title
        others = [repr(sheet.title) for sheet in book.worksheets if sheet.title != read]
    return f"reading sheet {read!r}, not {', '.join(others)}" if others else ""


@contextmanager
def _open_book(path: Path) -> Iterator[Any]:
    try:
        import openpyxl
    except ImportError:
        raise MissingExtra(".xlsx", "excel") from None
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except Exception as error:  # openpyxl lets errors of zipfile, xml and its own descriptors through
        raise UsageError(
            f"{path}: not an .xlsx workbook: {str(error).splitlines()[0] if str(error) else error!r}"
        ) from None
    try:
        yield book
    finally:
        book.close()


def _table_in(book: Any) -> tuple[Any, int]:
    """The first sheet with a header row and the row's number: one that names a known field, else one of two cells.

    A title may stand above the header, and a sheet of remarks before the records.
    """
    found: list[tuple[Any, int]] = []
    for sheet in book.worksheets:
        for line, cells in enumerate(sheet.iter_rows(max_row=20, values_only=True), 1):
            filled = [normalised(cell) if isinstance(cell, str) else "" for cell in cells if cell is not None]
            if len(filled) > 1 and KNOWN_COLUMNS & set(filled):
                return sheet, line
            if len(filled) > 1:
                found.append((sheet, line))
    if not book.worksheets:
        raise UsageError("the workbook has no sheet with cells")
    return found[0] if found else (book.worksheets[0], 1)


def _cell_text(cell: Any) -> str:
    return "" if cell is None else str(number_text(cell))
