"""A replication as tables for the terminal, Markdown, LaTeX or JSON."""

from __future__ import annotations

from dataclasses import asdict

from elench.evaluate.replicate.results import PaperLine, PaperReplication, PaperTable
from elench.grid import HEADS, Grid, limits, number
from elench.show.tables import as_json, render


def show(found: PaperReplication, form: str = "text", width: int = 120) -> str:
    """Ours beside theirs, then the status of every table, and the signatures of what was computed."""
    if form == "json":
        return as_json(asdict(found))
    notes = [f"{found.paper}. Models there: {found.models}."]
    notes += [f"{table.name}: {table.note}" for table in found.tables if table.note and not table.reason]
    notes += [f"signature: {signature}" for signature in found.signatures.values()]
    return render([*(grid for table in found.tables for grid in _grids(table)), _status(found)], notes, form, width)


def _status(found: PaperReplication) -> Grid:
    """Every table and figure of the paper: done, on other data, done elsewhere, or impossible, and why."""
    rows = [(t.name, "not computed" if t.reason else t.status, t.reason or "") for t in found.tables]
    rows += [(name, "elsewhere", how) for name, how in found.elsewhere]
    rows += [(name, "impossible", why) for name, why in found.cannot]
    return Grid("Every table and figure of the paper", ("table", "status", "how, or why not"), tuple(rows), "lll")


def _grids(table: PaperTable) -> list[Grid]:
    grids = []
    for part in dict.fromkeys(line.part for line in table.lines):
        lines = [line for line in table.lines if line.part == part]
        improved = any(line.improved for line in lines)
        header = ["metric"]
        for column in table.columns:
            header += [HEADS.get(column, column), "theirs", *(["form=ours"] if improved else [])]
        rows = [(*_cells(line, table.columns, improved), line.note) for line in lines]
        head = (*header, f"95 % of {HEADS.get(table.columns[0], table.columns[0])}", "n", "note")
        grids.append(Grid(table.name + (f" · {part}" if part else ""), head, tuple(rows)))
    return grids


def _cells(line: PaperLine, columns: tuple[str, ...], improved: bool) -> list[str]:
    """What a line shows, column by column; form=ours beside it where any line of the table has it."""
    cells = [line.label]
    for column in columns:
        cells += [number(line.ours.get(column)), number(line.theirs.get(column))]
        if improved:
            cells.append(number(line.improved.get(column)) if line.improved else "")
    return [*cells, limits(line.low, line.high), str(line.n)]
