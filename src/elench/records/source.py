"""A file of records as it is to be read: its columns named, its schema recognised, what it judges decided."""

from __future__ import annotations

import atexit
import gzip
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from elench.errors import UsageError
from elench.records import formats
from elench.records.encoding import decompressing
from elench.records.fields import JUDGES
from elench.records.judging import SAMPLE, Need, decide, has_field, lacking_fields
from elench.records.mapping import (
    ABSENT,
    TEXT_FIELDS,
    as_option,
    named_columns,
    predicted_beside,
    suggest,
    system_hint,
    translate,
    value_at,
)
from elench.records.record import Record, Reject
from elench.records.schemas import KEPT, Recognised, recognise
from elench.records.spreadsheets import InputRow, with_lists

TABLES = (".csv", ".tsv", ".xlsx")
_ADVICE = {
    ".txt": "for plain text: --text {} --references FILE",
    ".xls": "save it as .xlsx or .csv",
    ".zst": "decompress it: zstd -dc {} | elench score - …",
    ".zip": "decompress it: unzip -p {} | elench score - …",
    **dict.fromkeys((".arrow", ".feather", ".pkl", ".pickle", ".yaml", ".yml"), "save it as .parquet, .jsonl or .csv"),
}
"""What to do with kinds of files that are often tried."""
SNIFFED = 50
"""So many rows show which columns a file has."""


@dataclass(frozen=True)
class Source:
    """A file and how to read it. `name` is what messages call it."""

    path: Path
    name: str
    mapping: Mapping[str, str] = field(default_factory=dict)
    """Field → column, as asked for by --map."""
    recognised: Recognised | None = None
    judge: str | None = None
    """What --judge asks for, whatever the records say."""
    assumed: str | None = None
    """What the file judges, where its records do not say."""
    any_language: bool = False
    head: tuple[InputRow, ...] = field(default=(), repr=False, compare=False)
    """The first rows of the file, read once when it is opened: they show its columns and what it judges."""
    origin: Mapping[str, Any] = field(default_factory=dict)
    """What a user named to get these records: {"file": …} or {"text": …, "references": […]}; see `reopen`."""

    def __str__(self) -> str:
        return self.name

    @property
    def judging(self) -> str | None:
        """What is judged where a record does not say; None when every record says so itself."""
        return self.judge or self.assumed

    @property
    def stem(self) -> str:
        """The file's name without its ending."""
        return self.path.stem if self.name != "stdin" else self.name

    def rows(self) -> Iterator[InputRow]:
        """The rows of the file as they are written in it."""
        try:
            with decompressing(self.name):
                reader = formats.reader_of(self.path)
                if reader is None:
                    hint = _ADVICE.get(self.path.suffix.lower(), f"use one of {', '.join(formats.READERS)}")
                    raise UsageError(f"{self.name}: unknown kind of file; {hint.format(self.name)}")
                yield from reader(self.path)
        except UsageError as error:  # standard input and joined files are read from a temporary one
            raise UsageError(str(error).replace(str(self.path), self.name)) from None

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns in the first rows."""
        return tuple(dict.fromkeys(str(name) for row in sniffed(self.head) for name in row))

    def read(self, rows: Iterable[InputRow] | None = None) -> Iterator[Record | Reject]:
        """Every record of the file (or of these rows of it), and every line that is not one, in file order."""
        seen: dict[int, int] = {}
        empty = True
        for line, row in self.rows() if rows is None else rows:
            empty = False
            item = row if isinstance(row, Reject) else self._record(line, row)
            if isinstance(item, Record):
                key = hash((item.id, item.system))
                if key in seen:
                    also = f" of system {item.system!r}" if item.system else ""
                    hint = "" if item.system else system_hint(row)
                    item = Reject(line, f"duplicate id {item.id!r}{also}: already on line {seen[key]}{hint}", row)
                else:
                    seen[key] = line
            yield item
        if empty:
            raise UsageError(f"{self.name}: the file is empty: no records in it")

    def _record(self, line: int, row: dict[str, Any]) -> Record | Reject:
        try:
            given = row
            if self.recognised:
                given = self.recognised.rename(row, self.mapping)
            elif self.mapping:
                given = translate(row, self.mapping)
            if formats.ending_of(self.path) in TABLES:
                given = with_lists(given)
            record = Record.from_object(given, line, default_id=str(line), assumed=self.assumed)
        except UsageError as error:
            return Reject(line, self._in_their_words(str(error)), row)
        if self.judge or self.any_language:
            return replace(record, judge=self.judge or record.judge, any_language=self.any_language)
        return record

    @cached_property
    def _mapping(self) -> dict[str, str]:
        return self.recognised.with_asked(self.mapping) if self.recognised else dict(self.mapping)

    def _in_their_words(self, message: str) -> str:
        """Name the column of the file beside the field it became."""
        for name, column in self._mapping.items():
            if message.startswith((f"field '{name}'", f"field '{name}[")):
                return f"{message.replace(f'={name}', f'={column}')} (column '{column}')"
        return message

    def kinds(self) -> list[str]:
        """What is judged, where it is known: of each record, or of the whole file."""
        stated = {record.judge for record in self.sample()}
        return [kind for kind in JUDGES if kind in stated or (None in stated and kind == self.judging)]

    def sample(self) -> list[Record]:
        """The first records, which show what the file is."""
        return [item for item in self.read(self.head) if isinstance(item, Record)]

    def for_metrics(self, metrics: Sequence[Need]) -> Source:
        """The source with what it judges decided for these metrics; UsageError when no metric finds its fields."""
        records = self.sample()
        self._require_fields(records, metrics)
        if self.judge:
            return self
        assumed = decide(records, metrics, self.name) or self.assumed
        judged = {record.judge or assumed for record in records}
        if metrics and "answer" in judged and not any(has_field(record, "answer") for record in records):
            lacking = {m.missing(replace(r, assumed=r.judge or assumed)) for m in metrics for r in records}
            if lacking == {"answer"}:
                raise UsageError(f"{self.name}: the references are of answers; {self.missing(['answer'], metrics)}")
        return replace(self, assumed=assumed)

    def _require_fields(self, records: Sequence[Record], metrics: Sequence[Need]) -> None:
        """Refuse a file in which no metric finds what it needs: say what is there and what to type."""
        if not records or not metrics:
            return
        if lacking := lacking_fields(records, metrics):
            raise UsageError(f"{self.name}: {self.missing(lacking, metrics)}")

    def _unused(self) -> tuple[dict[str, str], list[str]]:
        """Columns that are no field of a record, with the names they are known by; text fields without a column."""
        used = set(self._mapping.values()) | {n for n in self.columns if n in TEXT_FIELDS}
        free = [n for n in TEXT_FIELDS if n not in self.columns and n not in self._mapping]
        columns = named_columns(sniffed(self.head))
        return {c: name for c, name in columns.items() if not {c, c.partition(".")[0]} & used}, free

    def guess(self) -> dict[str, str]:
        """Field → column for the columns that look like a field under another name; nothing for a known schema."""
        return {} if self.recognised is not None else self._with_beside(suggest(*self._unused()))

    def beside(self) -> dict[str, str]:
        """Field → column where an unused column looks like the system's output, and the field like its reference."""
        if self.mapping or self.recognised is not None:
            return {}
        return predicted_beside(self._unused()[0], [name for name in TEXT_FIELDS if name in self.columns])

    def _with_beside(self, guess: Mapping[str, str]) -> dict[str, str]:
        beside = self.beside()
        return {**{name: column for name, column in guess.items() if column not in beside.values()}, **beside}

    def missing(self, lacking: Sequence[str], metrics: Sequence[Need] = ()) -> str:
        """What a file lacks, the columns it has, and what to type."""
        fields = " and ".join(f"'{name}'" for name in lacking)
        needs = "needs" if len(metrics) == 1 else "need"
        who = f", which {', '.join(map(str, metrics))} {needs}" if metrics else ""
        unused, free = self._unused()
        gold = self.recognised is not None and self.recognised.gold
        if gold:  # gold answers become references as soon as there is an answer to judge
            unused = {c: name for c, name in unused.items() if c.partition(".")[0] not in KEPT}
            free = lacking = ["answer"]
        guess = self._with_beside(suggest(unused, free if set(lacking) & set(free) else lacking))
        if "text" in self.origin:
            hint = f"add {' and '.join(f'--{name} FILE' for name in lacking)}"
        elif set(guess) & set(lacking):
            hint = f"try {as_option({**self.mapping, **guess})}"
            judged = {"answer"} if "summary" in guess else set()
            if unlike := [repr(name) for name in lacking if name not in {*guess, *judged}]:
                hint += f"; no column looks like {' or '.join(unlike)}"
        elif gold:
            hint = "it holds gold answers: add a system's with --predictions FILE, or name their column, --map answer=…"
        else:
            hint = "name the column with --map FIELD=COLUMN"
        return f"no record has {fields}{who}; fields found: {listed(self.columns)}; {hint}"


def as_source(
    source: str | Path | Source, mapping: Mapping[str, str] | None = None, judge: str | None = None
) -> Source:
    """The source of a file name (`-` is standard input), its columns checked against the mapping."""
    if isinstance(source, Source):
        return source
    path, name = (_spooled(), "stdin") if str(source) == "-" else (Path(source), str(source))
    require_file(path, name)
    origin = {} if name == "stdin" else {"file": name}
    opened = Source(path, name, dict(mapping or {}), judge=judge, origin=origin)
    opened = replace(opened, head=tuple(islice(opened.rows(), SAMPLE)))
    first = sniffed(opened.head)
    for field_name, column in opened.mapping.items():
        if first and all(value_at(row, column) is ABSENT for row in first):
            raise UsageError(_no_column(opened, field_name, column))
    return replace(opened, recognised=recognise(first))


def refusing(rows: Iterable[Record | Reject], where: str) -> Iterator[Record | Reject]:
    """The same rows; UsageError at the first that is not a record. `where` is what precedes its line in the message."""
    for row in rows:
        if isinstance(row, Reject):
            raise UsageError(f"{where}{row.line}: {row.reason}")
        yield row


def require_file(path: Path, name: str = "") -> None:
    """Refuse what is not a file."""
    if not path.is_file():
        raise UsageError(f"{name or path}: {'is a folder; name a file in it' if path.is_dir() else 'no such file'}")


def sniffed(head: Sequence[InputRow]) -> list[dict[str, object]]:
    """The rows among the first ones that show which columns a file has."""
    return [row for _, row in head[:SNIFFED] if isinstance(row, dict)]


def _no_column(source: Source, name: str, column: str) -> str:
    import difflib

    near = difflib.get_close_matches(column, source.columns, n=1, cutoff=0.5)
    hint = f"; did you mean {name}={near[0]}?" if near else ""
    return (
        f"{source.name}: --map {name}={column}: no field is called {column!r}; "
        f"fields found: {listed(source.columns)}{hint}"
    )


def listed(columns: Sequence[str], most: int = 30) -> str:
    """Column names for a message: not too many, none too long, on one line."""
    names = [" ".join(name.split())[:60] for name in columns[:most]]
    return ", ".join(names) + (f" and {len(columns) - most} more" if len(columns) > most else "") or "none"


def _spooled() -> Path:
    """Standard input as a file, since it is read more than once; its first bytes show what it is."""
    data = sys.stdin.buffer.read()
    if data.startswith(b"\x1f\x8b"):
        with decompressing("stdin"):
            data = gzip.decompress(data)
    if not data.strip():
        raise UsageError("stdin: the file is empty: no records in it")
    with tempfile.NamedTemporaryFile(prefix="elench-stdin-", suffix=_ending(data), delete=False) as file:
        file.write(data)
    path = Path(file.name)
    atexit.register(path.unlink, missing_ok=True)
    return path


def _ending(data: bytes) -> str:
    """The ending of a file with these bytes; an object on a line of its own may be a whole document."""
    start = data[:4].lstrip(b"\xef\xbb\xbf\xff\xfe\x00 \n\r\t")[:1]
    if data.startswith((b"PAR1", b"PK\x03\x04")):
        return ".parquet" if data.startswith(b"PAR1") else ".xlsx"
    if start == b"{":
        return ".jsonl" if b"\n" in data.strip() else ".json"
    return ".json" if start == b"[" else ".csv"
