"""What is drawn together: the groups, systems and raters of a file, found once and used by every command.

Records about one context (`group`) resemble each other, and so do records of one system or ratings of one rater. A
resampling that draws single records takes them as independent and promises too much. The plan says what is drawn:
groups by default; groups and systems where the question is about systems; a record without a group is its own group.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

FEW_GROUPS, FEW_SYSTEMS = 10, 20
"""Below these the intervals and p-values of a resampling are only roughly right."""
FEWEST_UNITS = 5
"""Fewer units to draw from than this give no interval and no verdict: four points often lie on a line by chance."""


def codes(labels: Sequence[Hashable]) -> Ints:
    """Labels as 0, 1, 2 … in order of appearance."""
    seen: dict[Hashable, int] = {}
    return np.array([seen.setdefault(label, len(seen)) for label in labels], dtype=np.int64)


@dataclass(frozen=True)
class ResamplingPlan:
    """Which records are drawn together, and what is drawn."""

    group: Ints
    """Each record's group (its own number where it has none)"""
    system: Ints
    """Each record's system; all 0 where systems are not named"""
    grouped: bool
    """Do any two records share a group?"""
    over: tuple[str, ...] = ("groups",)
    """groups, systems, or both"""
    single: str = "records"
    """What a unit without a group is called"""

    @property
    def groups(self) -> int:
        return int(self.group.max(initial=-1)) + 1

    @property
    def systems(self) -> int:
        return int(self.system.max(initial=-1)) + 1

    @property
    def crossed(self) -> bool:
        """Do most groups hold records of several systems (crossed), or of one (nested)?"""
        cells = len(np.unique(self.group * (self.systems + 1) + self.system))
        return self.groups > 0 and cells > 1.5 * self.groups

    def describe(self, effective: float | None = None) -> str:
        """The plan in one line."""
        n = len(self.group)
        groups = f"{self.groups} groups" if self.grouped else f"{self.groups} {self.single}"
        drawn = {"groups": groups, "systems": f"{self.systems} systems"}
        text = "resampling " + " × ".join(drawn[kind] for kind in self.over)
        if self.grouped and "groups" in self.over:
            text += (
                f" ({n} {self.single}{', systems crossed with groups' if self.crossed and self.systems > 1 else ''})"
            )
        return text if effective is None else f"{text}; effective n ≈ {effective:.0f}"

    def warnings(self) -> list[str]:
        """What makes the resampling itself uncertain."""
        found = []
        unit = "groups" if self.grouped else self.single
        if "groups" in self.over and self.groups < FEW_GROUPS:
            found.append(f"Only {self.groups} {unit}: intervals and p-values are rough below {FEW_GROUPS}.")
        if "systems" in self.over and self.systems < FEW_SYSTEMS:
            found.append(f"Only {self.systems} systems: intervals and p-values are rough below {FEW_SYSTEMS}.")
        return found

    def effective_n(self, values: npt.ArrayLike) -> float | None:
        """How many independent records would give the mean of `values` the same standard error (at most n).

        Variance by the units drawn; for groups and systems together the two variances minus that of single records
        (Cameron, Gelbach & Miller 2011)."""
        column = np.asarray(values, dtype=np.float64)
        known = np.isfinite(column)
        n = int(known.sum())
        if n < 2 or np.ptp(column[known]) == 0:
            return None
        rest = np.where(known, column - column[known].mean(), 0.0)
        alone = float((rest**2).sum()) * n / (n - 1)
        unit = {"groups": self.group, "systems": self.system}
        spread = [_clustered(rest, unit[kind]) for kind in self.over]
        total = sum(spread) - (alone if len(spread) > 1 else 0.0)
        return float(min(n, n * alone / max(total, *spread, 1e-300)))


def _clustered(rest: Array, unit: Ints) -> float:
    sums = np.bincount(unit, rest)
    count = len(np.unique(unit[rest != 0])) if len(rest) else 0
    return float((sums**2).sum()) * count / max(1, count - 1)


def resampling_plan(
    groups: Sequence[str | None],
    systems: Sequence[str | None],
    over: Sequence[str] = ("groups",),
    single: str = "records",
) -> ResamplingPlan:
    """The plan of a file from its records' `group` and `system`."""
    labels = [f"g{group}" if group is not None else k for k, group in enumerate(groups)]
    group = codes(labels)
    grouped = int(group.max(initial=-1)) + 1 < len(group)
    return ResamplingPlan(group, codes(list(systems)), grouped, tuple(over), single)
