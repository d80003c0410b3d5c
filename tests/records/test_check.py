"""`elench check` says what is in a file and which metrics can judge it, and is right about it."""

import json
import os
import warnings
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest
from click.testing import CliRunner

import elench
from elench.cli import cli
from elench.errors import UsageError
from elench.evaluate.contents import inspect, suggested
from elench.metrics import all_metrics
from elench.records.record import read_records
from elench.records.source import as_source

DATA = Path(os.environ.get("ELENCH_DATA", "../shared/data")) / "judgements"


def write(path, *rows):
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def check(*arguments):
    done = CliRunner().invoke(cli, ["check", *map(str, arguments)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def test_a_rag_export_is_described(tmp_path):
    row = {
        "user_input": "Where is it?",
        "response": "On a rock.",
        "reference": "a rock",
        "retrieved_contexts": ["a", "b"],
    }
    done = check(write(tmp_path / "x.jsonl", row, row | {"response": "In the sea."}))
    for part in ("2 records", "ragas recognised", "passages per context: 2", "judging 2 answers (what the references fit)",
                 "elench score", "-m equivalent,support", "f1"):  # fmt: skip
        assert part in done.output, part
    assert "questeval" in done.output.split("not ", 1)[1]


def test_bad_lines_languages_systems_and_ratings_are_counted(tmp_path):
    rows = [
        {"id": i, "system": s, "summary": "Der Leuchtturm ist nicht sehr alt.", "context": "Der Turm wurde gebaut und ist alt.",
         "human": {"fluency": 1}, "references": []}
        for i in range(3) for s in "ab"
    ]  # fmt: skip
    found = inspect(as_source(write(tmp_path / "x.jsonl", *rows, {"summary": ["3"]})))
    assert (found.records, found.rejected, found.systems, found.human) == (6, 1, ("a", "b"), {"fluency": 6})
    assert found.languages == {"de": 6} and "line 7: field 'summary'" in found.first_reject
    assert "made for English; this text looks German" in found.unable["questeval"] and found.able["source-overlap"] == 6


def test_where_it_cannot_be_told_what_is_judged_both_are_offered(tmp_path):
    path = write(tmp_path / "x.jsonl", {"question": "Who?", "answer": "Ann", "context": "Ann sang."})
    output = check(path).output
    assert "--judge question -m qrelscore" in output and "--judge answer -m support" in output


def test_unknown_columns_get_the_map_to_type(tmp_path):
    path = write(tmp_path / "x.jsonl", {"pred": "a", "gold": "b"})
    assert "--map answer=pred,references=gold" in check(path).output
    assert "judging 1 answers" in check(path, "--map", "answer=pred,references=gold").output


def test_columns_beside_a_known_field_get_the_map_to_type_and_a_known_schema_gets_none(tmp_path):
    row = {"question": "Who?", "prediction": "Ada", "gold": "Ada", "passage": "Ada built it."}
    said = check(write(tmp_path / "x.jsonl", row)).output
    assert "try --map answer=prediction,references=gold,context=passage" in said
    ragas = {"user_input": "Who?", "response": "Ada", "reference": "Ada", "notes": "none"}
    assert "--map" not in check(write(tmp_path / "y.jsonl", ragas)).output


def test_json_output(tmp_path):
    done = check(write(tmp_path / "x.jsonl", {"answer": "a", "references": "b"}), "--format", "json")
    assert json.loads(done.stdout)["records"] == 1


@pytest.mark.validation
@pytest.mark.parametrize("name", sorted(path.stem for path in DATA.glob("*.jsonl")) or ["no data"])
def test_check_is_right_about_every_judgement_file(name):
    """Counts against a plain reading of the JSON; metrics without a model against really scoring 60 records."""
    if not DATA.is_dir():
        pytest.skip("needs the data sets with human ratings: set ELENCH_DATA")
    path = DATA / f"{name}.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    found = inspect(as_source(path).for_metrics(()))
    assert (found.records, found.rejected) == (len(rows), 0)
    assert found.judging == Counter(row["judge"] for row in rows)
    assert set(found.systems) == {row["system"] for row in rows if row.get("system")}
    for field in ("context", "question", "answer", "summary", "references"):
        assert found.fields.get(field, 0) == sum(bool(row.get(field)) for row in rows), field
    assert found.human == Counter(k for row in rows for k, v in row["human"].items() if v is not None)
    assert found.languages["en"] >= 0.99 * sum(found.languages.values())
    (judged,) = found.judging
    assert suggested(judged, found.able)
    records = list(islice(read_records(path), 60))
    for metric_name, cls in all_metrics().items():
        try:
            metric = cls()
        except (UsageError, TypeError):
            continue
        if metric.roles:
            fits = judged in metric.judges and all(found.fields.get(field) for field in metric.reads)
            assert (metric_name in found.able) == fits, metric_name
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            values = elench.score(records, metric).values(str(metric))
        assert (metric_name in found.able) == any(value is not None for value in values), metric_name
