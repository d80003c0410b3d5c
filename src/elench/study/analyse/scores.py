"""From kept ratings to system scores: standardised per rater, repeats averaged, bad references left out (eq. 13)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from elench.stats.signed_rank import signed_rank
from elench.study.analyse.rater_agreement import rating_matrix
from elench.study.analyse.sittings import Sitting
from elench.study.design.protocol import Protocol
from elench.study.folder import Study

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Judged:
    """One rater's judgement of one question (or answer): the mean of both when it was shown twice."""

    rater: str
    record: str
    system: str
    unit: str
    """What is drawn together in resampling: the passage."""
    values: tuple[float, ...]
    """One per criterion; NaN where the filter dropped it."""
    shown: int


def kept_sittings(sittings: Sequence[Sitting], passed: Collection[str] | None) -> list[Sitting]:
    """Submitted sittings of the raters that passed (None: of all who did not withdraw)."""
    done = [s for s in sittings if s.state == "submitted" and s.standing != "withdrawn"]
    return [s for s in done if passed is None or s.rater in passed]


def judgements(study: Study, sittings: Sequence[Sitting], standardise: bool, raw: bool = False) -> list[Judged]:
    """Every judgement, as z within its rater or as rated.

    Criteria with different scales are put on one, in percent of each scale, so that they count alike in the overall
    score (not with `raw`).
    z = (r - mu_w) / sigma_w (QAScore eq. 13) with mean and standard deviation over all ratings of the rater: all
    criteria, controls included. That is what the paper's Table 5 shows (its scores do not average to zero, and its
    criteria differ in level). A rater without any variation has no z and is left out.
    """
    names = [criterion.name for criterion in study.protocol.criteria]
    if not (raw or study.protocol.one_scale):
        sittings = [replace(s, values=_percent(study.protocol, s.values)) for s in sittings]
    centre: dict[str, tuple[float, float]] = {}
    if standardise:
        by_rater: dict[str, list[float]] = {}
        for s in sittings:
            by_rater.setdefault(s.rater, []).extend(v for given in s.values.values() for v in given.values())
        centre = {rater: (float(np.mean(all_)), float(np.std(all_))) for rater, all_ in by_rater.items()}
    dropped = _dropped(study, sittings)
    found: list[Judged] = []
    for s in sittings:
        mean, spread = centre.get(s.rater, (0.0, 1.0))
        if spread == 0:
            continue
        together: dict[tuple[str, str], list[list[float]]] = {}
        for place, given in sorted(s.values.items()):
            item = study.by_id[s.task].items[place]
            if not item.scored:
                continue
            row = [
                np.nan
                if name not in given or (s.rater, item.record, item.system, name) in dropped
                else (given[name] - mean) / spread
                for name in names
            ]
            together.setdefault((item.record, item.system), []).append(row)
        for (record, system), rows in together.items():
            table = np.array(rows)
            with_value = np.isfinite(table).sum(axis=0)
            means = np.where(with_value, np.nansum(table, axis=0) / np.maximum(with_value, 1), np.nan)
            found.append(
                Judged(s.rater, record, system, study.passage(record, system), tuple(means.tolist()), len(rows))
            )
    return found


def _percent(protocol: Protocol, values: Mapping[int, Mapping[str, float]]) -> dict[int, dict[str, float]]:
    """Ratings in percent of each criterion's scale."""
    scale = {c.name: (c.low, c.high - c.low) for c in protocol.criteria}
    return {
        place: {name: 100 * (value - scale[name][0]) / scale[name][1] for name, value in given.items()}
        for place, given in values.items()
    }


def _dropped(study: Study, sittings: Sequence[Sitting]) -> set[tuple[str, str, str, str]]:
    """What KPQA's filter takes out: ratings far from the others on the same item."""
    rule = study.protocol.filter
    if rule.kind != "z":
        return set()
    from elench.stats.agreement import z_filter

    gone: set[tuple[str, str, str, str]] = set()
    for criterion in study.protocol.criteria:
        matrix, raters, keys = rating_matrix(study, sittings, criterion.name)
        if matrix.size:
            lost = np.isfinite(matrix) & ~np.isfinite(z_filter(matrix, rule.z, rule.most))
            gone |= {(raters[r], keys[k][0], keys[k][1], criterion.name) for r, k in np.argwhere(lost)}
    return gone


@dataclass(frozen=True)
class JudgementSums:
    """Judgements summed up per unit and system, so that every resampling is a product of matrices."""

    systems: tuple[str, ...]
    units: tuple[str, ...]
    sums: Array
    """units × systems × criteria"""
    counts: Array
    shown: Array
    """Items shown per system, repeats counted: the paper's N."""

    def scores(self, weights: Array | None = None) -> Array:
        """Systems × (criteria…, overall), or draws × … with one row of unit weights per draw; NaN where unrated."""
        w = np.ones((1, len(self.units))) if weights is None else weights
        total = np.tensordot(w, self.sums, (1, 0))
        count = np.tensordot(w, self.counts, (1, 0))
        by_criterion = np.where(count > 0, total / np.maximum(count, 1e-300), np.nan)
        both = np.concatenate([by_criterion, by_criterion.mean(axis=-1, keepdims=True)], axis=-1)
        return both[0] if weights is None else both

    @cached_property
    def unit_means(self) -> Array:
        """units × systems: overall score of a system in one unit; NaN where it has none."""
        means = np.where(self.counts > 0, self.sums / np.maximum(self.counts, 1), np.nan)
        return np.asarray(means.mean(axis=-1))


def tabulate(found: Sequence[Judged], systems: Sequence[str], criteria: int, by: str = "unit") -> JudgementSums:
    """Sum judgements up, per passage (`unit`) or per rater."""
    keys = sorted({getattr(j, by) for j in found})
    place = {key: k for k, key in enumerate(keys)}
    column = {name: k for k, name in enumerate(systems)}
    sums = np.zeros((len(keys), len(systems), criteria))
    counts = np.zeros_like(sums)
    shown = np.zeros(len(systems))
    for j in found:
        values = np.array(j.values)
        there = np.isfinite(values)
        at = place[getattr(j, by)], column[j.system]
        sums[at] += np.where(there, values, 0)
        counts[at] += there
        shown[column[j.system]] += j.shown
    return JudgementSums(tuple(systems), tuple(keys), sums, counts, shown)


def intervals(table: JudgementSums) -> tuple[Array, Array]:
    """95 % t intervals of the scores: jackknife over the passages that a system has, degrees of freedom one fewer.

    Percentiles of a bootstrap cover 82 % with five passages."""
    from scipy.stats import t

    value = table.scores()
    without = table.scores(1 - np.eye(len(table.units)))
    count = (table.counts.sum(axis=2) > 0).sum(axis=0)[:, None]  # passages per system
    moved = np.where(np.isfinite(without), without - value, 0.0)
    own = (table.counts.sum(axis=2) > 0)[:, :, None]
    centre = np.where(own, moved, 0.0).sum(axis=0) / np.maximum(count, 1)
    square = (np.where(own, moved - centre, 0.0) ** 2).sum(axis=0)
    reach = t.ppf(0.975, np.maximum(count - 1, 1)) * np.sqrt((count - 1) / np.maximum(count, 1) * square)
    return value - reach, value + reach


@dataclass(frozen=True)
class RatedPair:
    """Two systems on the same passages."""

    first: str
    second: str
    difference: float
    p: float
    corrected: float
    """Holm over all pairs."""
    n: int
    test: str


def compare_systems(table: JudgementSums, order: Sequence[int]) -> tuple[list[RatedPair], list[str]]:
    """All pairs, best first, and letters: systems that share a letter do not differ significantly (Holm, .05).

    Signed-rank test on the passages that both systems have; rank-sum test where fewer than six are shared.
    """
    from scipy.stats import mannwhitneyu

    from elench.stats.letters import letters
    from elench.stats.significance import holm

    means = table.unit_means
    raw = []
    for a, i in enumerate(order):
        for j in order[a + 1 :]:
            both = np.isfinite(means[:, i]) & np.isfinite(means[:, j])
            gaps = means[both, i] - means[both, j]
            if len(gaps) >= 6:
                p, n, test = signed_rank(gaps, two_sided=True), len(gaps), "signed-rank"
            else:
                own = [means[np.isfinite(means[:, k]), k] for k in (i, j)]
                p, n, test = float(mannwhitneyu(*own).pvalue), min(map(len, own)), "rank-sum"
            raw.append((i, j, p, n, test))
    corrected = holm([row[2] for row in raw])
    overall = table.scores()[:, -1]
    differs = np.zeros((len(order), len(order)), bool)
    rank = {system: k for k, system in enumerate(order)}
    pairs = []
    for (i, j, p, n, test), level in zip(raw, corrected.tolist(), strict=True):
        names = table.systems[i], table.systems[j]
        pairs.append(RatedPair(*names, float(overall[i] - overall[j]), p, level, n, test))
        differs[rank[i], rank[j]] = differs[rank[j], rank[i]] = level < 0.05
    return pairs, letters(differs)
