"""Figures of mt-metrics-eval (commit 68a481a, scipy 1.17) on a made set like WMT's: 6 systems × 10 segments.

Computed once, outside; the set has no random numbers, so it is rebuilt here exactly.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from elench.evaluate.judgements import Judgements
from elench.records.record import Record
from elench.stats.correlation import correlate
from elench.stats.pairwise import pair_verdicts, soft_accuracy
from elench.stats.resampling_plan import ResamplingPlan
from elench.stats.significance import Design, permutation_difference, permuted_gaps, williams

SYSTEMS, SEGMENTS = 6, 10
K = np.arange(SYSTEMS * SEGMENTS)
SYSTEM, ITEM = K // SEGMENTS, K % SEGMENTS
GOLD = np.floor(3 + 1.5 * np.sin(1.7 * ITEM) + 0.5 * SYSTEM + 1.2 * np.sin(3.1 * K))
A = np.round(0.6 * np.sin(1.7 * ITEM) + 0.3 * SYSTEM + 0.8 * np.sin(3.1 * K + 0.7) + 0.3 * np.cos(5.3 * K), 2)
B = np.round(0.3 * np.cos(1.1 * ITEM) + 0.2 * SYSTEM + 0.5 * np.sin(3.1 * K - 0.9) + 0.6 * np.cos(2.3 * K), 2)

VALUES = {
    ("segment", "pearson"): (0.8613473236442851, 0.4884709840933177),
    ("segment", "spearman"): (0.8244483317435188, 0.501501170038308),
    ("segment", "kendall-b"): (0.6853334598931031, 0.3723018412667439),
    ("segment", "accuracy"): (0.7395480225988701, 0.592090395480226),
    ("group", "pearson"): (0.6538413574890234, 0.503476628000153),
    ("group", "spearman"): (0.6537649209290097, 0.5113956415872367),
    ("group", "kendall-b"): (0.6102150801172479, 0.4228310917463081),
    ("group", "accuracy"): (0.6533333333333331, 0.5533333333333335),
    ("system", "pearson"): (0.9977082055615267, 0.9902934919960993),
    ("system", "spearman"): (1.0, 1.0),
    ("system", "kendall-b"): (0.9999999999999999, 0.9999999999999999),
}


def judgements() -> Judgements:
    records = [Record(str(k), group=f"g{ITEM[k]}", system=f"s{SYSTEM[k]}") for k in K]
    return Judgements(
        records, ("a", "b"), np.stack([A, B], 1), dict.fromkeys("ab", "metric"), ("q",), GOLD[:, None], "made"
    )


@pytest.mark.parametrize("level", ["segment", "group", "system"])
def test_coefficients_at_every_level(level: str) -> None:
    found = correlate(judgements(), level, draws=100)
    for (where, name), expected in VALUES.items():
        if where == level:
            assert found.values[name][:, 0] == pytest.approx(expected, abs=1e-9), name


def test_tie_threshold_of_the_accuracy() -> None:
    assert correlate(judgements(), "group", draws=100).epsilon[0, 0] == pytest.approx(0.57, abs=1e-9)


def test_soft_pairwise_accuracy_with_the_same_exchanges() -> None:
    signs = np.rint(np.random.default_rng(4).random(size=(1000, SEGMENTS), dtype=np.float32)) * 2.0 - 1.0
    exact = np.round(np.stack([A, B], 1) * 64) / 64  # mt-metrics-eval adds in float32: sixty-fourths stay exact there
    table = soft_accuracy(exact, GOLD[:, None], ITEM, SYSTEM, signs.astype(np.float64))
    assert table is not None
    i, j = np.triu_indices(SYSTEMS, 1)
    assert table[i, j].mean(axis=0)[:, 0] == pytest.approx([0.9782666666666666, 0.8862], abs=1e-9)


PERMUTED = {
    ("segment", "pearson"): (0.0, 0.37287633955096766, 0.6552609089919168 - 0.695111433807483),
    ("segment", "spearman"): (0.0, 0.3229471617052109, 0.6119318618038466 - 0.6937445007128431),
    ("segment", "kendall-b"): (0.0, 0.3130316186263592, 0.4707105725236373 - 0.54598887146483),
    ("group", "pearson"): (0.22, 0.15036472948887036, 0.6929459269350502 - 0.579855495546591),
    ("group", "spearman"): (0.16, 0.14236927934177313, 0.6458477687202928 - 0.5288704485401299),
    ("group", "kendall-b"): (0.04, 0.1873839883709399, 0.5494628039552665 - 0.4616000360777293),
}
"""(one-sided share of 50 exchanges, difference, difference after the first exchange), numpy.random.seed(7)"""


@pytest.mark.parametrize(("level", "name"), PERMUTED)
def test_perm_both_with_the_same_exchanges(level: str, name: str) -> None:
    share, difference, first = PERMUTED[level, name]
    order = np.lexsort((SYSTEM, ITEM)) if level == "group" else K  # mt-metrics-eval goes through items, then systems
    state = np.random.RandomState(7)
    swap = np.array([1 - state.binomial(1, 0.5, len(K)) for _ in range(50)], dtype=np.float64)
    x, y = np.stack([A, B], 1)[order], GOLD[order, None]
    plan = ResamplingPlan(ITEM[order], SYSTEM[order], True)
    gaps = permuted_gaps(x, y, plan, level, name, swap)
    assert gaps[0] == pytest.approx(first, abs=1e-9)
    assert (gaps >= difference - 1e-12).mean() == pytest.approx(share, abs=1e-9)
    design = Design(level, ITEM.tolist(), SYSTEM.tolist())
    found = permutation_difference(GOLD, A, B, name, design=design, by="records", draws=200)
    assert found.value == pytest.approx(difference, abs=1e-9)


def test_swapped_pairs_of_the_accuracy() -> None:
    """Difference .09999999999999987 and one-sided share .0625 of 2,000 random swaps; the exact share is binomial."""
    gap, _ = pair_verdicts(np.stack([A, B], 1), GOLD[:, None], ITEM, SYSTEM, "group")
    assert gap.sum() == pytest.approx(0.1, abs=1e-9)
    won, lost = int((gap > 0).sum()), int((gap < 0).sum())
    assert binomtest(won, won + lost, alternative="greater").pvalue == pytest.approx(0.0625, abs=0.015)
    design = Design("group", ITEM.tolist(), SYSTEM.tolist())
    found = permutation_difference(GOLD, A, B, "accuracy", design=design, by="records")
    assert found.p == pytest.approx(binomtest(won, won + lost).pvalue)


def test_williams() -> None:
    assert williams(0.6, 0.45, 0.5, 80) == pytest.approx(0.10195868905482455, abs=1e-9)
