"""Do the passages that `study new --choose N` picks decide more comparisons than random ones?

    python benchmarks/study_choose.py RATED.jsonl [--sizes 10,15,20,25,30,40] [--draws 300]

RATED holds outputs of several systems on the same passages with human ratings (`human`), such as QGEval or SummEval.
The ratings stand in for the raters of a study of N passages. Decided: pairs of systems that differ by a paired t-test on
passages, two-sided, p < .05. Tau: Kendall's tau between the ranking found and that of all passages. Passages saved: how
many more random passages decide as many pairs, on average. Percentile: share of random choices of the same size that do
worse (ties count half); .5 is chance. With `peers` in the records these serve as metric scores.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kendalltau, t

from elench.records.record import Record, read_records
from elench.study.design.choose import pick, rank_passages
from elench.study.design.compose import blocks

Array = NDArray[np.float64]


def decided(table: Array) -> int:
    """Pairs of systems (columns) that differ over passages (rows)."""
    gaps = np.array([table[:, a] - table[:, b] for a, b in itertools.combinations(range(table.shape[1]), 2)])
    spread = gaps.std(axis=1, ddof=1) / np.sqrt(len(table))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.abs(gaps.mean(axis=1)) / spread
    return int((np.nan_to_num(ratio) > t.ppf(0.975, len(table) - 1)).sum())


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("file", type=Path)
    options.add_argument("--sizes", default="10,15,20,25,30,40")
    options.add_argument("--draws", type=int, default=300)
    chosen = options.parse_args()
    records = [record for record in read_records(chosen.file) if record.human]
    judge = records[0].judge or records[0].guess_judge()
    systems = sorted({record.system or "" for record in records})
    found = blocks(records, systems, judge)
    human = np.array([[np.mean(list(block[name].human.values())) for name in systems] for block in found])
    scores = {(r.id, r.system or ""): dict(r.peers) for r in records if r.peers} or None
    report(found, judge, human, scores, [int(n) for n in chosen.sizes.split(",")], chosen.draws)


def report(
    found: list[dict[str, Record]], judge: str, human: Array, scores: dict[tuple[str, str], dict[str, float]] | None,
    sizes: list[int], draws: int,
) -> None:  # fmt: skip
    rng = np.random.default_rng(0)
    everything = human.mean(axis=0)
    pairs = human.shape[1] * (human.shape[1] - 1) // 2
    print(f"{len(found)} passages, {human.shape[1]} systems, {pairs} pairs; all passages decide {decided(human)}")
    samples = {n: [rng.permutation(len(found))[:n] for _ in range(draws)] for n in range(5, len(found) + 1)}
    curve = {n: float(np.mean([decided(human[rows]) for rows in some])) for n, some in samples.items()}
    places = {id(next(iter(block.values()))): k for k, block in enumerate(found)}
    for name, given in (("texts only", None), ("texts and metric scores", scores)):
        if name != "texts only" and given is None:
            continue
        ranked = rank_passages(found, judge, given)
        places_of = []
        for n in sizes:
            rows = [places[id(passage.records[0])] for passage in pick(ranked, n)]
            here, tau = decided(human[rows]), kendalltau(human[rows].mean(axis=0), everything).statistic
            chance = [kendalltau(human[r].mean(axis=0), everything).statistic for r in samples[n]]
            places_of.append((percentile(here, [decided(human[r]) for r in samples[n]]), percentile(tau, chance)))
            same = next((m for m in curve if curve[m] >= here), len(found))
            print(
                f"{name}, {n} passages: {here} pairs decided, at random {curve[n]:.1f} (mean of {draws}); "
                f"tau {tau:.2f}, at random {np.mean(chance):.2f}; passages saved: {same - n}; "
                f"percentiles {places_of[-1][0]:.2f}, {places_of[-1][1]:.2f}",
                flush=True,
            )
        both = np.mean(places_of, axis=0)
        print(f"{name}: mean percentile over {len(sizes)} sizes: pairs decided {both[0]:.2f}, tau {both[1]:.2f}")


def percentile(value: float, others: list[float]) -> float:
    """The share of `others` below `value`; ties count half."""
    return float(np.mean([(other < value) + 0.5 * (other == value) for other in others]))


if __name__ == "__main__":
    main()
