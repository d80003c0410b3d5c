"""Simulated raters of known kinds: what each of them would answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elench.errors import UsageError
from elench.perturb.bad_reference import words_of
from elench.study.design.compose import Task
from elench.study.design.criterion import Criterion
from elench.study.design.protocol import Protocol
from elench.study.folder import Study

Array = NDArray[np.float64]

KINDS: dict[str, tuple[bool, str]] = {
    "careful": (True, "reads everything; small errors"),
    "noisy": (True, "reads, but with large errors"),
    "biased": (True, "reads, but rates nearly everything high"),
    "straight": (False, "always gives the same rating"),
    "random": (False, "clicks anywhere, every statement anew"),
    "per-item": (False, "picks a random place per item and uses it for every statement"),
}
"""Kind → (should it be kept?, what it does)."""
MIXTURE = {"careful": 0.25, "noisy": 0.1, "biased": 0.1, "straight": 0.15, "random": 0.3, "per-item": 0.1}
SPREAD = 12.0
"""Points between the best and the worst system; found as .47 in z (the paper's Table 5: .37, which 9 points give)."""


@dataclass(frozen=True)
class Crowd:
    """How many raters of which kind come, and how much each does."""

    shares: Mapping[str, float]
    raters: int
    tasks_per_rater: int

    @staticmethod
    def parse(text: str, raters: int, tasks_per_rater: int) -> Crowd:
        """`careful=0.5,random=0.5`; nothing: the default mixture."""
        if not text.strip():
            return Crowd(MIXTURE, raters, tasks_per_rater)
        shares: dict[str, float] = {}
        for part in text.split(","):
            kind, _, share = part.strip().partition("=")
            if kind not in KINDS:
                raise UsageError(f"--kinds: no kind {kind!r}: there are {', '.join(KINDS)}")
            try:
                shares[kind] = float(share)
            except ValueError:
                raise UsageError(f"--kinds: {part.strip()!r}: write KIND=SHARE, such as careful=0.5") from None
        if min(shares.values()) < 0 or sum(shares.values()) <= 0:
            raise UsageError("--kinds: shares must not be negative, and not all 0")
        return Crowd(shares, raters, tasks_per_rater)

    def draw(self, rng: np.random.Generator) -> list[str]:
        """A kind for every rater: as many of each as its share says, the rest by chance."""
        total = sum(self.shares.values())
        exact = {kind: share / total * self.raters for kind, share in self.shares.items()}
        kinds = [kind for kind, count in exact.items() for _ in range(int(count))]
        left = [count - int(count) for count in exact.values()]
        if missing := self.raters - len(kinds):
            kinds += list(rng.choice(list(exact), missing, p=np.array(left) / sum(left)))
        return [kinds[place] for place in rng.permutation(len(kinds))]


class Truth:
    """The qualities that careful raters would find: of systems, of single outputs, and of their bad references."""

    def __init__(self, study: Study, rng: np.random.Generator, spread: float = SPREAD) -> None:
        self._criteria = study.protocol.criteria
        systems = list(study.systems)
        order = [systems[k] for k in rng.permutation(len(systems))]
        if study.human in order:
            order.remove(study.human)
            order.append(study.human)
        places = np.linspace(-spread / 2, spread / 2, len(order)) if len(order) > 1 else np.zeros(1)
        self.systems = dict(zip(order, places.tolist(), strict=True))
        self._offsets = rng.normal(0, 4, len(self._criteria))
        self._items: dict[tuple[str, str], Array] = {}
        self._drops: dict[str, Array] = {}
        self._rng = rng

    def quality(self, task: Task) -> Array:
        """Items × criteria, on a scale from 0 to 100 before anybody's errors."""
        rows = []
        for item in task.items:
            key = (item.record, item.system)
            if key not in self._items:
                self._items[key] = self._rng.normal(0, 10) + self._rng.normal(0, 6, len(self._criteria))
            row = 60 + self.systems[item.system] + self._offsets + self._items[key]
            if item.kind == "bad":
                if item.text not in self._drops:
                    self._drops[item.text] = np.maximum(0, self._rng.normal(28, 12, len(self._criteria)))
                row = row - self._drops[item.text]
            rows.append(row)
        return np.array(rows)


class SimulatedRater:
    """One rater with habits of their own."""

    def __init__(self, kind: str, rng: np.random.Generator) -> None:
        self.kind, self._rng = kind, rng
        self._shift = rng.normal(0, 8)
        self._line = rng.uniform(0, 100)

    def rate(self, quality: Array) -> Array:
        """Positions from 0 to 100, items × criteria."""
        rng, shape = self._rng, quality.shape
        if self.kind == "careful":
            given = quality + self._shift + rng.normal(0, 12, shape)
        elif self.kind == "noisy":
            given = quality + self._shift + rng.normal(0, 30, shape)
        elif self.kind == "biased":
            given = 85 + 0.35 * (quality - 60) + 0.3 * self._shift + rng.normal(0, 7, shape)
        elif self.kind == "straight":
            given = np.full(shape, self._line)
        elif self.kind == "random":
            given = rng.uniform(0, 100, shape)
        else:
            given = rng.uniform(0, 100, (shape[0], 1)) + rng.normal(0, 5, shape)
        return np.clip(np.rint(given), 0, 100)


def answer_of(criterion: Criterion, position: float) -> str:
    """The answer on a criterion's own scale that lies at a position from 0 (worst) to 100 (best)."""
    if criterion.slider:
        return str(round(position))
    worst_first: Sequence[int] = sorted(range(len(criterion.values)), key=lambda place: criterion.values[place])
    return str(worst_first[min(len(worst_first) - 1, int(position / 100 * len(worst_first)))])


TIE = 3.0
"""Points below which a simulated rater calls two outputs about the same."""


def answers_of(protocol: Protocol, task: Task, positions: Array) -> dict[int, dict[str, str]]:
    """What a rater with these positions (items × measuring criteria) answers: item → criterion → answer."""
    found: dict[int, dict[str, str]] = {place: {} for place in range(len(task.items))}
    for k, criterion in enumerate(protocol.criteria):
        for screen in task.screens:
            given = _screen_answers(criterion, task, screen, positions[list(screen), k])
            for place, answer in zip(screen, given, strict=True):
                found[place][criterion.name] = answer
    return found


def _screen_answers(criterion: Criterion, task: Task, screen: tuple[int, ...], positions: Array) -> list[str]:
    order = [int(place) for place in np.argsort(-positions, kind="stable")]
    size = len(screen)
    if criterion.scale == "preference":
        gap = positions[0] - positions[1]
        return ["0.5", "0.5"] if abs(gap) < TIE else ["1", "0"] if gap > 0 else ["0", "1"]
    if criterion.scale == "ranking":
        return [f"{order.index(k) + 1}/{size}" for k in range(size)]
    if criterion.scale == "best-worst":
        return ["best" if k == order[0] else "worst" if k == order[-1] else "other" for k in range(size)]
    if criterion.scale == "spans":
        words = len(words_of(task.items[screen[0]].text))
        wrong = min(words, round((1 - positions[0] / 100) * words / 2))
        return [f"{','.join(str(n) for n in range(wrong))}/{words}"]
    return [answer_of(criterion, float(positions[0]))]
