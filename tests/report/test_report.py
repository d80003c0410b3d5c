"""The report is one file, holds what it promises, and escapes what users wrote."""

import json

import numpy as np
import pytest

from quaestor.engine.run import Job, score_file
from quaestor.errors import UsageError
from quaestor.metrics import metric
from quaestor.report import build, load_run
from quaestor.report.items import marked
from quaestor.report.svg import Axis

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
