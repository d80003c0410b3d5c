"""What do the printed tests and intervals do on data like yours? Simulations from the user's own design.

Compare: the differences of the file are kept with their sizes, ties and groups; under the null whole groups change
sides at random; for power and coverage groups are drawn with replacement and the observed difference is the truth.
Meta: two metrics that agree equally well are made from two real ones by exchanging them group by group.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elench.evaluate.compare_items import Items
from elench.evaluate.judgements import Judgements
from elench.grid import Grid
from elench.stats.agreement import wilson
from elench.stats.correlation import correlate
from elench.stats.totals import Totals, bootstrap_t, exchange_test

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Checked:
    """Shares of simulated files, each with its number."""

    what: str
    false_alarms: float
    coverage: float | None
    power: float
    runs: int

    def row(self) -> tuple[str, ...]:
        def share(value: float | None) -> str:
            if value is None:
                return "–"
            low, high = wilson(round(value * self.runs), self.runs)
            return f"{value:.1%} [{low:.0%}, {high:.0%}]"

        return self.what, share(self.false_alarms), share(self.coverage), share(self.power), str(self.runs)


def check_compare(items: Items, test: str, alpha: float, runs: int = 200, draws: int = 300, seed: int = 0) -> Checked:
    """The test of the two systems that lie farthest apart, on files like this one."""
    values = items.totals.values()
    i, j = int(np.argmax(values)), int(np.argmin(values))
    two = items.totals.sums[:, [i, j]]
    rng = np.random.default_rng(seed)
    contrast = np.array([[1.0, -1.0]])
    truth = float(values[i] - values[j])
    alarms = found = inside = defined = 0
    for run in range(runs):
        flip = rng.integers(0, 2, len(two)).astype(bool)
        drawn = rng.integers(0, len(two), len(two))
        again = Totals(two[drawn], items.totals.score)
        null = Totals(np.where(flip[:, None, None], again.sums[:, ::-1], again.sums), items.totals.score)
        estimate = bootstrap_t(again, contrast, draws, run)[0]
        if test == "randomisation":
            p, q = exchange_test(null, 0, 1, draws, run), exchange_test(again, 0, 1, draws, run)
        else:
            other = bootstrap_t(null, contrast, draws, run)[0].p
            p, q = (1.0 if x is None else x for x in (other, estimate.p))
        alarms += p < alpha
        found += q < alpha
        if estimate.low is not None and estimate.high is not None:
            defined += 1
            inside += estimate.low <= truth <= estimate.high
    name = f"{items.metric}: {items.systems[i]} − {items.systems[j]}"
    return Checked(name, alarms / runs, inside / defined if defined else None, found / runs, runs)


def check_meta(
    table: Judgements, level: str, over: str | None, coefficient: str, alpha: float, runs: int = 100, draws: int = 200,
    seed: int = 0,
) -> list[Checked]:  # fmt: skip
    """For each dimension the two metrics whose coefficients lie farthest apart: false alarms when they are exchanged
    group by group (so that neither is better), power and coverage on groups drawn from the file."""
    whole = correlate(table, level, over=over, draws=draws, seed=seed, coefficients=(coefficient,))
    plan = whole.sampling.plan
    rows_of = [np.flatnonzero(plan.group == g) for g in range(plan.groups)]
    rng = np.random.default_rng(seed)
    out = []
    for d, dimension in enumerate(table.dimensions):
        value = whole.values[coefficient][:, d]
        known = np.flatnonzero(np.isfinite(value))
        if len(known) < 2:
            continue
        i, j = int(known[np.argmax(value[known])]), int(known[np.argmin(value[known])])
        names = (table.metrics[i], table.metrics[j])
        one = table.choose(names, [dimension])
        scores = (one.scores - np.nanmean(one.scores, axis=0)) / np.nanstd(one.scores, axis=0)
        alarms = found = inside = defined = 0
        for run in range(runs):
            drawn = rng.integers(0, plan.groups, plan.groups)
            rows = np.concatenate([rows_of[g] for g in drawn])
            group = np.repeat(np.arange(len(drawn)), [len(rows_of[g]) for g in drawn])
            unit = plan.system[rows] if "systems" in plan.over else group
            flip = rng.integers(0, 2, int(unit.max()) + 1).astype(bool)[unit]
            null = np.where(flip[:, None], scores[rows][:, ::-1], scores[rows])
            alarms += _test(one, null, rows, group, level, over, coefficient, draws, run)[0] < alpha
            p, low, high = _test(one, scores[rows], rows, group, level, over, coefficient, draws, run)
            found += p < alpha
            if np.isfinite(low) and np.isfinite(high):
                defined += 1
                inside += low <= value[i] <= high
        cover = inside / defined if defined else None
        out.append(Checked(f"{dimension}: {names[0]} against {names[1]}", alarms / runs, cover, found / runs, runs))
    return out


def _test(
    one: Judgements, scores: Array, rows: NDArray[np.int64], group: NDArray[np.int64], level: str,
    over: str | None, coefficient: str, draws: int, seed: int,
) -> tuple[float, float, float]:  # fmt: skip
    """p of the two metrics and the interval of the first, on groups drawn from the file."""
    from dataclasses import replace

    records = [replace(one.records[k], group=f"drawn {g}") for k, g in zip(rows.tolist(), group.tolist(), strict=True)]
    again = replace(one, records=records, scores=scores, human=one.human[rows])
    found = correlate(again, level, over=over, draws=draws, seed=seed, coefficients=(coefficient,))
    low, high = found.low[coefficient][0, 0], found.high[coefficient][0, 0]
    return float(found.gap_ps([(0, 1)], 0, coefficient)[0]), float(low), float(high)


def grid(checked: list[Checked], alpha: float) -> Grid:
    """The table of `--calibrate`."""
    title = f"On simulated files with this design (false alarms wanted: {alpha:.0%}; coverage wanted: 95 %)"
    return Grid(title, ("what", "false alarms", "coverage", "power", "runs"), tuple(c.row() for c in checked))
