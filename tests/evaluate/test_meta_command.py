"""`elench meta`: joins, tables, marks; and for bad input one clear line and exit code 2."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from elench.cli import main
from elench.evaluate.meta import evaluate
from tests.evaluate.made import rated, table, write


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def run(*arguments: object) -> Done:
    """The command as a user meets it: printed output and exit code."""
    out, err = io.StringIO(), io.StringIO()
    given = sys.argv
    sys.argv = ["elench", "meta", *map(str, arguments)]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        sys.argv = given
    return Done(code, out.getvalue(), err.getvalue())


def found(*arguments: object) -> dict[str, Any]:
    done = run(*arguments, "--format", "json", "--draws", 100)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def scored(rows: list[dict[str, Any]], name: str = "mine", keep: int = 99) -> list[dict[str, Any]]:
    return [{"id": r["id"], "system": r["system"], "scores": {name: k % 7 / 7}} for k, r in enumerate(rows) if k < keep]


def test_scores_join_by_id_and_system_in_any_order(tmp_path: Path) -> None:
    rows = rated(30)
    file = write(tmp_path / "r.jsonl", rows)
    scores = write(tmp_path / "s.jsonl", scored(rows)[::-1])
    out = found(file, "--scores", scores)
    by = {row["metric"]: row for row in out["rows"]}
    expected = np.corrcoef([k % 7 / 7 for k in range(30)], [r["human"]["correct"] for r in rows])[0, 1]
    assert by["mine"]["values"]["pearson"] == pytest.approx(expected, abs=1e-9)
    assert (by["mine"]["kind"], by["peer"]["kind"], by["mine"]["n"]) == ("metric", "peer", 30)


def test_scores_of_an_interrupted_run_are_refused(tmp_path: Path) -> None:
    rows = rated(30)
    file, scores = write(tmp_path / "r.jsonl", rows), write(tmp_path / "s.jsonl", scored(rows, keep=20))
    (tmp_path / "s.journal.jsonl").write_text("{}\n")  # `elench score` removes it when it is done
    done = run(file, "--scores", scores)
    assert done.returncode == 2 and "this run is not complete" in done.stderr


def test_sanity_baselines_stand_in_every_table_unless_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "r.jsonl", rated(30))
    by = {row["metric"]: row for row in found(file)["rows"]}
    assert {name for name, row in by.items() if row["kind"] == "sanity"} == {"length", "novel-f1"}
    assert by["peer"]["p"] is not None and by["peer"]["mark"].startswith("≤ ")
    assert by["length"]["values"]["pearson"] == pytest.approx(
        np.corrcoef([3 * (k % 4 + 1) for k in range(30)], [k % 5 for k in range(30)])[0, 1]
    )
    assert {row["metric"] for row in found(file, "--no-baselines")["rows"]} == {"peer"}


def test_scores_in_csv_join_too(tmp_path: Path) -> None:
    rows = rated(30)
    lines = ["id,system,scores.mine", *(f"{r['id']},{r['system']},{k % 7 / 7}" for k, r in enumerate(rows))]
    (tmp_path / "s.csv").write_text("\n".join(lines), encoding="utf-8")
    file, as_lines = write(tmp_path / "r.jsonl", rows), write(tmp_path / "s.jsonl", scored(rows))
    assert found(file, "--scores", tmp_path / "s.csv")["rows"] == found(file, "--scores", as_lines)["rows"]


def test_missing_and_foreign_lines_are_counted(tmp_path: Path) -> None:
    rows = rated(30)
    lines = [*scored(rows, keep=25), {"id": "stranger", "system": "s0", "scores": {"mine": 1}}]
    out = found(write(tmp_path / "r.jsonl", rows), "--scores", write(tmp_path / "s.jsonl", lines))
    notes = " ".join(out["notes"])
    assert "5 of 30 records have no line" in notes
    assert "1 lines of" in notes and "not in" in notes
    assert "5 of 30 records are unscored by mine" in notes
    assert next(row for row in out["rows"] if row["metric"] == "mine")["n"] == 25


@pytest.mark.parametrize("form", ["text", "markdown", "latex"])
def test_every_format_carries_value_n_and_interval(tmp_path: Path, form: str) -> None:
    file = write(tmp_path / "r.jsonl", rated(30))
    target = tmp_path / "out"
    done = run(file, "--format", form, "-o", target, "--draws", 100, "--redundancy")
    assert done.returncode == 0 and done.stdout == "", done.stderr
    text = target.read_text(encoding="utf-8")
    assert "peer (peer)" in text and "30" in text and "[" in text and "Forward selection" in text


def test_parts_by_field_length_and_question_word(tmp_path: Path) -> None:
    rows = rated(40)
    for k, row in enumerate(rows):
        row["kind"] = ["easy", "hard"][k % 2]
    file = write(tmp_path / "r.jsonl", rows)
    assert {row["part"] for row in found(file, "--by", "kind")["rows"]} == {"easy", "hard"}
    assert {row["part"] for row in found(file, "--by", "question-word")["rows"]} == {"who"}
    assert len({row["part"] for row in found(file, "--by", "length")["rows"]}) == 4


def test_head_to_head_agreement_and_estimates(tmp_path: Path) -> None:
    rows = rated(30)
    for k, row in enumerate(rows):
        row["ratings"] = {"correct": [k % 5, (k + k % 2) % 5]}
    file = write(tmp_path / "r.jsonl", rows)
    scores = write(tmp_path / "s.jsonl", scored(rows))
    out = found(file, "--scores", scores, "--compare", "mine", "peer", "--agreement", "--estimate", "mine")
    assert set(out["compare"][0]) >= {"bootstrap", "permutation", "williams"}
    assert out["agreement"][0]["ordinal"]["items"] == 30
    assert set(out["estimates"][0]["systems"]) == {"s0", "s1", "s2"}


def test_a_metric_no_better_than_a_baseline_is_marked() -> None:
    rows = {row.metric: row for row in evaluate(table(items=60), draws=200).rows}
    assert rows["m0"].mark == "" and rows["m0"].p is not None and rows["m0"].p < 0.05
    same = table(items=60)
    twin = type(same)(same.records, same.metrics, same.scores[:, [2, 2, 2]], same.kinds, same.dimensions, same.human)
    assert {row.mark for row in evaluate(twin, draws=200).rows if row.kind == "metric"} == {"≤ m2"}


def test_a_baseline_counts_turned_round() -> None:
    one = table(items=60)
    turned = one.scores * np.array([0, 0, -1.0]) + one.human * np.array([0, 0, -3.0]) + one.scores * np.array([1, 1, 0])
    data = type(one)(one.records, one.metrics, turned, one.kinds, one.dimensions, one.human)
    marks = {row.metric: row.mark for row in evaluate(data, draws=200).rows}
    assert marks["m0"] == marks["m1"] == "≤ −m2"


BAD: dict[str, tuple[list[dict[str, Any]], list[str], str]] = {
    "no human": ([{k: v for k, v in r.items() if k != "human"} for r in rated()], [], "no record has `human`"),
    "one rating": (rated(12, human={"correct": 3.0}), [], "people gave every record the same rating"),
    "constant metric": (rated(12, peers={"peer": 0.5}), ["--no-baselines"], "gives every record the same score"),
    "one system": (rated(12, system="only"), ["--level", "system"], "needs 3"),
    "no system": (rated(12, system=None), ["--level", "system"], "needs 3"),
    "NaN": (rated(12, human={"correct": float("nan")}), [], "no record has `human`"),
    "infinity": (rated(12, human={"correct": float("inf")}), [], ":1:"),
    "dimension": (rated(), ["-d", "fluency"], "no human dimension 'fluency'; there are: correct"),
    "metric": (rated(), ["-m", "bleu"], "no metric 'bleu'; there are: peer"),
    "field": (rated(), ["--by", "colour"], "no record has the field 'colour'"),
    "no peers": (rated(12, peers=None), ["--no-baselines"], "no metric to judge"),
    "two records": (rated(2), [], "only 2 records"),
    "no single ratings": (rated(), ["--agreement"], "no record has single `ratings`"),
    "no groups of three": (rated(12, group=None), ["--level", "group"], "no group has 3 records"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_clear_line(tmp_path: Path, case: str) -> None:
    rows, options, said = BAD[case]
    done = run(write(tmp_path / "r.jsonl", rows), "--draws", 100, *options)
    assert done.returncode == 2, done.stdout + done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr and len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["{"], "s.jsonl:1: not valid JSON"),
        (['{"id": "a0"}'], "s.jsonl:1: not a line of elench score"),
        (['{"id": "zz", "scores": {"m": 1}}'], "no id of this file is in"),
        (['{"id": "a0", "system": "s0", "scores": {"m": 1}}'] * 2, "s.jsonl:2: duplicate id 'a0' of system 's0'"),
    ],
)
def test_bad_score_files_are_named_with_their_line(tmp_path: Path, lines: list[str], said: str) -> None:
    scores = tmp_path / "s.jsonl"
    scores.write_text("\n".join(lines), encoding="utf-8")
    done = run(write(tmp_path / "r.jsonl", rated()), "--scores", scores)
    assert done.returncode == 2 and said in done.stderr, done.stderr
    missing = run(tmp_path / "r.jsonl", "--scores", tmp_path / "nowhere.jsonl")
    assert missing.returncode == 2 and "nowhere.jsonl" in missing.stderr


def test_meta_needs_no_torch(tmp_path: Path) -> None:
    file = write(tmp_path / "r.jsonl", rated(30))
    code = (
        f"from elench.cli.meta import command; command(['{file}', '--draws', '100'], standalone_mode=False)\n"
        "import sys; print([m for m in ('torch', 'transformers', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.splitlines()[-1:] == ["[]"], done.stderr


def test_outputs_of_one_item_are_drawn_together_without_a_group() -> None:
    """The same ids in several systems are one item each: 10 units, not 30 records."""
    from dataclasses import replace

    from elench.evaluate.judgements import from_records
    from elench.records.record import Record
    from elench.stats.correlation import correlate

    records = [
        Record(str(k // 3), system=f"s{k % 3}", human={"q": float(k % 5)}, peers={"m": k * 7 % 11 / 10})
        for k in range(30)
    ]
    one = from_records(records)
    assert correlate(one, draws=100, coefficients=("pearson",)).method.startswith("resampling 10 groups (30 records")
    alone = from_records([replace(r, id=f"{r.id}-{r.system}") for r in records])
    assert correlate(alone, draws=100, coefficients=("pearson",)).method.startswith("resampling 30 records")


def test_a_metric_that_people_contradict_may_have_the_other_direction(tmp_path: Path) -> None:
    rows = rated(60)
    for row in rows:
        row["peers"] = {"errors": -row["human"]["correct"]}
    file = write(tmp_path / "r.jsonl", rows)
    note = "If lower is better, add --lower-is-better errors."
    assert any(said.endswith(note) for said in found(file)["notes"])
    turned = found(file, "--lower-is-better", "errors")
    assert not any("in reverse" in said for said in turned["notes"])
    assert turned["rows"][0]["metric"] == "errors" and turned["rows"][0]["values"]["pearson"] == pytest.approx(1.0)


def test_a_metric_that_people_contradict_in_one_part_only_keeps_its_direction(tmp_path: Path) -> None:
    rows = rated(120)
    for k, row in enumerate(rows):
        row |= {
            "half": "first" if k < 60 else "second",
            "peers": {"m": row["human"]["correct"] * (1 if k < 60 else -1)},
        }
    file = write(tmp_path / "r.jsonl", rows)
    notes = found(file, "--by", "half")["notes"]
    assert not any("in reverse" in said for said in notes)
