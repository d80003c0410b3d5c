"""Do the tests and intervals of quaestor meta keep their promises? Simulations under a known truth.

    python benchmarks/meta_calibration.py [--runs 4000] [--part tests|levels|others]

Under a true null the share of p < .05 should be 5 ± 1 %; 95 % intervals should cover the truth in 95 ± 2 % of the runs.
Prints one line per claim with the number of runs; exit code 1 if a share lies outside by more than 3 standard errors.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from quaestor.meta.agreement import alpha_interval
from quaestor.meta.correlation import correlate
from quaestor.meta.estimation import prediction_powered
from quaestor.meta.judgements import Judgements
from quaestor.meta.resampling import Part, difference_p, outward
from quaestor.meta.significance import bootstrap_difference, permutation_difference, williams_difference
from quaestor.records import Record

Array = NDArray[np.float64]
COEFFICIENTS = ("pearson", "spearman", "kendall-b", "kendall-c")


def two_metrics(rng: np.random.Generator, n: int, strength: float = 0.5) -> tuple[Array, Array, Array]:
    """Ratings on a 1–5 scale and two metrics that follow them equally well and resemble each other."""
    quality, shared = rng.normal(size=n), rng.normal(size=n)
    human = np.clip(np.round(3 + quality + 0.5 * rng.normal(size=n)), 1, 5)
    noise = math.sqrt(1 - strength**2)
    a, b = (strength * quality + noise * (0.6 * shared + 0.8 * rng.normal(size=n)) for _ in range(2))
    return human, a, b


def table(rng: np.random.Generator, items: int, systems: int, effect: float = 0.5) -> Judgements:
    """Items × systems with an item effect shared by the records of an item: what a naive bootstrap gets wrong."""
    item = np.repeat(rng.normal(size=items), systems)
    system = np.tile(rng.normal(size=systems) * effect, items)
    n = items * systems
    human = np.round(2 * (item + system + rng.normal(size=n)))
    metric = 0.7 * item + 0.7 * system + np.repeat(0.5 * rng.normal(size=items), systems) + rng.normal(size=n)
    records = [Record(id=str(k), group=str(k // systems), system=str(k % systems)) for k in range(n)]
    return Judgements(records, ("metric",), metric[:, None], {"metric": "metric"}, ("quality",), human[:, None])


def null_tests(runs: int) -> Iterator[tuple[str, list[bool]]]:
    """False alarms of the tests of two metrics."""
    tests: dict[str, Callable[[Array, Array, Array, int], float | None]] = {
        "paired bootstrap, r": lambda y, a, b, s: bootstrap_difference(y, a, b, "pearson", draws=400, seed=s).p,
        "paired bootstrap, ρ": lambda y, a, b, s: bootstrap_difference(y, a, b, "spearman", draws=400, seed=s).p,
        "paired bootstrap, τb": lambda y, a, b, s: bootstrap_difference(y, a, b, "kendall-b", draws=400, seed=s).p,
        "permutation, r": lambda y, a, b, s: permutation_difference(y, a, b, "pearson", draws=400, seed=s).p,
        "permutation, ρ": lambda y, a, b, s: permutation_difference(y, a, b, "spearman", draws=400, seed=s).p,
        "Williams, r": lambda y, a, b, s: williams_difference(y, a, b).p,
    }
    for n in (60, 200):
        for k, (name, test) in enumerate(tests.items()):
            rng = np.random.default_rng([n, k])  # other data for every line: no common luck
            alarms = [_below(test(*two_metrics(rng, n), seed)) for seed in range(runs)]
            yield f"{name}, n = {n}", alarms
    rng = np.random.default_rng(2)
    yield "clusters and marks of the table, r, 40 items × 5", [_below(_table_p(rng, seed)) for seed in range(runs)]


def _table_p(rng: np.random.Generator, seed: int) -> float:
    """The test behind letters and marks, on clustered records and two equally good metrics."""
    one = table(rng, 40, 5)
    twin = 0.7 * np.asarray(one.scores[:, 0]) + rng.normal(size=len(one.records))
    first = 0.7 * np.asarray(one.scores[:, 0]) + rng.normal(size=len(one.records))
    scores = np.stack([first, twin], axis=1)
    two = Judgements(one.records, ("a", "b"), scores, {"a": "metric", "b": "metric"}, one.dimensions, one.human)
    found = correlate(two, draws=400, seed=seed, coefficients=("pearson",))
    value = outward(found.values["pearson"][:, 0])
    gaps = [Part(outward(d[:, 0, 0]) - outward(d[:, 1, 0]), units) for d, units in found.draws["pearson"]]
    return float(difference_p(value[0] - value[1], gaps))


def _below(p: float | None) -> bool:
    return p is not None and p < 0.05


def interval_cover(runs: int) -> Iterator[tuple[str, list[bool]]]:
    """Coverage of the intervals at each level, over items and over both items and systems."""
    settings = [("system", "systems", 40, 15), ("system", "items", 60, 12), ("segment", "both", 40, 15)]
    settings += [("segment", "items", 60, 5), ("group", "items", 60, 8)]
    for level, over, items, systems in settings:
        truth = _truth(level, over, items, systems)
        hits: dict[str, list[bool]] = {name: [] for name in COEFFICIENTS}
        for seed in range(runs // 4):
            rng = np.random.default_rng(10_000 + seed)
            data, target = truth(rng)
            found = correlate(data, level, over=over, draws=400, seed=seed, coefficients=COEFFICIENTS)
            for name in COEFFICIENTS:
                low, high = found.low[name][0, 0], found.high[name][0, 0]
                hits[name].append(bool(low <= target[name] <= high))
        for name in COEFFICIENTS:
            yield f"{name} at {level} level over {over}, {items} × {systems}", hits[name]


Draw = Callable[[np.random.Generator], tuple[Judgements, dict[str, float]]]


def _truth(level: str, over: str, items: int, systems: int) -> Draw:
    """How to draw data and what the interval must cover. Over items: systems stay the same, so the truth is theirs, on
    very many items; over systems or both: also very many systems."""
    if over == "items":
        fixed = np.random.default_rng(5).normal(size=systems) * 0.5

        def build(rng: np.random.Generator, count: int) -> Judgements:
            item, own = np.repeat(rng.normal(size=count), systems), np.tile(fixed, count)
            noise = np.repeat(0.5 * rng.normal(size=count), systems)
            human = np.round(2 * (item + own + rng.normal(size=count * systems)))
            metric = 0.7 * item + 0.7 * own + noise + rng.normal(size=count * systems)
            if level == "system":  # so that the metric errs on systems, not only on items
                metric = metric + np.tile(np.random.default_rng(6).normal(size=systems) * 0.4, count)
            records = [Record(id=str(k), group=str(k // systems), system=str(k % systems)) for k in range(len(human))]
            return Judgements(records, ("metric",), metric[:, None], {"metric": "metric"}, ("q",), human[:, None])

        if level == "system":  # what samples of as many items give on average: means of few items are noisy themselves
            samples = [_values(build(np.random.default_rng(200 + k), items), level) for k in range(300)]
            target = {name: math.tanh(np.mean([math.atanh(v[name]) for v in samples])) for name in COEFFICIENTS}
        else:
            target = _mean(
                [
                    _values(build(np.random.default_rng(900 + k), 1000), level)
                    for k in range(100 if level == "segment" else 10)
                ]
            )
        return lambda rng: (build(rng, items), target)
    if level == "system":  # the systems' own means on the same items vary around the line
        r = 1 / math.sqrt(1.09 * 1.64)
        tau = 2 / math.pi * math.asin(r)
        many = {"pearson": r, "spearman": 6 / math.pi * math.asin(r / 2), "kendall-b": tau, "kendall-c": tau}
        return lambda rng: (_systems(rng, systems), many)
    endless = _mean([_values(table(np.random.default_rng(100 + k), 200, 200), level) for k in range(8)])
    return lambda rng: (table(rng, items, systems), endless)


def _systems(rng: np.random.Generator, systems: int) -> Judgements:
    """One record per system that stands for its mean; both columns normal, so the truth is known in closed form."""
    quality = rng.normal(size=systems)
    human, metric = quality + 0.3 * rng.normal(size=systems), quality + 0.8 * rng.normal(size=systems)
    records = [Record(id=str(k), system=str(k)) for k in range(systems)]
    return Judgements(records, ("metric",), metric[:, None], {"metric": "metric"}, ("q",), human[:, None])


def _mean(found: list[dict[str, float]]) -> dict[str, float]:
    return {name: float(np.mean([values[name] for values in found])) for name in COEFFICIENTS}


def _values(data: Judgements, level: str) -> dict[str, float]:
    from quaestor.meta import correlation

    found = correlation.correlate(data, level, draws=2, coefficients=COEFFICIENTS)
    return {name: float(found.values[name][0, 0]) for name in COEFFICIENTS}


def other_cover(runs: int) -> Iterator[tuple[str, list[bool]]]:
    """Coverage of alpha's and of prediction-powered intervals."""
    rng = np.random.default_rng(3)

    def ratings(items: int) -> Array:
        quality = rng.normal(size=items)
        return np.clip(np.round(3 + quality + 0.8 * rng.normal(size=(3, items))), 1, 5)

    for level in ("nominal", "ordinal", "interval"):
        truth = alpha_interval(ratings(200_000), level, draws=2).value
        assert truth is not None
        found = [alpha_interval(ratings(150), level, draws=400, seed=s) for s in range(runs // 2)]
        yield (
            f"alpha {level}, 150 items × 3 raters",
            [a.low is not None and a.low <= truth <= (a.high or 1) for a in found],
        )
    for n, total in ((20, 300), (60, 1000)):
        hits, widths = [], []
        for _ in range(runs):
            score = rng.exponential(size=total)
            human = 1 + 0.6 * score + 0.6 * rng.normal(size=total)
            given = np.where(np.arange(total) < n, human, np.nan)
            e = prediction_powered(given, score)
            assert e.low is not None and e.high is not None and e.alone_high is not None and e.alone_low is not None
            hits.append(e.low <= 1.6 <= e.high)
            widths.append((e.high - e.low) / (e.alone_high - e.alone_low))
        yield f"prediction-powered mean, {n} rated of {total} (width × {np.mean(widths):.2f})", hits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=4000)
    parser.add_argument("--part", choices=["tests", "levels", "others"], help="only these simulations")
    given = parser.parse_args()
    runs = given.runs
    start, bad = time.time(), 0
    for name, title, wanted, slack, part in (
        ("tests", "share of p < .05 under a true null", 0.05, 0.01, null_tests),
        ("levels", "coverage of 95 % intervals of correlations", 0.95, 0.02, interval_cover),
        ("others", "coverage of 95 % intervals of alpha and powered means", 0.95, 0.02, other_cover),
    ):
        if given.part not in (None, name):
            continue
        print(f"{title} (wanted {wanted:.0%} ± {slack:.0%})")
        for name, outcomes in part(runs):
            share, n = float(np.mean(outcomes)), len(outcomes)
            error = math.sqrt(share * (1 - share) / n)
            inside = abs(share - wanted) <= slack
            excused = abs(share - wanted) <= slack + 3 * error
            bad += not excused
            print(f"  {share:6.1%} ± {error:.1%}  n = {n}  {'' if inside else 'OUTSIDE '}{name}", flush=True)
    print(f"{time.time() - start:.0f} s")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
