"""The leaderboard: one page per question a user has, made from the JSON of `elench bench`."""

from __future__ import annotations

import math
from collections.abc import Container
from pathlib import Path
from typing import Any

from elench.evaluate.bench import best_first
from elench.grid import Cell, Grid, limits, number
from elench.show.plots import drawing, shortened, text
from elench.show.tables import render

SVG = "http://www.w3.org/2000/svg"
PAGES = {
    "question": ("which-metric-for-questions", "Which metric for my generated questions?"),
    "answer": ("which-metric-for-answers", "Which metric for my answers?"),
    "summary": ("which-metric-for-summaries", "Which metric for my summaries?"),
}


def write_pages(content: dict[str, Any], folder: Path, stale: Container[str]) -> list[Path]:
    """Markdown pages with their plots; those without entries are left out. stale: signatures of outdated figures."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for judge, (name, title) in PAGES.items():
        entries = [e for e in content["entries"] if e["judge"] == judge]
        if not entries:
            continue
        tables: dict[tuple[str, int], list[dict[str, Any]]] = {}
        for entry in entries:
            tables.setdefault((entry["file"], -entry["records"]), []).append(entry)
        grids = [_grid(tables[key], stale) for key in sorted(tables)]
        plot = folder / f"{name}.svg"
        alone = _plot(entries).replace("<svg ", f'<svg xmlns="{SVG}" font-family="sans-serif" font-size="10" ', 1)
        plot.write_text(alone + "\n", encoding="utf-8")
        body = render(grids, _notes(content, entries), "markdown")
        head = f"# {title}\n\nMade by `elench bench`; do not edit.\n\n![agreement against cost]({plot.name})\n\n"
        page = folder / f"{name}.md"
        page.write_text(head + body.rstrip() + "\n", encoding="utf-8")
        written.append(page)
    return written


def _grid(entries: list[dict[str, Any]], stale: Container[str]) -> Grid:
    """One file, or a sample of it."""
    file, records, of = (entries[0].get(name) for name in ("file", "records", "of"))
    title = f"{file}, {records} records" if of in (records, None) else f"{file}, {records} of {of} records"
    dimensions = list(dict.fromkeys(e["dimension"] for e in entries))
    rows = []
    for spec, _, own, mean in best_first(entries):
        by_dimension = {e["dimension"]: e for e in own}
        cells: list[str | Cell] = [spec + _remarks(own[0], own[0]["signature"] in stale)]
        for dimension in dimensions:
            entry = by_dimension.get(dimension, {})
            cells.append(Cell(number(entry.get("r")), under=limits(entry.get("low"), entry.get("high")).strip("[]")))
        seconds = own[0]["seconds_per_record"]
        cells += [number(mean), str(max(e["n"] for e in own)), "–" if seconds is None else f"{1000 * seconds:.3g}"]
        rows.append(tuple(cells))
    return Grid(title, ("metric", *dimensions, "mean", "n", "ms"), tuple(rows))


def _remarks(entry: dict[str, Any], stale: bool) -> str:
    said = {"peer": entry["kind"] == "peer", "stale": stale, "learned here": entry.get("learned_here", False)}
    return "".join(f" ({word})" for word, holds in said.items() if holds)


def _notes(content: dict[str, Any], entries: list[dict[str, Any]]) -> list[str]:
    commits = sorted({e["commit"] for e in entries if e["commit"]})
    notes = [
        "Pearson's r at segment level, 95 % bootstrap interval over groups; mean: of |r| over the dimensions; "
        "ms: CPU time per record without cached answers (wall time where a server answers).",
        "learned here: the profile learned from this file, so its figure is not an independent test.",
        f"elench {content['elench']}, commit {', '.join(commits) or 'unknown'}.",
    ]
    if any(e["records"] < e.get("of", 0) for e in entries):
        notes.append(
            "“N of M records”: a random sample of the file, whole groups. Compare figures within a table only."
        )
    files = {e["file"] for e in entries}
    if left := [name for name in content.get("not_run", ()) if name.split()[0] in files]:
        notes.append(f"Not measured, because the time given ran out: {_first(left)}.")
    return notes


def _first(names: list[str], most: int = 20) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _plot(entries: list[dict[str, Any]], width: int = 640, height: int = 360) -> str:
    """Mean agreement over all files and dimensions against the time per record, on a logarithmic scale."""
    points = []
    for spec, kind, own, mean in best_first([e for e in entries if e["kind"] == "metric"]):
        seconds = [e["seconds_per_record"] for e in own if e["seconds_per_record"]]
        if kind == "metric" and seconds:
            points.append((spec, 1000 * sum(seconds) / len(seconds), mean))
    if not points:
        return drawing(width, height, "no metric measured", [])
    low, high = (math.log10(f(max(p[1], 0.01) for p in points)) for f in (min, max))
    top = max(p[2] for p in points) or 1.0

    def place(ms: float, value: float) -> tuple[float, float]:
        share = (math.log10(max(ms, 0.01)) - low) / max(high - low, 1e-9)
        return 50 + share * (width - 190), height - 40 - (height - 60) * value / top

    parts = [f'<path d="M50 20V{height - 40}H{width - 20}" fill="none" stroke="#888"/>']
    parts += [text(width / 2, height - 8, "milliseconds per record (logarithmic)", "middle", "small")]
    parts += [text(8, 14, "mean |r|", "start", "small")]
    for power in range(math.ceil(low), math.floor(high) + 1):
        parts.append(text(place(10.0**power, 0)[0], height - 24, f"{10.0**power:g}", "middle", "small"))
    for k, (spec, ms, value) in enumerate(points):
        x, y = place(ms, value)
        parts.append(f'<circle class="mark" fill="#1f5fbf" cx="{x:.1f}" cy="{y:.1f}" r="3"/>')
        if k < 12:
            parts.append(text(x + 5, y + 3, f"{shortened(spec, 24)} {value:.2f}", "start", "small"))
    return drawing(width, height, "agreement of each metric against its cost", parts)
