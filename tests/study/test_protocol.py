"""Protocols: the four shipped ones are the papers', and mistakes in own ones are named with a remedy."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from elench.errors import UsageError
from elench.study.design.protocol import PAPER_FILTER
from elench.study.design.protocol_file import SHIPPED, load_protocol, parse_protocol, with_paper_filter

GOOD = """
name = "own"
title = "Own"
judge = "question"
show = ["context", "question"]
instructions = ["Read."]
[[criteria]]
name = "clear"
statement = "It is clear."
scale = "3-point"
labels = ["no", "so", "yes"]
[task]
compose = "pool"
[filter]
kind = "none"
"""


def test_shipped_protocols() -> None:
    found = {name: load_protocol(name) for name in SHIPPED}
    crowd = found["qg-crowd"]
    assert [c.name for c in crowd.criteria] == ["understandability", "relevancy", "answerability", "appropriateness"]
    assert all(c.slider for c in crowd.criteria) and crowd.filter.kind == "permutation"
    assert with_paper_filter(crowd).filter == PAPER_FILTER and with_paper_filter(crowd).reward == crowd.reward
    assert [c.values for c in found["qg-expert"].criteria] == [(1, 2, 3)] * 3 and found["qg-expert"].task.raters == 5
    kpqa = found["qa-correctness"]
    assert kpqa.task.raters == 10 and (kpqa.filter.z, kpqa.filter.most) == (1, 5)
    assert set(kpqa.show) == {"context", "question", "answer", "reference"}
    sim = found["qg-similarity"]
    assert sim.task.raters == 3 and sim.pass_mark == 0.8 and len(sim.qualification) >= 5
    assert [c.values for c in sim.criteria] == [(1, 0.5, 0), (1, 0), (1, 0), (1, 0.5, 0, 0, 0)]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('title = "Own"', "", "own.toml: title: missing"),
        ("name = ", "nmae = ", "name: missing"),
        ('kind = "none"', 'kind = "nonee"', "filter: kind: 'nonee' is not one of .*did you mean none"),
        ('scale = "3-point"', 'scale = "5-point"', "criteria 1: labels: scale 5-point needs 5, not 3"),
        ('labels = ["no", "so", "yes"]', 'labels = ["no", "so", "yes"]\nvalues = [1, 2]', "2 values for 3 labels"),
        ('compose = "pool"', 'compose = "pool"\nratres = 3', "task: ratres: unknown field .did you mean raters"),
        ('compose = "pool"', 'compose = "pool"\nraters = 0', "whole number, at least 1, not 0"),
        ('compose = "pool"', 'compose = "pool"\nrepeats = 0.2', 'need compose = "passage"'),
        ('kind = "none"', 'kind = "wilcoxon"', "task.bad_references is 0"),
        ('show = ["context", "question"]', 'show = ["context"]', "so it must be shown"),
        ('name = "clear"', 'name = "Very clear"', "lower-case"),
        ("[task]", "[task", "not valid TOML"),
    ],
)
def test_mistakes_are_named(old: str, new: str, message: str) -> None:
    assert parse_protocol(GOOD, "own.toml").criteria[0].values == (1, 2, 3)
    with pytest.raises(UsageError, match=message):
        parse_protocol(GOOD.replace(old, new, 1), "own.toml")


def test_ratings_outside_the_scale_are_refused() -> None:
    slider = load_protocol("qg-crowd").criteria[0]
    assert slider.parse("0") == "0" and slider.value(slider.parse("100")) == 100.0
    for text in ("101", "-1", "", "1e2", "NaN", "٣", "7.5", "9999"):
        with pytest.raises(ValueError, match="understandability"):
            slider.parse(text)
    points = load_protocol("qa-correctness").criteria[0]
    assert points.value(points.parse("4")) == 5.0
    with pytest.raises(ValueError, match="not on the scale"):
        points.parse("5")


def test_the_guides_example_is_a_protocol() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "study.md").read_text("utf-8")
    block = guide[guide.index('    name = "mine"') : guide.index("A test before the first task is")]
    found = parse_protocol(textwrap.dedent(block), "guide")
    assert found.judge == "summary" and found.task.max_per_rater == 5 and found.filter.pairs == "ratings"
