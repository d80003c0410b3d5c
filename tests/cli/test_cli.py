"""The command line: exit codes, one clear line for bad input, tables, cards, verify."""

import json
import subprocess
import sys

import pytest

GOOD = {"id": "1", "judge": "answer", "system": "s", "answer": "the red fox", "references": ["the red fox"]}


def elench(*arguments, cwd=None):
    return subprocess.run(
        [sys.executable, "-m", "elench", *map(str, arguments)], capture_output=True, text=True, cwd=cwd
    )


def write(path, *lines):
    path.write_text("\n".join(x if isinstance(x, str) else json.dumps(x) for x in lines) + "\n")
    return path


def test_help_lists_the_commands_of_the_contract():
    told = elench("--help").stdout
    for (
        command
    ) in "score compare meta perturb study train replicate report models metrics verify baselines cache".split():  # noqa: SIM905
        assert f"  {command} " in told, command


def test_score_prints_a_table_and_writes_the_files(tmp_path):
    done = elench("score", write(tmp_path / "in.jsonl", GOOD), "-m", "f1,bleu[n=1]", "-o", tmp_path / "out.jsonl")
    assert done.returncode == 0, done.stderr
    assert "f1" in done.stdout and "1.0000" in done.stdout
    line = json.loads((tmp_path / "out.jsonl").read_text())
    assert line["id"] == "1" and line["system"] == "s" and line["scores"]["f1"] == 1.0 and "evidence" not in line
    assert json.loads((tmp_path / "out.meta.json").read_text())["signatures"]["f1"]


def test_explain_prints_and_writes_the_evidence(tmp_path):
    done = elench("score", write(tmp_path / "in.jsonl", GOOD), "-m", "f1", "-o", tmp_path / "out.jsonl", "--explain")
    assert "the red fox" in done.stdout
    assert json.loads((tmp_path / "out.jsonl").read_text())["evidence"]["f1"]


def test_explain_with_an_output_prints_the_first_records_and_says_where_the_others_are(tmp_path):
    records = write(tmp_path / "in.jsonl", *({**GOOD, "id": f"r{k}"} for k in range(7)))
    done = elench("score", records, "-m", "f1", "-o", "out.jsonl", "--explain", cwd=tmp_path)
    assert [f"r{k} s f1" in done.stdout for k in range(7)] == [True] * 5 + [False] * 2
    assert "evidence of all 7 records is in out.jsonl; to read it: elench report out.jsonl -o out.html" in done.stdout
    assert all(json.loads(line)["evidence"] for line in (tmp_path / "out.jsonl").read_text().splitlines())
    assert elench("score", records, "-m", "f1", "--explain").stdout.count(" s f1 ") == 7


@pytest.mark.parametrize(
    ("lines", "options", "said"),
    [
        (['{"id": "1", "answer": true}'], ["--strict"], "in.jsonl:1: field 'answer' must be a string"),
        ([GOOD, GOOD], ["--strict"], "in.jsonl:2: duplicate id '1'"),
        ([GOOD, "oops"], ["--strict"], "in.jsonl:2: not valid JSON"),
        (["oops", "{}}"], [], "in.jsonl:1: not valid JSON"),
        (
            [{"id": "1", "judge": "answer", "answer": "a"}],
            ["--strict"],
            "no record has 'references', which f1 needs; fields found: id, judge, answer",
        ),
        ([GOOD], ["-m", "blue"], "did you mean bleu"),
        ([GOOD], ["-m", "bleu[x=1]"], "no parameter 'x'"),
        ([GOOD], ["--model", "encoder"], "ROLE=NAME"),
        ([GOOD], ["--model", "poet=x"], "no role is called 'poet'"),
        ([GOOD], ["-o", "nowhere/out.jsonl"], "folder does not exist"),
        ([GOOD], ["-o", "in.jsonl"], "this is the input file"),
        ([GOOD], ["-o", "out.docx"], "cannot write this kind of file"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(tmp_path, lines, options, said):
    write(tmp_path / "in.jsonl", *lines)
    done = elench("score", "in.jsonl", "-m", "f1", *options, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr and "Traceback" not in done.stderr
    assert sum("set aside" not in line for line in done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("name", ["missing.jsonl", "empty.jsonl", "in.docx"])
def test_files_that_cannot_be_read(tmp_path, name):
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "in.docx").write_text("x")
    done = elench("score", tmp_path / name, "-m", "f1")
    assert done.returncode == 2 and name in done.stderr and len(done.stderr.strip().splitlines()) == 1


def test_bad_lines_are_set_aside_without_strict(tmp_path):
    done = elench("score", write(tmp_path / "in.jsonl", GOOD, "oops"), "-m", "f1", "-o", tmp_path / "out.jsonl")
    assert done.returncode == 0 and "1 bad line was set aside" in done.stderr
    reject = json.loads((tmp_path / "out.rejects.jsonl").read_text())
    assert reject["line"] == 2 and reject["record"] == "oops"


def test_strict_exits_1_when_a_record_stays_unscored(tmp_path):
    blank = GOOD | {"answer": " "}
    done = elench("score", write(tmp_path / "in.jsonl", blank), "-m", "f1", "-o", tmp_path / "out.jsonl", "--strict")
    assert done.returncode == 1
    assert json.loads((tmp_path / "out.jsonl").read_text())["unscored"] == {"f1": "empty answer"}


def test_metrics_lists_all_and_prints_a_card():
    assert "bleu" in elench("metrics").stdout
    card = elench("metrics", "bleu").stdout
    for part in ("judges", "reads", "range", "source", "known limits", "parameters", "example"):
        assert part in card
    assert "did you mean" in elench("metrics", "bleuu").stderr


def test_compare_takes_one_file_per_system(tmp_path):
    good = [GOOD | {"id": str(i)} for i in range(12)]
    for line in good:
        del line["system"]
    write(tmp_path / "alpha.jsonl", *good)
    write(tmp_path / "beta.jsonl", *(line | {"answer": "no"} for line in good))
    done = elench("compare", tmp_path / "alpha.jsonl", tmp_path / "beta.jsonl", "-m", "f1", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["metrics"]["f1"]["systems"]["alpha"]["beats"] == ["beta"]


def test_compare_says_which_columns_to_map(tmp_path):
    rows = [{"id": "1", "pred": "a", "gold": "b", "system": name} for name in ("x", "y")]
    done = elench("compare", write(tmp_path / "in.jsonl", *rows), "-m", "f1")
    assert done.returncode == 2 and "try --map answer=pred,references=gold" in done.stderr, done.stderr


def test_compare_refuses_a_file_of_scores(tmp_path):
    (tmp_path / "run.jsonl").write_text('{"id": "1", "system": "s", "scores": {"f1": 1.0}, "unscored": {}}\n')
    done = subprocess.run(
        [sys.executable, "-m", "elench", "compare", str(tmp_path / "run.jsonl"), "-m", "f1"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "holds scores, not records" in done.stderr


def test_a_metric_is_not_blamed_for_records_of_another_kind(tmp_path):
    asked = {"id": "q", "judge": "question", "question": "Who?", "references": ["Who was it?"]}
    good = GOOD | {"question": "What is it?"}
    source = write(tmp_path / "in.jsonl", good, asked, good | {"id": "e", "answer": " "})
    done = elench("score", source, "-m", "novel-f1")
    assert done.returncode == 0 and "1 of 3 records unscored: empty answer" in done.stderr, done.stderr
    assert "this record judges" not in done.stderr


def test_verify_recomputes_the_shipped_values():
    done = elench("verify")
    assert done.returncode == 0, done.stdout
    assert "0 wrong" in done.stdout


def test_a_file_without_the_fields_of_any_metric_is_bad_input(tmp_path):
    done = elench("score", write(tmp_path / "in.jsonl", {"id": "1", "answr": "x"}), "-m", "f1")
    assert done.returncode == 2 and "in.jsonl: no record has" in done.stderr and "--map answer=answr" in done.stderr


def test_a_file_of_which_nothing_can_be_scored_exits_1_with_the_reason(tmp_path):
    source = write(tmp_path / "in.jsonl", GOOD | {"answer": " "}, {"id": "2", "judge": "answer", "answer": "fox"})
    done = elench("score", source, "-m", "f1")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert (
        "f1: 2 of 2 records unscored: " in done.stderr
        and "no reference (1)" in done.stderr
        and "nothing could be scored" in done.stderr
    )
