"""The tables of `elench compare`: systems with the letters of those they beat, and every pair with its interval."""

from __future__ import annotations

from typing import TYPE_CHECKING

from elench.grid import Cell, Grid

if TYPE_CHECKING:
    from elench.evaluate.compare import Comparison, MetricComparison, SystemPair


def system_grid(found: Comparison) -> Grid:
    """Systems × metrics: score, letters of the systems beaten, interval."""
    letters = found.letters()
    rows: list[tuple[str | Cell, ...]] = []
    for system in found.systems:
        row: list[str | Cell] = [letters[system], system]
        for column in found.columns:
            limits = column.intervals[system]
            wins = ",".join(letters[s] for s in column.beaten(system, found.alpha))
            shown = "–" if limits is None else f"{limits[0]:.4f} … {limits[1]:.4f}"
            row.append(Cell(f"{column.scores[system]:.4f}", wins, shown))
        rows.append(tuple(row))
    return Grid("", ("", "system", *(column.metric for column in found.columns)), tuple(rows), "ll")


def pair_grid(column: MetricComparison, test: str, most: int | None) -> Grid:
    """The pairs of one metric, the most significant first."""
    pairs = sorted(column.pairs, key=lambda pair: (pair.corrected, -abs(pair.difference)))
    shown = pairs[:most]
    left = f"; {len(pairs) - len(shown)} more with --pairs" if len(shown) < len(pairs) else ""
    header = ("pair", "difference", "95 % interval", "d", "wins", "p", "Holm", "items")
    title = f"{column.metric}: paired differences ({test}{left})"
    return Grid(title, header, tuple(_row(pair, test) for pair in shown))


def _row(pair: SystemPair, test: str) -> tuple[str, ...]:
    limits = "–" if pair.low is None or pair.high is None else f"{pair.low:+.4f} … {pair.high:+.4f}"
    effect = "–" if pair.effect is None else f"{pair.effect:+.2f}"
    raw = getattr(pair, test)
    names = f"{pair.first} − {pair.second}"
    p, corrected = ("–", "–") if raw is None else (f"{raw:.4f}", f"{pair.corrected:.4f}")
    return names, f"{pair.difference:+.4f}", limits, effect, f"{pair.wins:.0%}", p, corrected, str(pair.n)
