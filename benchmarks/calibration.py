"""Do the tests and intervals that elench prints keep their promises? Simulations under a known truth.

    python benchmarks/calibration.py [--minutes 15] [--runs 400] [--only TEXT] [--kind alarms|coverage]

Clustered records, ties, gaps, system biases, 8 to 100 groups. Under a true null the share of p < .05 should be 5 ± 1.5 %; 95 %
intervals should cover the truth in 95 ± 2.5 % of the runs. One line per claim with its number of runs; a line stops when
its share of the time is used up. OUTSIDE: outside the band by more than two standard errors.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable

import numpy as np

from elench.evaluate.judgements import Judgements
from elench.metrics.base import Score
from elench.records.record import Record
from elench.runs.summary import Outcome, Summary
from elench.stats.agreement import alpha_interval
from elench.stats.correlation import correlate
from elench.stats.estimation import prediction_powered
from elench.stats.mixed import mixed_model
from elench.stats.preference import agreement
from elench.stats.roc import area_and_influence, area_interval, equal_areas
from elench.stats.significance import Design, bootstrap_difference, permutation_difference
from elench.stats.totals import Totals, bootstrap_t, exchange_test

Claim = Callable[[np.random.Generator, int], float]
"""One run: 1 for an alarm (or a covered truth), 0 for none, NaN for undefined"""


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


def duel(by: str, name: str, items: int, systems: int) -> Claim:
    """`meta --compare`: the permutation by groups, and the paired bootstrap."""

    def run(rng: np.random.Generator, k: int) -> float:
        table = judged(rng, items, systems, 0.0)
        columns = table.human[:, 0], table.scores[:, 0], table.scores[:, 1]
        design = Design("segment", table.items, table.systems)
        test = permutation_difference if by == "permutation" else bootstrap_difference
        return float((test(*columns, name, design=design, draws=200, seed=k).p or 0.0) < 0.05)

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


def between_systems(items: int, systems: int) -> Claim:
    """Pearson's r at system level, items and systems drawn anew."""
    many = judged(np.random.default_rng(9000), items, 3000, 0.4)
    means = [column.reshape(items, 3000).mean(axis=0) for column in (many.scores[:, 0], many.human[:, 0])]
    truth = float(np.corrcoef(means)[0, 1])

    def run(rng: np.random.Generator, k: int) -> float:
        found = correlate(judged(rng, items, systems, 0.4), "system", draws=200, seed=k, coefficients=("pearson",))
        return float(found.low["pearson"][0, 0] <= truth <= found.high["pearson"][0, 0])

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


def areas(originals: int, each: int, test: bool) -> Claim:
    def run(rng: np.random.Generator, k: int) -> float:
        shared = rng.normal(size=(originals, 1))
        good = np.tile([True] + [False] * each, originals)
        unit = np.repeat(np.arange(originals), each + 1)
        first, second = (
            (shared + rng.normal(size=(originals, each + 1)) + np.r_[1.0, np.zeros(each)]).ravel() for _ in range(2)
        )
        if test:
            return float(equal_areas(first, second, good, unit) < 0.05)
        low, high = area_interval(*area_and_influence(first, good, unit))
        return math.nan if low is None or high is None else float(low <= 0.6914624612740131 <= high)

    return run


def mixed(raters: int, passages: int) -> Claim:
    def run(rng: np.random.Generator, k: int) -> float:
        hard, severe, taste = rng.normal(size=passages), rng.normal(size=raters), 0.4 * rng.normal(size=(raters, 4))
        rows = [
            (hard[p] + severe[r] + taste[r, s] + rng.normal(), f"s{s}", p, f"r{r}")
            for r in range(raters) for p in rng.choice(passages, 6, replace=False) for s in range(4)
        ]  # fmt: skip
        return float(min(p.corrected for p in mixed_model(*zip(*rows, strict=True)).pairs) < 0.05)

    return run


CLAIMS: dict[str, dict[str, Callable[[], Claim]]] = {
    "alarms": {
        **{f"compare, exchange test, {g} groups × {e}, alike {a}": (lambda g=g, e=e, a=a: exchange(g, e, a))
           for g, e, a in ((8, 5, 0.5), (20, 5, 0.3), (20, 5, 0.6), (100, 3, 0.3))},
        **{f"compare --test bootstrap, {g} groups × {e}, alike {a}": (lambda g=g, e=e, a=a: drawn_test(g, e, a))
           for g, e, a in ((8, 5, 0.5), (20, 5, 0.6))},
        "meta letters, r, segment, 8 × 5": lambda: letters("segment", "pearson", 8, 5, 0.0),
        "meta letters, r, segment, 40 × 5": lambda: letters("segment", "pearson", 40, 5, 0.0),
        "meta letters, r, segment, 40 × 5, 20 % gaps": lambda: letters("segment", "pearson", 40, 5, 0.0, 0.2),
        "meta letters, acc, group, 40 × 8": lambda: letters("group", "accuracy", 40, 8, 0.0),
        "meta letters, τb, group, 40 × 8": lambda: letters("group", "kendall-b", 40, 8, 0.0),
        "meta letters, r, system, 40 × 20 with biases": lambda: letters("system", "pearson", 40, 20, 0.4),
        "meta letters, τb, system, 40 × 20 with biases": lambda: letters("system", "kendall-b", 40, 20, 0.4),
        "meta letters, acc, segment, 40 × 5": lambda: letters("segment", "accuracy", 40, 5, 0.0),
        "meta letters, spa, system, 40 × 12 with biases": lambda: letters("system", "soft-accuracy", 40, 12, 0.4),
        "meta --compare, permutation, r, 40 × 5": lambda: duel("permutation", "pearson", 40, 5),
        "meta --compare, bootstrap, ρ, 40 × 5": lambda: duel("bootstrap", "spearman", 40, 5),
        "auc, paired test, 40 originals × 3": lambda: areas(40, 3, True),
        "study, mixed model, any of 6 pairs, 10 raters": lambda: mixed(10, 15),
        "study, mixed model, any of 6 pairs, 20 raters": lambda: mixed(20, 15),
    },
    "coverage": {
        **{f"compare, difference, {g} groups × {e}, alike {a}": (lambda g=g, e=e, a=a: difference(g, e, a))
           for g, e, a in ((8, 5, 0.5), (20, 5, 0.3), (20, 5, 0.6), (100, 3, 0.3))},
        **{f"score, mean, {g} groups × {e}, alike {a}": (lambda g=g, e=e, a=a: score_mean(g, e, a))
           for g, e, a in ((8, 5, 0.5), (20, 5, 0.6), (100, 3, 0.3))},
        "meta, r, segment, 8 × 5": lambda: coverage("segment", "pearson", 8, 5),
        "meta, τb, segment, 60 × 5": lambda: coverage("segment", "kendall-b", 60, 5),
        "meta, r, system, 40 × 20 with biases": lambda: between_systems(40, 20),
        "compare --rated, people agree, 12 systems × 60": lambda: people_agree(12, 60, 60),
        "compare --rated, people agree, 12 systems × 120, lead on 60": lambda: people_agree(12, 120, 60),
        "powered mean, 20 of 20 groups × 5": lambda: powered(20, 5, 20),
        "meta, r, segment, 60 × 5": lambda: coverage("segment", "pearson", 60, 5),
        "meta, ρ, group, 60 × 8": lambda: coverage("group", "spearman", 60, 8),
        "meta, acc, group, 60 × 8": lambda: coverage("group", "accuracy", 60, 8),
        "meta, acc, group, 60 × 8, metrics that hardly work": lambda: coverage("group", "accuracy", 60, 8, 0.0),
        "powered mean, 8 of 50 groups × 20": lambda: powered(50, 20, 8),
        "powered mean, 30 of 100 groups × 5": lambda: powered(100, 5, 30),
        "alpha interval, 30 groups × 5": lambda: alpha("interval", 30, 5),
        "alpha ordinal, 30 groups × 5": lambda: alpha("ordinal", 30, 5),
        "auc, 30 originals × 3": lambda: areas(30, 3, False),
    },
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--only", default="", help="only claims whose name holds this text")
    parser.add_argument("--kind", choices=list(CLAIMS), help="only false alarms, or only coverage")
    parser.add_argument("--seed", type=int, default=0, help="other files")
    given = parser.parse_args()
    chosen = [
        (kind, name, make)
        for kind, claims in CLAIMS.items()
        for name, make in claims.items()
        if given.only in name and given.kind in (None, kind)
    ]
    share = given.minutes * 60 / max(1, len(chosen))
    for kind, name, make in chosen:
        wanted, slack = (0.05, 0.015) if kind == "alarms" else (0.95, 0.025)
        start, outcomes = time.time(), []
        claim = make()
        for k in range(given.runs):
            outcomes.append(float(claim(np.random.default_rng([k, len(name), given.seed]), k)))
            if time.time() - start > share:
                break
        known = [o for o in outcomes if not math.isnan(o)]
        value = float(np.mean(known))
        error = math.sqrt(max(value * (1 - value), 0.01) / len(known))
        mark = "" if abs(value - wanted) <= slack else ("OUTSIDE " if abs(value - wanted) > slack + 2 * error else "~ ")
        print(f"{kind:8}  {value:6.1%} ± {error:.1%}  n = {len(known)}  {mark}{name}", flush=True)


if __name__ == "__main__":
    main()
