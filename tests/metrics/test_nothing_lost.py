"""Lexical metrics keep their numbers on the sample: tests/golden/lexical.json. They are those of 0.1, too, which
benchmarks/nothing_lost.py shows on more records (docs/decisions/0021-scores-since-0.1.md)."""

import json
from pathlib import Path

import pytest

import elench

HOME = Path(__file__).parents[2]
GOLDEN = json.loads((HOME / "tests" / "golden" / "lexical.json").read_text())


@pytest.fixture(scope="module")
def scored():
    return elench.score(HOME / "sample" / "records.jsonl", list(GOLDEN), cache=False)


@pytest.mark.parametrize("spec", GOLDEN)
def test_a_lexical_metric_gives_the_old_numbers(spec, scored):
    now = scored.values(spec)
    assert [v is None for v in now] == [v is None for v in GOLDEN[spec]]
    assert [v for v in now if v is not None] == pytest.approx([v for v in GOLDEN[spec] if v is not None], abs=1e-6)
