"""Do the tests and intervals that elench prints keep their promises? Simulations under a known truth.

    python benchmarks/calibration.py [--minutes 15] [--runs 400] [--only TEXT] [--kind alarms|coverage]

Clustered records, ties, gaps, system biases, 8 to 100 groups. Under a true null the share of p < .05 should be 5 ± 1.5 %; 95 %
intervals should cover the truth in 95 ± 2.5 % of the runs. One line per claim with its number of runs; a line stops when
its share of the CPU time is used up. OUTSIDE: outside the band by more than two standard errors.
"""

from __future__ import annotations

import argparse
import math
import re
import time
from collections.abc import Callable

import calibration_claims as claims
import numpy as np
from calibration_claims import Claim

from elench.stats.levels import SOFT

CLAIMS: dict[str, dict[str, Callable[[], Claim]]] = {
    "alarms": {
        **{f"compare, exchange test, {g} groups × {e}, alike {a}": (lambda g=g, e=e, a=a: claims.exchange(g, e, a))
           for g, e, a in ((8, 5, 0.5), (20, 5, 0.3), (20, 5, 0.6), (100, 3, 0.3))},
        **{f"compare --test bootstrap, {g} groups × {e}, alike {a}": (lambda g=g, e=e, a=a: claims.drawn_test(g, e, a))
           for g, e, a in ((8, 5, 0.5), (20, 5, 0.6))},
        "compare letters, any of 6 pairs, 20 groups × 5": lambda: claims.any_pair(20, 5, 4),
        "meta letters, r, segment, 8 × 5": lambda: claims.letters("segment", "pearson", 8, 5, 0.0),
        "meta letters, r, segment, 40 × 5": lambda: claims.letters("segment", "pearson", 40, 5, 0.0),
        "meta letters, r, segment, 40 × 5, 20 % gaps": lambda: claims.letters("segment", "pearson", 40, 5, 0.0, 0.2),
        "meta letters, acc, group, 40 × 8": lambda: claims.letters("group", "accuracy", 40, 8, 0.0),
        "meta letters, τb, group, 40 × 8": lambda: claims.letters("group", "kendall-b", 40, 8, 0.0),
        "meta letters, r, system, 40 × 20 with biases": lambda: claims.letters("system", "pearson", 40, 20, 0.4),
        "meta letters, τb, system, 40 × 20 with biases": lambda: claims.letters("system", "kendall-b", 40, 20, 0.4),
        "meta letters, acc, segment, 40 × 5": lambda: claims.letters("segment", "accuracy", 40, 5, 0.0),
        "meta letters, spa, system, 40 × 12 with biases": lambda: claims.letters("system", SOFT, 40, 12, 0.4),
        "meta --compare, permutation, r, 40 × 5": lambda: claims.duel("permutation", "pearson", 40, 5),
        "meta --compare, permutation, acc, group, 40 × 8": lambda: claims.duel(
            "permutation", "accuracy", 40, 8, "group"
        ),
        "meta --compare, permutation, r, system, 40 × 20 with biases": lambda: claims.duel(
            "permutation", "pearson", 40, 20, "system", 0.4
        ),
        "meta --compare, bootstrap, ρ, 40 × 5": lambda: claims.duel("bootstrap", "spearman", 40, 5),
        "meta --compare, PERM-BOTH†, r, segment, 40 × 5": lambda: claims.alone("perm-both", "segment", 40, 5),
        "meta --compare, PERM-BOTH†, τb, group, 40 × 5": lambda: claims.alone("perm-both", "group", 40, 5),
        "meta --compare, PERM-BOTH†, r, system, 40 × 12": lambda: claims.alone("perm-both", "system", 40, 12),
        "meta --compare, Williams†, r, segment, 40 × 5": lambda: claims.alone("williams", "segment", 40, 5),
        "auc, paired test, 40 originals × 3": lambda: claims.areas(40, 3, True),
        "auc, paired test, 40 originals × 3, 20 % gaps": lambda: claims.areas(40, 3, True, 0.2),
        "study, mixed model, any of 6 pairs, 10 raters": lambda: claims.mixed(10, 15),
        "study, mixed model, any of 6 pairs, 20 raters": lambda: claims.mixed(20, 15),
        "study, the paper's letters, any of 6 pairs, raters alike": lambda: claims.paper_letters(20, 15, 0.0),
        "study, the paper's letters, any of 6 pairs, raters with tastes": lambda: claims.paper_letters(20, 15, 0.4),
        "study, stopping rule, 200 looks": lambda: claims.stopping(200),
    },
    "coverage": {
        **{f"compare, difference, {g} groups × {e}, alike {a}": (lambda g=g, e=e, a=a: claims.difference(g, e, a))
           for g, e, a in ((8, 5, 0.5), (20, 5, 0.3), (20, 5, 0.6), (100, 3, 0.3))},
        "compare, score of a system, 20 groups × 5, alike 0.6": lambda: claims.system_score(20, 5, 0.6),
        **{f"score, mean, {g} groups × {e}, alike {a}": (lambda g=g, e=e, a=a: claims.score_mean(g, e, a))
           for g, e, a in ((8, 5, 0.5), (20, 5, 0.6), (100, 3, 0.3))},
        "meta, r, segment, 8 × 5": lambda: claims.coverage("segment", "pearson", 8, 5),
        "meta, r, segment, 60 × 5": lambda: claims.coverage("segment", "pearson", 60, 5),
        "meta, τb, segment, 60 × 5": lambda: claims.coverage("segment", "kendall-b", 60, 5),
        "meta, acc, segment, 60 × 5": lambda: claims.coverage("segment", "accuracy", 60, 5),
        "meta, ρ, group, 60 × 8": lambda: claims.coverage("group", "spearman", 60, 8),
        "meta, acc, group, 60 × 8": lambda: claims.coverage("group", "accuracy", 60, 8),
        "meta, acc, group, 60 × 8, metrics that hardly work": lambda: claims.coverage("group", "accuracy", 60, 8, 0.0),
        **{f"meta, {short}, system, {i} × {s} with biases": (
               lambda name=name, i=i, s=s: claims.between_systems(name, i, s))
           for short, name, i, s in (("r", "pearson", 40, 20), ("r", "pearson", 40, 12), ("r", "pearson", 10, 20),
                                     ("ρ", "spearman", 40, 12), ("τb", "kendall-b", 40, 20),
                                     ("acc", "accuracy", 40, 20), ("spa", SOFT, 40, 12))},
        **{f"meta --interval fisher, {short}, 60 independent records": (lambda name=name: claims.closed_form(name, 60))
           for short, name in (("r", "pearson"), ("ρ", "spearman"), ("τb", "kendall-b"))},
        "meta --compare, difference of two r, 40 × 5": lambda: claims.gap_interval(40, 5),
        "compare --rated, people agree, 12 systems × 60": lambda: claims.people_agree(12, 60, 60),
        "compare --rated, people agree, 12 systems × 120, lead on 60": lambda: claims.people_agree(12, 120, 60),
        "compare --rated, people agree, 5 systems × 200, lead on 50": lambda: claims.people_agree(5, 200, 50),
        "powered mean, 20 of 20 groups × 5": lambda: claims.powered(20, 5, 20),
        "powered mean, 8 of 50 groups × 20": lambda: claims.powered(50, 20, 8),
        "powered mean, 30 of 100 groups × 5": lambda: claims.powered(100, 5, 30),
        **{f"alpha {level}, 30 groups × 5": (lambda level=level: claims.alpha(level, 30, 5))
           for level in ("nominal", "ordinal", "interval")},
        "auc, 30 originals × 3": lambda: claims.areas(30, 3, False),
        "auc, 30 originals × 3, 20 % gaps": lambda: claims.areas(30, 3, False, 0.2),
        "study, mixed model, a difference, 10 raters": lambda: claims.mixed(10, 15, covered=True),
        "study, score of a system over 15 passages": lambda: claims.passage_interval(20, 15),
    },
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--only", default="", help="only claims whose name matches this regular expression")
    parser.add_argument("--kind", choices=list(CLAIMS), help="only false alarms, or only coverage")
    parser.add_argument("--seed", type=int, default=0, help="other files")
    given = parser.parse_args()
    chosen = [
        (kind, name, make)
        for kind, claims in CLAIMS.items()
        for name, make in claims.items()
        if re.search(given.only, name) and given.kind in (None, kind)
    ]
    share = given.minutes * 60 / max(1, len(chosen))
    for kind, name, make in chosen:
        wanted, slack = (0.05, 0.015) if kind == "alarms" else (0.95, 0.025)
        start, outcomes = time.process_time(), []
        claim = make()
        for k in range(given.runs):
            outcomes.append(float(claim(np.random.default_rng([k, len(name), given.seed]), k)))
            if time.process_time() - start > share:
                break
        known = [o for o in outcomes if not math.isnan(o)]
        value = float(np.mean(known))
        error = math.sqrt(max(value * (1 - value), 0.01) / len(known))
        mark = "" if abs(value - wanted) <= slack else ("OUTSIDE " if abs(value - wanted) > slack + 2 * error else "~ ")
        print(f"{kind:8}  {value:6.1%} ± {error:.1%}  n = {len(known)}  {mark}{name}", flush=True)


if __name__ == "__main__":
    main()
