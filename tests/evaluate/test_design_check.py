"""--calibrate and --rated: simulations of the user's own design, and what a difference buys."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from elench.cli import cli
from elench.evaluate.compare import compare
from elench.evaluate.design_check import check_meta
from elench.stats.preference import agreement
from tests.evaluate.made import table

WORDS = "the old boat lay near a red lamp and seven small birds sang about rain all night long".split()  # noqa: SIM905


def answers(systems: dict[str, float], n: int, rated: bool, seed: int = 0) -> list[dict]:
    """Answers that copy each reference word with a given probability; people see the share, with noise."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        reference = list(rng.choice(WORDS, 12))
        for system, keep in systems.items():
            kept = rng.random(12) < keep
            words = [w if k else "noise" for w, k in zip(reference, kept, strict=True)]
            row = {"id": str(i), "system": system, "group": f"g{i // 2}", "judge": "answer", "question": "What?",
                   "answer": " ".join(words), "references": [" ".join(reference)]}  # fmt: skip
            if rated:
                row["human"] = {"quality": float(np.clip(round(1 + 4 * kept.mean() + 0.7 * rng.normal()), 1, 5))}
            rows.append(row)
    return rows


def test_the_tests_of_compare_keep_their_promise_on_the_users_file() -> None:
    found = compare(answers({"a": 0.75, "b": 0.55}, 40, False), "f1", draws=200, calibrate=True)
    checked = found.extra["calibration"][0]
    assert checked["false_alarms"] <= 0.12 and checked["coverage"] >= 0.87 and checked["power"] > 0.5  # 200 runs
    assert "On simulated files with this design" in found.render()


def test_meta_is_checked_on_the_users_file() -> None:
    checked = check_meta(table(items=30, systems=4), "segment", None, "pearson", 0.05, runs=40, draws=100)
    assert len(checked) == 1 and checked[0].runs == 40
    assert checked[0].false_alarms <= 0.2 and (checked[0].coverage or 0) >= 0.8


def test_a_larger_difference_buys_more_agreement() -> None:
    rated = answers({f"s{k}": 0.3 + 0.07 * k for k in range(8)}, 30, True)
    small, large = (
        compare(answers({"a": 0.5 + gap, "b": 0.5}, 40, False, 3), "f1", draws=200, rated=rated).extra["preferences"][0]
        for gap in (0.02, 0.3)
    )
    assert 0.5 <= small["agree"] < large["agree"] <= 1 and large["agree"] > 0.9
    assert small["low"] <= small["agree"] <= small["high"] and small["systems"] == 8


def rated_systems(rng, systems: int, items: int):
    """Scores and ratings of systems that differ, with noise of their own on every item."""
    quality, hard = 0.3 * rng.normal(size=systems), rng.normal(size=(items, 1))
    people = quality + hard + rng.normal(size=(items, systems))
    return people + 2 * rng.normal(size=people.shape), people


def test_the_share_of_people_who_agree_is_that_of_new_pairs_of_systems() -> None:
    """Against 4,000 pairs of new systems on 60 items; their share at leads near .3 is what the interval must cover."""
    rng = np.random.default_rng(0)
    agree = []
    for _ in range(4000):
        score, people = rated_systems(rng, 2, 60)
        lead = (score[:, 0] - score[:, 1]).mean()
        if 0.2 < abs(lead) < 0.4:
            agree.append(lead * (people[:, 0] - people[:, 1]).mean() > 0)
    truth = np.mean(agree)
    found = []
    for _ in range(60):
        score, people = rated_systems(rng, 12, 60)
        item, system = (place.ravel() for place in np.indices(score.shape))
        found += agreement(score.ravel(), people.ravel(), item, system, item, np.array([0.3]), 60)
    assert np.mean([one.value for one in found]) == pytest.approx(truth, abs=0.03)
    assert np.mean([one.low <= truth <= one.high for one in found]) >= 0.85  # 95 % - 3.5 standard errors of 60 runs


def test_two_rated_systems_say_nothing_and_four_give_no_interval() -> None:
    rng = np.random.default_rng(1)
    for systems in (2, 4):
        score, people = rated_systems(rng, systems, 30)
        item, system = (place.ravel() for place in np.indices(score.shape))
        one = agreement(score.ravel(), people.ravel(), item, system, item, np.array([0.3]), 30)[0]
        assert one.low is None and one.reason and f"only {systems} rated systems" in one.reason
        assert (one.value is None) == (systems == 2)


def test_ratings_are_saved_where_both_systems_are_partly_rated() -> None:
    rows = answers({"a": 0.7, "b": 0.5}, 300, True, 1)
    for row in rows:
        if int(row["id"]) >= 40:
            del row["human"]
    found = compare(rows, "f1", draws=200, rated=rows)
    powered = found.extra["powered"][0]
    assert powered["rated"] == 40 and powered["saved"] >= 5 and powered["low"] < powered["difference"] < powered["high"]


def test_ratings_of_different_items_give_no_difference_and_the_reason() -> None:
    rows = answers({"a": 0.7, "b": 0.5}, 100, True, 1)
    rated = [r for r in rows if int(r["id"]) % 2 == (r["system"] == "b") or int(r["id"]) < 4]
    powered = compare(rows, "f1", draws=200, rated=rated).extra["powered"][0]
    assert powered["difference"] is None
    assert powered["reason"] == "only 4 items are rated for both systems; rate the same items of both (at least 5)"


def test_ratings_in_a_file_of_their_own_use_the_scores_of_everything_compared() -> None:
    rows = answers({"a": 0.7, "b": 0.5}, 300, True, 1)
    rated = [row for row in rows if int(row["id"]) < 40]
    gaps = [row if row in rated else {k: v for k, v in row.items() if k != "human"} for row in rows]
    apart, together = (compare(rows, "f1", draws=200, rated=some).extra for some in (rated, gaps))
    assert apart["powered"] == together["powered"] and apart["means"] == together["means"]
    means = apart["means"]["f1"][0]["systems"]
    assert {system: (found["rated"], found["scored"]) for system, found in means.items()} == {
        "a": (40, 300),
        "b": (40, 300),
    }
    people = {s: np.mean([r["human"]["quality"] for r in rated if r["system"] == s]) for s in "ab"}
    assert {s: means[s]["alone"] for s in "ab"} == pytest.approx(people)
    assert all(found["worth"] > 1 for found in means.values())


def test_the_command_says_why_there_is_no_share(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in answers({"a": 0.7, "b": 0.5}, 20, True)))
    done = CliRunner().invoke(cli, ["compare", str(path), "-m", "f1", "--rated", str(path), "--calibrate"])
    assert done.exit_code == 0 and "people agree" in done.output and "false alarms" in done.output, done.output
    assert "only 2 rated" in done.output


def test_no_share_of_people_is_printed_as_certain() -> None:
    rows = answers({"a": 0.9, "b": 0.6, "c": 0.2}, 60, True, 1)
    found = compare(rows, "f1", draws=200, rated=rows)
    shares = [pair["agree"] for pair in found.extra["preferences"]]
    assert max(shares) > 0.995
    assert ">99%" in found.render() and "100% [" not in found.render()
