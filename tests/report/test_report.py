"""The report is one file, holds what it promises, and escapes what users wrote."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest

from quaestor.engine.run import Job, score_file
from quaestor.errors import UsageError
from quaestor.metrics import metric
from quaestor.records import Record
from quaestor.report import build, load_run
from quaestor.report.items import evidence, marked
from quaestor.report.page import STYLE
from quaestor.report.svg import Axis, curve, heat_map, shortened

WORDS = "the old boat lay near a red lamp and seven small birds sang about rain".split()  # noqa: SIM905


def make_run(folder, human=True, n=40):
    rng = np.random.default_rng(0)
    with (folder / "in.jsonl").open("w") as file:
        for i in range(n):
            reference = list(rng.choice(WORDS, 10))
            for system, keep in (("good", 0.9), ("bad & <b>bold</b>", 0.5)):
                words = [w if rng.random() < keep else "noise" for w in reference]
                line = {"id": str(i), "system": system, "group": str(i), "judge": "answer", "question": "<script>alert(1)</script>",
                        "answer": " ".join(words), "references": [" ".join(reference)]}  # fmt: skip
                if human:
                    line["human"] = {"correct": round(keep * 4 + rng.normal(), 1), "fluent": float(rng.integers(1, 4))}
                file.write(json.dumps(line) + "\n")
    score_file(
        Job(folder / "in.jsonl", [metric(s) for s in ("f1", "bleu", "rouge-l")], folder / "out.jsonl", explain=True)
    )
    return folder / "out.jsonl"


def test_the_report_holds_every_part(tmp_path):
    html = build(load_run(make_run(tmp_path)), draws=100)
    for title in ("Scores", "Systems: answers", "Agreement with people", "Distributions", "Redundancy",
                  "Worst disagreements with people", "Evidence", "Signatures"):  # fmt: skip
        assert f"<h2>{title}</h2>" in html, title
    assert "<sup>b</sup>" in html and "n = 40" in html and "<svg" in html


def test_nothing_of_the_users_text_becomes_markup_and_nothing_is_fetched(tmp_path):
    html = build(load_run(make_run(tmp_path)), draws=100)
    assert "<script" not in html and "<b>bold</b>" not in html and "&lt;script&gt;" in html
    assert "http://" not in html and "https://" not in html and "src=" not in html


def test_a_run_without_ratings_or_records_still_reports(tmp_path):
    out = make_run(tmp_path, human=False)
    assert "Agreement with people" not in build(load_run(out), draws=100)
    (tmp_path / "in.jsonl").unlink()
    html = build(load_run(out), draws=100)
    assert "<h2>Scores</h2>" in html and "Systems" not in html


@pytest.mark.parametrize("text", ["", "oops\n", '{"id": "1"}\n'])
def test_what_is_no_run_is_refused(tmp_path, text):
    (tmp_path / "x.jsonl").write_text(text)
    with pytest.raises(UsageError, match=r"x\.jsonl"):
        load_run(tmp_path / "x.jsonl")


def test_marks_merge_and_bad_wins():
    assert marked("a <b c", [((2, 4), False), ((3, 6), True)]) == 'a <mark>&lt;</mark><mark class="bad">b c</mark>'


def test_axes_have_a_few_round_ticks():
    assert Axis(0, 1, 0, 100).ticks() == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1.0])
    assert Axis(5, 5, 0, 100)(5) == 50


# --- what a summary was compared with ---------------------------------------------------------------------------------

SUMMARY = Record(
    "1", context="The old bridge is shut.", summary="The bridge is shut.", references=("", "A bridge fell.", "Shut!")
)


def questions(**more):
    one = {"direction": "recall", "question": "A what fell?", "answer": "bridge", "other": "bridge", "weight": 1.0,
           "verdict": "supported", "span": [2, 8], "other_span": [4, 10]}  # fmt: skip
    return {"questions": [one], **more}


def test_the_text_that_was_compared_is_shown_and_marked():
    html = evidence(questions(against="reference 2"), SUMMARY, "questeval[against=references]")
    assert '<b>reference 2</b><p class="text">A <mark>bridge</mark> fell.</p>' in html
    assert "<td>reference 2</td>" in html and "source" not in html and "old" not in html
    html = evidence(questions(against="source"), SUMMARY, "questeval[against=both]")
    assert '<b>source</b><p class="text">Th<mark>e old </mark>bridge is shut.</p>' in html


@pytest.mark.parametrize("more", [{}, {"against": 0}])
def test_in_older_score_files_the_default_is_the_source(more):
    assert "<b>source</b>" in evidence(questions(**more), SUMMARY, "questeval[part=recall]")


@pytest.mark.parametrize("told", [0, 1, "reference 4", "reference 0"])
def test_where_the_text_cannot_be_told_nothing_is_marked(told):
    html = evidence(questions(against=told), SUMMARY, "questeval[against=both]")
    assert "<mark" not in html and "A what fell?" in html and "does not say which text" in html


# --- the record file --------------------------------------------------------------------------------------------------


def report(folder, *options):
    command = [sys.executable, "-m", "quaestor", "report", folder / "out.jsonl", "-o", folder / "r.html", *options]
    return subprocess.run([*map(str, command), "--draws", "100"], capture_output=True, text=True)


def test_a_wrong_record_file_is_refused_in_a_line(tmp_path):
    make_run(tmp_path, n=4)
    (tmp_path / "wrong.jsonl").write_text('{"id": "x", "question": "Why?"}\n')
    done = report(tmp_path, "--records", tmp_path / "wrong.jsonl")
    assert done.returncode == 2 and not (tmp_path / "r.html").exists()
    assert re.fullmatch(r"quaestor: .*wrong\.jsonl: no record scored in .*\n", done.stderr)
    (tmp_path / "broken.jsonl").write_text("oops\n[1]\n")
    done = report(tmp_path, "--records", tmp_path / "broken.jsonl")
    assert done.returncode == 2 and re.fullmatch(r"quaestor: .*broken\.jsonl:1: not valid JSON.*\n", done.stderr)


def test_missing_records_and_bad_lines_are_told(tmp_path):
    make_run(tmp_path, n=4)
    lines = (tmp_path / "in.jsonl").read_text().splitlines()
    (tmp_path / "part.jsonl").write_text("\n".join([*lines[:5], *["oops"] * 7]) + "\n")
    done = report(tmp_path, "--records", tmp_path / "part.jsonl")
    assert done.returncode == 0
    told = done.stderr.splitlines()
    assert len(told) == 7 and "part.jsonl:6: not valid JSON" in told[0] and "2 more lines are no records" in told[5]
    assert "part.jsonl: 3 of 8 scored records are not in it" in told[6]
    assert report(tmp_path).stderr == ""


def test_ids_that_another_tool_wrote_as_numbers_are_found(tmp_path):
    (tmp_path / "in.jsonl").write_text('{"id": 7, "question": "Why?"}\n')
    (tmp_path / "out.jsonl").write_text('{"id": 7, "scores": {"mine": 1}}\n')
    run = load_run(tmp_path / "out.jsonl", tmp_path / "in.jsonl")
    assert run.record(run.lines[0]).question == "Why?" and not run.warnings


# --- pictures ---------------------------------------------------------------------------------------------------------


def test_variants_of_a_metric_keep_different_labels():
    names = [f"questeval[against=references,join={join}]" for join in ("max", "mean")]
    assert [shortened(n, 20) for n in names] == ["questeval[…join=max]", "questeval[…oin=mean]"]
    assert all(len(shortened("x" * 60, room)) == room for room in (18, 20, 28)) and shortened("f1", 20) == "f1"
    drawn = heat_map(names, names, np.eye(2), "alike")
    assert all(drawn.count(f"<title>{n}</title>") == 2 for n in names)
    assert "<title>a&lt;b</title>" in curve(["a<b"], [1.0], "r")


@pytest.mark.parametrize("scheme", [0, 1])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_digits_of_a_heat_map_can_be_read_on_every_colour(scheme, sign):
    """WCAG 2 contrast of ink on fill in the light (0) and the dark scheme (1)."""
    colours = dict(re.findall(r"--([a-z-]+):(#[0-9a-f]+)", re.findall(r":root\{(.*?)\}", STYLE, re.DOTALL)[scheme]))

    def rgb(name):
        digits = colours[name][1:]
        digits = digits if len(digits) == 6 else "".join(d * 2 for d in digits)
        return np.array([int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)])

    def light(colour):
        return np.where(colour <= 0.03928, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4) @ (0.2126, 0.7152, 0.0722)

    for value in np.arange(0, 1.01, 0.01):
        drawn = heat_map(["a"], ["b"], np.array([[sign * value]]), "one")
        side = re.search(r"cell-(plus|minus)", drawn)[1]
        strength = float(re.search(r'fill-opacity="([\d.]+)"', drawn)[1])
        ink = light(rgb(re.search(r'class="small (on-\w+)"', drawn)[1]))
        ground = light(rgb("paper") * (1 - strength) + rgb({"plus": "mark", "minus": "warm"}[side]) * strength)
        assert (max(ink, ground) + 0.05) / (min(ink, ground) + 0.05) > 4.2, value


# --- what is left out, and why ----------------------------------------------------------------------------------------


def rated(folder, scores, ratings, **more):
    """A run of a metric that quaestor does not know, on two systems."""
    with (folder / "in.jsonl").open("w") as file, (folder / "out.jsonl").open("w") as out:
        for i, (score, rating) in enumerate(zip(scores, ratings, strict=True)):
            key = {"id": str(i // 2), "system": "ab"[i % 2]}
            file.write(json.dumps({**key, "question": "Why?", "human": {"good": rating}, **more}) + "\n")
            out.write(json.dumps({**key, "scores": {"mine": score}}) + "\n")
    return build(load_run(folder / "out.jsonl", folder / "in.jsonl"), draws=100)


def test_a_constant_metric_or_rating_has_no_bare_heading(tmp_path):
    vary = [float(i % 5) for i in range(20)]
    html = rated(tmp_path, [0.1] * 20, vary)
    assert "<h3>mine</h3>" not in html and "mine: every rated record has the same score" in html
    html = rated(tmp_path, vary, [3.0] * 20)
    assert "<h3>mine</h3>" not in html and "The human ratings do not vary" in html
    assert "<h3>mine</h3>" in rated(tmp_path, vary, vary[::-1])


def test_systems_are_compared_under_metrics_of_other_tools_too(tmp_path):
    html = rated(tmp_path, [float(i % 2) for i in range(20)], [float(i % 5) for i in range(20)])
    assert "<h2>Systems: questions</h2>" in html
    assert "b b</td><td>1.0000<sup>a</sup>" in html


def test_an_interval_that_few_groups_do_not_allow_says_so(tmp_path):
    values = [float(i % 5) for i in range(20)]
    html = rated(tmp_path, values, values[::-1], group="all")
    assert "Interval –: too few to resample." in html and "<td></td><td>" not in html.split("<summary>good")[1][:600]
    assert "too few to resample" not in rated(tmp_path, values, values[::-1])
