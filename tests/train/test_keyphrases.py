"""Training the keyphrase model: sentences keep their span, the right words are marked, the command leaves a model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

pytest.importorskip("torch")
pytest.importorskip("transformers")

from elench.cli.train import command
from elench.models.base import ModelChoice
from elench.models.keyphrases import load
from elench.models.shipped import shipped_identity
from elench.text.roots import words_of
from elench.train.examples import Example
from elench.train.keyphrase_examples import (
    UNIT,
    AnswerSentences,
    Marked,
    Mixture,
    definition,
    definitions,
    holding,
    linked,
    mark,
    polar,
    sentences,
    statement,
)
from elench.train.keyphrases import corpora, marked_sheets, without_facts
from tests.train.tiny import STORY, tiny_bert, tiny_corpora


def example(answer: str, question: str = "Where?", context: str = STORY) -> Example:
    return Example("1", context, question, (answer,), context.index(answer), "g")


def keys(marked: Marked | None) -> list[str]:
    assert marked is not None
    return [w for (w, _), k in zip(words_of(marked.answer), marked.key, strict=True) if k > 0.5]


def test_sentences_do_not_end_at_initials_and_abbreviations() -> None:
    text = "Dr. Smith met J. R. Tolkien in St. Louis. It rained! (They left.) The U.S. won 3.5 games."
    assert [text[a:b].strip() for a, b in sentences(text)] == [
        "Dr. Smith met J. R. Tolkien in St. Louis.", "It rained!", "(They left.)", "The U.S. won 3.5 games.",
    ]  # fmt: skip


@pytest.mark.parametrize("answer", ["Oslo", "1999", "Dora. She sold", "fish", "green"])
def test_the_span_stays_whole(answer: str) -> None:
    for more in (0, 1):
        found = holding(example(answer), more)
        assert found is not None
        text, (start, end) = found
        assert text[start:end] == answer and text in STORY


def test_a_sentence_that_leans_on_another_brings_it_along() -> None:
    found = holding(example("fish"))
    assert found is not None and found[0].startswith("Her brother Carl moved") is False
    assert found[0].startswith("Anna lives") and "He cooks fish" in found[0], "He leans on Her …, which leans on Anna"


def test_the_linking_sentence_comes_first() -> None:
    found = linked(example("green", "What colour is the door of the old house of Dora?"))
    assert found is not None
    text, (start, end) = found
    assert text.startswith("The old house") and text[start:end] == "green"


def test_new_telling_words_of_the_span_are_key() -> None:
    question = "How many steps are involved in the test?"
    assert keys(mark(question, "There are four steps in the test.", [(10, 20)], "x")) == ["four"]
    assert keys(mark("What is it?", "It is it.", [(0, 2)], "x")) == ["It"], "nothing telling: all words of the span"
    assert mark("What?", "...", [(0, 3)], "x") is None


def test_units_count_less_where_a_number_is_asked_for() -> None:
    asked = mark("How long do turtles live?", "turtles live for 40 years", [(17, 25)], "x")
    assert asked is not None and asked.key == (0.0, 0.0, 0.0, 1.0, UNIT)
    assert keys(mark("What did he say?", "he said 40 years", [(8, 16)], "x")) == ["40", "years"]


@pytest.mark.parametrize("question", [
    "Who wrote Emma?", "When was the hall built?", "How many steps are involved in it?", "In what year did he die?",
    "Why did she leave?", "What is the capital of France?", "The statue stands in front of what?", "Name it.",
])  # fmt: skip
def test_statements_hold_the_answer_where_they_say(question: str) -> None:
    for seed in range(12):
        text, (start, end) = statement(question, "blue sky.", np.random.default_rng(seed))
        assert text[start:end] == "blue sky" and keys(mark(question, text, [(start, end)], "x")) == ["blue", "sky"]


def test_yes_and_no_are_key() -> None:
    made = [polar("When was the hall built?", "in 1900", "in 1950", np.random.default_rng(s)) for s in range(30)]
    said = [keys(m) for m in made]
    assert {k[0] for k in said} == {"yes", "no"} and ["no", "1950"] in said
    assert polar("Name it.", "x", "y", np.random.default_rng(0)) is None


def test_what_a_definition_says_is_key() -> None:
    text = "Anthropology is the study of humans in the past and present."
    assert keys(definition(text, np.random.default_rng(0))) == ["study", "humans", "past", "present"]
    assert definition("It is the study of humans in the past.", np.random.default_rng(0)) is None
    assert definitions([example("study", context=text + " It is the oldest of them all by far.")]) == [text]


def test_the_mixture_is_seeded_and_of_all_kinds(tmp_path: Path) -> None:
    examples = corpora(_corpora(tmp_path))[0] * 40
    mixture = Mixture(examples, ["Anthropology is the study of humans in the past and present."])
    first, again = (mixture(np.random.default_rng(3), 0) for _ in range(2))
    assert first == again != mixture(np.random.default_rng(4), 0)
    assert {m.kind for m in first} == {"sentence", "among", "statement", "phrase", "yes/no", "definition"}
    assert any(not m.question for m in first), "some answers are shown without their question"
    assert all(len(m.key) == len(words_of(m.answer)) and any(m.key) for m in first)


def _corpora(folder: Path) -> Path:
    tiny_corpora(folder)
    (folder / "fairytaleqa_val.jsonl").write_text((folder / "fairytaleqa_train.jsonl").read_text())
    return folder


def test_the_command_leaves_a_model_with_a_card(tmp_path: Path) -> None:
    base, data, out = tiny_bert(tmp_path / "base"), _corpora(tmp_path / "data"), tmp_path / "out"
    more = tmp_path / "more.jsonl"
    more.write_text(json.dumps({"context": STORY, "question": "Where does Carl live?", "answer": "Rome"}) + "\n")
    options = ["keyphrases", "--data", str(data), "--base", str(base), "--out", str(out), "--stored", "fp16"]
    result = CliRunner().invoke(command, [*options, "--steps", "3", "--file", str(more)], catch_exceptions=False)
    assert result.exit_code == 0 and "key-word F1" in result.output
    card = json.loads((out / "card.json").read_text())
    assert card["steps"] == 3 and "key-word F1, all" in card and card["bytes"] > 0
    model = load(shipped_identity(ModelChoice("keyphrases"), out, base=base))
    assert len(model.weigh([("Where does Anna live?", "Anna lives in Oslo")])[0].weights) == 4
    result = CliRunner().invoke(command, [*options, "--evaluate"], catch_exceptions=False)
    assert "all, plain rule: n" in result.output
    result = CliRunner().invoke(command, ["keyphrases", "--data", str(data), "--base", str(base), "--out", str(out)])
    assert result.exception is not None and "how long" in str(result.exception)


@pytest.mark.parametrize(("recipe", "asked"), [("paper", True), ("paper-kp", False)])
def test_the_papers_recipes_train_end_to_end_and_the_ablation_never_sees_a_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recipe: str, asked: bool
) -> None:
    from safetensors.numpy import load_file

    from elench.train import keyphrases

    seen: list[bool] = []
    plain = keyphrases.key_loss

    def watched(network, batch, cls, sep):
        seen.extend(bool(item.sheet.question) for item in batch)
        return plain(network, batch, cls, sep)

    monkeypatch.setattr(keyphrases, "key_loss", watched)
    base, data, out = tiny_bert(tmp_path / "base"), _corpora(tmp_path / "data"), tmp_path / "out"
    options = ["keyphrases", "--data", str(data), "--base", str(base), "--out", str(out), "--stored", "fp16"]
    result = CliRunner().invoke(command, [*options, "--steps", "3", "--recipe", recipe], catch_exceptions=False)
    assert result.exit_code == 0 and seen and set(seen) == {asked}
    card = json.loads((out / "card.json").read_text())
    assert card["recipe"] == recipe and "the sentence that holds the answer span" in card["data"]
    assert ("without the question" in card["data"]) == (not asked)
    assert not load_file(out / "checkpoint.safetensors")["model.facts.weight"].any()  # no hand-made features


def test_the_papers_recipe_marks_the_span_of_the_answer_sentence_and_nothing_else() -> None:
    """§3.1: every word of the span is key, stop words and units too; the KP ablation does not see the question."""
    text = "He was born there. The king lived for 40 years in the old city. Then he died."
    example = Example("1", text, "How long did the king live?", ("for 40 years",), text.index("for 40"), "a")
    (marked,) = AnswerSentences([example])(np.random.default_rng(0), 0)
    key = [w for (w, _), k in zip(words_of(marked.answer), marked.key, strict=True) if k]
    assert key == ["for", "40", "years"] and set(marked.key) == {0.0, 1.0}
    assert marked.question == "How long did the king live?" and "lived for 40 years" in marked.answer
    (silent,) = AnswerSentences([example], question=False)(np.random.default_rng(0), 0)
    assert silent.question == "" and silent.key == marked.key


def test_the_papers_recipe_tells_the_network_no_facts(tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny_bert(tmp_path / "base"))
    made = marked_sheets([Marked("who lived ?", "the king lived", (0.0, 1.0, 0.0), "sentence")], tokenizer)
    assert any(made[0].sheet.facts) and not any(without_facts(made)[0].sheet.facts)
