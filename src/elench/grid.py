"""The one table type: a title, a header and rows of cells. `elench.show.tables` prints it in every format."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

HEADS = {
    "pearson": "r", "spearman": "ρ", "kendall-b": "τb", "kendall-c": "τc", "accuracy": "acc", "soft-accuracy": "spa",
}  # fmt: skip
"""Column heads of the correlation coefficients."""


@dataclass(frozen=True)
class Cell:
    """A cell with more than plain text."""

    text: str
    mark: str = ""
    """Set as a superscript: the letters of the systems beaten."""
    under: str = ""
    """Smaller, beside or below the text: an interval."""
    tone: str = ""
    """good, bad or warn: its colour on screen; the words must say the same."""

    def __str__(self) -> str:
        parts = [self.text, f"^{self.mark}" if self.mark else "", f"[{self.under}]" if self.under else ""]
        return " ".join(part for part in parts if part)


@dataclass(frozen=True)
class Grid:
    """A table: by default the first column is text, the others are numbers."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str | Cell, ...], ...]
    align: str = ""
    """One letter per column, l or r; missing letters: the first column l, further ones r."""

    def side(self, column: int) -> str:
        """l or r: how a column is aligned."""
        if column < len(self.align):
            return self.align[column]
        return "l" if column == 0 or self.header[column] in ("verdict", "same", "note") else "r"


def number(value: float | None, digits: int = 3) -> str:
    """A coefficient as papers print it (.171); an en dash where there is none."""
    if value is None:
        return "–"
    text = f"{value:.{digits}f}".replace("-", "−")
    return re.sub(r"^(−?)0\.", r"\1.", text)


def limits(low: float | None, high: float | None) -> str:
    """A confidence interval; empty where there is none."""
    return "" if low is None or high is None else f"[{number(low, 2)}, {number(high, 2)}]"


def span(counts: Sequence[int]) -> str:
    """How many, where columns may differ: 40, or 38–40."""
    if not counts:
        return "0"
    return str(counts[0]) if min(counts) == max(counts) else f"{min(counts)}–{max(counts)}"
