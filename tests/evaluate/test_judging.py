"""`elench judge` and the intervals of predicted means."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from elench.cli import cli
from elench.errors import UsageError
from elench.evaluate.predicted import predicted_mean
from tests.evaluate.rated import rated_records, write


def test_intervals_of_predicted_means_cover_the_human_mean():
    """95 ± 3 % of 800 simulated systems, whose misses have known system, group and record parts."""
    rng = np.random.default_rng(7)
    noise = {"system": 0.2, "group": 0.3, "record": 0.6}
    hits = 0
    for _ in range(800):
        groups = np.repeat(np.arange(15), 2)
        predicted = rng.normal(3, 0.5, size=30)
        missed = 0.2 * rng.normal() + 0.3 * rng.normal(size=15)[groups] + 0.6 * rng.normal(size=30)
        found = predicted_mean(predicted.tolist(), groups.astype(str).tolist(), noise)
        hits += found.low <= (predicted + missed).mean() <= found.high
    assert 0.92 <= hits / 800 <= 0.98


def run(*arguments):
    return CliRunner().invoke(cli, ["judge", *map(str, arguments)], catch_exceptions=False, standalone_mode=False)


def test_judge_prints_a_record_and_a_file(tmp_path):
    rated = write(tmp_path / "rated.jsonl", rated_records())
    profile = tmp_path / "p.json"
    arguments = ["calibrate", str(rated), "-m", "f1,length", "-o", str(profile), "--sample", "0"]
    CliRunner().invoke(cli, arguments, catch_exceptions=False)
    one = run("--question", "What is it?", "--answer", "a stone bridge", "--reference", "bridge", "--profile", profile,
              "--judge", "answer").output  # fmt: skip
    assert "good" in one and "f1" in one
    many = run(rated, "--profile", profile).output
    mean = np.mean([json.loads(line)["human"]["good"] for line in rated.read_text().splitlines()])
    *systems, trust = [line.split() for line in many.splitlines() if line.split()[:1] == ["good"]]
    assert len(systems) == 2 and np.mean([float(row[2]) for row in systems]) == pytest.approx(mean, abs=0.1)
    found = json.loads(profile.read_text())["dimensions"]["good"]
    assert trust[1:5] == [f"{found['scale'][0]:g}", "to", f"{found['scale'][1]:g}", f"{found['full']['r']:.3f}"[1:]]
    assert "learned from rated.jsonl: intervals hold for texts like those" in " ".join(many.split())
    gaps = [
        {"id": str(k), "answer": text, "references": ["b"], "judge": "answer"} for k, text in enumerate(["b", "", ""])
    ]
    assert "2 of 3 records: empty answer" in run(write(tmp_path / "gaps.jsonl", gaps), "--profile", profile).stdout
    renamed = [
        {"text": r["answer"], "gold": r["references"], "question": "What?", "context": "c"} for r in rated_records()
    ]
    other = run(
        write(tmp_path / "x.jsonl", renamed), "--map", "answer=text,references=gold", "--judge", "answer",
        "--profile", profile,
    )  # fmt: skip
    assert "judging answers" in other.stderr and "good" in other.stdout
    assert "judging questions; for the answer: --judge answer" in run(
        "--question", "What is it?", "--answer", "a", "--context", "a", "--profile", profile).stderr  # fmt: skip


def test_judge_wants_a_file_or_a_text():
    with pytest.raises(UsageError, match="give a FILE of records, or one text"):
        run()
