"""One thing raters are asked: a statement, its scale, and how an answer in a form becomes a number."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

POINTS = {"3-point": 3, "5-point": 5, "7-point": 7, "yes-no": 2}
COMPARATIVE = ("preference", "ranking", "best-worst")
SCALES = ("slider", "choice", *POINTS, *COMPARATIVE, "spans", "text")
TEXT_LIMIT = 4000
PREFIX = "c-"
"""Before every field name of a criterion: a criterion called `action` or `csrf` cannot hide a part of the form."""

Get = Callable[[str], list[str]]
"""All values of a form field."""


class Misranked(ValueError):
    """Places that contradict each other; `key` names the text that tells the rater."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key


@dataclass(frozen=True)
class Criterion:
    """One thing raters judge: a statement and its scale."""

    name: str
    statement: str
    scale: str
    """slider | 3-point | 5-point | 7-point | yes-no | choice | preference | ranking | best-worst | spans | text"""
    labels: tuple[str, ...]
    """The two ends of a slider, or one label per point, in the order shown."""
    values: tuple[float, ...]
    """The number behind each label; a slider has (0, 100), other scales from 0 (worst) to 1 (best)."""
    examples: tuple[str, ...] = ()
    required: bool = True

    @property
    def slider(self) -> bool:
        return self.scale == "slider"

    @property
    def points(self) -> bool:
        """One of several labels is chosen."""
        return self.scale in POINTS or self.scale == "choice"

    @property
    def comparative(self) -> bool:
        """Several outputs are shown at once and compared."""
        return self.scale in COMPARATIVE

    @property
    def measures(self) -> bool:
        """Whether an answer is a number: everything but free text."""
        return self.scale != "text"

    @property
    def field(self) -> str:
        return PREFIX + self.name

    @property
    def low(self) -> float:
        return min(self.values)

    @property
    def high(self) -> float:
        return max(self.values)

    def parse(self, text: str) -> str:
        """The answer of a slider (a position from 0 to 100) or of points (place of the chosen label, from 0)."""
        if not re.fullmatch(r"\d{1,3}", text.strip(), re.ASCII):
            raise ValueError(f"{self.name}: {text[:20]!r} is not a rating")
        answer = int(text)
        if answer > (100 if self.slider else len(self.values) - 1):
            raise ValueError(f"{self.name}: {answer} is not on the scale")
        return str(answer)

    def read(self, get: Get, members: int, words: int = 0) -> list[str] | None:
        """What a form says: one answer per output on the screen; None when it says nothing (complete) yet."""
        if self.scale == "ranking":
            return self._ranks(get, members)
        if self.scale == "best-worst":
            return self._best_worst(get, members)
        given = [value.replace("\0", "") for value in get(self.field) if value.strip()]
        if not given:
            return None
        if self.scale == "text":
            return [given[0].strip()[:TEXT_LIMIT]]
        if self.scale == "preference":
            return {"0": ["1", "0"], "1": ["0.5", "0.5"], "2": ["0", "1"]}[self._one_of(given[0], ("0", "1", "2"))]
        if self.scale == "spans":
            return [self._marked(given, words)]
        return [self.parse(given[0])]

    def value(self, answer: str) -> float | None:
        """The number that a stored answer counts; None for free text."""
        if self.slider:
            return float(answer)
        if self.points:
            return self.values[int(answer)]
        if self.scale == "preference":
            return float(answer)
        if self.scale == "best-worst":
            return {"best": 1.0, "other": 0.5, "worst": 0.0}[answer]
        if self.scale == "ranking":
            rank, _, size = answer.partition("/")
            return (int(size) - int(rank)) / (int(size) - 1)
        if self.scale == "spans":
            marked, _, size = answer.partition("/")
            return 1 - len(marked.split(",")) / int(size) if marked else 1.0
        return None

    def _one_of(self, text: str, choices: tuple[str, ...]) -> str:
        if text not in choices:
            raise ValueError(f"{self.name}: {text[:20]!r} is not one of the choices")
        return text

    def _ranks(self, get: Get, members: int) -> list[str] | None:
        given = [next(iter(get(f"{self.field}-{k}")), "") for k in range(members)]
        if not all(given):
            return None
        if sorted(given) != sorted(str(k + 1) for k in range(members)):
            raise Misranked("rank_once", f"{self.name}: give each place from 1 to {members} once")
        return [f"{rank}/{members}" for rank in given]

    def _best_worst(self, get: Get, members: int) -> list[str] | None:
        best, worst = (next(iter(get(f"{self.field}-{end}")), "") for end in ("best", "worst"))
        if not best or not worst:
            return None
        places = tuple(str(k) for k in range(members))
        if self._one_of(best, places) == self._one_of(worst, places):
            raise Misranked("best_is_worst", f"{self.name}: the best and the worst cannot be the same")
        return ["best" if str(k) == best else "worst" if str(k) == worst else "other" for k in range(members)]

    def _marked(self, given: list[str], words: int) -> str:
        if given == ["none"]:
            return f"/{words}"
        marked = [text for text in given if text != "none"]
        if not all(re.fullmatch(r"\d{1,5}", text, re.ASCII) and int(text) < words for text in marked):
            raise ValueError(f"{self.name}: not a word of the text")
        return f"{','.join(str(n) for n in sorted({int(text) for text in marked}))}/{words}"
