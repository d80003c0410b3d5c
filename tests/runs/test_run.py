"""A run read back from disk is the run that was written: scores, counts, rejects, corpus scores."""

import json

import pytest
import sacrebleu

import elench
from elench.engine.job import Job, score_file
from elench.errors import UsageError
from elench.metrics import metric
from elench.runs import Run
from tests.engine.test_run import make

SPECS = ["bleu", "f1", "cider"]


def written(tmp_path, ending="jsonl", n=60, **options):
    source = make(tmp_path / "in.jsonl", n)
    with source.open("a") as file:
        file.write("oops\n" + json.dumps({"id": "empty", "answer": " ", "references": ["x"], "judge": "answer"}) + "\n")
    score_file(Job(source, [metric(s) for s in SPECS], tmp_path / f"out.{ending}", **options))
    return source, tmp_path / f"out.{ending}"


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_what_was_written_is_read_back(tmp_path, ending):
    source, out = written(tmp_path, ending, explain=True)
    result, run = elench.score(source, SPECS), Run.read(out)
    assert run.specs == SPECS and run.systems == ["s0", "s1", "s2"]
    assert len(run.scored) == 61 and [r.line for r in run.rejects] == [61]
    for spec in SPECS:
        assert run.values(spec)[:60] == pytest.approx(result.values(spec)[:60], abs=1e-12)
        for system in (None, "s0", "s2"):
            assert run.corpus_score(spec, system) == pytest.approx(result.corpus_score(spec, system), abs=1e-12)
    assert run.unscored["f1"]["empty"] == "empty answer" and run.counts("f1") is None
    assert len(run.counts("bleu")) == 60 and run.scored[0].scores["bleu"].evidence["precisions"]
    assert run.with_records(source).records[5].references == run.with_records(source).scored[5].record.references
    assert run.header["metrics"]["bleu"]["corpus"] == pytest.approx(run.corpus_score("bleu"), abs=1e-12)


def test_the_corpus_score_of_a_run_is_sacrebleus(tmp_path):
    source, out = written(tmp_path)
    run = Run.read(out).with_records(source)
    for system in ("s0", "s1"):
        records = [o.record for o in run.scored if o.system == system]
        expected = sacrebleu.corpus_bleu(
            [r.answer for r in records], [[r.references[0] for r in records]], use_effective_order=False
        )
        assert run.corpus_score("bleu", system) == pytest.approx(expected.score / 100, abs=1e-9)


def test_every_command_prints_the_same_corpus_bleu(tmp_path):
    from elench.evaluate.compare import compare
    from elench.show import report

    source, out = make(tmp_path / "in.jsonl", 60), tmp_path / "out.jsonl"
    rows = [json.loads(line) for line in source.read_text().splitlines()]
    source.write_text("".join(json.dumps(row | {"id": str(i // 3)}) + "\n" for i, row in enumerate(rows)))
    score_file(Job(source, [metric("bleu")], out))
    run = Run.read(out)
    loaded = report.load_view([out]) if hasattr(report, "load_view") else report.load_run(out)
    html = report.build(loaded, draws=100)
    columns = compare(source, ["bleu"], draws=100).columns
    for system in run.systems:
        shown = f"{run.corpus_score('bleu', system):.4f}"
        assert f"{columns[0].scores[system]:.4f}" == shown and shown in html


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "out.jsonl:1: not valid JSON"),
        ('{"id": "1"}', "out.jsonl:1: not a line of elench score"),
        ('{"id": "1", "scores": {"f1": "x"}}', "score 'f1' must be a number or null"),
        ('{"id": "1", "scores": {"f1": 1}, "counts": {"f1": [null]}}', "counts of 'f1' must be a list of numbers"),
        ('{"id": "1", "scores": {"f1": 1}}\n{"id": "1", "scores": {"f1": 1}}', "out.jsonl:2: duplicate id '1'"),
        ("", "no scores in it"),
    ],
)
def test_a_file_that_is_not_a_run_is_named(tmp_path, line, said):
    (tmp_path / "out.jsonl").write_text(line)
    with pytest.raises(UsageError, match=said.replace("(", r"\(")):
        Run.read(tmp_path / "out.jsonl")


def test_a_changed_tail_refuses_to_resume(tmp_path):
    source = make(tmp_path / "in.jsonl", 20_000)
    assert source.stat().st_size > 2 << 20

    def stop(outcome):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        score_file(Job(source, [metric("f1")], tmp_path / "out.jsonl", on_outcome=stop))
    with pytest.raises(UsageError, match="not complete"):
        Run.read(tmp_path / "out.jsonl")
    text = source.read_bytes()
    source.write_bytes(text[:-10] + text[-10:].replace(b'"answer"', b'"answex"'))
    assert source.stat().st_size == len(text) and source.read_bytes() != text
    with pytest.raises(UsageError, match="input changed"):
        score_file(Job(source, [metric("f1")], tmp_path / "out.jsonl", resume=True))
