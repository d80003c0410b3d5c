"""Packing requests into batches: like lengths together, a bounded number of tokens in each."""

from __future__ import annotations

from collections.abc import Sequence


def pack(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Indices grouped so that (longest × count) of each group stays within `budget`; a longer item has its own."""
    groups: list[list[int]] = []
    longest = 0
    for i in sorted(range(len(lengths)), key=lambda k: (-lengths[k], k)):
        if groups and longest * (len(groups[-1]) + 1) <= budget:
            groups[-1].append(i)
        else:
            groups.append([i])
            longest = max(lengths[i], 1)
    return groups
