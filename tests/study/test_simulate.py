"""Simulated crowds: the filter keeps readers and rejects clickers; the commands lead from file to ranking."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from elench.cli import cli
from elench.errors import UsageError
from elench.records.record import read_records, write_records
from elench.show.study_tables import simulation_text
from elench.study.analyse.crowd import Crowd
from elench.study.analyse.simulate import simulate_study
from tests.study.conftest import MakeStudy, outputs


def test_readers_pass_and_clickers_fail(make_study: MakeStudy) -> None:
    study = make_study()
    result = simulate_study(study, Crowd.parse("careful=1,straight=1,random=1", 30, 2), 4, 0)
    kept = {row.kind: row.share for row in result.kinds}
    assert kept["careful"] > 0.95 and kept["straight"] == 0  # type: ignore[operator]
    assert kept["random"] < 0.2  # type: ignore[operator]
    assert result.false_accept_n == 80 and result.false_reject_n == 40
    assert 0 < result.spearman_filtered <= 1 and 0 < result.spearman_unfiltered <= 1  # type: ignore[operator]
    assert len(result.replication) == 2
    assert "false accept" in simulation_text(result) and json.loads(result.to_json())["runs"] == 4
    assert simulate_study(study, Crowd.parse("careful=1,straight=1,random=1", 30, 2), 4, 0) == result


def test_every_protocol_can_be_simulated(make_study: MakeStudy) -> None:
    for name in ("qg-expert", "qa-correctness", "qg-similarity"):
        study = make_study(name, systems=3, passages=10)
        assert simulate_study(study, Crowd.parse("careful=1", 6, 1), 2, 0).spearman_filtered is not None


@pytest.mark.parametrize(
    ("kinds", "message"), [("clever=1", "no kind 'clever'"), ("careful", "KIND=SHARE"), ("careful=-1", "negative")]
)
def test_wrong_kinds_are_named(kinds: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Crowd.parse(kinds, 10, 1)


def run(*words: str, code: int = 0) -> str:
    """A command, as from the shell."""
    result = CliRunner().invoke(cli, ["study", *words])
    if code == 2:
        assert isinstance(result.exception, UsageError), result.output
        return str(result.exception)
    assert result.exit_code == code, (result.output, result.exception)
    return result.output


def test_from_records_to_ranking_by_command(tmp_path: Path) -> None:
    write_records(outputs(), tmp_path / "records.jsonl")
    folder, filled = str(tmp_path / "study"), str(tmp_path / "filled")
    said = run("new", str(tmp_path / "records.jsonl"), "-o", folder)
    assert (
        "12 of 20 screens" in said
        and "6 bad references in 20 items" in said
        and "132 ordinary, 72 bad references, 36 repeats" in said
    )
    assert "already holds a study" in run("new", str(tmp_path / "records.jsonl"), "-o", folder, code=2)
    assert "0 of 12 tasks passed" in run("status", folder)
    kinds = "careful=0.7,random=0.3"
    assert "false accept" in run("simulate", folder, "--raters", "10", "--tasks-per-rater", "1", "--runs", "2",
                                 "--kinds", kinds, "--fill", filled)  # fmt: skip
    assert "10 submitted" in run("status", filled)
    said = run(
        "analyse", filled, "--json", str(tmp_path / "r.json"), "--html", str(tmp_path / "r.html"), "--draws", "100"
    )
    assert "pass rate" in said and "human" in said
    assert "System scores" in (tmp_path / "r.html").read_text()
    assert "800 ratings" in run("export", filled, "-o", str(tmp_path / "r.csv"))
    for option in ("--raw", "--unfiltered"):
        told = run("export", filled, "-o", str(tmp_path / "no.csv"), option, code=2)
        assert f"{option} needs --records" in told and not (tmp_path / "no.csv").exists()
    run("export", filled, "-o", str(tmp_path / "rated.jsonl"), "--records")
    rated = list(read_records(tmp_path / "rated.jsonl"))
    assert set(rated[0].human) == {"understandability", "relevancy", "answerability", "appropriateness", "overall"}
    assert rated[0].human["relevancy"] == pytest.approx(rated[0].ratings["relevancy"][0])
    run("export", filled, "-o", str(tmp_path / "raw.jsonl"), "--records", "--raw", "--unfiltered")
    raw = list(read_records(tmp_path / "raw.jsonl"))
    with (tmp_path / "r.csv").open() as file:  # which tasks were taken is left to chance
        shown = {(row["record"], row["system"]) for row in csv.DictReader(file) if row["kind"] == "ordinary"}
    assert {(r.id, r.system) for r in raw} == shown and len(shown) % 11 == 0
    assert all(0 <= v <= 100 for r in raw for v in r.human.values())
    assert "is not a study" in run("status", str(tmp_path), code=2)


def test_a_broken_plan_is_named_by_line(make_study: MakeStudy) -> None:
    study = make_study()
    plan = study.folder / "plan.jsonl"
    lines = plan.read_text().splitlines()
    plan.write_text("\n".join([lines[0], lines[1].replace('"record": "p', '"record": "q')]) + "\n")
    assert "plan.jsonl:2: record 'q" in run("status", str(study.folder), code=2)
    plan.write_text(lines[0] + "\n{}\n")
    assert "plan.jsonl:2: not a task" in run("status", str(study.folder), code=2)
