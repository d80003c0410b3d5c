"""A replication as tables for the terminal, Markdown, LaTeX or JSON."""

from __future__ import annotations

from dataclasses import asdict

from elench.evaluate.replicate.compute import Replication, Table
from elench.grid import HEADS, Grid, limits, number
from elench.show.tables import as_json, render


def show(found: Replication, form: str = "text", width: int = 120) -> str:
    """Ours beside theirs; below it what cannot be replicated, and the signatures of what was computed."""
    if form == "json":
        return as_json(asdict(found))
    notes = [f"{found.paper}. Models there: {found.models}."]
    for table in found.tables:
        if table.reason:
            notes.append(f"{table.name}: not replicated, {table.reason}")
        elif table.note:
            notes.append(f"{table.name}: {table.note}")
    notes += [f"{name}: repeated elsewhere, {reason}." for name, reason in found.elsewhere]
    notes += [f"{name}: cannot be replicated, {reason}." for name, reason in found.cannot]
    notes += [f"signature: {signature}" for signature in found.signatures.values()]
    return render([*(grid for table in found.tables for grid in _grids(table)), _status(found)], notes, form, width)


def _status(found: Replication) -> Grid:
    """Every table of the paper: done, on other data, or impossible."""
    rows = [(t.name, "not computed" if t.reason else t.status) for t in found.tables]
    rows += [(name, "elsewhere") for name, _ in found.elsewhere] + [(name, "impossible") for name, _ in found.cannot]
    return Grid("Every table of the paper", ("table", "status"), tuple(rows))


def _grids(table: Table) -> list[Grid]:
    grids = []
    for part in dict.fromkeys(line.part for line in table.lines):
        header = ["metric"]
        for column in table.columns:
            header += [HEADS.get(column, column), "theirs"]
        rows = []
        for line in table.lines:
            if line.part != part:
                continue
            cells = [line.label]
            for column in table.columns:
                cells += [number(line.ours.get(column)), number(line.theirs.get(column))]
            rows.append((*cells, limits(line.low, line.high), str(line.n), line.note))
        head = (*header, f"95 % of {HEADS.get(table.columns[0], table.columns[0])}", "n", "note")
        grids.append(Grid(table.name + (f" · {part}" if part else ""), head, tuple(rows)))
    return grids
