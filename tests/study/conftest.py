"""Small studies on both databases."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from elench.records.record import Record
from elench.study.collect.store import Store
from elench.study.design.compose import compose, find_human
from elench.study.design.protocol_file import load_protocol
from elench.study.folder import Study, write_study

PLACES = ("Lyon", "Oslo", "Graz", "Turin", "Ghent", "Porto", "Brno", "Malmö", "Cork", "Bern", "Split", "Leeds")
WORDS = (
    "river", "bridge", "tower", "harbour", "market", "garden", "museum", "railway", "station", "mountain", "castle",
    "library", "theatre", "square", "temple", "factory", "school", "hospital", "airport", "island", "valley", "forest",
)  # fmt: skip


def outputs(systems: int = 11, passages: int = 12) -> list[Record]:
    """One question of every system about every passage; the first system is called human."""
    records = []
    for p in range(passages):
        words = [f"{WORDS[(p * 7 + k) % len(WORDS)]}{p}" for k in range(40)]
        place = f"{PLACES[p % len(PLACES)]}{p // len(PLACES) or ''}"
        context = f"The town of {place} has a " + " and a ".join(words) + "."
        for s in range(systems):
            name = "human" if s == 0 else f"system{s:02d}"
            question = f"Which {words[s]} does the old town of {place} have near its own {words[s + 1]} ?"
            records.append(
                Record(
                    f"p{p}-s{s}", context, question, words[s], system=name, group=f"g{p}",
                    references=(f"What is in {place}?",), judge="question",
                )
            )  # fmt: skip
    return records


_numbers = itertools.count()


THREE_SCALES = """
[[criteria]]
name = "clear"
statement = "The question is clear."
scale = "slider"
labels = ["strongly disagree", "strongly agree"]
[[criteria]]
name = "grammar"
statement = "How good is its grammar?"
scale = "5-point"
labels = ["1", "2", "3", "4", "5"]
[[criteria]]
name = "answerable"
statement = "The passage answers it."
scale = "yes-no"
labels = ["yes", "no"]
"""
"""Criteria of a protocol file, each on a scale of its own."""
STEPS = """
[consent]
text = ["We ask you to rate questions."]
contact = "a@example.org"
withdrawal = "You may stop at any time."
[check]
attempts = 2
[[check.questions]]
name = "what"
question = "What do you rate?"
choices = ["passages", "questions"]
right = "questions"
[[before]]
name = "age"
question = "How old are you?"
choices = ["under 30", "30 or more"]
[[after]]
name = "hard"
question = "How hard was it?"
"""
"""What a protocol file may ask around the ratings."""
MakeStudy = Callable[..., Study]


@pytest.fixture
def make_study(tmp_path: Path) -> MakeStudy:
    def make(
        protocol: str = "qg-crowd", systems: int = 11, passages: int = 12, tasks: int | None = None, **more: object
    ) -> Study:
        records = outputs(systems, passages)
        rules = load_protocol(protocol)
        human = find_human(sorted({r.system or "" for r in records}), None)
        plan = compose(records, rules, tasks, human, 1)
        folder = tmp_path / f"study{next(_numbers)}"
        return write_study(folder, rules, plan, records, human=human, seed=1, **more)  # type: ignore[arg-type]

    return make


@pytest.fixture
def store(make_study: MakeStudy, database: str | None) -> Iterator[Store]:
    opened = Store(make_study(), database)
    yield opened
    opened.close()


@pytest.fixture
def sqlite_store(make_study: MakeStudy) -> Iterator[Store]:
    opened = Store(make_study())
    yield opened
    opened.close()
