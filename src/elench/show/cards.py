"""The card of a metric: everything a user should know before trusting its number, made from the metric's own class."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

from elench.grid import Grid
from elench.metrics import all_metrics
from elench.metrics.base import Metric
from elench.show.tables import render, rich_table

METRIC_HEADER = ("metric", "judges", "models", "what it measures")


def facts(cls: type[Metric]) -> dict[str, str]:
    """The card's lines by title."""
    low, high = (f"{bound:g}".replace("-inf", "no lower bound").replace("inf", "no upper bound") for bound in cls.range)
    return {
        "judges": ", ".join(cls.judges),
        "reads": ", ".join(cls().reads) or "nothing else",
        "range": f"{low} to {high}, {'higher' if cls.higher_is_better else 'lower'} is better",
        "models": ", ".join(cls().roles) or "none",
        "source": cls.citation,
        "known limits": cls.limits,
    }


def details(cls: type[Metric]) -> str:
    """The docstring below its first line."""
    return "\n".join(inspect.cleandoc(cls.__doc__ or "").splitlines()[1:]).strip()


def parameters(cls: type[Metric]) -> list[tuple[str, str, str]]:
    """(name, default, what it does and which values it takes) of each parameter."""
    rows = []
    shown = cls.with_parameters({})
    defaults = dict(
        part.split("=", 1) for part in shown.spec(full=True).partition("[")[2].rstrip("]").split(",") if part
    )
    for name, default in defaults.items():
        field = next(p for p in cls.parameters() if p.name.rstrip("_") == name)
        choices = ", ".join(str(c) or "(unset)" for c in field.metadata.get("choices", ()))
        rows.append((name, default or "(unset)", field.metadata.get("doc", "") + (f" ({choices})" if choices else "")))
    return rows


def print_list() -> None:
    from rich.console import Console

    console = Console()
    if not console.is_terminal:  # in a pipe every metric stays on one line
        console = Console(width=400)
    rows = tuple(
        (name, " ".join(cls.judges), " ".join(cls().roles) or "–", cls.description())
        for name, cls in all_metrics().items()
    )
    console.print(rich_table(Grid("", METRIC_HEADER, rows, "llll")))


def print_card(cls: type[Metric]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    console.print(Text.assemble((cls.name, "bold"), "  ", cls.description()))
    table = Table(box=None, show_header=False, pad_edge=False)
    for title, text in facts(cls).items():
        table.add_row(title, Text(text))
    console.print(table)
    if details(cls):
        console.print(Text("\n" + details(cls)))
    if parameters(cls):
        console.print(Text("\nparameters", "bold"))
        table = Table(box=None, show_header=False, pad_edge=False)
        for name, default, doc in parameters(cls):
            table.add_row(f"  {name}", Text(default), Text(doc))
        console.print(table)
    console.print(Text("\nexample", "bold"))
    console.print(Text("  " + json.dumps(dict(cls.example), ensure_ascii=False)))


def card_markdown(cls: type[Metric]) -> str:
    lines = [f"# {cls.name}", "", cls.description(), ""]
    lines += [f"- **{title}**: {text}" for title, text in facts(cls).items()]
    if details(cls):
        lines += ["", details(cls)]
    if parameters(cls):
        grid = Grid("", ("parameter", "default", "meaning"), tuple(parameters(cls)), "lll")
        lines += ["", render([grid], [], "markdown").rstrip("\n")]
    lines += [
        "",
        "Example record:",
        "",
        "```json",
        json.dumps(dict(cls.example), ensure_ascii=False, indent=2),
        "```",
        "",
    ]
    return "\n".join(lines)


def write_cards(folder: Path) -> None:
    """One Markdown file per metric, and an index: how docs/metrics is made."""
    folder.mkdir(parents=True, exist_ok=True)
    index = ["# Metrics", "", "Made by `elench metrics --write docs/metrics` from the metrics' own classes.", ""]
    rows = []
    for name, cls in all_metrics().items():
        (folder / f"{name}.md").write_text(card_markdown(cls), encoding="utf-8")
        rows.append((f"[{name}]({name}.md)", ", ".join(cls.judges), ", ".join(cls().roles) or "–", cls.description()))
    table = render([Grid("", METRIC_HEADER, tuple(rows), "llll")], [], "markdown").rstrip("\n")
    (folder / "README.md").write_text("\n".join([*index, table]) + "\n", encoding="utf-8")
