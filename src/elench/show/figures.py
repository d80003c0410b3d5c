"""Figures of `elench bench` in a Markdown page, between HTML comments that say which:

    r = <!-- r kpqa_marco rouge-l correctness -->.334<!-- end -->
    n = <!-- n kpqa_marco rouge-l correctness -->1,000<!-- end -->

FILE METRIC DIMENSION; the dimension `mean` stands for the mean over all of the file's. A figure is that of the
largest part of the file measured."""

from __future__ import annotations

import re
from collections.abc import Container
from pathlib import Path
from typing import Any

from elench.errors import UsageError
from elench.grid import number

MARK = re.compile(
    r"(<!-- (?P<what>[rn]) (?P<file>\S+) (?P<metric>\S.*?) (?P<dimension>\S+) -->)(?P<rest>[^<]*<!-- end -->|)"
)


def fill(path: Path, content: dict[str, Any], stale: Container[str]) -> bool:
    """Bring the marked figures of a page up to date; a figure of another signature is marked stale. Was it changed?"""
    before = path.read_text(encoding="utf-8")
    lines = before.splitlines(keepends=True)
    for k, line in enumerate(lines):
        try:
            lines[k] = MARK.sub(lambda mark: _filled(mark, content["entries"], stale), line)
        except UsageError as problem:
            raise UsageError(f"{path}:{k + 1}: {problem}") from None
    after = "".join(lines)
    if after != before:
        path.write_text(after, encoding="utf-8")
    return after != before


def _filled(mark: re.Match[str], entries: list[dict[str, Any]], stale: Container[str]) -> str:
    file, metric, dimension = mark["file"], mark["metric"], mark["dimension"]
    if not mark["rest"]:
        raise UsageError(f"{mark[1]} has no <!-- end --> on its line")
    own = [e for e in entries if (e["file"], e["metric"]) == (file, metric) and dimension in ("mean", e["dimension"])]
    largest = max((e["records"] for e in own), default=0)
    own = [e for e in own if e["records"] == largest]
    values = [e["r"] for e in own if e["r"] is not None]
    if not values:
        raise UsageError(f"no figure of {metric} on {file}, {dimension}; measure it: elench bench -m {metric}")
    if mark["what"] == "n":
        return f"{mark[1]}{max(e['n'] for e in own):,}<!-- end -->"
    remark = " (stale)" if any(e["signature"] in stale for e in own) else ""
    return f"{mark[1]}{number(sum(values) / len(values))}{remark}<!-- end -->"
