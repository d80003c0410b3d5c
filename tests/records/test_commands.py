"""The same input options for every command, and what is said when nothing can be scored."""

import json

import pytest
from click.testing import CliRunner

from elench.cli import cli
from elench.errors import UsageError

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
        (["score", "--references", "r.txt", "-m", "f1"], "--references goes with --text"),
        (["score", "--text", "h.txt", "x.txt", "-m", "f1"], "what is x.txt"),
        (["score", "--text", "h.txt", "--map", "a=b", "-m", "f1"], "--text goes without --map"),
    ],
)
def test_options_that_do_not_go_together(arguments, said):
    assert said in str(run(*arguments).exception)
