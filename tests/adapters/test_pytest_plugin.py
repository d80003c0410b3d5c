"""The pytest plugin, run by pytest in a folder of its own."""

import json
import subprocess
import sys
from importlib.metadata import entry_points

import pytest

TESTS = """
import pytest

@pytest.mark.elench_records("answers.jsonl")
def test_answers(record, assert_score):
    assert_score(record, "f1", at_least=0.5)

def test_one_case(elench_metric):
    score = elench_metric("f1")(answer="the old mill", references=["mill"])
    assert score.value == pytest.approx(2 / 3) and score.evidence["matched"] == ["mill"]

def test_at_most(assert_score):
    assert_score({"answer": "the old mill"}, "f1", at_most=0.1, references=["a ferry"])

def test_cannot(elench_metric):
    elench_metric("f1")(answer="no reference here")

def test_one_session(elench_session, request):
    assert request.getfixturevalue("elench_session") is elench_session
"""


def run(folder, *options):
    installed = any(point.name == "elench" for point in entry_points(group="pytest11"))
    plugin = () if installed else ("-p", "elench.adapters.pytest_plugin")  # registered once
    command = [sys.executable, "-m", "pytest", *plugin, "-p", "no:cacheprovider", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@pytest.fixture
def folder(tmp_path):
    rows = [{"id": "good", "answer": "mill", "references": ["the mill"], "judge": "answer"},
            {"id": "bad", "system": "b", "answer": "a ferry", "references": ["the mill"], "judge": "answer"}]  # fmt: skip
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "test_it.py").write_text(TESTS)
    return tmp_path


def test_a_test_per_record_and_the_evidence_of_a_failure(folder):
    done = run(folder, "-v")
    assert "test_answers[good] PASSED" in done.stdout and "test_answers[bad-b] FAILED" in done.stdout
    assert "f1 is 0.0000, expected at least 0.5" in done.stdout and "precision: 0/1" in done.stdout
    assert "test_one_case PASSED" in done.stdout and "test_at_most PASSED" in done.stdout
    assert "f1 cannot score this" in done.stdout and "test_one_session PASSED" in done.stdout
    assert "4 passed" in done.stdout and "2 failed" in done.stdout


def test_a_missing_file_is_named(folder):
    (folder / "answers.jsonl").unlink()
    done = run(folder)
    assert done.returncode != 0 and "answers.jsonl" in done.stdout + done.stderr


def test_a_session_without_elench_tests_imports_nothing_of_it(tmp_path):
    code = (
        "import sys\ndef test_it():\n    assert not {'numpy', 'elench.metrics', 'elench.engine'} & set(sys.modules)\n"
    )
    (tmp_path / "test_plain.py").write_text(code)
    assert "1 passed" in run(tmp_path, "-p", "no:hypothesispytest").stdout


def test_a_wrong_spec_or_record_fails_in_one_line(tmp_path):
    (tmp_path / "test_wrong.py").write_text(
        "def test_spec(assert_score):\n"
        '    assert_score({"answer": "a", "references": "a"}, "f11", at_least=0)\n\n\n'
        "def test_record(assert_score):\n"
        '    assert_score({"answer": True, "references": "a"}, "f1", at_least=0)\n'
    )
    said = run(tmp_path).stdout
    assert "did you mean f1?" in said and "field 'answer' must be a string" in said
    assert "Traceback" not in said and "raise UsageError" not in said and "During handling" not in said
