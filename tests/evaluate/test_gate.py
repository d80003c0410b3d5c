"""`elench gate`: passes, fails and is undecided where it should be, and says how many items would decide."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from elench.cli.gate import command
from elench.errors import UsageError
from elench.evaluate.gate import _needed, gate, parse_numbers
from elench.metrics.base import Score
from elench.runs import Outcome, Run


def run_of(values, spec="f1"):
    return Run([Outcome(str(i), None, {spec: Score(float(v))}) for i, v in enumerate(values)], [spec])


def noisy(shift, n=400, spread=0.1, seed=0):
    rng = np.random.default_rng(seed)
    old = rng.uniform(0.3, 0.7, n)
    return run_of(old + shift + rng.normal(0, spread, n)), run_of(old)


@pytest.mark.parametrize(("shift", "verdict", "code"), [(0.0, "pass", 0), (0.05, "pass", 0), (-0.1, "fail", 1)])
def test_a_large_sample_decides(shift, verdict, code):
    found = gate(*noisy(shift), {"f1": 0.03}, draws=500)
    assert (found.verdict, found.exit_code) == (verdict, code)


def test_the_interval_is_the_paired_t_interval():
    """On 400 independent items bootstrap-t and Student's t agree (scipy.stats.ttest_rel's confidence interval)."""
    from scipy.stats import ttest_rel

    new, old = noisy(-0.02)
    (change,) = gate(new, old, {"f1": 0.03}).changes
    limits = ttest_rel(new.values("f1"), old.values("f1")).confidence_interval(0.95)
    assert (change.low, change.high) == pytest.approx((limits.low, limits.high), abs=0.0008)
    assert change.n == 400


def test_a_small_sample_is_undecided_and_says_how_many_items_would_do():
    new, old = noisy(-0.01, n=30, seed=1)
    found = gate(new, old, {"f1": 0.02}, draws=500)
    (change,) = found.changes
    assert found.exit_code == 2 and change.needed
    # (1.96 + 0.84)² · 0.1² / 0.02² = 196 items, with the spread of these 30 (Cohen 1988, paired means)
    spread = np.std(np.subtract(new.values("f1"), old.values("f1")), ddof=1)
    assert change.needed == pytest.approx((2.8016 * spread / 0.02) ** 2, rel=0.02)
    assert f"about {change.needed:,} items would decide" in found.sentences()[1]
    decided = [gate(*noisy(0.0, n=change.needed, seed=s), {"f1": 0.02}, draws=200).exit_code == 0 for s in range(40)]
    assert 24 <= sum(decided) <= 40  # 80 % are promised


def test_near_the_limit_the_change_seen_says_how_many():
    assert _needed(1000, 0.002, -0.019, 0.02) == pytest.approx(1000 * (2.8016 * 0.002 / 0.001) ** 2, rel=0.001)


def test_a_real_but_small_loss_does_not_fail():
    found = gate(*noisy(-0.01, n=4000), {"f1": 0.02}, draws=500)
    assert found.changes[0].p < 0.05 and found.verdict == "pass"


def test_equal_runs_pass_however_small():
    same = run_of([0.1, 0.2, 0.3])
    assert gate(same, same).exit_code == 0 and "a drop of 0.02 matters" in gate(same, same).notes[0]


def test_a_metric_where_less_is_better_is_turned(monkeypatch):
    monkeypatch.setattr("elench.evaluate.gate.higher_is_better", lambda spec: False)
    assert gate(*noisy(0.1), {"f1": 0.03}, draws=500).verdict == "fail"
    assert gate(*noisy(-0.1), {"f1": 0.03}, draws=500).verdict == "pass"


def test_items_of_a_group_are_drawn_together():
    """Thirty copies of ten groups know no more than ten groups: the interval stays as wide."""
    from dataclasses import replace

    from elench.records.record import Record

    rng = np.random.default_rng(3)
    shift = np.repeat(rng.normal(0, 0.1, 10), 30)
    old = np.full(300, 0.5)
    new = run_of(old + shift)
    alone = gate(new, run_of(old), {"f1": 0.02}, draws=500).changes[0]
    grouped = [replace(o, record=Record(o.id, group=str(i // 30))) for i, o in enumerate(new.outcomes)]
    together = gate(replace(new, outcomes=grouped), run_of(old), {"f1": 0.02}, draws=500).changes[0]
    assert together.high - together.low > 4 * (alone.high - alone.low)


def test_numbers_of_metrics():
    assert parse_numbers(["support=-0.02, bleu[n=2,judge=answer]=-1"], "--min-effect") == {
        "support": -0.02,
        "bleu[n=2,judge=answer]": -1.0,
    }
    for bad in ("f1", "f1=x", "=3", "f1=nan"):
        with pytest.raises(UsageError, match="write METRIC=NUMBER"):
            parse_numbers([bad], "--min-effect")


def written(path, values):
    path.write_text("".join(json.dumps({"id": str(i), "scores": {"f1": v}}) + "\n" for i, v in enumerate(values)))
    return str(path)


def test_the_command(tmp_path):
    old = written(tmp_path / "old.jsonl", [0.5 + 0.001 * (i % 7) for i in range(60)])
    new = written(tmp_path / "new.jsonl", [0.3 + 0.002 * (i % 5) for i in range(60)])
    summary = tmp_path / "summary.md"
    done = CliRunner().invoke(command, [new, "--baseline", old, "--min-effect", "f1=-0.02", "--summary", str(summary)])
    assert done.exit_code == 1 and "f1 is significantly worse, by 0.19" in done.output
    assert (
        "| f1 | 0.5029 | 0.3040 | -0.1989 |" in summary.read_text()
        and "**The gate says: fail.**" in summary.read_text()
    )
    done = CliRunner().invoke(command, [old, "--baseline", new, "--format", "json"])
    assert done.exit_code == 0 and json.loads(done.output)["verdict"] == "pass"
    assert CliRunner().invoke(command, [new, "--fail-under", "f1=0.4"]).exit_code == 1
    assert CliRunner().invoke(command, [new, "--fail-under", "f1=0.2"]).exit_code == 0


def test_what_cannot_be_compared_is_refused(tmp_path):
    new = run_of([0.1, 0.2])
    with pytest.raises(UsageError, match="bleu is not in both runs; they share: f1"):
        gate(new, new, {"bleu": 0.1})
    other = Run([Outcome("x", None, {"f1": Score(0.5)})], ["f1"])
    with pytest.raises(UsageError, match="no record is scored in both runs"):
        gate(new, other)
    done = CliRunner().invoke(command, [written(tmp_path / "a.jsonl", [1.0])])
    assert isinstance(done.exception, UsageError)
