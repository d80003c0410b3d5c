"""`elench bench`: one JSON over all rated files, resumed, with pages made from it."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from elench.cli import cli
from elench.errors import UsageError
from elench.evaluate.bench import every_spec, sampled
from elench.evaluate.judgements import from_records
from elench.metrics import metric
from elench.records.record import Record
from tests.evaluate.rated import rated_records, write


def bench(*arguments):
    ran = CliRunner().invoke(cli, ["bench", *map(str, arguments)], catch_exceptions=False, standalone_mode=False)
    return ran.output


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    data = folder / "data"
    data.mkdir()
    rows = rated_records(120, 30)
    for row in rows:
        row["peers"] = {"theirs": row["human"]["good"] * 2}
    write(data / "answers.jsonl", rows)
    (data / "unrated.jsonl").write_text('{"id": "x", "answer": "y"}\n')
    output = bench("--data", data, "-o", folder / "bench.json", "-m", "f1,length,qags", "--docs", folder / "docs")
    return folder, data, output


def entries(folder, name="bench.json"):
    return {(e["metric"], e["dimension"]): e for e in json.loads((folder / name).read_text())["entries"]}


def test_every_figure_says_what_it_is(made):
    folder, data, _ = made
    found = entries(folder)
    rows = [json.loads(line) for line in (data / "answers.jsonl").read_text().splitlines()]
    length = [len(r["answer"].split()) for r in rows]
    one = found["length", "long"]
    assert one["r"] == pytest.approx(np.corrcoef(length, [r["human"]["long"] for r in rows])[0, 1])
    assert one["n"] == 120 and one["low"] < one["r"] < one["high"]
    assert one["signature"].startswith("length") and one["seconds_per_record"] > 0
    assert found["theirs", "good"]["kind"] == "peer" and found["theirs", "good"]["r"] == pytest.approx(1.0)
    assert not any(metric == "qags" for metric, _ in found)  # it judges summaries


def test_what_is_measured_is_not_measured_again(made):
    folder, data, _ = made
    before = (folder / "bench.json").read_text()
    bench("--data", data, "-o", folder / "bench.json", "-m", "f1,length")
    assert json.loads(before)["entries"] == json.loads((folder / "bench.json").read_text())["entries"]


def test_pages_and_stale_marks(made):
    folder, data, _ = made
    page = (folder / "docs/which-metric-for-answers.md").read_text()
    assert "theirs (peer)" in page and "stale)" not in page and "n" in page
    assert (folder / "docs/which-metric-for-answers.svg").read_text().startswith("<svg xmlns=")
    content = json.loads((folder / "bench.json").read_text())
    for entry in content["entries"]:
        if entry["metric"] == "f1":
            entry["signature"] = "f1 | elench 0.0.1"
    (folder / "old.json").write_text(json.dumps(content))
    output = bench("--data", data, "-o", folder / "old.json", "-m", "length", "--docs", folder / "docs2")
    assert "stale: f1" in output
    assert "f1 (stale)" in (folder / "docs2/which-metric-for-answers.md").read_text()


def test_a_budget_leaves_a_list_of_what_was_not_run(made):
    folder, data, _ = made
    bench("--data", data, "-o", folder / "short.json", "-m", "f1,rouge-l", "--budget", "0.000001")
    content = json.loads((folder / "short.json").read_text())
    assert content["not_run"] == ["answers f1", "answers rouge-l"]
    output = bench("--data", data, "-o", folder / "short.json", "-m", "f1", "--docs", folder / "docs4")
    assert json.loads((folder / "short.json").read_text())["not_run"] == ["answers rouge-l"]
    page = (folder / "docs4/which-metric-for-answers.md").read_text()
    assert "the time given ran out: answers rouge-l." in page and "answers: f1, 120 records" in output


def test_figures_of_the_whole_file_and_of_a_sample_are_kept_apart(made):
    folder, data, _ = made
    bench("--data", data, "-o", folder / "two.json", "-m", "f1")
    bench("--data", data, "-o", folder / "two.json", "-m", "f1", "--sample", "40", "--docs", folder / "docs3")
    kept = json.loads((folder / "two.json").read_text())["entries"]
    assert {(e["metric"], e["records"]) for e in kept} == {(m, n) for m in ("f1", "theirs") for n in (120, 40)}
    page = (folder / "docs3/which-metric-for-answers.md").read_text()
    assert page.index("**answers, 120 records**") < page.index("**answers, 40 of 120 records**")


def test_runs_over_different_files_are_joined_in_one_json(tmp_path):
    for name, seed in (("first", 1), ("second", 2)):
        (tmp_path / name).mkdir()
        write(tmp_path / name / f"{name}.jsonl", rated_records(60, 20, seed))
    out = tmp_path / "bench.json"
    bench("--data", tmp_path / "first", "-o", out, "-m", "f1,length")
    content = json.loads(out.read_text())
    fresh = [e for e in content["entries"] if e["metric"] == "length"]
    for entry in content["entries"]:
        if entry["metric"] == "f1":
            entry |= {"signature": "f1 | elench 0.0.1", "r": 0.99}
    out.write_text(json.dumps(content))

    bench("--data", tmp_path / "second", "-o", out, "-m", "f1")
    joined = json.loads(out.read_text())["entries"]
    assert [e for e in joined if e["file"] == "first"] == content["entries"]  # of the other file: as it was

    output = bench("--data", tmp_path / "first", "-o", out, "-m", "f1,length")
    found = json.loads(out.read_text())["entries"]
    assert "first: f1" in output and "first: length" not in output
    assert [e for e in found if e["metric"] == "length"] == fresh  # not measured again
    assert [e for e in found if e["file"] == "second"] == [e for e in joined if e["file"] == "second"]
    again = [e for e in found if (e["file"], e["metric"]) == ("first", "f1")]
    assert len(again) == 2 and all(e["r"] != 0.99 and "0.0.1" not in e["signature"] for e in again)


def test_figures_of_a_file_that_has_changed_are_dropped(tmp_path):
    data, out = tmp_path / "data", tmp_path / "bench.json"
    data.mkdir()
    write(data / "answers.jsonl", rated_records(60, 20))
    bench("--data", data, "-o", out, "-m", "f1,length")
    write(data / "answers.jsonl", rated_records(80, 20))
    assert "answers: the file has changed, 4 figures" in bench("--data", data, "-o", out, "-m", "f1")
    assert {(e["metric"], e["records"]) for e in json.loads(out.read_text())["entries"]} == {("f1", 80)}


def test_marked_figures_of_a_page_are_filled_in(made, tmp_path):
    folder = made[0]
    page = tmp_path / "page.md"
    page.write_text(
        "r = <!-- r answers f1 good -->?<!-- end -->, mean <!-- r answers length mean --><!-- end -->, "
        "n = <!-- n answers f1 good -->?<!-- end -->; theirs <!-- r answers theirs good --><!-- end -->\nby hand: .5\n"
    )
    whole = ("-o", folder / "bench.json", "--fill", page)
    assert "brought up to date" in bench(*whole)
    found = entries(folder)
    mean = (found["length", "good"]["r"] + found["length", "long"]["r"]) / 2
    r, length = (f"{x:.3f}".replace("0.", ".", 1).replace("-", "−") for x in (found["f1", "good"]["r"], mean))
    text = page.read_text()
    assert f"f1 good -->{r}<!-- end -->" in text and f"length mean -->{length}<!-- end -->" in text
    assert "n answers f1 good -->120<!-- end -->" in text and "theirs good -->1.000<!" in text and "by hand: .5" in text
    assert "up to date" in bench(*whole) and page.read_text() == text

    content = json.loads((folder / "bench.json").read_text())
    for entry in content["entries"]:
        if entry["metric"] == "f1":
            entry["signature"] = "f1 | elench 0.0.1"
    (tmp_path / "old.json").write_text(json.dumps(content))
    bench("-o", tmp_path / "old.json", "--fill", page)
    assert page.read_text() == text.replace(f"{r}<!-- end -->", f"{r} (stale)<!-- end -->")
    bench(*whole)
    assert page.read_text() == text


@pytest.mark.parametrize(
    ("mark", "problem"),
    [
        ("<!-- r answers bleu good -->.1<!-- end -->", r"page.md:2: no figure of bleu on answers, good; measure it"),
        ("<!-- r answers f1 good -->.1", r"page.md:2: <!-- r answers f1 good --> has no <!-- end -->"),
    ],
)
def test_a_mark_that_cannot_be_filled_is_named_by_its_line(made, tmp_path, mark, problem):
    page = tmp_path / "page.md"
    page.write_text(f"one\n{mark}\n")
    with pytest.raises(UsageError, match=problem):
        bench("-o", made[0] / "bench.json", "--fill", page)
    assert mark in page.read_text()


def test_a_file_whose_ratings_are_all_equal_has_no_table(made, tmp_path):
    rows = [row | {"human": {"good": 1.0}} for row in rated_records(30, 10)]
    write(tmp_path / "flat.jsonl", rows)
    assert "flat: left out, all ratings are equal" in bench("--data", tmp_path, "-o", tmp_path / "b.json", "-m", "f1")
    assert json.loads((tmp_path / "b.json").read_text())["entries"] == []


def test_every_form_of_every_metric_is_measured():
    specs = every_spec()
    assert {"questeval", "questeval[form=ours]", "questeval[form=code]", "qsts[form=ours]"} <= set(specs)
    assert {"rouge-l-kpqa[form=ours]", "profile:answers", "f1"} <= set(specs) and "questeval[form=paper]" not in specs
    assert all(metric(spec) for spec in specs if not spec.startswith("profile:")) and len(set(specs)) == len(specs)


def test_a_sample_keeps_groups_whole():
    table = from_records([Record.from_object(r) for r in rated_records(100, 20)])
    part = sampled(table, 33)
    assert 0 < len(part.records) <= 33
    kept = {r.group for r in part.records}
    assert sum(r.group in kept for r in table.records) == len(part.records)


def test_a_folder_without_ratings_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"no \.jsonl file in it has"):
        bench("--data", tmp_path, "-o", tmp_path / "b.json")
    with pytest.raises(UsageError, match=r"none/b\.json: its folder does not exist"):
        bench("--data", tmp_path, "-o", tmp_path / "none" / "b.json")
    with pytest.raises(UsageError, match=r"b\.json: no such file; give --data DIR to measure"):
        bench("-o", tmp_path / "b.json")
    (tmp_path / "b.json").write_text("{}")
    with pytest.raises(UsageError, match="not a file of `elench bench`"):
        bench("--data", tmp_path, "-o", tmp_path / "b.json")
