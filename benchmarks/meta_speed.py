"""How long a full meta-evaluation takes, beside a loop over scipy on the same data.

    python benchmarks/meta_speed.py [--items 1500] [--metrics 20] [--dimensions 7] [--draws 1000]

The baseline computes the same Pearson and Spearman draws (and Kendall's point estimates) with scipy, one resample at a
time; it is timed on a few draws and scaled up. elench's time also has tau-c, pairwise accuracy, clusters and marks.
Times are CPU seconds (other programs on the machine do not count) and wall time.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from scipy.stats import kendalltau, pearsonr, spearmanr

from elench.evaluate.judgements import Judgements
from elench.evaluate.meta import evaluate
from elench.records.record import Record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("items", 1500), ("metrics", 20), ("dimensions", 7), ("draws", 1000), ("baseline_draws", 5)):
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=default)
    a = parser.parse_args()
    rng = np.random.default_rng(0)
    quality = rng.normal(size=(a.items, 1))
    scores = quality + 2 * rng.normal(size=(a.items, a.metrics))
    human = np.clip(np.round((2.5 + quality + rng.normal(size=(a.items, a.dimensions))) * 3) / 3, 1, 3)
    names = tuple(f"metric-{k}" for k in range(a.metrics))
    kinds = {name: "sanity" if k < 2 else "metric" for k, name in enumerate(names)}
    dimensions = tuple(f"dimension-{k}" for k in range(a.dimensions))
    records = [Record(id=str(k), group=str(k // 15), system=str(k % 15)) for k in range(a.items)]
    table = Judgements(records, names, scores, kinds, dimensions, human)

    clock, start = time.perf_counter(), time.process_time()
    found = evaluate(table, draws=a.draws)
    ours, waited = time.process_time() - start, time.perf_counter() - clock

    start = time.process_time()
    for _ in range(a.baseline_draws):
        drawn = rng.integers(0, a.items, a.items)
        for x in scores[drawn].T:
            for y in human[drawn].T:
                pearsonr(x, y)
                spearmanr(x, y)
    per_draw = (time.process_time() - start) / a.baseline_draws
    start = time.process_time()
    for x in scores.T:
        for y in human.T:
            kendalltau(x, y)
    scipy = per_draw * a.draws + time.process_time() - start

    size = f"{a.items} items × {a.metrics} metrics × {a.dimensions} dimensions × {a.draws} draws"
    print(f"{size}: elench {ours:.1f} s, {waited:.1f} s wall time")
    print(f"  ({len(found.rows)} rows, five coefficients with intervals, clusters, marks)")
    print(f"scipy, one resample at a time: {scipy:.0f} s (from {a.baseline_draws} draws); ratio {scipy / ours:.0f}")


if __name__ == "__main__":
    main()
