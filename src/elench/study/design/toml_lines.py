"""The line of each field of a TOML file, so that a mistake can be named with its line."""

from __future__ import annotations

import re

_HEADER = re.compile(r"^\s*(\[\[?)\s*([A-Za-z0-9_.\-\s\"']+?)\s*\]\]?\s*(#.*)?$")
_KEY = re.compile(r"^\s*([A-Za-z0-9_\-]+|\"[^\"]*\"|'[^']*')\s*=")
_STRING = re.compile(r"\"\"\".*?(\"\"\"|$)|'''.*?('''|$)|\"(\\.|[^\"\\])*\"|'[^']*'")

Path = tuple[str | int, ...]


def toml_lines(text: str) -> dict[Path, int]:
    """Path of each table and field → line, from 1. Tables of an array carry their number, from 0."""
    found: dict[Path, int] = {}
    counts: dict[Path, int] = {}
    table: Path = ()
    depth, closing = 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        if closing:  # inside a text of several lines
            if closing not in line:
                continue
            line = line.split(closing, 1)[1]
            closing = ""
        elif depth == 0:
            if header := _HEADER.match(line):
                table = _table(header[1] == "[[", header[2], counts)
                found[table] = number
                continue
            if key := _KEY.match(line):
                found[(*table, key[1].strip("\"'"))] = number
        for mark in ('"""', "'''"):
            if line.count(mark) % 2:
                closing = mark
        bare = _STRING.sub("", line).split("#", 1)[0]
        depth += bare.count("[") + bare.count("{") - bare.count("]") - bare.count("}")
    return found


def _table(array: bool, dotted: str, counts: dict[Path, int]) -> Path:
    path: Path = ()
    parts = [part.strip().strip("\"'") for part in dotted.split(".")]
    for place, part in enumerate(parts):
        path = (*path, part)
        last = place == len(parts) - 1
        if last and array:
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path = (*path, counts[path])
    return path
