"""What a replication finds: lines, tables, and what could not be done."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

PROGRAM, OURS = " · program", " · ours"
"""How the rows of a metric's other forms are labelled while a table is computed."""


@dataclass(frozen=True)
class PaperLine:
    """One number, or several of one metric, beside the paper's."""

    label: str
    spec: str
    part: str
    """Human dimension or group of records, where the table has several"""
    ours: dict[str, float | None]
    """What elench computes in this row's form"""
    theirs: dict[str, float | None]
    """What the paper prints"""
    n: int
    low: float | None = None
    high: float | None = None
    note: str = ""
    improved: dict[str, float | None] | None = None
    """The same in form=ours, our own improvement: a column of its own, never beside a figure of the paper"""

    @classmethod
    def missing(
        cls, label: str, spec: str, theirs: dict[str, float | None], reason: str | None, part: str = ""
    ) -> PaperLine:
        """The paper's figures, and why there is none of ours beside them."""
        return cls(label, spec, part, dict.fromkeys(theirs), theirs, 0, note=reason or "")


@dataclass(frozen=True)
class PaperTable:
    """A table of the paper, recomputed as far as possible."""

    name: str
    columns: tuple[str, ...]
    lines: tuple[PaperLine, ...]
    note: str = ""
    reason: str | None = None
    """Why nothing could be computed"""
    status: str = "done"
    """done, or other data: the same table on other data than the paper's"""


@dataclass(frozen=True)
class PaperReplication:
    """All tables of one paper."""

    paper: str
    models: str
    tables: tuple[PaperTable, ...]
    cannot: tuple[tuple[str, str], ...]
    """Table → why it cannot be replicated"""
    elsewhere: tuple[tuple[str, str], ...] = ()
    """Table → the command or test that repeats it"""
    signatures: dict[str, str] = field(default_factory=dict)


def with_form(spec: str, form: str) -> str:
    """The same metric in another form."""
    return f"{spec[:-1]},form={form}]" if spec.endswith("]") else f"{spec}[form={form}]"


def fold(table: PaperTable) -> PaperTable:
    """The rows of form=ours as a column beside the rows of the same metric."""
    ours = {(line.part, line.label.removesuffix(OURS)): line for line in table.lines if line.label.endswith(OURS)}
    lines = []
    for line in table.lines:
        own = ours.get((line.part, line.label))
        if own is not None:
            missing = all(value is None for value in own.ours.values())
            told = own.note if missing else f"n = {own.n}" if own.n != line.n else ""
            note = "; ".join(filter(None, (line.note, told and f"form=ours: {told}")))
            line = replace(line, improved=own.ours, note=note)
        if not line.label.endswith(OURS):
            lines.append(line)
    return replace(table, lines=tuple(lines))


def number(value: Any) -> float | None:
    """A plain number, or None where there is none."""
    return None if value is None or not np.isfinite(value) else float(value)
