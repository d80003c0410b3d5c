"""Tables for the terminal, Markdown and LaTeX, from one description."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from quaestor.meta.evaluation import Evaluation, Row

if TYPE_CHECKING:
    from quaestor.meta.sections import Section

FORMATS = ("text", "markdown", "latex", "json")
HEADS = {"pearson": "r", "spearman": "ρ", "kendall-b": "τb", "kendall-c": "τc", "accuracy": "acc"}


@dataclass(frozen=True)
class Grid:
    """A table of strings: the first column is text, the others are numbers."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def number(value: float | None, digits: int = 3) -> str:
    """A coefficient as papers print it (.171); an en dash where there is none."""
    if value is None:
        return "–"
    text = f"{value:.{digits}f}".replace("-", "−")
    return re.sub(r"^(−?)0\.", r"\1.", text)


def limits(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"[{number(low, 2)}, {number(high, 2)}]"


def render_evaluation(found: Evaluation, form: str = "text", width: int = 120, added: Sequence[Section] = ()) -> str:
    """The outcome of `quaestor meta` in one of the formats."""
    if form == "json":
        return as_json({**found.to_object(), **{section.name: section.content for section in added}})
    grids = evaluation_grids(found) + [grid for section in added for grid in section.grids]
    notes = evaluation_notes(found) + [note for section in added for note in section.notes]
    return render(grids, notes, form, width)


def evaluation_grids(found: Evaluation) -> list[Grid]:
    """For every part: an overview over the dimensions (when there are several), then one table per dimension."""
    grids = []
    for part in dict.fromkeys(row.part for row in found.rows):
        rows = [row for row in found.rows if row.part == part]
        dimensions = list(dict.fromkeys(row.dimension for row in rows))
        where = f" · {part}" if part else ""
        if len(dimensions) > 1:
            grids.append(_overview(found, rows, dimensions, where))
        grids += [_detail(found, [r for r in rows if r.dimension == d], d + where) for d in dimensions]
    return grids


def _overview(found: Evaluation, rows: Sequence[Row], dimensions: Sequence[str], where: str) -> Grid:
    main = found.coefficient
    cells = {(row.metric, row.dimension): row for row in rows}
    metrics = list(dict.fromkeys(row.metric for row in rows))

    def mean(metric: str) -> float | None:
        values = [cells[metric, d].values[main] for d in dimensions]
        numbers = [v for v in values if v is not None]
        return sum(numbers) / len(numbers) if len(numbers) == len(values) else None

    metrics.sort(key=lambda m: -(mean(m) if mean(m) is not None else -2.0))  # type: ignore[operator]
    judged = any(row.p is not None for row in rows)
    body = []
    for metric in metrics:
        own = [cells[metric, d] for d in dimensions]
        shown = [number(r.values[main]) + ("*" if r.p is not None and not r.mark else "") for r in own]
        body.append((_label(own[0]), *shown, number(mean(metric)), _range([r.n for r in own])))
    star = ", * beats the best sanity baseline" if judged else ""
    title = f"{HEADS[main]} at {found.level} level{where}{star}"
    return Grid(title, ("metric", *dimensions, "mean", "n"), tuple(body))


def _detail(found: Evaluation, rows: Sequence[Row], title: str) -> Grid:
    main = found.coefficient
    others = [name for name in found.coefficients if name != main]
    judged = any(row.p is not None for row in rows)
    header = ["metric", HEADS[main], "95 % interval", *(HEADS[name] for name in others), "n", "same"]
    body = []
    for row in rows:
        cells = [number(row.values[main]), limits(row.low[main], row.high[main])]
        cells += [number(row.values[name]) for name in others]
        cells += [str(row.n), row.cluster]
        if judged:
            verdict = "baseline" if row.kind == "sanity" else (row.mark or "beats baselines")
            cells.append(row.reason or verdict)
        elif row.reason:
            cells[-1] = row.reason
        body.append((_label(row), *cells))
    return Grid(title, (*header, "verdict") if judged else tuple(header), tuple(body))


def _label(row: Row) -> str:
    return row.metric if row.kind == "metric" else f"{row.metric} ({row.kind})"


def _range(counts: Sequence[int]) -> str:
    return str(counts[0]) if min(counts) == max(counts) else f"{min(counts)}–{max(counts)}"


def evaluation_notes(found: Evaluation) -> list[str]:
    """What a reader must know beside the numbers."""
    n = {"segment": "n counts records", "group": "n counts groups averaged", "system": "n counts systems"}[found.level]
    notes = [f"{found.source}: {found.records} records; {found.level} level, {n}; intervals: {found.method}."]
    same = f"'same': metrics sharing a letter do not differ in {HEADS[found.coefficient]}"
    notes.append(f"{same} (paired bootstrap, {found.correction} correction, p < {found.alpha:g}).")
    if any(row.p is not None for row in found.rows):
        notes.append(
            "'≤ X': does not beat the best sanity baseline X significantly (a baseline with − counts turned round)."
        )
    elif not any(row.kind == "sanity" for row in found.rows):
        notes.append("There is no sanity baseline in the table, so no metric could be held against one.")
    return notes + list(found.notes)


def render(grids: Sequence[Grid], notes: Sequence[str], form: str, width: int = 120) -> str:
    """Several tables and the notes below them."""
    if form == "markdown":
        return "\n".join([*map(_markdown, grids), *(f"* {note}" for note in notes)]) + "\n"
    if form == "latex":
        return "\n".join([*map(_latex, grids), *(f"% {note}" for note in notes)]) + "\n"
    return _text(grids, notes, width)


def _text(grids: Sequence[Grid], notes: Sequence[str], width: int) -> str:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    stream = io.StringIO()
    console = Console(file=stream, width=width, no_color=True, highlight=False)
    for grid in grids:
        table = Table(title=Text(grid.title), title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
        for k, head in enumerate(grid.header):
            right = k > 0 and head not in ("verdict", "same", "note")
            table.add_column(Text(head), justify="right" if right else "left", no_wrap=k == 0)
        for row in grid.rows:
            table.add_row(*map(Text, row))
        console.print(table)
    for note in notes:
        console.print(Text(note))
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


def _markdown(grid: Grid) -> str:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    rule = "|---|" + "---:|" * (len(grid.header) - 1)
    return "\n".join([f"**{grid.title}**", "", line(grid.header), rule, *map(line, grid.rows), ""])


_TEX: dict[str, str] = {
    "&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "$": r"\$", "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}",
    "−": "$-$", "≤": r"$\leq$", "≥": r"$\geq$", "ρ": r"$\rho$", "τ": r"$\tau$", "–": "--", "\\": r"\textbackslash{}",
    "·": r"$\cdot$", "α": r"$\alpha$", "Δ": r"$\Delta$", "±": r"$\pm$", "²": "$^2$", ">": "$>$", "<": "$<$",
    "…": r"\dots{}",
}  # fmt: skip


def _latex(grid: Grid) -> str:
    def line(cells: Sequence[str]) -> str:
        return " & ".join("".join(_TEX.get(c, c) for c in cell) for cell in cells) + r" \\"

    body = [line(row) for row in grid.rows]
    columns = "l" + "r" * (len(grid.header) - 1)
    caption = "".join(_TEX.get(c, c) for c in grid.title)
    head = [r"\begin{table}", rf"\caption{{{caption}}}", rf"\begin{{tabular}}{{{columns}}}", r"\toprule"]
    tail = [r"\bottomrule", r"\end{tabular}", r"\end{table}", ""]
    return "\n".join([*head, line(grid.header), r"\midrule", *body, *tail])


def as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"
