"""Small answers kept on disk between runs: one SQLite file, bounded in size, shared safely by concurrent runs.

The key is a hash over the model's own hash and every field of the request; the value is the answer as JSON, put back
into its type by the type hints of the request. No pickle is ever written or read.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import sqlite3
import sys
import time
import types
import zlib
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from elench.errors import UsageError
from elench.models.catalog import cache_folder
from elench.requests import Request

Key = tuple[str, Request[object]]
FORMAT = 2
"""Part of every key: raised when the meaning of an answer changes."""
DAY = 86_400
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def size_limit() -> int:
    """Bytes the cache may take: ELENCH_CACHE_SIZE (such as 500M or 4G), else 2 GB."""
    given = os.environ.get("ELENCH_CACHE_SIZE", "2G").strip().upper().removesuffix("B")
    number, unit = (given[:-1], given[-1]) if given[-1:] in ("K", "M", "G") else (given, "")
    if not number.isdigit():
        raise UsageError(f"ELENCH_CACHE_SIZE={given}: use a size such as 500M or 4G")
    return int(number) * UNITS[unit]


@cache
def _version() -> str:
    return version("elench")


def digest(key: Key) -> bytes:
    """The stable name of an answer: elench's version, the model, the kind of request, every field of it."""
    model, request = key
    fields = [[f.name, getattr(request, f.name)] for f in dataclasses.fields(request)]
    text = json.dumps([FORMAT, _version(), model, type(request).__module__, type(request).__qualname__, fields])
    return hashlib.sha256(text.encode()).digest()


@cache
def answer_type(request: Any) -> Any:
    """The T of a class that derives from Request[T]."""
    for base in getattr(request, "__orig_bases__", ()):
        if get_origin(base) is Request:
            return get_args(base)[0]
    raise TypeError(f"{request.__qualname__} does not declare the type of its answer: derive it from Request[…]")


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def encode(answer: Any) -> bytes:
    """An answer as compressed JSON; dataclasses become lists of their fields."""
    return zlib.compress(json.dumps(_plain(answer), separators=(",", ":")).encode(), 1)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [_plain(getattr(value, f.name)) for f in dataclasses.fields(value)]
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return value


def decode(stored: bytes, kind: Any) -> Any:
    """The answer again, in its type."""
    return _typed(json.loads(zlib.decompress(stored)), kind)


def _typed(value: Any, kind: Any) -> Any:
    origin, inside = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return None if value is None else _typed(value, next(a for a in inside if a is not type(None)))
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        hints = _hints(kind)
        fields = dataclasses.fields(kind)
        return kind(**{f.name: _typed(v, hints[f.name]) for f, v in zip(fields, value, strict=True)})
    if origin is tuple:
        kinds = [inside[0]] * len(value) if inside[-1:] == (...,) else inside
        if kinds and kinds[0] in (str, int, float, bool) and all(k is kinds[0] for k in kinds):
            return tuple(value)
        return tuple(_typed(v, k) for v, k in zip(value, kinds, strict=True))
    if origin is dict:
        return {k: _typed(v, inside[1]) for k, v in value.items()}
    return value


class AnswerCache:
    """Answers by (model hash, request). A cache that cannot be read or written costs time, never a run."""

    def __init__(self, path: Path | None = None, limit: int | None = None) -> None:
        self.path = path or cache_folder() / "answers.sqlite"
        self.limit = size_limit() if limit is None else limit
        self.writes = 0
        self.store: sqlite3.Connection | None = None
        try:
            self.store = self._open()
        except (OSError, sqlite3.Error) as error:
            if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
                clear(self.path)  # not a database: begin anew
                self.store = self._open()
            else:
                self._give_up(error)

    def _open(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        store = sqlite3.connect(self.path, timeout=60, isolation_level=None)
        store.execute("PRAGMA auto_vacuum = INCREMENTAL")
        store.execute("PRAGMA journal_mode = WAL")
        store.execute("PRAGMA synchronous = NORMAL")
        store.execute(
            "CREATE TABLE IF NOT EXISTS answers (key BLOB PRIMARY KEY, used INTEGER, answer BLOB) WITHOUT ROWID"
        )
        store.execute("CREATE INDEX IF NOT EXISTS by_use ON answers (used)")
        return store

    def _give_up(self, error: Exception) -> None:
        print(f"elench: answers are not cached: {self.path}: {error}", file=sys.stderr)
        self.store = None

    def get_many(self, keys: Sequence[Key]) -> dict[Key, object]:
        """The answers that are known."""
        found: dict[Key, Any] = {}
        today = int(time.time()) // DAY
        old: list[bytes] = []
        names: dict[bytes, Key] = {digest(key): key for key in keys}
        everything = list(names)
        try:
            for a in range(0, len(everything) if self.store else 0, 500):
                assert self.store
                part = everything[a : a + 500]
                marks = ",".join("?" * len(part))
                query = f"SELECT key, used, answer FROM answers WHERE key IN ({marks})"
                for name, used, stored in self.store.execute(query, part):
                    key = names[name]
                    kind: Any = type(key[1])
                    try:
                        found[key] = decode(stored, answer_type(kind))
                    except (ValueError, TypeError, zlib.error):
                        continue  # written by another version: ask again
                    if used < today:
                        old.append(name)
            if old and self.store:
                self.store.execute("BEGIN IMMEDIATE")
                self.store.executemany("UPDATE answers SET used = ? WHERE key = ?", [(today, name) for name in old])
                self.store.execute("COMMIT")
        except sqlite3.Error as error:
            self._give_up(error)
        return found

    def put_many(self, items: Iterable[tuple[Key, object]]) -> None:
        """Keep answers; when the file grows over its limit, those not used for longest go."""
        today = int(time.time()) // DAY
        rows = [(digest(key), today, encode(answer)) for key, answer in items]
        if not rows or not self.store:
            return
        try:
            self.store.execute("BEGIN IMMEDIATE")
            self.store.executemany("INSERT OR REPLACE INTO answers VALUES (?, ?, ?)", rows)
            self.store.execute("COMMIT")
            self.writes += 1
            if self.writes % 32 == 1:
                self._evict()
        except sqlite3.Error as error:
            self._give_up(error)

    def _bytes(self) -> int:
        assert self.store
        names = ("page_count", "freelist_count", "page_size")
        pages, free, size = (self.store.execute(f"PRAGMA {name}").fetchone()[0] for name in names)
        return int((pages - free) * size)

    def _evict(self) -> None:
        if not self.store or self._bytes() <= self.limit:
            return
        self.store.execute("BEGIN IMMEDIATE")
        while self._bytes() > 0.8 * self.limit:
            query = "SELECT key FROM answers ORDER BY used, key LIMIT 1000"
            oldest = self.store.execute(query).fetchall()
            if not oldest:
                break
            self.store.executemany("DELETE FROM answers WHERE key = ?", oldest)
        self.store.execute("COMMIT")
        self.store.execute("PRAGMA incremental_vacuum").fetchall()

    def count(self) -> int:
        """How many answers are kept."""
        return int(self.store.execute("SELECT count(*) FROM answers").fetchone()[0]) if self.store else 0

    def close(self) -> None:
        if self.store:
            self.store.close()
            self.store = None


def clear(path: Path | None = None) -> int:
    """Remove all kept answers; the bytes that were freed."""
    path = path or cache_folder() / "answers.sqlite"
    freed = 0
    for file in (path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")):
        if file.exists():
            freed += file.stat().st_size
            file.unlink()
    return freed
