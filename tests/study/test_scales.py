"""More ways to ask: each scale from the form to its number, and tasks that compare outputs."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from elench.errors import UsageError
from elench.study.analyse.quality import judge_raters
from elench.study.analyse.sittings import collect
from elench.study.collect.store import Store
from elench.study.design.compose import compose
from elench.study.design.criterion import Criterion
from elench.study.design.protocol_file import SHIPPED, load_protocol, parse_protocol
from elench.study.folder import write_study
from tests.study.conftest import outputs
from tests.study.web import Visitor


def numbers(scale: str, form: dict[str, list[str]], members: int = 1, words: int = 0) -> list[float | None] | None:
    criterion = Criterion("x", "?", scale, (), (0.0, 1.0))
    answers = criterion.read(lambda name: form.get(name, []), members, words)
    return None if answers is None else [criterion.value(answer) for answer in answers]


def test_answers_become_numbers() -> None:
    assert numbers("preference", {"c-x": ["0"]}, 2) == [1, 0]
    assert numbers("preference", {"c-x": ["1"]}, 2) == [0.5, 0.5]
    assert numbers("ranking", {"c-x-0": ["2"], "c-x-1": ["1"], "c-x-2": ["3"]}, 3) == [0.5, 1, 0]
    assert numbers("best-worst", {"c-x-best": ["2"], "c-x-worst": ["0"]}, 4) == [0, 0.5, 1, 0.5]
    assert numbers("spans", {"c-x": ["1", "3"]}, 1, 8) == [0.75]
    assert numbers("spans", {"c-x": ["none"]}, 1, 8) == [1]
    assert numbers("text", {"c-x": ["a\0b"]}) == [None]
    assert numbers("ranking", {"c-x-0": ["2"]}, 3) is None
    for scale, form in (
        ("ranking", {"c-x-0": ["1"], "c-x-1": ["1"], "c-x-2": ["3"]}),
        ("best-worst", {"c-x-best": ["1"], "c-x-worst": ["1"]}),
        ("spans", {"c-x": ["8"]}),
        ("preference", {"c-x": ["7"]}),
    ):
        with pytest.raises(ValueError, match=r"^x: "):
            numbers(scale, form, 3, 8)


def test_every_shipped_protocol_is_read() -> None:
    assert [len(load_protocol(name).asked) for name in SHIPPED] == [4, 3, 1, 4, 7, 4, 2]


def test_a_mistake_is_named_with_its_line() -> None:
    text = load_protocol("rag-pairwise").text.replace('scale = "preference"', 'scale = "preferences"')
    line = text[: text.index('"preferences"')].count("\n") + 1
    with pytest.raises(UsageError, match=rf"^own\.toml:{line}: criteria 1: scale: .*did you mean preference"):
        parse_protocol(text, "own.toml")


def test_a_pairwise_study_from_the_plan_to_the_verdict(tmp_path: Path) -> None:
    protocol = load_protocol("rag-pairwise")
    records = [replace(record, judge="answer", answer=record.question) for record in outputs(3, 12)]
    plan = compose(records, protocol, None, None, 0)
    for task in plan:
        pairs = Counter(tuple(sorted(task.items[p].system for p in s)) for s in task.screens)
        assert len(task.screens) <= 16 and all(len(screen) == 2 for screen in task.screens)
        ordinary = {tuple(sorted(task.items[p].system for p in s)) for s in task.screens
                    if all(task.items[p].kind == "ordinary" for p in s)}  # fmt: skip
        assert len(ordinary) == 1 and pairs  # one pair of systems per task
    study = write_study(tmp_path / "s", protocol, plan, records, human=None, seed=0)
    store = Store(study)
    rater = Visitor(store)
    rater.join()
    bad = {item.text for task in study.tasks for item in task.items if item.kind == "bad"}
    while not rater.path.endswith("/review"):
        shown = re.findall(r'class="subject" dir="auto">([^<]*)<', rater.page.text)
        choice = "2" if shown[0] in bad else "0"
        rater.post(rater.path, {"csrf": rater.csrf, "go": "next", "c-better": choice, "c-why": "reads better"})
    rater.submit()
    (sitting,) = collect(store)
    (verdict,) = judge_raters(study, [sitting]).values()
    assert verdict.passed and verdict.pairs >= 6 and sitting.slot is not None
    assert {answer for given in sitting.answers.values() for answer in given.values()} >= {"1", "0", "reads better"}


def test_two_equal_ranks_are_refused_in_the_raters_language(tmp_path: Path) -> None:
    text = load_protocol("rag-pairwise").text.replace('scale = "preference"', 'scale = "ranking"')
    text = re.sub(r"(?m)^bad_references.*$", "", text).replace("outputs = 2", "outputs = 3")
    text = re.sub(r"(?ms)^\[filter\].*?^\[pay\]", '[filter]\nkind = "none"\n\n[pay]', text)
    protocol = parse_protocol(f'language = "de"\n{text}', "ranking.toml")
    records = [replace(record, judge="answer", answer=record.question) for record in outputs(3, 4)]
    store = Store(
        write_study(tmp_path / "s", protocol, compose(records, protocol, None, None, 0), records, human=None, seed=0)
    )
    rater = Visitor(store)
    rater.join()
    page = rater.post(rater.path, {"csrf": rater.csrf, "c-better-0": "1", "c-better-1": "1", "c-better-2": "2"})
    assert page.status_code == 422 and "jeden Rang von 1 bis 3 genau einmal" in page.text
    store.close()
