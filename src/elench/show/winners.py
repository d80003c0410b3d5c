"""Who wins, in words: a comparison of systems as sentences and as a table of one line per metric."""

from __future__ import annotations

from elench.evaluate.compare import Comparison, MetricComparison
from elench.grid import Grid

FEW = 30
"""Below this many items a missing difference means little."""


def best_system(column: MetricComparison) -> str:
    sign = 1 if column.higher_is_better else -1
    return max(column.scores, key=lambda system: sign * column.scores[system])


def sentences(found: Comparison) -> list[str]:
    """The outcome in a few sentences, most important first."""
    others = len(found.systems) - 1
    leads: dict[str, list[str]] = {}
    clear: dict[str, list[str]] = {}
    for column in found.columns:
        best = best_system(column)
        leads.setdefault(best, []).append(column.metric)
        if len(column.beaten(best, found.alpha)) == others:
            clear.setdefault(best, []).append(column.metric)
    total = len(found.columns)
    found_sentences = []
    for system in sorted(clear, key=lambda s: -len(clear[s])):
        over = "the other system" if others == 1 else f"all {others} other systems"
        found_sentences.append(f"{system} is significantly better than {over} on {_list(clear[system])}.")
    if not clear:
        found_sentences.append("No system wins: on no metric is one significantly better than every other.")
    counts = sorted(leads.items(), key=lambda item: -len(item[1]))
    if total > 1:
        first, *rest = (f"{system} on {len(metrics)} of {total} metrics" for system, metrics in counts)
        found_sentences.append(f"Best scores: {', '.join([first, *rest])}.")
    few = [column.n for column in found.columns if column.n < FEW]
    if few:
        found_sentences.append(f"With {min(few)} items only very large differences can be seen.")
    return found_sentences


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
        best = best_system(column)
        beaten = column.beaten(best, found.alpha)
        rest = [s for s in column.scores if s != best and s not in beaten]
        direction = "" if column.higher_is_better else " (lower is better)"
        limits = column.intervals[best]
        interval = "" if limits is None else f" [{limits[0]:.3f}, {limits[1]:.3f}]"
        score = f"{column.scores[best]:.3f}{interval}"
        rows.append(
            (column.metric + direction, best, score, ", ".join(beaten) or "–", ", ".join(rest) or "–", str(column.n))
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
