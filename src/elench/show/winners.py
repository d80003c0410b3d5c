"""Who wins, in words: a comparison of systems as sentences and as a table of one line per metric."""

from __future__ import annotations

import math
from collections.abc import Sequence

from elench.evaluate.compare import Comparison, MetricComparison
from elench.grid import Grid

MOST = 5
"""Systems named in one place; of more their number is given."""
FEW = 30
"""Below this many items a missing difference means little."""


def best_systems(column: MetricComparison) -> list[str]:
    """The system with the best score, or all that have the same best score."""
    best = (max if column.higher_is_better else min)(column.scores.values())
    return [system for system, score in column.scores.items() if math.isclose(score, best, rel_tol=0, abs_tol=1e-9)]


def sentences(found: Comparison) -> list[str]:
    """The outcome in a few sentences, most important first."""
    others = len(found.systems) - 1
    leads: dict[str, list[str]] = {}
    clear: dict[str, list[str]] = {}
    tied: list[str] = []
    for column in found.columns:
        best, *also = best_systems(column)
        if also:
            tied.append(column.metric)
            continue
        leads.setdefault(best, []).append(column.metric)
        if len(column.beaten(best, found.alpha)) == others:
            clear.setdefault(best, []).append(column.metric)
    total = len(found.columns)
    found_sentences = []
    for system in sorted(clear, key=lambda s: -len(clear[s])):
        over = {1: "the other system", 2: "both other systems"}.get(others, f"all {others} other systems")
        found_sentences.append(f"{system} is significantly better than {over} on {_list(clear[system])}.")
    if not clear:
        found_sentences.append("No system wins: on no metric is one significantly better than every other.")
    counts = sorted(leads.items(), key=lambda item: -len(item[1]))
    if total > 1:
        parts = [f"{system} on {len(metrics)}" for system, metrics in counts[:MOST]]
        parts += ["others on the rest"] if len(counts) > MOST else []
        parts += [f"several systems alike on {_list(tied)}"] if tied else []
        found_sentences.append(f"Best score, of {total} metrics: {', '.join(parts)}.")
    few = [column.n for column in found.columns if column.n < FEW]
    if few:
        found_sentences.append(f"With {min(few)} items only very large differences can be seen.")
    return found_sentences


def _systems(names: Sequence[str], total: int) -> str:
    """Names of systems for a cell; a number where they are many."""
    if len(names) > 1 and len(names) == total - 1:
        return "both others" if len(names) == 2 else f"all {len(names)} others"
    return f"{len(names)} others" if len(names) > MOST else ", ".join(names) or "–"


def _list(names: list[str], most: int = 6) -> str:
    if len(names) > most:
        return f"{len(names)} metrics ({', '.join(names[:most])} …)"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def how_tested(found: Comparison) -> str:
    counts = [column.n for column in found.columns]
    n = str(counts[0]) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    return (
        f"Significant: paired {found.test} test, two-sided, p < {found.alpha:g} after Holm's correction over all pairs "
        f"of systems; n = {n} items that all systems have."
    )


def winner_grid(found: Comparison) -> Grid:
    """One line per metric: who leads, by how much, and whom the leader does and does not beat."""
    rows = []
    for column in found.columns:
        best, *also = best_systems(column)
        beaten = column.beaten(best, found.alpha)
        rest = [s for s in column.scores if s != best and s not in beaten]
        names = f"{best} and {_systems(also, len(column.scores))}" if also else best
        direction = "" if column.higher_is_better else " (lower is better)"
        limits = column.intervals[best]
        interval = "" if limits is None else f" [{limits[0]:.3f}, {limits[1]:.3f}]"
        score = f"{column.scores[best]:.3f}{interval}"
        rows.append(
            (
                column.metric + direction,
                names,
                score,
                _systems(beaten, len(column.scores)),
                _systems(rest, len(column.scores)),
                str(column.n),
            )
        )
    header = (
        "metric",
        "best score",
        "score [95 % interval]",
        "significantly better than",
        "no clear difference from",
        "n",
    )
    return Grid("", header, tuple(rows), "lllllr")
