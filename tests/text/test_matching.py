"""The fast kernels agree with the plain way of doing the same."""

import gzip
import pickle
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elench.errors import UsageError
from elench.metrics.evidence import Evidence
from elench.text import wordnet
from elench.text.lcs import lcs_length, lcs_places
from elench.text.ngrams import grams, pool, shared_by_order, shared_runs
from elench.text.words import Pieces

rows = st.lists(st.sampled_from("abcd"), max_size=12).map(tuple)


@given(rows, st.lists(rows, min_size=1, max_size=3))
def test_shared_grams_are_clipped_by_the_text_that_has_most(own, others):
    expected = []
    for n in range(1, 5):
        most = Counter()
        for other in others:
            most |= Counter(grams(other, n))
        expected.append((Counter(grams(own, n)) & most).total())
    assert shared_by_order(own, pool(*others), 4) == expected


def test_texts_longer_than_the_prepared_bits():
    long = tuple(str(i % 700) for i in range(5000))
    assert shared_by_order(long, pool(long), 3) == [5000, 4999, 4998]


@given(rows, rows)
def test_the_longest_common_subsequence_is_one_and_is_longest(a, b):
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            table[i + 1][j + 1] = table[i][j] + 1 if x == y else max(table[i][j + 1], table[i + 1][j])
    places = lcs_places(a, b)
    rest = iter(b)
    assert all(a[place] in rest for place in places)  # in the order of b
    assert places == sorted(set(places))
    assert len(places) == lcs_length(a, b) == table[-1][-1]


def test_shared_runs_read_like_the_text():
    own = ["the", "old", "mill", "by", "the", "river", "burned", "down"]
    assert shared_runs(own, pool(["the", "mill", "by", "the", "old", "river", "burned"]), 4) == [
        "the old",
        "mill by the",
        "river burned",
    ]


def test_pieces_forget_when_full():
    pieces = Pieces(lambda piece: (piece,), most=2)
    assert pieces.of(["a", "b", "c", "a"]) == ("a", "b", "c", "a")
    assert len(pieces) <= 2


def test_evidence_is_worked_out_when_looked_at_and_travels_plain():
    calls = []
    evidence = Evidence(lambda word: calls.append(word) or {"word": word}, "x")
    assert not calls
    assert evidence["word"] == "x" and dict(evidence) == {"word": "x"}
    assert len(calls) == 1
    assert pickle.loads(pickle.dumps(evidence)) == {"word": "x"}


def test_wordnet_knows_senses_forms_and_opposites():
    assert {"car", "automobile", "auto"} <= wordnet.synonyms("cars")
    assert wordnet.base_forms("children", "n") == ["child"]
    assert "small" in wordnet.antonyms("larger")
    assert wordnet.synonyms("qwertzuiop") == frozenset()


def test_a_damaged_table_is_refused(tmp_path, monkeypatch):
    (tmp_path / "wordnet.txt.gz").write_bytes(gzip.compress(b"something else\n"))
    monkeypatch.setattr(wordnet, "__file__", str(tmp_path / "wordnet.py"))
    with pytest.raises(UsageError, match="damaged"):
        wordnet.tables.__wrapped__()
