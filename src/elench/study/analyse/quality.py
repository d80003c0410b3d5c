"""Which raters read what they rate: ordinary items against their bad references, and against their repeats."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from elench.stats.signed_rank import signed_rank
from elench.study.analyse.reading import reading_p
from elench.study.analyse.sittings import Sitting, by_rater
from elench.study.folder import Study

DECIDED = {"excluded": False, "withdrawn": False, "readmitted": True}
"""Standings that decide whether a rater's work counts, whatever the filter says."""


@dataclass(frozen=True)
class Verdict:
    """Whether a rater's ratings are kept, and why."""

    rater: str
    tasks: int
    pairs: int
    """Ordinary beside bad reference, as the filter counts them."""
    p: float | None
    passed: bool
    undecided: bool
    """Neither kept nor rejected yet: the rater may take another task."""
    reason: str
    """Why there is no p, else empty."""
    repeat_pairs: int
    repeat_gap: float | None
    """Mean absolute difference between two ratings of the same item, in points of the scale."""
    repeat_r: float | None
    """Correlation of first and second rating of the same items; None when undefined."""


def control_pairs(study: Study, sitting: Sitting, kind: str, pairs: str = "ratings") -> list[tuple[float, float]]:
    """(ordinary, control) of one sitting: one pair per criterion, or one per item with the mean over the criteria."""
    task = study.by_id[sitting.task]
    intact = {
        (i.record, i.system, i.screen): place for place, i in enumerate(task.items) if i.kind in ("ordinary", "check")
    }
    found = []
    for place, item in enumerate(task.items):
        if item.kind != kind:
            continue
        twin = intact[item.record, item.system, item.screen]
        first, second = sitting.values.get(twin, {}), sitting.values.get(place, {})
        both = [(first[name], second[name]) for name in first if name in second]
        if pairs == "items" and both:
            both = [(sum(a for a, _ in both) / len(both), sum(b for _, b in both) / len(both))]
        found += both
    return found


def judge_rater(study: Study, rater: str, sittings: Sequence[Sitting]) -> Verdict:
    """The protocol's filter on all submitted tasks of one rater."""
    how = study.protocol.filter.pairs
    bad = np.array([pair for s in sittings for pair in control_pairs(study, s, "bad", how)], float).reshape(-1, 2)
    repeats = np.array([pair for s in sittings for pair in control_pairs(study, s, "repeat")], float).reshape(-1, 2)
    gap = float(np.abs(repeats[:, 0] - repeats[:, 1]).mean()) if len(repeats) else None
    r = None
    if len(repeats) > 2 and repeats[:, 0].std() > 0 and repeats[:, 1].std() > 0:
        r = float(np.corrcoef(repeats.T)[0, 1])
    rule = study.protocol.filter
    p, passed, undecided, reason = None, True, False, ""
    if not rule.judges_raters:
        reason = "the protocol does not filter raters"
    elif not len(bad):
        passed, reason = False, "no submitted task with bad references"
    else:
        if rule.kind == "permutation":
            p = reading_p(study, rater, sittings)
            passed, undecided = _by_permutation(study, p, sittings)
        else:
            p = signed_rank(bad[:, 0] - bad[:, 1])
            passed = p < rule.alpha
            undecided = not passed and len(sittings) < rule.patience
    standing = sittings[0].standing if sittings else ""
    if standing in DECIDED:  # the researcher's (or the rater's own) word comes before the filter's
        passed, undecided, reason = DECIDED[standing], False, standing
    return Verdict(rater, len(sittings), len(bad), p, passed, undecided, reason, len(repeats), gap, r)


def _by_permutation(study: Study, p: float, sittings: Sequence[Sitting]) -> tuple[bool, bool]:
    """Whether a rater passes; and if not, whether they may go on: too little was seen to reject them."""
    rule = study.protocol.filter
    controls = sum(item.kind == "bad" for s in sittings for item in study.by_id[s.task].items)
    if p < (rule.alpha if controls < 2 * rule.controls else rule.later):
        return True, False
    return False, controls < rule.controls or (p < rule.doubt and controls < 3 * rule.controls)


def judge_raters(study: Study, sittings: Iterable[Sitting]) -> dict[str, Verdict]:
    """A verdict per rater who submitted something."""
    return {rater: judge_rater(study, rater, own) for rater, own in by_rater(list(sittings)).items()}
