"""The question-class trainer: reads TREC, keeps questions apart, calibrates, and makes the same model twice."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from elench.errors import UsageError
from elench.requests import QuestionClass
from elench.train.classes import Labelled, command, fitted_temperature, part, read_trec
from tests.train.tiny import tiny_bert

LINES = [
    ("HUM:ind", "who sold the house ?"),
    ("LOC:city", "where does anna lives ?"),
    ("NUM:date", "when did carl moved to rome ?"),
    ("ENTY:other", "what did the baker painted ?"),
]


@pytest.fixture
def corpora(tmp_path):
    """Forty different questions to train on, twelve to test."""
    words = ["old", "green", "high", "gold", "fish", "iron", "door", "hill", "day", "coins"]
    rows = [(label, f"{question[:-2]} {word} ?") for label, question in LINES for word in words]
    (tmp_path / "trec_train.txt").write_text("".join(f"{label} {q}\n" for label, q in rows), encoding="latin-1")
    (tmp_path / "trec_test.txt").write_text("".join(f"{label} {q}\n" for label, q in rows[::3]), encoding="latin-1")
    return tmp_path


def test_read_trec_names_the_bad_line(tmp_path):
    path = tmp_path / "t.txt"
    path.write_bytes("DESC:def What is a caf\xe9 ?\nno class here\n".encode("latin-1"))
    with pytest.raises(UsageError, match=r"t\.txt:2: not a line"):
        read_trec(path)
    path.write_bytes("DESC:def What is a caf\xe9 ?\n".encode("latin-1"))
    assert read_trec(path) == [Labelled("What is a café ?", "DESC:def")]
    with pytest.raises(UsageError, match="cannot be read"):
        read_trec(tmp_path / "none.txt")


def test_part_keeps_the_same_question_on_one_side():
    items = [Labelled(q, "HUM:ind") for q in ("Who ?", "who ?", "a", "b", "c", "d", "e", "f", "g", "h", "i")]
    train, kept = part(items, 0.3, seed=1)
    assert len(train) + len(kept) == len(items) and 3 <= len(kept) <= 4
    assert not {i.question.lower() for i in train} & {i.question.lower() for i in kept}
    assert part(items, 0.3, seed=1) == (train, kept)


def test_temperature_undoes_overconfidence():
    """Logits of a true distribution, multiplied by 2: the right temperature is 2."""
    rng = np.random.default_rng(5)
    logits = rng.normal(size=(4000, 3)) * 1.5
    chances = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    targets = [str(rng.choice(3, p=p)) for p in chances]
    sharp = np.exp(2 * logits) / np.exp(2 * logits).sum(1, keepdims=True)
    answers = [QuestionClass({}, {str(i): float(p) for i, p in enumerate(row)}) for row in sharp]
    assert fitted_temperature(answers, targets) == pytest.approx(2.0, abs=0.15)


def test_command_trains_ships_and_repeats_itself(corpora, tmp_path):
    base = tiny_bert(tmp_path / "base")
    common = ["--data", str(corpora), "--base", str(base), "--steps", "80", "--batch", "8", "--lr", "0.005"]
    for out in ("one", "two"):
        result = CliRunner().invoke(command, [*common, "--out", str(tmp_path / out)], catch_exceptions=False)
        assert result.exit_code == 0, result.output
    assert "trec_test: coarse" in result.output and "(n=14)" in result.output
    one, two = (tmp_path / out / "weights.safetensors" for out in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()
    card = json.loads((tmp_path / "one" / "card.json").read_text())
    assert card["test"]["fine"] > 0.7 and card["test"]["n"] == 14
    assert card["seed"] == 7 and card["steps"] == 80


def test_command_wants_a_folder(corpora):
    result = CliRunner().invoke(command, ["--data", str(corpora)])
    assert isinstance(result.exception, UsageError) and "--out" in str(result.exception)
