"""The report is one file, holds what it promises, and escapes what users wrote."""

import base64
import json
import re
import subprocess
import sys
import zlib

import numpy as np
import pytest

from elench.engine.job import Job, score_file
from elench.errors import UsageError
from elench.metrics import metric
from elench.show.page import style
from elench.show.plots import Axis, curve, heat_map, shortened
from elench.show.report import build, load_view
from elench.show.report_records import LARGEST

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


def report_of(*paths, records=None, draws=100):
    return build(load_view(paths, records), draws=draws)


def unpacked(html):
    """What the page's script reads."""
    return json.loads(zlib.decompress(base64.b64decode(re.search(r'id="data">([^<]*)<', html)[1])))


def test_the_report_holds_every_part(tmp_path):
    html = report_of(make_run(tmp_path))
    for title in ("Answers", "Every record", "Agreement with human judgements: answers", "Signatures",
                  "Worst disagreements with human judgements: answers", "What made the score"):  # fmt: skip
        assert f"<h2>{title}</h2>" in html, title
    assert "<sup>b</sup>" in html and "n = 40" in html and html.count("<svg") >= 8


def test_it_opens_with_who_wins_and_by_which_test(tmp_path):
    html = report_of(make_run(tmp_path))
    assert "good is significantly better than the other system on f1, bleu and rouge-l." in html
    assert "Best score, of 3 metrics: good on 3." in html
    assert "paired randomisation test, two-sided, p &lt; 0.05 after Holm" in html
    assert html.index("good is significantly better") < html.index("<svg")


def test_where_nobody_wins_it_says_so(tmp_path):
    html = rated(tmp_path, [0.5, 0.5, 0.4, 0.4] * 5, [float(i % 5) for i in range(20)])
    assert "No system wins: on no metric is one significantly better" in html
    assert "With 10 items only very large differences can be seen." in html


def test_a_tie_has_no_winner_and_many_systems_are_counted(tmp_path):
    rows = [
        {"id": str(i), "system": f"s{k}", "judge": "answer", "answer": "red fox" if k else "red", "references": "red fox"}
        for i in range(12) for k in range(9)
    ]  # fmt: skip
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    score_file(Job(tmp_path / "in.jsonl", [metric("f1"), metric("em")], tmp_path / "out.jsonl"))
    html = report_of(tmp_path / "out.jsonl")
    assert "Best score, of 2 metrics: several systems alike on f1 and em." in html
    assert ">s1 and 7 others<" in html and "s1 on" not in html


def test_nothing_of_the_users_text_becomes_markup_and_nothing_is_fetched(tmp_path):
    html = report_of(make_run(tmp_path))
    details = "".join(row[6] for row in unpacked(html)["rows"])
    assert html.count("<script") == 2 and "<script" not in details  # the page's own data and script
    assert "<b>bold</b>" not in html + details and "&lt;script&gt;" in html and "&lt;script&gt;" in details
    assert "src=" not in html and "default-src 'none'" in html
    assert re.findall(r"https?://[^\"' <]*", html) == ["http://www.w3.org/2000/svg"]  # a name, not an address


def test_every_record_is_listed_with_its_texts_and_evidence(tmp_path):
    data = unpacked(report_of(make_run(tmp_path)))
    assert len(data["rows"]) == 80 and data["specs"] == ["f1", "bleu", "rouge-l"] and data["lower"] == [False] * 3
    run, id_, system, judge, title, values, detail = data["rows"][0]
    assert (run, id_, system, judge) == (0, "0", "good", "answer") and len(values) == 3
    assert "matched" in detail and title in detail


def test_a_run_without_ratings_or_records_still_reports(tmp_path):
    out = make_run(tmp_path, human=False)
    assert "Agreement with" not in report_of(out)
    (tmp_path / "in.jsonl").unlink()
    html = report_of(out)
    assert "<h2>Records</h2>" in html and "good is significantly better" in html and "was not found" in html


def test_several_runs_side_by_side(tmp_path):
    before, after = tmp_path / "before", tmp_path / "after"
    for folder in (before, after):
        folder.mkdir()
        make_run(folder, human=False)
    lines = [json.loads(line) for line in (after / "out.jsonl").read_text().splitlines()]
    for line in lines:
        line["scores"]["f1"] = max(0.0, line["scores"]["f1"] - 0.1)
    (after / "out.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    html = report_of(before / "out.jsonl", after / "out.jsonl", draws=500)
    assert "2 runs (before/out, after/out), 160 scored records" in html
    assert {row[2] for row in unpacked(html)["rows"]} >= {"before/out · good", "after/out · good"}
    assert "before/out · good is significantly better than all 3 other systems on f1" in html


def test_a_thousand_records_with_evidence_stay_below_a_megabyte(tmp_path):
    html = report_of(make_run(tmp_path, n=500, human=False))
    assert len(html.encode()) < LARGEST and len(unpacked(html)["rows"]) == 1000


def test_a_large_run_is_sampled_and_says_so(tmp_path):
    rng = np.random.default_rng(1)
    with (tmp_path / "in.jsonl").open("w") as file, (tmp_path / "out.jsonl").open("w") as out:
        for i in range(6000):
            text = " ".join(rng.integers(0, 10**9, 60).astype(str))  # digits hardly compress
            file.write(json.dumps({"id": str(i), "question": text, "references": [text]}) + "\n")
            out.write(json.dumps({"id": str(i), "scores": {"mine": float(rng.random())}}) + "\n")
    view = load_view([tmp_path / "out.jsonl"], tmp_path / "in.jsonl")
    html = build(view, draws=100)
    assert len(html.encode()) <= LARGEST
    assert "A sample of 5,000 of 6,000 records" in html
    kept = int(re.search(r"Texts and evidence of ([\d,]+) records", html)[1].replace(",", ""))
    rows = unpacked(html)["rows"]
    assert 100 < kept < 5000 and sum(bool(row[6]) for row in rows) == kept
    lowest = min(view.rows, key=lambda row: row.outcome.value("mine")).outcome.id
    assert next(row for row in rows if row[1] == lowest)[6]  # the lowest score keeps its texts


@pytest.mark.parametrize("text", ["", "oops\n", '{"id": "1"}\n'])
def test_what_is_no_run_is_refused(tmp_path, text):
    (tmp_path / "x.jsonl").write_text(text)
    with pytest.raises(UsageError, match=r"x\.jsonl"):
        load_view([tmp_path / "x.jsonl"])


def test_axes_have_a_few_round_ticks():
    assert Axis(0, 1, 0, 100).ticks() == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1.0])
    assert Axis(5, 5, 0, 100)(5) == 50
    assert [f"{t:g}" for t in Axis(-0.02, 1.0, 0, 1).ticks(4)] == ["0", "0.5", "1"]  # never "-0"


def test_records_are_found_from_another_folder(tmp_path, monkeypatch):
    (tmp_path / "work" / "runs").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "work")
    make_run(tmp_path / "work", n=2)
    elench = [sys.executable, "-m", "elench"]
    subprocess.run([*elench, "score", "in.jsonl", "-m", "f1", "-o", "runs/out.jsonl"], check=True, capture_output=True)
    monkeypatch.chdir("/")
    assert load_view([tmp_path / "work" / "runs" / "out.jsonl"]).rows[0].record.answer
    moved = (tmp_path / "work").rename(tmp_path / "moved")  # the whole folder went elsewhere
    assert load_view([moved / "runs" / "out.jsonl"]).rows[0].record.answer


# --- the record file --------------------------------------------------------------------------------------------------


def report(folder, *options):
    command = [sys.executable, "-m", "elench", "report", folder / "out.jsonl", "-o", folder / "r.html", *options]
    return subprocess.run([*map(str, command), "--draws", "100"], capture_output=True, text=True)


def test_a_wrong_record_file_is_refused_in_a_line(tmp_path):
    make_run(tmp_path, n=4)
    (tmp_path / "wrong.jsonl").write_text('{"id": "x", "question": "Why?"}\n')
    done = report(tmp_path, "--records", tmp_path / "wrong.jsonl")
    assert done.returncode == 2 and not (tmp_path / "r.html").exists()
    assert re.fullmatch(r"elench: .*wrong\.jsonl: no record scored in .*\n", done.stderr)
    (tmp_path / "broken.jsonl").write_text("oops\n[1]\n")
    done = report(tmp_path, "--records", tmp_path / "broken.jsonl")
    assert done.returncode == 2 and re.fullmatch(r"elench: .*broken\.jsonl:1: not valid JSON.*\n", done.stderr)


def test_missing_records_and_bad_lines_are_told(tmp_path):
    make_run(tmp_path, n=4)
    lines = (tmp_path / "in.jsonl").read_text().splitlines()
    (tmp_path / "part.jsonl").write_text("\n".join([*lines[:5], *["oops"] * 7]) + "\n")
    done = report(tmp_path, "--records", tmp_path / "part.jsonl")
    assert done.returncode == 0
    told = done.stderr.splitlines()
    assert (
        len(told) == 7 and "part.jsonl:6: not valid JSON" in told[0] and "2 more lines are not valid records" in told[5]
    )
    assert "part.jsonl: 3 of 8 scored records are not in it" in told[6]
    assert report(tmp_path).stderr == ""


def test_ids_that_another_tool_wrote_as_numbers_are_found(tmp_path):
    (tmp_path / "in.jsonl").write_text('{"id": 7, "question": "Why?"}\n')
    (tmp_path / "out.jsonl").write_text('{"id": 7, "scores": {"mine": 1}}\n')
    view = load_view([tmp_path / "out.jsonl"], tmp_path / "in.jsonl")
    assert view.rows[0].record.question == "Why?" and not view.warnings


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
    colours = dict(re.findall(r"--([a-z-]+):(#[0-9a-f]+)", re.findall(r":root\{(.*?)\}", style(), re.DOTALL)[scheme]))

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
    """A run of a metric that elench does not know, on two systems."""
    with (folder / "in.jsonl").open("w") as file, (folder / "out.jsonl").open("w") as out:
        for i, (score, rating) in enumerate(zip(scores, ratings, strict=True)):
            key = {"id": str(i // 2), "system": "ab"[i % 2]}
            file.write(json.dumps({**key, "question": "Why?", "human": {"good": rating}, **more}) + "\n")
            out.write(json.dumps({**key, "scores": {"mine": score}}) + "\n")
    return report_of(folder / "out.jsonl", records=folder / "in.jsonl")


def test_a_constant_metric_or_rating_has_no_bare_heading(tmp_path):
    vary = [float(i % 5) for i in range(20)]
    html = rated(tmp_path, [0.1] * 20, vary)
    assert "<h3>mine</h3>" not in html and "mine: every rated record has the same score" in html
    html = rated(tmp_path, vary, [3.0] * 20)
    assert "<h3>mine</h3>" not in html and "The human ratings do not vary" in html
    assert "<h3>mine</h3>" in rated(tmp_path, vary, vary[::-1])


def test_systems_are_compared_under_metrics_of_other_tools_too(tmp_path):
    html = rated(tmp_path, [float(i % 2) for i in range(20)], [float(i % 5) for i in range(20)])
    assert "<h2>Questions</h2>" in html and "b is significantly better than the other system on mine." in html
    assert 'b</td><td class="l">b</td><td>1.0000<sup>a</sup>' in html


def test_an_interval_that_few_groups_do_not_allow_says_so(tmp_path):
    values = [float(i % 5) for i in range(20)]
    html = rated(tmp_path, values, values[::-1], group="all")
    assert "Interval –: too few to resample." in html and "<td></td><td>" not in html.split("<summary>good")[1][:600]
    assert "too few to resample" not in rated(tmp_path, values, values[::-1])


def test_many_systems_can_win_whatever_the_number_of_draws(tmp_path):
    """16 systems are 120 pairs: after Holm's correction 100 draws could never reach p < .05."""
    with (tmp_path / "in.jsonl").open("w") as file:
        for i in range(20):
            for system in range(16):
                answer = "a b c d" if system == 3 else f"a {'b' if (i + system) % 2 else 'x'} y z"
                line = {"id": i, "system": f"s{system}", "judge": "summary", "summary": answer, "references": "a b c d"}
                file.write(json.dumps({**line, "human": {"good": i % 3}}) + "\n")
    score_file(Job(tmp_path / "in.jsonl", [metric("rouge-l")], tmp_path / "out.jsonl"))
    html = report_of(tmp_path / "out.jsonl", draws=100)
    assert "No system wins" not in html and "summarys" not in html
