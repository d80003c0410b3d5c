"""Systems side by side: significance that can be trusted, in four formats."""

import json

import numpy as np
import pytest

from quaestor import compare
from quaestor.errors import UsageError

WORDS = "the old boat lay near a red lamp and seven small birds sang about rain all night long".split()  # noqa: SIM905


def records(quality, n=60, seed=0):
    """Systems that copy each reference word with a given probability."""
    rng = np.random.default_rng(seed)
    made = []
    for i in range(n):
        reference = list(rng.choice(WORDS, 12))
        for system, keep in quality.items():
            words = [w if rng.random() < keep else "noise" for w in reference]
            made.append(
                {
                    "id": str(i),
                    "system": system,
                    "judge": "answer",
                    "answer": " ".join(words),
                    "references": [" ".join(reference)],
                }
            )
    return made


def test_a_better_system_wins_and_equal_systems_do_not():
    table = compare(records({"good": 0.9, "bad": 0.5, "twin": 0.5}), ["f1", "bleu"], draws=500)
    for column in table.columns:
        assert set(column.beaten("good", 0.05)) == {"bad", "twin"}
        assert column.beaten("bad", 0.05) == [] == column.beaten("twin", 0.05)
        low, high = column.intervals["good"]
        assert low < column.scores["good"] < high
        assert all(p.bootstrap >= 1 / 501 and p.randomisation >= 1 / 501 and p.n == 60 for p in column.pairs)


def test_bleu_is_compared_by_its_corpus_score():
    import quaestor

    made = records({"a": 0.9, "b": 0.5})
    table = compare(made, "bleu", draws=200)
    alone = quaestor.score([r for r in made if r["system"] == "a"], "bleu").summary()["bleu"]
    assert table.columns[0].scores["a"] == pytest.approx(alone["corpus"])


def test_under_no_difference_few_pairs_are_called_significant():
    hits = sum(
        compare(records({"a": 0.6, "b": 0.6}, n=40, seed=s), "f1", draws=200).columns[0].pairs[0].randomisation < 0.05
        for s in range(60)
    )
    assert hits <= 9  # 3 expected; more than 9 of 60 at 5 % has a chance below 0.1 %


def test_the_same_seed_gives_the_same_bytes():
    made = records({"a": 0.9, "b": 0.8})
    assert compare(made, "f1", draws=200, seed=3).to_json() == compare(made, "f1", draws=200, seed=3).to_json()


def test_formats():
    table = compare(records({"x_1": 0.9, "y": 0.4}), "f1", draws=200)
    assert json.loads(table.to_json())["metrics"]["f1"]["systems"]["x_1"]["beats"] == ["y"]
    assert "<sup>b</sup>" in table.to_markdown() and "n = 60" in table.to_markdown()
    assert "x\\_1" in table.to_latex() and "$^{b}$" in table.to_latex()
    assert "^b" in table.to_text()


def test_items_are_paired_by_group_where_ids_differ():
    made = [r | {"group": r["id"], "id": f"{r['id']}-{r['system']}"} for r in records({"a": 0.9, "b": 0.5})]
    table = compare(made, "f1", draws=200)
    assert table.columns[0].pairs[0].n == 60 and "paired by group" in table.to_text()


def test_what_cannot_be_compared_is_refused():
    made = records({"a": 0.9, "b": 0.5}, n=3)
    with pytest.raises(UsageError, match="two systems"):
        compare([r for r in made if r["system"] == "a"], "f1")
    with pytest.raises(UsageError, match="nothing pairs them"):
        compare([r | {"id": f"{r['id']}-{r['system']}"} for r in made], "f1")
