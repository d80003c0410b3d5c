"""Token sequences that begin alike, laid out so that a language model reads their common beginning once.

A row is the common beginning followed by the rest of each member, side by side. Positions and an attention mask see to
it that each rest follows the beginning directly and sees nothing of its neighbours: the numbers are those of reading
every sequence alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from elench.models.tokens import Ints, padded

LEAST = 16
"""Common tokens below which sharing is not worth a mask."""


@dataclass
class PrefixGroup:
    """Members (by number) and how many tokens they have in common at their beginning."""

    common: int
    members: list[int]
    length: int = 0


@dataclass
class Layout:
    """A row as the model reads it."""

    ids: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    branches: list[int] = field(default_factory=list)
    """0 for the common beginning, 1, 2, … for the members' own tokens."""
    starts: list[int] = field(default_factory=list)
    """Where each member's own tokens begin."""


def alike(a: Sequence[int], b: Sequence[int]) -> int:
    """How many tokens two sequences have in common at their beginning."""
    n = min(len(a), len(b))
    return next((i for i in range(n) if a[i] != b[i]), n)


def share(paths: Sequence[Sequence[int]], most: int) -> list[PrefixGroup]:
    """Group sequences where that saves tokens; a row of several members holds at most `most` tokens."""
    rows: list[PrefixGroup] = []
    for i in sorted(range(len(paths)), key=lambda k: (tuple(paths[k]), k)):
        if rows:
            row = rows[-1]
            # in sorted order the last member has most in common with the next sequence
            common = min(row.common, alike(paths[row.members[-1]], paths[i]))
            length = common + sum(len(paths[k]) - common for k in (*row.members, i))
            saves = common * len(row.members) > row.common * (len(row.members) - 1)
            if common >= LEAST and saves and length <= most:
                rows[-1] = PrefixGroup(common, [*row.members, i], length)
                continue
        rows.append(PrefixGroup(len(paths[i]), [i], len(paths[i])))
    return rows


def lay_out(row: PrefixGroup, paths: Sequence[Sequence[int]]) -> Layout:
    """The tokens of a row in reading order."""
    n = row.common
    out = Layout(list(paths[row.members[0]][:n]), list(range(n)), [0] * n)
    for branch, member in enumerate(row.members, 1):
        own = paths[member][n:]
        out.starts.append(len(out.ids))
        out.ids += own
        out.positions += range(n, n + len(own))
        out.branches += [branch] * len(own)
    return out


def place(layout: Layout, row: PrefixGroup, member: int, position: int) -> int:
    """Where in the row a member's token at `position` is."""
    return position if position < row.common else layout.starts[member] + position - row.common


def visibility(layouts: Sequence[Layout]) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Positions, and which tokens a token sees (rows × tokens × tokens): the beginning and its own branch."""
    positions = padded([x.positions for x in layouts])
    branches = padded([x.branches for x in layouts], -1)
    seen = (branches[:, None, :] == branches[:, :, None]) | (branches[:, None, :] == 0)
    seen &= np.tri(branches.shape[1], dtype=bool)
    return positions, seen
