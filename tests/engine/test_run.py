"""Scoring a file: rejects, workers, resuming after kill -9, summaries, signatures."""

import gzip
import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

import elench
from elench.engine.corpus import Replay, gather
from elench.engine.drive import Driver
from elench.engine.job import Job, score_file
from elench.engine.session import Session
from elench.engine.windows import windows
from elench.errors import UsageError
from elench.metrics import metric
from elench.models.base import ModelSet
from elench.records import formats
from elench.records.judging import SAMPLE
from elench.records.record import Record, read_records

WORDS = "the red fox saw a small lamp near seven old boats and sang all night about rain".split()  # noqa: SIM905


def make(path, n, seed=0):
    rng = random.Random(seed)

    def text():
        return " ".join(rng.choices(WORDS, k=rng.randint(3, 20)))

    with path.open("w") as file:
        for i in range(n):
            line = {"id": str(i), "system": f"s{i % 3}", "answer": text(), "references": [text()], "question": "what?"}
            file.write(json.dumps(line | {"judge": "answer"}) + "\n")
    return path


def run(path, out, specs="bleu,f1,cider", **options):
    from elench.metrics import split_specs

    return score_file(Job(path, [metric(s) for s in split_specs(specs)], out, **options))


def test_output_and_summary(tmp_path):
    meta = run(make(tmp_path / "in.jsonl", 40), tmp_path / "out.jsonl", explain=True)
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [line["id"] for line in lines] == [str(i) for i in range(40)]
    assert set(lines[0]) == {"id", "system", "scores", "unscored", "counts", "evidence"}
    assert set(lines[0]["counts"]) == {"bleu"}
    assert set(lines[0]["scores"]) == {"bleu", "f1", "cider"}
    written = json.loads((tmp_path / "out.meta.json").read_text())
    assert written == json.loads(json.dumps(meta))
    mean = sum(line["scores"]["f1"] for line in lines) / 40
    assert meta["metrics"]["f1"]["mean"] == pytest.approx(mean)
    assert meta["metrics"]["f1"]["n"] == 40 and set(meta["metrics"]["f1"]["systems"]) == {"s0", "s1", "s2"}
    assert meta["metrics"]["bleu"]["corpus"] != pytest.approx(meta["metrics"]["bleu"]["mean"])
    assert "bleu[n=4" in meta["signatures"]["bleu"] and "elench" in meta["signatures"]["bleu"]
    assert not (tmp_path / "out.journal.jsonl").exists() and not (tmp_path / "out.rejects.jsonl").exists()


def test_workers_give_the_same_file(tmp_path):
    source = make(tmp_path / "in.jsonl", 1300)
    run(source, tmp_path / "one.jsonl")
    run(source, tmp_path / "two.jsonl", session=Session(workers=2))
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()


@pytest.mark.embedded
def test_with_workers_the_parent_loads_no_model(tmp_path):
    session = Session(cache=False, workers=2)
    meta = run(make(tmp_path / "in.jsonl", 4), tmp_path / "out.jsonl", "bertscore", session=session)
    assert meta["metrics"]["bertscore"]["n"] == 4 and "/onnx/float32" in meta["signatures"]["bertscore"]
    assert session.models.loaded == {}


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_scores_as_a_table(tmp_path, ending):
    run(make(tmp_path / "in.jsonl", 5), tmp_path / f"out.{ending}")
    assert (tmp_path / f"out.{ending}").stat().st_size > 0
    assert {p.name for p in tmp_path.iterdir()} == {"in.jsonl", f"out.{ending}", "out.meta.json"}


def test_killed_and_resumed_gives_the_very_same_file(tmp_path):
    source = make(tmp_path / "in.jsonl", 6000)
    with source.open("a") as file:
        file.write("not json\n")
    whole = run(source, tmp_path / "whole.jsonl")
    command = [
        sys.executable,
        "-m",
        "elench",
        "score",
        str(source),
        "-m",
        "bleu,f1,cider",
        "-o",
        str(tmp_path / "cut.jsonl"),
    ]
    rng = random.Random(7)
    interrupted = 0
    for _ in range(4):
        process = subprocess.Popen([*command, "--resume"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        journal = tmp_path / "cut.journal.jsonl"
        while process.poll() is None and not journal.exists():
            time.sleep(0.01)
        time.sleep(rng.random() * 0.4)
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            interrupted += 1
        process.wait()
    subprocess.run([*command, "--resume"], check=True, capture_output=True)
    assert (tmp_path / "cut.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert (tmp_path / "cut.rejects.jsonl").read_bytes() == (tmp_path / "whole.rejects.jsonl").read_bytes()
    again = json.loads((tmp_path / "cut.meta.json").read_text())
    assert again["metrics"] == json.loads(json.dumps(whole["metrics"])) and again["rejected"] == 1


def test_a_torn_end_is_cut_off_on_resume(tmp_path):
    source = make(tmp_path / "in.jsonl", 2000)
    run(source, tmp_path / "whole.jsonl")

    def stop(outcome):
        if outcome.id == "1200":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(source, tmp_path / "cut.jsonl", on_outcome=stop)
    for name, torn in (
        ("cut.jsonl", b'{"id": "13'),
        ("cut.rejects.jsonl", b"{"),
        ("cut.journal.jsonl", b'{"rows": 99'),
    ):
        with (tmp_path / name).open("ab") as file:
            file.write(torn)
    run(source, tmp_path / "cut.jsonl", resume=True)
    assert (tmp_path / "cut.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_resuming_another_run_is_refused(tmp_path):
    source = make(tmp_path / "in.jsonl", 2000)

    def stop(outcome):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(source, tmp_path / "out.jsonl", on_outcome=stop)
    with pytest.raises(UsageError, match="signatures changed"):
        run(source, tmp_path / "out.jsonl", specs="f1", resume=True)
    (tmp_path / "other.jsonl").write_text("")
    with pytest.raises(UsageError, match="no journal"):
        run(source, tmp_path / "other.jsonl", resume=True)


def test_resuming_a_finished_run_changes_nothing(tmp_path):
    source = make(tmp_path / "in.jsonl", 50)
    first = run(source, tmp_path / "out.jsonl")
    assert run(source, tmp_path / "out.jsonl", resume=True) == json.loads(json.dumps(first))


def test_half_a_surrogate_pair_is_rejected_and_kept_aside(tmp_path):
    path = make(tmp_path / "in.jsonl", 2)
    path.write_text(path.read_text() + '{"id": "x", "answer": "lone \\ud800 half", "references": ["a"]}\n')
    run(path, tmp_path / "out.jsonl", "f1")
    rejected = (tmp_path / "out.rejects.jsonl").read_text()
    assert rejected.count("\n") == 1 and "ud800" in rejected and json.loads(rejected)


LACKING = [
    {"id": "ok", "judge": "answer", "answer": "a b", "references": ["a b"]},
    {"id": "no refs", "judge": "answer", "answer": "a b"},
    {"id": "empty refs", "judge": "answer", "answer": "a b", "references": []},
    {"id": "empty", "judge": "answer", "answer": " ", "references": ["a"]},
    {"id": "other", "judge": "summary", "summary": "b", "references": ["b"]},
    {"id": "bad", "judge": "answer", "answer": True, "references": ["a"]},
    {"id": "ok", "judge": "answer", "answer": "a b", "references": ["a b"]},
]
FATES = {
    "no refs": "no reference",
    "empty refs": "no reference",
    "empty": "empty answer",
    "other": None,  # f1 judges summaries too
}


def test_a_record_has_the_same_fate_by_command_and_from_python(tmp_path):
    source = tmp_path / "in.jsonl"
    source.write_text("\n".join(json.dumps(line) for line in LACKING))
    meta = run(source, tmp_path / "out.jsonl", specs="f1")
    out = {line["id"]: line for line in map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())}
    rejects = [json.loads(line) for line in (tmp_path / "out.rejects.jsonl").read_text().splitlines()]
    assert {name: out[name]["unscored"].get("f1") for name in FATES} == FATES
    assert [r["line"] for r in rejects] == [6, 7] and meta["records"] == 5 and meta["rejected"] == 2
    assert meta["metrics"]["f1"]["reasons"] == {"no reference": 2, "empty answer": 1}
    for given in (source, LACKING):
        result = elench.score(given, "f1")
        assert {o.id: o.value("f1") for o in result.scored} == {k: line["scores"]["f1"] for k, line in out.items()}
        assert {o.id: dict(o.unscored) for o in result.scored} == {k: line["unscored"] for k, line in out.items()}
        assert [r.reason.split(":")[0] for r in result.rejects] == [r["reason"].split(":")[0] for r in rejects]
        assert len(result.values("f1")) == len(LACKING)
        assert result.summary()["f1"] == meta["metrics"]["f1"]
        with pytest.raises(UsageError, match="field 'answer' must be a string"):
            elench.score(given, "f1", strict=True)


def test_a_record_has_the_same_fate_in_workers_over_http_and_as_a_reward(tmp_path):
    from starlette.testclient import TestClient

    from elench.adapters.rewards import reward
    from elench.adapters.service import make_app

    source = tmp_path / "in.jsonl"
    source.write_text("\n".join(json.dumps(line) for line in LACKING))
    run(source, tmp_path / "one.jsonl", specs="f1")
    run(source, tmp_path / "two.jsonl", specs="f1", session=Session(workers=2))
    assert (tmp_path / "one.jsonl").read_text() == (tmp_path / "two.jsonl").read_text()
    found = TestClient(make_app()).post("/score", json={"records": LACKING, "metrics": ["f1"]}).json()["results"]
    lines = [line for line in found if not line["rejected"]]
    assert {line["id"]: line["unscored"].get("f1") for line in lines} == {"ok": None, **FATES} and len(found) == len(
        LACKING
    )
    records = [line for line in LACKING if line["judge"] == "answer" and line["id"] in FATES]
    rewarded = reward("f1", judge="answer", missing=None)(
        completions=[r["answer"] for r in records], references=[r.get("references") for r in records]
    )
    assert [value is None for value in rewarded] == [FATES[r["id"]] is not None for r in records]
    assert reward("f1", judge="answer", missing=-1.0)(completions=["dog", "dog"], references=[{}, "dog"]) == [-1.0, 1.0]


def test_strict_stops_at_the_first_bad_line(tmp_path):
    source = tmp_path / "in.jsonl"
    source.write_text("\n".join(json.dumps(line) for line in LACKING))
    with pytest.raises(UsageError, match=r"in\.jsonl:6: field 'answer'"):
        run(source, tmp_path / "strict.jsonl", specs="f1", strict=True)


def test_a_field_that_only_one_metric_misses_leaves_the_other_metrics_score(tmp_path):
    source = tmp_path / "in.jsonl"
    source.write_text(json.dumps({"id": "1", "judge": "question", "question": "a b c", "references": ["a b c"]}))
    run(source, tmp_path / "out.jsonl", specs="bleu[n=1],answer-leak")
    (line,) = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert line["scores"]["bleu[n=1]"] == pytest.approx(1.0, abs=1) and line["unscored"]["answer-leak"] == "no answer"


def test_corpus_counts_of_two_halves_add_up(tmp_path):
    records, cider = list(read_records(make(tmp_path / "in.jsonl", 60))), [metric("cider")]
    driver = Driver(ModelSet())
    first, second = (gather(part, cider, driver)["cider"] for part in (records[:25], records[25:]))
    assert first + second == second + first == gather(records, cider, driver)["cider"]


def test_rows_are_read_once_and_gone_through_twice(monkeypatch):
    monkeypatch.setattr("elench.engine.corpus.IN_MEMORY", 3)
    rows = Replay(iter(range(10)))
    assert list(rows.record()) == list(rows) == list(rows) == list(range(10))


@pytest.mark.parametrize("specs", ["f1", "f1,cider"])
def test_the_input_is_parsed_once(tmp_path, monkeypatch, specs):
    source, seen = make(tmp_path / "in.jsonl", 1200), []

    def counting(path):
        for number, row in formats.read_jsonl(path):
            seen.append(number)
            yield number, row

    monkeypatch.setitem(formats.READERS, ".jsonl", counting)
    run(source, tmp_path / "out.jsonl", specs=specs)
    assert [n for n in seen if n > SAMPLE] == list(range(SAMPLE + 1, 1201))  # the head is also looked at beforehand


@pytest.mark.parametrize("ending", ["jsonl", "csv", "jsonl.gz"])
def test_the_input_is_opened_three_times(tmp_path, ending):
    """For its first rows, for the hash of all of it, and for the scores."""
    source = tmp_path / f"in.{ending}"
    row = b'{"answer": "a fox", "references": "a fox"}\n' if "jsonl" in ending else b"answer,references\na fox,a fox\n"
    source.write_bytes(gzip.compress(row) if ending.endswith("gz") else row)
    code = (
        "import sys; opened = []; from elench.cli import cli\n"
        "sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == 'open' else None)\n"
        f"cli(['score', {str(source)!r}, '-m', 'f1,cider', '-o', {str(tmp_path / 'out.jsonl')!r}], standalone_mode=False)\n"
        f"print(opened.count({str(source)!r}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "3"


def test_windows_are_bounded_by_records_and_by_text():
    long = [Record(id=str(i), context="x" * 150_000 + str(i)) for i in range(7)]
    assert [len(w) for w in windows(long)] == [3, 3, 1]
    same = [replace(long[0], id=str(i)) for i in range(1100)]
    assert [len(w) for w in windows(same)] == [512, 512, 76]
