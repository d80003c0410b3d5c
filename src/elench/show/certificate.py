"""A certificate as tables, and as one HTML page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from html import escape
from typing import Any

from elench.evaluate.certify import FEWEST, no_r, reaches
from elench.grid import Cell, Grid, limits, number
from elench.show.page import Section, note, page
from elench.show.tables import as_html


def certificate_grids(content: Mapping[str, Any]) -> list[Grid]:
    """Agreement by dimension; agreement by slice."""
    rows, parts = [], []
    for name, found in content["dimensions"].items():
        ceiling, bias = found["human_ceiling"], found["bias"]
        best = max(found["baselines"].items(), key=lambda item: abs(item[1] or 0.0), default=("–", None))
        passed = reaches(found["r"], content["floor"])
        verdict = "passed" if passed else "no r" if found["r"] is None else "below the floor"
        rows.append(
            (
                name,
                str(found["n"]),
                Cell(number(found["r"]), under=limits(*found["ci95"]).strip("[]")),
                f"{best[0]} {number(best[1])}",
                "yes" if found["beats_baselines"] else "no",
                "–" if ceiling is None else f"{number(ceiling['r'])} ({ceiling['raters']} raters)",
                number(bias.get("length")),
                Cell(verdict, tone="good" if passed else "bad"),
            )
        )
        for by, labels in found["slices"].items():
            for label, one in labels.items():
                parts.append(
                    (name, by, label, str(one["n"]), Cell(number(one["r"]), under=limits(*one["ci95"]).strip("[]")))
                )
    head = (
        "dimension",
        "n",
        "r",
        "best baseline",
        "beats it",
        "human ceiling",
        "length bias",
        f"floor {content['floor']:g}",
    )
    grids = [Grid(f"{content['spec']} against {content['data']['file']}", head, tuple(rows), "lrrlllr")]
    if parts:
        grids.append(Grid("By slice", ("dimension", "by", "part", "n", "r"), tuple(parts), "lllr"))
    return grids


def certificate_notes(content: Mapping[str, Any]) -> list[str]:
    """What the tables do not say."""
    again = content["repeats"]
    notes = [
        f"signature: {content['signature']}",
        f"{content['scored']} records scored, {content['unscored']} unscored",
        "r: Pearson with a 95 % bootstrap interval over groups; human ceiling: a rater against the mean of the others",
        "beats it: significantly above every sanity baseline; floor: of r itself, not of the lower end of its interval",
        "length bias: correlation of the text's length with what the rating does not explain of the score",
        f"scored twice: {again['n']} records, largest difference {_plain(again['largest_difference'])}",
        f"sha256 {content['sha256']}",
    ]
    if learned := content.get("learned_from"):
        notes.append(f"{learned} records left out: the profile learned from the same texts")
    if content["position_bias"] is not None:
        notes.append(f"position bias: the text is preferred by {content['position_bias']:+.3f} when shown first")
    for name, found in content["dimensions"].items():
        if found["human_ceiling"] is None:
            notes.append(f"{name}: no human ceiling, which needs `ratings` of {FEWEST} records by at least two people")
        if not found["slices"]:
            notes.append(f"{name}: no slices, because none has {FEWEST} rated records")
        if found["r"] is None:
            notes.append(f"{name}: no r: {no_r(found)}")
        if systems := found["bias"].get("systems"):
            up, down = _shift(*systems["favoured"]), _shift(*systems["disfavoured"])
            notes.append(f"{name}: favours {up}, disfavours {down}; chance, where n is small")
    return notes


def _shift(system: str, shift: float, n: int | None = None) -> str:
    """How far a system's scores lie above what its ratings explain; earlier certificates do not say n."""
    return f"{system} ({shift:+.2f} sd{'' if n is None else f', n = {n}'})"


def _plain(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def certificate_html(content: Mapping[str, Any]) -> str:
    """One self-contained page."""
    verdict = "passed" if content["passed"] else "not passed"
    tables = [
        Section(grid.title or "Agreement", as_html(replace(grid, title=""))) for grid in certificate_grids(content)
    ]
    notes = Section("Notes", "".join(note(line) for line in certificate_notes(content)))
    title = f"Certificate: {content['spec']}"
    return page(title, f"{verdict}; floor {content['floor']:g}; {escape(content['data']['file'])}", [*tables, notes])
