"""The same input options for every command, and what is said when nothing can be scored."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from elench.cli import cli
from elench.errors import UsageError
from elench.show.report import load_view

ROWS = [
    {"qid": f"{i}-{s}", "pred": "a red fox" if (i + (s == "x")) % 3 else "dog", "gold": ["the red fox"], "system": s, "human": {"ok": i % 2}}
    for i in range(12) for s in "xy"
]  # fmt: skip
MAP = ["--map", "id=qid,answer=pred,references=gold"]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


def run(*arguments, stdin=None):
    done = CliRunner().invoke(cli, [str(a) for a in arguments], input=stdin)
    if done.exception and not isinstance(done.exception, SystemExit | UsageError):
        raise done.exception
    return done


def test_map_works_for_score_compare_and_meta(file, tmp_path):
    out = tmp_path / "out.jsonl"
    assert run("score", file, *MAP, "-m", "f1", "-o", out).exit_code == 0
    assert json.loads(out.read_text().splitlines()[0])["id"] == "0-x"
    assert json.loads((tmp_path / "out.meta.json").read_text())["judging"] == "answer"
    done = run("meta", file, *MAP, "--scores", out, "--draws", "100", "--format", "json")
    assert done.exit_code == 0 and "f1" in done.output
    rows = [row | {"qid": row["qid"].split("-")[0]} for row in ROWS]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert "x" in run("compare", file, *MAP, "-m", "f1", "--draws", "100").output


def test_a_bad_line_is_set_aside_by_score_compare_and_perturb(tmp_path, monkeypatch):
    """The same line has the same fate: it is named, and the other records are used."""
    rows = [
        {"id": str(i), "system": s, "answer": f"a red fox {i}", "references": ["the red fox"]}
        for i in range(6)
        for s in "xy"
    ]
    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in [*rows, {"id": "7", "answer": True}]))
    said = f"{path}:13: field 'answer' must be a string, not true/false; 1 bad line was set aside"
    monkeypatch.setattr(
        "elench.perturb.perturb",
        lambda records, *_: [replace(r, extra={"perturbed": {"kind": "drop"}}) for r in records],
    )
    for words in (
        ["score", path, "-m", "f1"],
        ["compare", path, "-m", "f1", "--draws", "100"],
        ["perturb", path, "-k", "drop", "-o", tmp_path / "out.jsonl"],
    ):
        done = run(*words)
        assert done.exit_code == 0 and said in done.output, done.output
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 12


def test_the_mapping_is_part_of_the_run(file, tmp_path):
    """A run is not finished with other columns than it was begun with, and its report finds the texts."""
    out, report = tmp_path / "out.jsonl", tmp_path / "r.html"
    assert run("score", file, *MAP, "-m", "f1", "-o", out).exit_code == 0
    assert json.loads((tmp_path / "out.meta.json").read_text())["map"]["answer"] == "pred"
    again = run("score", file, "--map", "id=qid,answer=system,references=gold", "-m", "f1", "-o", out, "--resume")
    assert isinstance(again.exception, UsageError) and "map changed" in str(again.exception)
    done = run("report", out, "-o", report, "--draws", "100")
    assert done.exit_code == 0 and not done.stderr and "the red fox" in report.read_text()


def test_reports_find_plain_text_and_predictions_again(tmp_path):
    for name, text in {"hyp.txt": "a fox\na dog\n", "ref.txt": "the fox\nthe cat\n", "p.json": '{"1": "fox"}'}.items():
        (tmp_path / name).write_text(text)
    row = {"id": 1, "context": "A fox.", "question": "Who?", "answers": {"text": ["a red fox"], "answer_start": [0]}}
    (tmp_path / "gold.jsonl").write_text(json.dumps(row))
    out, report = tmp_path / "out.jsonl", tmp_path / "r.html"
    for words, text in (
        (["--text", tmp_path / "hyp.txt", "--references", tmp_path / "ref.txt"], "the cat"),
        ([tmp_path / "gold.jsonl", "--predictions", tmp_path / "p.json"], "a red fox"),
    ):
        assert run("score", *words, "-m", "f1", "-o", out).exit_code == 0
        done = run("report", out, "-o", report, "--draws", "100")
        assert done.exit_code == 0 and not done.stderr
        assert text in [reference for row in load_view([out]).rows for reference in row.record.references]
        assert run("gate", out, "--fail-under", "f1=0").exit_code in (0, 2)


def test_what_is_judged_is_said_and_every_gap_has_its_reason(tmp_path):
    rows = [{"id": "a", "judge": "answer", "answer": "fox", "references": "fox"},
            {"id": "a", "judge": "answer", "answer": "fox", "references": "fox"},
            {"id": "b", "judge": "answer", "answer": "", "references": "fox"}]  # fmt: skip
    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = run("score", path, "-m", "f1,novel-f1")
    assert done.exit_code == 0 and "judging answers" in done.stderr and "2 records of in.jsonl" in done.stdout
    assert "in.jsonl:2: duplicate id 'a': already on line 1; 1 bad line was set aside" in done.stderr
    assert "f1: 1 of 2 records unscored: empty answer" in done.stderr
    assert "novel-f1: 2 of 2 records unscored: no question (1); empty answer (1)" in done.stderr


def test_every_command_that_reads_records_has_the_option():
    for command in (["score"], ["check"], ["compare"], ["meta"], ["perturb"], ["study", "new"]):
        assert "--map FIELD=COLUMN,…" in run(*command, "--help").output, command


def test_standard_input_and_text_are_scored(tmp_path):
    stdin = json.dumps({"answer": "fox", "references": "fox"})
    assert "1.0000" in run("score", "-", "-m", "f1", stdin=stdin).output
    for name in ("hyp", "ref1", "ref2"):
        (tmp_path / name).write_text("a fox\na dog\n" if name != "ref2" else "x\ny\n")
    done = run("score", "--text", tmp_path / "hyp", "--references", tmp_path / "ref1", tmp_path / "ref2", "-m", "f1")
    assert "2 records of hyp" in done.output and "1.0000" in done.output


def test_nothing_scored_is_exit_code_1_with_the_reason(tmp_path):
    path = tmp_path / "de.jsonl"
    row = {"question": "Wer hat den Turm gebaut?", "answer": "Das war die Frau.", "references": "Es war der Mann."}
    path.write_text(json.dumps(row))
    done = run("score", path, "-m", "novel-f1")
    assert done.exit_code == 1 and "made for English; this text looks German" in done.output
    assert run("score", path, "-m", "novel-f1", "--any-language").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["score", "-m", "f1"], "no file given"),
        (["score", "a", "b", "-m", "f1"], "one file at a time"),
        (["score", "--references", "r.txt", "-m", "f1"], "--references needs --text"),
        (["score", "--text", "h.txt", "x.txt", "-m", "f1"], "what is x.txt"),
        (["score", "--text", "h.txt", "--map", "a=b", "-m", "f1"], "--text cannot be combined with --map"),
    ],
)
def test_options_that_do_not_go_together(arguments, said):
    assert said in str(run(*arguments).exception)
