"""The keyphrase model: words and facts, long texts in parts, the same weights whatever shares the batch."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from elench.errors import UsageError  # noqa: E402
from elench.models import keyphrases  # noqa: E402
from elench.models.base import ModelChoice, ModelSet, load_model  # noqa: E402
from elench.models.keyphrases import KeyphraseModel, facts_of, lay_out  # noqa: E402
from elench.models.shipped import save_shipped  # noqa: E402
from elench.models.tokens import Tokens  # noqa: E402
from elench.models.torch_networks import TrainedKeyphrases, build_keyphrases  # noqa: E402
from elench.requests import Weigh  # noqa: E402
from elench.text.roots import root, words_of  # noqa: E402
from tests.tiny import tiny  # noqa: E402

LONG = " ".join(["jane austen wrote it in the city by the river ."] * 40)


@cache
def model() -> KeyphraseModel:
    torch.manual_seed(1)
    network = build_keyphrases(tiny("bert"), {}).eval()
    torch.nn.init.normal_(network.facts.weight)
    tokens = Tokens.from_transformers(transformers.AutoTokenizer.from_pretrained(tiny("bert")))
    return KeyphraseModel(TrainedKeyphrases(network), tokens, window=100)


@pytest.mark.parametrize(
    "one, other",
    [("steps", "step"), ("Cities", "city"), ("four", "4"), ("%", "percent"), ("stopped", "stops"), ("1,000", "1000"),
     ("Anna's", "Anna"), ("causes", "caused"), ("Yeah", "yes")],
)  # fmt: skip
def test_words_with_one_root(one: str, other: str) -> None:
    assert root(one) == root(other)


@pytest.mark.parametrize("one, other", [("four", "five"), ("press", "pre"), ("his", "hi"), ("sing", "singer")])
def test_words_with_different_roots(one: str, other: str) -> None:
    assert root(one) != root(other)


def test_words_of_a_text_with_their_places() -> None:
    text = "It's 2% of $4.81 — 5-20 hours."
    assert [w for w, _ in words_of(text)] == ["It's", "2", "%", "of", "$", "4.81", "5", "20", "hours"]
    assert all(text[a:b] == w for w, (a, b) in words_of(text))


def test_facts_tell_asked_words_stop_words_and_numbers_apart() -> None:
    assert facts_of("How many steps are there?", ["There", "are", "Four", "step", "tests"]) == [4, 4, 5, 2, 1]


def test_weights_come_per_word_and_are_probabilities() -> None:
    found = model().weigh([("who wrote it ?", "Jane Austen, in 1813 (London).")])[0]
    assert found.words == ("Jane", "Austen", "in", "1813", "London")
    assert all(0 < w < 1 for w in found.weights) and len(found.pieces) == len(found.piece_weights)


def test_no_answer_depends_on_its_batch() -> None:
    pairs = [("who wrote it ?", "jane austen"), ("when was the king in the city ?", LONG), ("", "the old book .")]
    together = model().answer([Weigh(q, a) for q, a in pairs])
    for (question, answer), found in zip(pairs, together, strict=True):
        alone = model().answer([Weigh(question, answer)])[0]
        assert np.allclose(alone.weights, found.weights, atol=1e-5)


def test_forms_in_one_batch_keep_their_order() -> None:
    batch = [Weigh("who ?", "jane", "code"), Weigh("who ?", "the king"), Weigh("", "the river", "code")]
    assert [f.words for f in model().answer(batch)] == [("jane",), ("the", "king"), ("the", "river")]
    assert model().lengths(batch) == [6, 7, 5], "pieces of both texts and three special ones"


def test_long_texts_are_split_between_words_and_nothing_is_cut() -> None:
    sheet = lay_out([(LONG[:300], "riverbanks " * 60 + LONG)], model().tokens)[0]
    rows = sheet.rows(100)
    assert all(len(row) <= 100 for row in rows)
    asked = {row.question for row in rows}
    assert sum((row.question for row in rows if row.first == 0), ()) == sheet.question
    for question in asked:
        own = [row for row in rows if row.question == question]
        assert sum((row.answer for row in own), ()) == sheet.answer
        for row in own[1:]:
            assert sheet.owners[row.first] != sheet.owners[row.first - 1] or sheet.owners[row.first] == -1
    found = model().weigh([(LONG[:300], LONG)])[0]
    assert len(found.weights) == len(words_of(LONG)) and min(found.weights) > 0


def test_trained_folder_is_loaded_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELENCH_MODELS", str(tiny("bert").parent))
    save_shipped(model().network.network, tmp_path, base_name=tiny("bert").name, base=tiny("bert"))
    again = ModelSet({"keyphrases": str(tmp_path)})["keyphrases"]
    pair = [Weigh("who wrote it ?", "jane austen wrote it")]
    assert np.allclose(again.answer(pair)[0].weights, model().answer(pair)[0].weights, atol=2e-3)
    assert again.sha256 != model().sha256


def test_a_folder_that_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        load_model(ModelChoice("keyphrases", str(tmp_path)))


def test_window_is_bounded_by_the_checkpoint(tmp_path: Path) -> None:
    config = transformers.BertConfig.from_pretrained(tiny("bert"), num_labels=2)
    transformers.BertForTokenClassification(config).save_pretrained(tmp_path)
    transformers.AutoTokenizer.from_pretrained(tiny("bert")).save_pretrained(tmp_path)
    found = load_model(ModelChoice("keyphrases", str(tmp_path)))
    assert found.window == 128 < keyphrases.WINDOW
    assert len(found.weigh([("who ?", LONG)])[0].weights) == len(words_of(LONG))
