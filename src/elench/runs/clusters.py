"""Scores summed by cluster while a run streams by, which an honest interval of a mean needs.

Records about one context (`group`) resemble each other, and so do the outputs of several systems for one item. So a
record's cluster is its group or, without one, its id; a mean varies as much as the sums of its clusters do.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from elench.stats.resampling_plan import FEW_GROUPS, FEWEST_UNITS

MOST = 10_000
"""Clusters kept apart. Later ones join these at random, which keeps the interval valid and the memory bounded."""


class Interval(NamedTuple):
    """The 95 % t interval of a mean over clusters."""

    limits: list[float] | None
    clusters: int
    effective: float | None
    """How many independent records would give the same standard error (at most n)"""
    text: str
    """The method, what counts as independent, and what is missing, in a line"""


class Clusters:
    """Per metric, system and cluster: the number of scores and their sum, from which `interval` follows."""

    def __init__(self) -> None:
        self.place: dict[str, int] = {}
        self.sums: dict[tuple[str, str | None], dict[int, tuple[int, float]]] = {}
        """(metric, system) → cluster → n and the sum of score - shift"""
        self.shift: dict[str, float] = {}
        """The first score of each metric, taken off so that sums keep their digits at large offsets"""
        self.grouped = False
        """Did any record have a group?"""
        self._kept = 0
        self._changed: dict[tuple[str, str | None], set[int]] = {}

    def at(self, group: str | None, id: str) -> int:
        """The cluster of a record."""
        self.grouped = self.grouped or group is not None
        key = f"i{id}" if group is None else f"g{group}"
        place = self.place.get(key)
        if place is None:
            full = len(self.place) >= MOST
            place = zlib.crc32(key.encode(errors="replace")) % MOST if full else len(self.place)
            if not full:
                self.place[key] = place
        return place

    def add(self, spec: str, system: str | None, place: int, value: float) -> None:
        shift = self.shift.setdefault(spec, value)
        own = self.sums.setdefault((spec, system), {})
        n, total = own.get(place, (0, 0.0))
        own[place] = (n + 1, total + value - shift)
        self._changed.setdefault((spec, system), set()).add(place)

    def changes(self) -> dict[str, Any]:
        """What is new since the last call, as JSON; `restore` takes all of them in order."""
        new = list(self.place)[self._kept :]
        sums = [
            [spec, system, {str(k): self.sums[spec, system][k] for k in sorted(places)}]
            for (spec, system), places in self._changed.items()
        ]
        self._kept, self._changed = len(self.place), {}
        return {"new": new, "sums": sums, "shift": self.shift, "grouped": self.grouped}

    def restore(self, changes: dict[str, Any]) -> None:
        for key in changes["new"]:
            self.place[key] = len(self.place)
        for spec, system, own in changes["sums"]:
            kept = self.sums.setdefault((spec, system), {})
            kept.update({int(k): (n, total) for k, (n, total) in own.items()})
        self.shift, self.grouped, self._kept = changes["shift"], changes["grouped"], len(self.place)

    def interval(
        self, spec: str, system: str | None, mean: float, spread: float, limits: tuple[float, float]
    ) -> Interval:
        """Of the mean of one system's scores (None: of all); `spread` is their sum of squared deviations."""
        own: dict[int, tuple[int, float]] = {}
        for (name, of), sums in sorted(self.sums.items(), key=lambda item: str(item[0])):  # a resumed run adds alike
            if name == spec and system in (None, of):
                for place, (count, total) in sums.items():
                    n, so_far = own.get(place, (0, 0.0))
                    own[place] = (n + count, so_far + total)
        count, n = len(own), sum(k for k, _ in own.values())
        what = f"{n} record{'s' * (n != 1)}"
        if len(self.place) >= MOST:
            what += f" in {count} random batches"
        elif count < n:
            noun = "group" if self.grouped else "item"
            what = f"{count} {noun}{'s' * (count != 1)} ({n} record{'s' * (n != 1)})"
        if count < FEWEST_UNITS:
            return Interval(None, count, None, f"no interval: {what}, at least {FEWEST_UNITS} needed")
        centre = mean - self.shift[spec]
        square = math.fsum((total - k * centre) ** 2 for k, total in own.values()) / n**2 * count / (count - 1)
        if spread <= 1e-24 * n * max(1.0, mean**2):
            return Interval(None, count, None, f"no interval: {what}, all scores are equal")
        from scipy.stats import t

        effective = min(float(n), spread / (n - 1) / square) if square > 0 else float(n)
        half = float(t.ppf(0.975, count - 1)) * math.sqrt(square)
        text = f"95 % t interval of the mean over {what}"
        if count < FEW_GROUPS:
            text += f"; rough below {FEW_GROUPS}"
        return Interval([max(limits[0], mean - half), min(limits[1], mean + half)], count, effective, text)


def interval_lines(means: Iterable[Mapping[str, Any]]) -> list[str]:
    """How the intervals of some means were made, each method in one line with its effective n."""
    effective: dict[str, list[float]] = {}
    for found in means:
        if "interval" in found:
            known = effective.setdefault(found["interval"], [])
            known += [] if found["effective_n"] is None else [found["effective_n"]]
    lines = []
    for text, known in effective.items():
        low, high = (f"{f(known):.0f}" if known else "" for f in (min, max))
        lines.append(text + (f"; effective n ≈ {low if low == high else f'{low}–{high}'}" if known else ""))
    return lines
