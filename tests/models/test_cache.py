"""Answers on disk: the same answer back, never another request's, safe for two processes, bounded in size."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elench.errors import UsageError
from elench.models.cache import AnswerCache, clear, digest, size_limit
from elench.requests import (
    Ask,
    ClassifyQuestion,
    Continue,
    Generate,
    Importance,
    Parse,
    Parsed,
    QuestionClass,
    Read,
    Reading,
    Relate,
    Relevance,
    TokenScores,
    Weigh,
    Word,
    WordWeights,
)  # fmt: skip

WORD = Word("Kings", "king", "NOUN", "NNS", "ROOT", 0, "", (0, 5), False)
ANSWERS: list[tuple[Any, Any]] = [
    (Continue("a", "b"), TokenScores(("b", "é"), ((0, 1), (1, 2)), (-0.1, -2.5e-7), 2, 3)),
    (Relate("q", "c"), Relevance((0.1, 0.2), ("q",), (("c",), ("c",)), ((0.5,), (0.25,)), 2)),
    (Parse("Kings"), Parsed((WORD,), ((0, 1),), ((0, 1, "PERSON"),), ())),
    (Parse(""), Parsed((), (), (), ())),
    (ClassifyQuestion("who"), QuestionClass({"HUM": 1.0}, {"HUM:ind": 0.75})),
    (Read("q", "t"), Reading("x", (0, 1), 0.25, 0.5)),
    (Read("q", "t", "gold"), Reading("", None, 1.0, 0.0, 0.125)),
    (Ask("t", "a", 0, 2), ("who?", "what?")),
    (Weigh("q", "a"), WordWeights(("a",), ((0, 1),), (0.5,))),
    (Importance("s", "q", "a"), 0.5),
    (Generate("s"), "ein Satz"),
]


def test_every_kind_of_answer_comes_back_as_it_was(tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path / "a.sqlite")
    cache.put_many([(("m", request), answer) for request, answer in ANSWERS])
    cache.close()
    keys = [("m", request) for request, _ in ANSWERS]
    assert AnswerCache(tmp_path / "a.sqlite").get_many(keys) == {("m", r): a for r, a in ANSWERS}


def test_another_model_or_parameter_is_another_answer(tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path / "a.sqlite")
    cache.put_many([(("m", Relate("q", "c")), ANSWERS[1][1])])
    others = [
        ("n", Relate("q", "c")),
        ("m", Relate("q", "c", "raw")),
        ("m", Relate("q", "c", form="code")),
        ("m", Relate("qc", "")),
    ]
    assert cache.get_many(others) == {}


@given(
    st.lists(st.tuples(st.text(max_size=6), st.text(max_size=6), st.booleans()), min_size=2, max_size=2, unique=True)
)
def test_no_two_requests_share_a_key(pair: list[tuple[str, str, bool]]) -> None:
    first, second = (digest(("m", Continue(*fields))) for fields in pair)
    assert first != second


def test_the_size_stays_within_the_limit(tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path / "a.sqlite", limit=300_000)
    for k in range(70):
        noise = [float.fromhex(f"0x1.{(k * 7919 + i * 104729) ** 3 % 16**10:x}p-1") for i in range(1000)]
        cache.put_many([(("m", Continue(str(k), "t")), TokenScores((), (), tuple(noise)))])
    assert 0 < cache.count() < 70
    assert cache._bytes() < 900_000  # checked every 32 writes
    cache._evict()
    assert cache._bytes() <= 300_000


def test_a_file_that_is_no_database_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    path.write_bytes(b"not a database, not at all" * 100)
    cache = AnswerCache(path)
    cache.put_many([(("m", Generate("s")), "x")])
    assert cache.get_many([("m", Generate("s"))]) == {("m", Generate("s")): "x"}


def test_an_unwritable_place_costs_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    cache = AnswerCache(tmp_path / "file" / "a.sqlite")
    cache.put_many([(("m", Generate("s")), "x")])
    assert cache.get_many([("m", Generate("s"))]) == {}
    assert "not cached" in capsys.readouterr().err


WRITER = """
import sys
from pathlib import Path
from elench.models.cache import AnswerCache
from elench.requests import Generate
cache = AnswerCache(Path(sys.argv[1]))
for k in range(60):
    cache.put_many([(("m", Generate(f"{sys.argv[2]} {k} {i}")), "x") for i in range(20)])
    cache.get_many([("m", Generate(f"{k}"))])
"""


def test_three_processes_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    started = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(n)], stderr=subprocess.PIPE) for n in range(3)
    ]
    assert [(p.communicate()[1], p.returncode) for p in started] == [(b"", 0)] * 3
    assert AnswerCache(path).count() == 3 * 60 * 20
    assert clear(path) > 0 and not path.exists()


def test_the_limit_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for given_, expected in [("500M", 500 << 20), ("4G", 4 << 30), ("1000", 1000), ("2gb", 2 << 30)]:
        monkeypatch.setenv("ELENCH_CACHE_SIZE", given_)
        assert size_limit() == expected
    monkeypatch.setenv("ELENCH_CACHE_SIZE", "much")
    with pytest.raises(UsageError, match="500M"):
        size_limit()
