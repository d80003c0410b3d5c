"""Signs that a rater may not have read: shown to the researcher, who decides. A flag alone excludes nobody."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, median

from elench.study.analyse.quality import Verdict
from elench.study.analyse.sittings import Sitting
from elench.study.folder import Study


@dataclass(frozen=True)
class Habits:
    """How a rater works."""

    seconds: float | None
    """Median time per item: in view as the browser tells, else time of the task over its items."""
    straight: float | None
    """Share of ratings equal to the rater's most frequent one."""
    mean: float | None
    """Mean of the ordinary ratings, as a share of the scale: how mild the rater is."""
    changes: int
    flags: tuple[str, ...]


def habits(study: Study, sittings: Sequence[Sitting], verdict: Verdict | None) -> Habits:
    """Speed, straight-lining, repeats and mildness of one rater over their submitted tasks."""
    rule = study.protocol.flags
    seconds = _seconds(sittings)
    counts = Counter((name, value) for s in sittings for given in s.values.values() for name, value in given.items())
    total = Counter(name for name, _ in counts.elements())
    straight = None
    if total:
        top = {name: max(n for (other, _), n in counts.items() if other == name) for name in total}
        straight = sum(top.values()) / sum(total.values())
    flags = []
    if seconds is not None and seconds < rule.seconds:
        flags.append(f"fast: {seconds:.1f} s per item")
    if straight is not None and straight > rule.straight:
        flags.append(f"straight-lining: {100 * straight:.0f} % equal ratings")
    if verdict is not None and verdict.repeat_r is not None and verdict.repeat_r < rule.repeat_r:
        flags.append(f"inconsistent: repeats correlate at {verdict.repeat_r:.2f}")
    changes = sum(s.changes for s in sittings)
    return Habits(seconds, straight, _mildness(study, sittings), changes, tuple(flags))


def _seconds(sittings: Sequence[Sitting]) -> float | None:
    seen = [value for s in sittings for value in s.seconds.values()]
    if not seen:
        seen = [60 * s.minutes / max(1, len(s.values)) for s in sittings if s.minutes is not None]
    return median(seen) if seen else None


def _mildness(study: Study, sittings: Sequence[Sitting]) -> float | None:
    scale = {c.name: (c.low, c.high) for c in study.protocol.criteria}
    shares = [
        (value - scale[name][0]) / (scale[name][1] - scale[name][0])
        for s in sittings
        for place, given in s.values.items()
        if study.by_id[s.task].items[place].scored
        for name, value in given.items()
    ]
    return mean(shares) if shares else None
