"""Systems side by side: significance that can be trusted, in four formats."""

import json

import numpy as np
import pytest
from scipy import stats

from elench import compare
from elench.errors import UsageError
from elench.evaluate.compare import compare_result

WORDS = "the old boat lay near a red lamp and seven small birds sang about rain all night long".split()  # noqa: SIM905


def records(quality, n=60, seed=0):
    """Systems that copy each reference word with a given probability."""
    rng = np.random.default_rng(seed)
    made = []
    for i in range(n):
        reference = list(rng.choice(WORDS, 12))
        for system, keep in quality.items():
            words = [w if rng.random() < keep else "noise" for w in reference]
            made.append(
                {
                    "id": str(i),
                    "system": system,
                    "judge": "answer",
                    "answer": " ".join(words),
                    "references": [" ".join(reference)],
                }
            )
    return made


def test_a_better_system_wins_and_equal_systems_do_not():
    table = compare(records({"good": 0.9, "bad": 0.5, "twin": 0.5}), ["f1", "bleu"], draws=500)
    for column in table.columns:
        assert set(column.beaten("good", 0.05)) == {"bad", "twin"}
        assert column.beaten("bad", 0.05) == [] == column.beaten("twin", 0.05)
        low, high = column.intervals["good"] or (1, 0)
        assert low < column.scores["good"] < high
        assert all((p.bootstrap or 0) >= 1 / 501 and p.randomisation >= 1 / 501 and p.n == 60 for p in column.pairs)


def test_bleu_is_compared_by_its_corpus_score():
    import elench

    made = records({"a": 0.9, "b": 0.5})
    table = compare(made, "bleu", draws=200)
    alone = elench.score([r for r in made if r["system"] == "a"], "bleu").summary()["bleu"]
    assert table.columns[0].scores["a"] == pytest.approx(alone["corpus"])


def test_under_no_difference_few_pairs_are_called_significant():
    hits = sum(
        compare(records({"a": 0.6, "b": 0.6}, n=40, seed=s), "f1", draws=200).columns[0].pairs[0].randomisation < 0.05
        for s in range(60)
    )
    assert hits <= 9  # 3 expected; more than 9 of 60 at 5 % has a chance below 0.1 %


def test_the_same_seed_gives_the_same_bytes():
    made = records({"a": 0.9, "b": 0.8})
    assert compare(made, "f1", draws=200, seed=3).render("json") == compare(made, "f1", draws=200, seed=3).render(
        "json"
    )


def test_formats():
    table = compare(records({"x_1": 0.9, "y": 0.4}), "f1", draws=200)
    assert json.loads(table.render("json"))["metrics"]["f1"]["systems"]["x_1"]["beats"] == ["y"]
    assert "<sup>b</sup>" in table.render("markdown") and "n = 60" in table.render("markdown")
    assert "x\\_1" in table.render("latex") and "$^{b}$" in table.render("latex")
    assert "^b" in table.render() and "x_1 − y" in table.render()


def test_items_are_paired_by_group_where_ids_differ():
    made = [r | {"group": r["id"], "id": f"{r['id']}-{r['system']}"} for r in records({"a": 0.9, "b": 0.5})]
    table = compare(made, "f1", draws=200)
    assert table.columns[0].pairs[0].n == 60 and "paired by group" in table.render()


def test_what_cannot_be_compared_is_refused():
    made = records({"a": 0.9, "b": 0.5}, n=3)
    with pytest.raises(UsageError, match="two systems"):
        compare([r for r in made if r["system"] == "a"], "f1")
    with pytest.raises(UsageError, match="nothing pairs them"):
        compare([r | {"id": f"{r['id']}-{r['system']}"} for r in made], "f1")


def scored(values, groups=None):
    """A result with given scores: {system: {id: score}}, None where unscored."""
    from elench.engine.result import Result
    from elench.metrics import metric
    from elench.metrics.base import Score
    from elench.records.record import Record
    from elench.runs import Outcome

    f1 = metric("f1")
    outcomes = []
    for system, items in values.items():
        for key, value in items.items():
            record = Record(key, system=system, group=None if groups is None else groups[key])
            known = {} if value is None else {"f1": Score(value)}
            outcomes.append(Outcome(key, system, known, {} if known else {"f1": "no answer"}, record))
    return Result(outcomes, ["f1"], metrics=[f1])


def test_few_pairs_are_tested_exactly_as_scipy_does():
    rng = np.random.default_rng(0)
    a, b = rng.random(9), rng.random(9)
    found = compare_result(
        scored({"a": dict(zip("abcdefghi", a, strict=True)), "b": dict(zip("abcdefghi", b, strict=True))})
    )
    expected = stats.permutation_test(
        (a, b), lambda x, y: np.mean(x - y), permutation_type="samples", n_resamples=np.inf
    )
    assert found.columns[0].pairs[0].randomisation == pytest.approx(expected.pvalue, abs=1e-12)


def grouped(rng, groups, each, same):
    """Two equal systems whose difference is shared within a passage (intraclass correlation `same`)."""
    n = groups * each
    shared = np.repeat(rng.normal(size=groups), each) * np.sqrt(same)
    gap = shared + rng.normal(size=n) * np.sqrt(1 - same)
    base = rng.normal(size=n)
    keys = [str(k) for k in range(n)]
    values = {"a": dict(zip(keys, base + gap / 2, strict=True)), "b": dict(zip(keys, base - gap / 2, strict=True))}
    return scored(values, {key: str(int(key) // each) for key in keys})


def test_passages_with_several_questions_raise_no_false_alarms():
    """The audit's case: 20 passages × 5 questions, intraclass correlation .6; single items alarmed in 29 %."""
    rng = np.random.default_rng(1)
    runs = [compare_result(grouped(rng, 20, 5, 0.6), draws=300, seed=k).columns[0].pairs[0] for k in range(300)]
    for name in ("randomisation", "bootstrap"):
        alarms = np.mean([getattr(run, name) < 0.05 for run in runs])
        assert 0.01 <= alarms <= 0.10, (name, alarms)  # 5 % ± 4 standard errors of 300 runs
    cover = np.mean([run.low <= 0 <= run.high for run in runs])
    assert 0.90 <= cover <= 0.99


def test_the_plan_is_printed_with_its_effective_n():
    column = compare_result(grouped(np.random.default_rng(0), 20, 5, 0.9), draws=200).columns[0]
    assert column.plan.startswith("resampling 20 groups (100 items); effective n ≈ ")
    assert 20 <= int(column.plan.split("≈")[1]) <= 45 and (column.n, column.groups) == (100, 20)


def test_only_common_items_count_and_coverage_is_stated():
    a = {str(k): k % 7 / 7 for k in range(30)}
    b = {str(k): a[str(k)] if k < 30 else 1.0 for k in range(10, 40)} | {"12": None}
    found = compare_result(scored({"a": a, "b": b}), draws=200)
    column = found.columns[0]
    assert column.n == 19 and column.pairs[0].difference == 0 and column.pairs[0].randomisation == 1
    assert "f1: compared on 19 items that all systems have; scored items: a 30, b 29." in found.render()
    assert "f1: unscored records: b 1." in column.notes


def test_systems_without_common_items_are_refused():
    with pytest.raises(UsageError, match="a and b share no item that f1 scored"):
        compare_result(scored({"a": {"1": 0.5, "2": None}, "b": {"1": None, "2": 0.5}}))
    with pytest.raises(UsageError, match="f1 scored no record of b"):
        compare_result(scored({"a": {"1": 0.5}, "b": {"1": None}}))


def test_three_items_win_nothing_and_get_no_interval():
    found = compare_result(scored({"a": {"1": 0.9, "2": 0.8, "3": 0.9}, "b": {"1": 0.1, "2": 0.2, "3": 0.1}}))
    pair = found.columns[0].pairs[0]
    assert pair.low is None and pair.bootstrap is None and pair.randomisation == 0.25  # 2 of 2³ exchanges
    assert found.columns[0].intervals["a"] is None and "no randomisation p-value can fall below 0.25" in found.render()
    assert (
        compare_result(
            scored({"a": {"1": 0.9, "2": 0.8, "3": 0.9}, "b": {"1": 0.1, "2": 0.2, "3": 0.1}}), test="bootstrap"
        )
        .columns[0]
        .beaten("a", 0.05)
        == []
    )


def test_a_missing_interval_and_p_have_a_reason_in_the_table():
    five = {"a": dict(zip("12345", (0.7, 0.8, 0.7, 0.8, 0.7), strict=True)), "b": dict.fromkeys("12345", 0.3)}
    assert "Interval –: too few different items or groups" in compare_result(scored(five)).render()
    row = next(line for line in compare_result(scored({"a": {"1": 0.9, "2": 0.8}, "b": {"1": 0.1, "2": 0.2}}),
                                               test="bootstrap").render().splitlines() if "a − b" in line)  # fmt: skip
    assert row.split()[-3:] == ["–", "–", "2"]  # p, Holm, items


def test_many_systems_can_still_differ_after_holm():
    """105 pairs: a sign test has p = 2 · 2^-40, far below .05 / 105; 2,000 draws alone could not show it."""
    systems = {f"s{k:02}": {str(i): k / 20 + 0.01 * ((7 * i + k) % 5) for i in range(40)} for k in range(15)}
    found = compare_result(scored(systems), draws=2000)
    assert all(pair.corrected < 0.05 for pair in found.columns[0].pairs) and found.draws == 5 * 105 / 0.05
    assert len(found.columns[0].beaten("s14", 0.05)) == 14


def test_a_difference_of_scores_between_0_and_1_has_limits_between_minus_1_and_1():
    five = {"a": dict(zip("12345", (0.9, 0.1, 0.9, 0.2, 0.9), strict=True)),
            "b": dict(zip("12345", (0.1, 0.9, 0.2, 0.1, 0.0), strict=True))}  # fmt: skip
    pair = compare_result(scored(five)).columns[0].pairs[0]
    assert pair.low is not None and pair.high is not None and -1 <= pair.low < pair.difference < pair.high <= 1


def test_the_interval_of_the_difference_equals_the_t_interval_for_normal_items():
    rng = np.random.default_rng(3)
    gap = rng.normal(0.1, 1, 200)
    keys = [str(k) for k in range(200)]
    found = compare_result(scored({"a": dict(zip(keys, gap, strict=True)), "b": dict.fromkeys(keys, 0.0)}), draws=4000)
    pair = found.columns[0].pairs[0]
    low, high = stats.ttest_1samp(gap, 0).confidence_interval()
    assert (pair.low, pair.high) == (pytest.approx(low, abs=0.01), pytest.approx(high, abs=0.01))
    assert pair.effect == pytest.approx(gap.mean() / gap.std(ddof=1)) and pair.wins == pytest.approx((gap > 0).mean())


def test_holm_over_metrics_counts_all_pairs():
    made = records({"a": 0.7, "b": 0.6}, n=30)
    one, both = (compare(made, ["f1", "bleu"], draws=300, family=family) for family in ("metric", "all"))
    raw = [c.pairs[0].randomisation for c in both.columns]
    assert [c.pairs[0].corrected for c in one.columns] == raw
    assert sorted(c.pairs[0].corrected for c in both.columns)[0] == pytest.approx(min(1.0, 2 * min(raw)))


def test_metrics_with_plans_of_their_own_keep_their_names_in_the_notes():
    rows = [{"id": str(i), "system": s, "judge": "answer", "answer": a, "references": ["a fox"] if i else []}
            for i in range(8) for s, a in (("x", "a fox" if i % 2 else "dog"), ("y", "fox"))]  # fmt: skip
    notes = compare(rows, "f1,length", draws=100).all_notes()
    assert notes[1].startswith("f1: resampling 7 items") and notes[2].startswith("length: resampling 8 items")
