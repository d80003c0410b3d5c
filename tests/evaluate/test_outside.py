"""What an outside tester found: coefficients mixed up, baselines turned round, verdicts from three points."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from elench.errors import UsageError
from elench.evaluate.judgements import from_records, join_scores
from elench.evaluate.meta import evaluate
from elench.evaluate.slices import slices
from elench.records.record import Record
from elench.stats.correlation import correlate
from elench.stats.resampling import fisher_interval
from elench.stats.significance import bootstrap_difference, permutation_difference

RNG = np.random.default_rng(4)
TRUTH = RNG.integers(1, 6, 60).astype(float)
GOOD, POOR = TRUTH + RNG.normal(size=60), TRUTH + 4 * RNG.normal(size=60)


def table(scores, **kinds):
    records = [
        Record(
            f"r{i}",
            question=" ".join(["word"] * (1 + i % 7)),
            judge="question",
            human={"h": TRUTH[i]},
            extra={"scores": {name: column[i] for name, column in scores.items() if column[i] is not None}},
        )
        for i in range(60)
    ]
    return from_records(records)


def test_the_difference_in_accuracy_is_tested_as_accuracy() -> None:
    found = bootstrap_difference(TRUTH, GOOD, POOR, "accuracy")
    other = bootstrap_difference(TRUTH, GOOD, POOR, "pearson")
    assert found.value is not None and found.low is not None and found.high is not None
    assert found.low < found.value < found.high and (found.low, found.high) != (other.low, other.high)
    swapped = permutation_difference(TRUTH, GOOD, POOR, "accuracy")
    assert swapped.p is None and "not independent" in (swapped.reason or "")


def test_a_baseline_is_not_turned_round_in_accuracy_and_a_constant_has_none() -> None:
    judged = table({"good": GOOD.tolist(), "flat": [1.0] * 60, "turned": (-TRUTH).tolist()})
    judged = judged.with_metrics(["base"], POOR[:, None], "sanity")
    judged = judged.with_metrics(["still"], np.ones((60, 1)), "sanity")
    rows = {row.metric: row for row in evaluate(judged, coefficient="accuracy").rows}
    assert rows["flat"].values["accuracy"] is None and "same score" in (rows["flat"].reason or "")
    assert rows["good"].mark == "" and rows["turned"].mark == "≤ base"
    group = correlate(judged.choose(["flat"]), "group", coefficients=("accuracy",))
    assert np.isnan(group.values["accuracy"]).all()


@pytest.mark.parametrize("known", [3, 4])
def test_a_few_points_in_a_line_give_no_verdict(known) -> None:
    few = [float(TRUTH[i]) if i < known else None for i in range(60)]
    judged = table({"few": few, "good": GOOD.tolist()}).with_metrics(["base"], POOR[:, None], "sanity")
    rows = {row.metric: row for row in evaluate(judged).rows}
    assert rows["few"].values["pearson"] == pytest.approx(1) and rows["few"].low["pearson"] is None
    assert rows["few"].mark == "≤ base" and rows["good"].mark == ""
    low, _ = fisher_interval(np.array([0.5]), np.array([3]), "pearson")
    assert np.isnan(low[0])


def test_versions_are_names_and_not_numbers() -> None:
    judged = table({"good": GOOD.tolist()})
    labelled = [replace(r, system=("1.0.1", "1.2", ".")[i % 3]) for i, r in enumerate(judged.records)]
    assert [label for label, _ in slices(from_records(labelled), "system")] == ["1.2", ".", "1.0.1"]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"id": "r0", "system": ["a"], "scores": {"m": 1}}', "system"),
        ('{"id": "r0", "scores": {"m": "0.5"}}', "must be a number"),
        ('{"id": "r0", "scores": {"m": true}}', "must be a number"),
        ('{"id": "r0", "scores": {"m": 1' + "0" * 400 + "}}", "too large"),
        ('{"id": "r0", "scores": ' + "[" * 100_000 + "}", "JSON"),
    ],
)
def test_a_bad_score_line_is_named(tmp_path: Path, line, told) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(UsageError, match=rf"s\.jsonl:1: .*{told}"):
        join_scores(table({"good": GOOD.tolist()}), path)


def run(*arguments):
    return subprocess.run([sys.executable, "-m", "elench", *map(str, arguments)], capture_output=True, text=True)


@pytest.fixture
def perturbed(tmp_path: Path) -> Path:
    lines = [
        {"id": f"{label}{i}", "question": f"Who saw {i}?", "judge": "question",
         "perturbed": {"kind": "drop", "label": label, "of": str(i)}}
        for i in range(6) for label in ("positive", "negative")
    ]  # fmt: skip
    path = tmp_path / "p.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.parametrize(
    ("value", "code", "said"), [(None, 2, "no metric has scores of both"), (1.0, 0, "another-tool")]
)
def test_auc_takes_columns_of_other_tools_and_names_what_is_missing(perturbed, tmp_path, value, code, said) -> None:
    scores = tmp_path / "s.jsonl"
    ids = [json.loads(line)["id"] for line in perturbed.read_text().splitlines()]
    scores.write_text("".join(json.dumps({"id": i, "scores": {"another-tool": value}}) + "\n" for i in ids))
    found = run("auc", perturbed, "--scores", scores)
    assert found.returncode == code and said in found.stdout + found.stderr and "Traceback" not in found.stderr


def test_a_negative_seed_is_refused(perturbed) -> None:
    found = run("meta", perturbed, "--seed", "-1")
    assert found.returncode == 2 and "-1" in found.stderr and "Traceback" not in found.stderr
