"""What the quality filter does to raters of known kinds, and whether the ranking comes back.

    python benchmarks/study_simulation.py [--runs 20]

Eleven systems, the qg-crowd protocol (20-item tasks), two mixtures of raters. Printed as Markdown tables:
1. false accepts, false rejects, careless work kept and cost, under the protocol's permutation test and as published,
   for raters who come for 1 or 2 tasks (rejected ones are stopped, undecided ones take a further task);
2. Spearman correlation of the found ranking with the true one, with and without the filter;
3. Pearson's r between the system scores of two runs, of the paper's size (about 300 kept tasks each) and three times as
   large; true systems 9 points apart give the range of z of the paper's Table 5 (.37);
4. with `--part target`: the careless share of many studies that end when 60 tasks have passed, as in study_crowd.py.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
from pathlib import Path
from statistics import mean

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from study_load import make_study

from elench.stats.agreement import wilson
from elench.study.analyse.crowd import KINDS, MIXTURE, Crowd, Truth
from elench.study.analyse.quality import judge_raters
from elench.study.analyse.replication import correlate
from elench.study.analyse.scores import judgements, kept_sittings, tabulate
from elench.study.analyse.simulate import Simulation, as_published, simulate_run, simulate_study
from elench.study.folder import Study

MILD = {"careful": 0.5, "noisy": 0.15, "biased": 0.1, "straight": 0.05, "random": 0.15, "per-item": 0.05}
"""A crowd with one careless rater in four, as in study_crowd.py."""


def rate(hits: int, n: int) -> str:
    low, high = wilson(hits, n)
    return f"{hits / n:.3f} [{low:.3f}, {high:.3f}] (n = {n})"


def errors(result: Simulation) -> tuple[str, str, str]:
    """False accepts, false rejects, and false accepts of raters who use one value per item."""
    bad = [row for row in result.kinds if not row.should_pass]
    good = [row for row in result.kinds if row.should_pass]
    one = next(row for row in bad if row.kind == "per-item")
    return (
        rate(sum(row.accepted for row in bad), sum(row.raters for row in bad)),
        rate(sum(row.raters - row.accepted for row in good), sum(row.raters for row in good)),
        rate(one.accepted, one.raters),
    )


def filter_table(study: Study, runs: int, raters: int, shares: dict[str, float]) -> None:
    print(
        f"\nCrowd: {', '.join(f'{kind} {share:g}' for kind, share in shares.items())}; {runs} runs × {raters} raters.\n"
    )
    print(
        "| quality control | tasks per rater | false accept | false reject | false accept of *per-item* raters "
        "| careless share of kept tasks | paid / kept tasks | Spearman, filtered | unfiltered |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for tasks in (1, 2):
        for name, under in (("permutation", study), ("paper", as_published(study))):
            result = simulate_study(under, Crowd(shares, raters, tasks), runs, 1)
            kept = round(result.kept_tasks * runs)
            cells = [name, str(tasks), *errors(result), rate(round((result.careless_work or 0) * kept), kept)]
            cells.append(f"{result.submitted_tasks / result.kept_tasks:.2f}")
            cells += [f"{value:.3f}" for value in (result.spearman_filtered or 0, result.spearman_unfiltered or 0)]
            print(f"| {' | '.join(cells)} |", flush=True)


def replication_table(study: Study, pairs: int, sizes: list[int], spreads: list[float]) -> None:
    """Two runs with other raters on the same truth, as in section 4.3.4 of the paper."""
    print(
        "\n| spread of the true systems (points) | z of best minus worst | kept tasks per run | mean r | pairs with r >= .95 | mean rho | mean tau |"
    )
    print("|---|---|---|---|---|---|---|")
    systems, criteria = list(study.systems), len(study.protocol.criteria)
    for raters, spread in itertools.product(sizes, spreads):
        found, ranges, kept_tasks = [], [], []
        for pair in range(pairs):
            scores = []
            for run in (0, 1):
                truth = Truth(study, np.random.default_rng([pair, 7]), spread)
                rng = np.random.default_rng([pair, run])
                sittings, _ = simulate_run(study, truth, Crowd(MIXTURE, raters, 2), rng)
                passed = {name for name, verdict in judge_raters(study, sittings).items() if verdict.passed}
                kept = kept_sittings(sittings, passed)
                overall = tabulate(judgements(study, kept, True), systems, criteria).scores()[:, -1]
                scores.append(overall)
                ranges.append(float(overall.max() - overall.min()))
                kept_tasks.append(len(kept))
            found.append(correlate("overall", *scores))
        values = [f"{spread:g}", f"{mean(ranges):.2f}", f"{mean(kept_tasks):.0f}"]
        values += [
            f"{mean(x.pearson or 0 for x in found):.3f}",
            f"{sum((x.pearson or 0) >= 0.95 for x in found)} of {pairs}",
        ]
        values += [f"{mean(x.spearman or 0 for x in found):.3f}", f"{mean(x.kendall or 0 for x in found):.3f}"]
        print(f"| {' | '.join(values)} |", flush=True)


def target_table(study: Study, runs: int, target: int) -> None:
    """The crowd of study_crowd.py without HTTP: raters come until the target is reached in passed tasks."""
    shares, careless, kept, good, rejected = [], 0, 0, 0, 0
    for run in range(runs):
        rng = np.random.default_rng([2, run])
        truth = Truth(study, np.random.default_rng([2, run, 7]))
        sittings, kinds = simulate_run(study, truth, Crowd(MILD, 100, 2), rng)
        verdicts = judge_raters(study, sittings)
        counted: list[str] = []
        for rater, verdict in verdicts.items():  # in the order of arrival
            if len(counted) >= target:
                break
            reads = KINDS[kinds[rater]][0]
            good, rejected = good + reads, rejected + (reads and not verdict.passed)
            counted += [kinds[rater]] * verdict.tasks if verdict.passed else []
        bad = sum(not KINDS[kind][0] for kind in counted)
        shares.append(bad / len(counted))
        careless, kept = careless + bad, kept + len(counted)
    draws = np.random.default_rng(0).choice(shares, (2000, runs)).mean(axis=1)
    low, high = np.quantile(draws, [0.025, 0.975])
    print(f"\n{runs} studies of {target} passed tasks: careless share of kept tasks {careless / kept:.4f} (n = {kept})")
    print(f"mean over studies {mean(shares):.4f} [{low:.4f}, {high:.4f}] (bootstrap over studies)")
    print(f"studies with careless work: {rate(sum(s > 0 for s in shares), runs)}; above 3 %: "
          f"{rate(sum(s > 0.03 for s in shares), runs)}; good raters rejected: {rate(rejected, good)}")  # fmt: skip


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--runs", type=int, default=20)
    options.add_argument("--raters", type=int, default=60)
    options.add_argument("--pairs", type=int, default=10, help="pairs of runs for the replication table")
    options.add_argument("--part", choices=["filter", "replication", "both", "target"], default="both")
    options.add_argument("--sizes", default="320,960", help="raters per run of the replication table")
    options.add_argument("--spreads", default="9,12", help="points between the best and the worst true system")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as place:
        study = make_study(Path(place) / "study", 200)
        if chosen.part == "target":
            target_table(study, chosen.runs, 60)
            return
        if chosen.part != "replication":
            for shares in (MIXTURE, MILD):
                filter_table(study, chosen.runs, chosen.raters, shares)
        if chosen.part != "filter":
            sizes, spreads = [int(n) for n in chosen.sizes.split(",")], [float(n) for n in chosen.spreads.split(",")]
            replication_table(study, chosen.pairs, sizes, spreads)


if __name__ == "__main__":
    main()
