"""Prints tables as text, Markdown, LaTeX, JSON or HTML: the only place that does."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any

from elench.grid import Cell, Grid

if TYPE_CHECKING:
    from rich.table import Table


def render(grids: Sequence[Grid], notes: Sequence[str], form: str, width: int = 120, content: Any = None) -> str:
    """Several tables and the notes below them; `content` is what the JSON format writes instead of the cells."""
    if form == "json":
        return as_json([_object(grid) for grid in grids] if content is None else content)
    if form == "markdown":
        return "\n".join([*map(_markdown, grids), *(f"* {note}" for note in notes)]) + "\n"
    if form == "latex":
        return "\n".join([*map(_latex, grids), *(f"% {note}" for note in notes)]) + "\n"
    if form == "html":
        return "".join([*map(as_html, grids), *(f'<p class="note">{escape(note)}</p>' for note in notes)])
    return as_text([*grids, *notes], width)


def rich_table(grid: Grid, width: int | None = None) -> Table:
    """The table for a terminal."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    colours = {"good": "green", "bad": "red", "warn": "yellow"}
    title = Text(grid.title) if grid.title else None
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, width=width)
    for k, head in enumerate(grid.header):
        table.add_column(Text(head), justify="right" if grid.side(k) == "r" else "left", overflow="fold")
    for row in grid.rows:
        table.add_row(
            *(Text(str(c), style=colours.get(c.tone, "") if isinstance(c, Cell) else "", overflow="fold") for c in row)
        )
    return table


def as_text(parts: Sequence[Grid | str], width: int = 120) -> str:
    """Tables and the lines between them, as printed in a terminal."""
    from rich.console import Console
    from rich.text import Text

    stream = io.StringIO()
    console = Console(file=stream, width=width, no_color=True, highlight=False)
    for part in parts:
        if isinstance(part, str):
            console.print(Text(part))
            continue
        if part.title:  # a line of its own: rich would wrap it at the width of the table
            console.print(Text(part.title))
        console.print(rich_table(replace(part, title="")))
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


def _object(grid: Grid) -> dict[str, object]:
    return {"title": grid.title, "header": list(grid.header), "rows": [[str(c) for c in row] for row in grid.rows]}


def _markdown(grid: Grid) -> str:
    def cell(c: str | Cell) -> str:
        if isinstance(c, str):
            return c.replace("|", "\\|").replace("\n", " ")
        mark = f"<sup>{c.mark}</sup>" if c.mark else ""
        return cell(c.text) + mark + (f" <small>{cell(c.under)}</small>" if c.under else "")

    def line(cells: Sequence[str | Cell]) -> str:
        return "| " + " | ".join(map(cell, cells)) + " |"

    rule = "|" + "".join("---:|" if grid.side(k) == "r" else "---|" for k in range(len(grid.header)))
    title = [f"**{grid.title}**", ""] if grid.title else []
    return "\n".join([*title, line(grid.header), rule, *map(line, grid.rows), ""])


_TEX: dict[str, str] = {
    "&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "$": r"\$", "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}",
    "−": "$-$", "≤": r"$\leq$", "≥": r"$\geq$", "ρ": r"$\rho$", "τ": r"$\tau$", "–": "--", "\\": r"\textbackslash{}",
    "·": r"$\cdot$", "α": r"$\alpha$", "Δ": r"$\Delta$", "±": r"$\pm$", "²": "$^2$", ">": "$>$", "<": "$<$",
    "…": r"\dots{}", "→": r"$\rightarrow$", "^": r"\textasciicircum{}",
}  # fmt: skip


def _latex(grid: Grid) -> str:
    def safe(text: str) -> str:
        return "".join(_TEX.get(c, c) for c in text)

    def cell(c: str | Cell) -> str:
        if isinstance(c, str):
            return safe(c)
        mark = f"$^{{{c.mark}}}$" if c.mark else ""
        return safe(c.text) + mark + (rf" {{\scriptsize {safe(c.under)}}}" if c.under else "")

    def line(cells: Sequence[str | Cell]) -> str:
        return " & ".join(map(cell, cells)) + r" \\"

    columns = "".join(grid.side(k) for k in range(len(grid.header)))
    caption = [rf"\caption{{{safe(grid.title)}}}"] if grid.title else []
    top = [r"\begin{table}", *caption, rf"\begin{{tabular}}{{{columns}}}", r"\toprule"]
    tail = [r"\bottomrule", r"\end{tabular}", r"\end{table}", ""]
    return "\n".join([*top, line(grid.header), r"\midrule", *map(line, grid.rows), *tail])


def as_html(grid: Grid, kind: str = "") -> str:
    """The table with every cell escaped; `kind` is a class of the page's style sheet."""

    def cell(c: str | Cell) -> str:
        if isinstance(c, str):
            return escape(c)
        mark = f"<sup>{escape(c.mark)}</sup>" if c.mark else ""
        under = f"<br><small>{escape(c.under)}</small>" if c.under else ""
        text = f'<span class="{c.tone}">{escape(c.text)}</span>' if c.tone else escape(c.text)
        return text + mark + under

    sides = [' class="l"' if grid.side(k) == "l" else "" for k in range(len(grid.header))]
    heads = [f' data-h="{escape(h, quote=True)}"' if "wrap" in kind and h else "" for h in grid.header]  # on a phone
    title = f"<caption>{escape(grid.title)}</caption>" if grid.title else ""
    head = "".join(f"<th scope=col{s}>{escape(h)}</th>" for s, h in zip(sides, grid.header, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{s}{h}>{cell(c)}</td>" for s, h, c in zip(sides, heads, row, strict=True)) + "</tr>"
        for row in grid.rows
    )
    top = f"<thead><tr>{head}</tr></thead>" if any(grid.header) else ""
    return f'<div class="scroll {kind}"><table>{title}{top}<tbody>{body}</tbody></table></div>'


def as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"
