"""Files with a known truth, and one claim for each number that a command prints with an interval, letters or a p-value.

A claim is one simulated run: 1 for a false alarm (or a covered truth), 0 for none, NaN for undefined.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations

import numpy as np

from elench.evaluate.judgements import Judgements
from elench.metrics.base import Score
from elench.records.record import Record
from elench.runs.summary import Outcome, Summary
from elench.stats.agreement import alpha_interval
from elench.stats.correlation import correlate
from elench.stats.estimation import prediction_powered
from elench.stats.levels import SOFT, values_of
from elench.stats.mixed import mixed_model
from elench.stats.pairwise import soft_accuracy
from elench.stats.preference import agreement
from elench.stats.roc import area_and_influence, area_interval, equal_areas
from elench.stats.significance import (
    Design,
    bootstrap_difference,
    holm,
    permutation_difference,
    williams_difference,
)
from elench.stats.totals import Totals, bootstrap_t, exchange_test
from elench.study.analyse.scores import Judged, compare_systems, intervals, tabulate
from elench.study.analyse.sequential import Bets

Claim = Callable[[np.random.Generator, int], float]


def totals(rng: np.random.Generator, groups: int, each: int, alike: float) -> Totals:
    """Two equally good systems, scores in fifths (ties), differences alike within a group."""
    gap = np.repeat(rng.normal(size=groups), each) * alike**0.5 + rng.normal(size=groups * each) * (1 - alike) ** 0.5
    base = rng.normal(size=groups * each)
    scores = [np.round(5 / (1 + np.exp(-(base + side * gap)))) / 5 for side in (1, -1)]
    sums = [np.stack([s.reshape(groups, each).sum(axis=1), np.full(groups, float(each))], axis=1) for s in scores]
    return Totals(np.stack(sums, axis=1))


def exchange(groups: int, each: int, alike: float) -> Claim:
    return lambda rng, k: exchange_test(totals(rng, groups, each, alike), 0, 1, 400, k) < 0.05


def difference(groups: int, each: int, alike: float) -> Claim:
    def run(rng: np.random.Generator, k: int) -> float:
        found = bootstrap_t(totals(rng, groups, each, alike), np.array([[1.0, -1.0]]), 400, k)[0]
        return math.nan if found.low is None or found.high is None else found.low <= 0 <= found.high

    return run


def any_pair(groups: int, each: int, systems: int) -> Claim:
    """The letters of `compare`: any pair of equally good systems called different, after Holm."""

    def run(rng: np.random.Generator, k: int) -> float:
        item = np.repeat(rng.normal(size=(groups, systems)) * 0.6, each, axis=0)
        scores = np.round(2 * (item + rng.normal(size=item.shape))).reshape(groups, each, systems)
        found = Totals(np.stack([scores.sum(axis=1), np.full((groups, systems), float(each))], axis=2))
        p = [exchange_test(found, i, j, 400, k) for i, j in combinations(range(systems), 2)]
        return float(holm(p).min() < 0.05)

    return run


def system_score(groups: int, each: int, alike: float) -> Claim:
    """The interval of one system's mean in `compare`; the mean over many files is the truth."""
    many = [totals(np.random.default_rng([9, k]), 2000, each, alike).values()[0] for k in range(20)]
    truth = float(np.mean(many))

    def run(rng: np.random.Generator, k: int) -> float:
        found = bootstrap_t(totals(rng, groups, each, alike), np.array([[1.0, 0.0]]), 400, k)[0]
        return math.nan if found.low is None or found.high is None else found.low <= truth <= found.high

    return run


def drawn_test(groups: int, each: int, alike: float) -> Claim:
    def run(rng: np.random.Generator, k: int) -> float:
        found = bootstrap_t(totals(rng, groups, each, alike), np.array([[1.0, -1.0]]), 400, k)[0]
        return math.nan if found.p is None else float(found.p < 0.05)

    return run


def judged(
    rng: np.random.Generator, items: int, systems: int, bias: float, gaps: float = 0.0, fixed: bool = False,
    inside: float = 0.8,
) -> Judgements:  # fmt: skip
    """Two metrics that agree equally well with people; each errs on whole items and, with `bias`, on whole systems.
    `fixed`: the same systems in every run, as a resampling of items alone assumes. `inside`: how much outputs differ in
    quality beyond item and system; with 0 a metric hardly works inside an item."""
    n = items * systems
    drawn = np.random.default_rng(5) if fixed else rng
    item, system = np.repeat(rng.normal(size=items), systems), np.tile(drawn.normal(size=systems) * 0.5, items)
    quality = item + system + inside * rng.normal(size=n)
    human = np.clip(np.round(3 + 0.8 * (quality + 0.8 * rng.normal(size=n))), 1, 5)
    scores = np.stack(
        [
            0.7 * quality + np.tile(rng.normal(size=systems) * bias, items)
            + np.repeat(rng.normal(size=items) * 0.5, systems) + rng.normal(size=n)
            for _ in range(2)
        ],
        axis=1,
    )  # fmt: skip
    scores[rng.random(scores.shape) < gaps] = np.nan
    records = [Record(id=str(k), group=str(k // systems), system=str(k % systems)) for k in range(n)]
    return Judgements(records, ("a", "b"), scores, dict.fromkeys("ab", "metric"), ("q",), human[:, None])


def letters(level: str, name: str, items: int, systems: int, bias: float, gaps: float = 0.0) -> Claim:
    def run(rng: np.random.Generator, k: int) -> float:
        found = correlate(judged(rng, items, systems, bias, gaps), level, draws=200, seed=k, coefficients=(name,))
        return float(found.gap_ps([(0, 1)], 0, name)[0] < 0.05)

    return run


def duel(by: str, name: str, items: int, systems: int, level: str = "segment", bias: float = 0.0) -> Claim:
    """`meta --compare`: the permutation by groups (at system level by systems), or the paired bootstrap."""

    def run(rng: np.random.Generator, k: int) -> float:
        table = judged(rng, items, systems, bias)
        columns = table.human[:, 0], table.scores[:, 0], table.scores[:, 1]
        design = Design(level, table.items, table.systems)
        test = permutation_difference if by == "permutation" else bootstrap_difference
        return float((test(*columns, name, design=design, draws=200, seed=k).p or 0.0) < 0.05)

    return run


def alone(test: str, level: str, items: int, systems: int) -> Claim:
    """PERM-BOTH and Williams' test take single records as independent: so they are, given the rating."""

    def run(rng: np.random.Generator, k: int) -> float:
        system, item = np.tile(np.arange(systems), items), np.repeat(np.arange(items), systems)
        quality = 0.5 * rng.normal(size=systems)[system] + rng.normal(size=items * systems)
        human = np.clip(np.round(3 + quality), 1, 5)
        first, second = (np.round(quality + rng.normal(size=len(quality)), 1) for _ in range(2))
        if test == "williams":
            return float((williams_difference(human, first, second).p or 0.0) < 0.05)
        design = Design(level, item.tolist(), system.tolist())
        name = "kendall-b" if level == "group" else "pearson"
        found = permutation_difference(human, first, second, name, design=design, by="records", draws=200, seed=k)
        return float((found.p or 0.0) < 0.05)

    return run


def gap_interval(items: int, systems: int) -> Claim:
    """`meta --compare`: the interval of the difference of two correlations that are equal."""

    def run(rng: np.random.Generator, k: int) -> float:
        table = judged(rng, items, systems, 0.0)
        columns = table.human[:, 0], table.scores[:, 0], table.scores[:, 1]
        found = bootstrap_difference(*columns, design=Design("segment", table.items, table.systems), draws=200, seed=k)
        return math.nan if found.low is None or found.high is None else float(found.low <= 0 <= found.high)

    return run


def closed_form(name: str, n: int) -> Claim:
    """`meta --interval fisher`: closed forms for independent records."""
    truth = {"pearson": 0.6, "spearman": 6 / math.pi * math.asin(0.3), "kendall-b": 2 / math.pi * math.asin(0.6)}[name]

    def run(rng: np.random.Generator, k: int) -> float:
        human = rng.normal(size=n)
        score = 0.6 * human + 0.8 * rng.normal(size=n)
        records = [Record(id=str(k)) for k in range(n)]
        table = Judgements(records, ("a",), score[:, None], {"a": "metric"}, ("q",), human[:, None])
        found = correlate(table, draws=2, coefficients=(name,), method="fisher")
        return float(found.low[name][0, 0] <= truth <= found.high[name][0, 0])

    return run


def coverage(level: str, name: str, items: int, systems: int, inside: float = 0.8) -> Claim:
    known = {"systems": systems, "bias": 0.0, "fixed": True, "inside": inside}
    big = [correlate(judged(np.random.default_rng(9000 + k), 400, **known), level, draws=100, coefficients=(name,))
           for k in range(8)]  # fmt: skip
    truth = float(np.mean([found.values[name][:, 0].mean() for found in big]))

    def run(rng: np.random.Generator, k: int) -> float:
        found = correlate(judged(rng, items, **known), level, draws=200, seed=k, coefficients=(name,))
        return float(found.low[name][0, 0] <= truth <= found.high[name][0, 0])

    return run


def between_systems(name: str, items: int, systems: int) -> Claim:
    """A coefficient at system level, items and systems drawn anew; the truth is that of very many systems."""
    found = []
    for k in range(8):
        count = 150 if name == SOFT else 1500
        many = judged(np.random.default_rng(9000 + k), items, count, 0.4)
        x, y = many.scores, many.human
        if name == SOFT:
            table = soft_accuracy(x, y, np.array(many.groups, dtype=np.int64), np.array(many.systems, dtype=np.int64))
            assert table is not None
            found.append(float(table[np.triu_indices(count, 1)].mean()))
        else:
            x, y = (column.reshape(items, count, -1).mean(axis=0) for column in (x, y))
            found.append(float(values_of(x, y, name).mean()))
    truth = float(np.mean(found))

    def run(rng: np.random.Generator, k: int) -> float:
        found = correlate(judged(rng, items, systems, 0.4), "system", draws=200, seed=k, coefficients=(name,))
        low, high = found.low[name][0, 0], found.high[name][0, 0]
        return float(low <= truth <= high) if np.isfinite(low) else math.nan

    return run


def score_mean(groups: int, each: int, alike: float) -> Claim:
    """The interval that `score` prints: uneven groups, scores in fifths."""
    metric = "length"

    def run(rng: np.random.Generator, k: int) -> float:
        sizes = rng.integers(1, 2 * each, groups)
        label = np.repeat(np.arange(groups), sizes)
        values = alike**0.5 * rng.normal(size=groups)[label] + (1 - alike) ** 0.5 * rng.normal(size=len(label))
        values = 50 + np.round(5 * values) / 5
        summary = Summary([metric])
        for place, (value, group) in enumerate(zip(values.tolist(), label.tolist(), strict=True)):
            record = Record(str(place), group=str(group))
            summary.add(Outcome(record.id, None, {metric: Score(value)}, {}, record))
        low, high = summary.to_object()[metric]["ci95"]
        return float(low <= 50 <= high)

    return run


def people_agree(systems: int, rated: int, items: int) -> Claim:
    """`compare --rated`: P(people agree) at a lead of .3; normal scores, so the truth is known."""

    def differences(rng: np.random.Generator, count: int, n: int) -> tuple[np.ndarray, np.ndarray]:
        people = 0.3 * rng.normal(size=(1, count)) + rng.normal(size=(n, 1)) + rng.normal(size=(n, count))
        return people + 2 * rng.normal(size=people.shape), people

    metric, rating = 0.09 + 5 / items, 0.09 + 1 / items  # half the variance of a difference of two means
    slope = rating / metric / math.sqrt(2 * (rating - rating**2 / metric))
    truth = (1 + math.erf(0.3 * slope / math.sqrt(2))) / 2

    def run(rng: np.random.Generator, k: int) -> float:
        score, people = differences(rng, systems, rated)
        item, system = (place.ravel() for place in np.indices(score.shape))
        one = agreement(score.ravel(), people.ravel(), item, system, item, np.array([0.3]), items)[0]
        return math.nan if one.low is None or one.high is None else float(one.low <= truth <= one.high)

    return run


def powered(groups: int, each: int, rated: int) -> Claim:
    def run(rng: np.random.Generator, k: int) -> float:
        label = np.repeat(np.arange(groups), each)
        score = rng.normal(size=groups)[label] * 0.6 + rng.normal(size=len(label))
        rating = 0.6 * score + rng.normal(size=groups)[label] * 0.6 + 0.5 * rng.normal(size=len(label))
        e = prediction_powered(np.where(label < rated, rating, np.nan), score, groups=label.tolist())
        return float(e.low is not None and e.high is not None and e.low <= 0 <= e.high)

    return run


def alpha(level: str, groups: int, each: int) -> Claim:
    def ratings(rng: np.random.Generator, count: int) -> np.ndarray:
        quality = np.repeat(rng.normal(size=count), each) * 0.7 + rng.normal(size=count * each) * 0.7
        shared = np.repeat(rng.normal(size=(3, count)), each, axis=1) * 0.5
        return np.clip(np.round(3 + quality + shared + 0.6 * rng.normal(size=(3, count * each))), 1, 5)

    truth = alpha_interval(ratings(np.random.default_rng(1), 20_000), level, draws=2).value or 0.0

    def run(rng: np.random.Generator, k: int) -> float:
        a = alpha_interval(
            ratings(rng, groups), level, groups=np.repeat(range(groups), each).tolist(), draws=300, seed=k
        )
        return float(a.low is not None and a.low <= truth <= (a.high or 1.0))

    return run


def areas(originals: int, each: int, test: bool, gaps: float = 0.0) -> Claim:
    def run(rng: np.random.Generator, k: int) -> float:
        shared = rng.normal(size=(originals, 1))
        good = np.tile([True] + [False] * each, originals)
        unit = np.repeat(np.arange(originals), each + 1)
        first, second = (
            (shared + rng.normal(size=(originals, each + 1)) + np.r_[1.0, np.zeros(each)]).ravel() for _ in range(2)
        )
        scored = rng.random(len(unit)) >= gaps  # of both metrics; of the first alone for its interval
        if test:
            scored &= rng.random(len(unit)) >= gaps
            return float(equal_areas(first[scored], second[scored], good[scored], unit[scored]) < 0.05)
        low, high = area_interval(*area_and_influence(first[scored], good[scored], unit[scored]))
        return math.nan if low is None or high is None else float(low <= 0.6914624612740131 <= high)

    return run


Rows = list[tuple[float, str, int, str]]
"""Rating, system, passage, rater"""


def study_rows(rng: np.random.Generator, raters: int, passages: int, taste: float, severity: float = 1.0) -> Rows:
    """Four equally good systems; each rater sees all of them on six passages, and likes some more (`taste`)."""
    hard, severe = rng.normal(size=passages), severity * rng.normal(size=raters)
    liked = taste * rng.normal(size=(raters, 4))
    return [
        (hard[p] + severe[r] + liked[r, s] + rng.normal(), f"s{s}", int(p), f"r{r}")
        for r in range(raters) for p in rng.choice(passages, 6, replace=False) for s in range(4)
    ]  # fmt: skip


def mixed(raters: int, passages: int, covered: bool = False) -> Claim:
    """The mixed model of `study analyse`: any pair called different, or the interval of one difference."""

    def run(rng: np.random.Generator, k: int) -> float:
        pairs = mixed_model(*zip(*study_rows(rng, raters, passages, 0.4), strict=True)).pairs
        if covered:
            one = next(p for p in pairs if {p.first, p.second} == {"s0", "s1"})
            return float(one.low <= 0 <= one.high)
        return float(min(p.corrected for p in pairs) < 0.05)

    return run


def paper_letters(raters: int, passages: int, taste: float) -> Claim:
    """The letters of the paper's procedure in `study analyse`: signed-rank tests over passages, Holm."""

    def run(rng: np.random.Generator, k: int) -> float:
        rows = study_rows(rng, raters, passages, taste)
        found = [Judged(rater, str(p), system, str(p), (value,), 1) for value, system, p, rater in rows]
        pairs, _ = compare_systems(tabulate(found, [f"s{s}" for s in range(4)], 1), range(4))
        return float(min(pair.corrected for pair in pairs) < 0.05)

    return run


def passage_interval(raters: int, passages: int) -> Claim:
    """The t interval over passages of a system's score in `study analyse`, for the raters of the study."""

    def run(rng: np.random.Generator, k: int) -> float:
        rows = study_rows(rng, raters, passages, 0.0, severity=0.0)  # z-scores have taken it off
        found = [Judged(r, str(p), s, str(p), (v,), 1) for v, s, p, r in rows]
        low, high = intervals(tabulate(found, [f"s{s}" for s in range(4)], 1))
        return float(low[0, -1] <= 0 <= high[0, -1])

    return run


def stopping(looks: int) -> Claim:
    """The sequential test of `study`: equal systems called different at any of many looks."""

    def run(rng: np.random.Generator, k: int) -> float:
        bets = Bets()
        for difference in rng.standard_t(4, size=looks):
            bets.add(float(difference))
        return float(bets.p < 0.05)

    return run
