"""The question classes: probabilities at both levels, alone as in a batch, long questions, other people's models."""

from __future__ import annotations

import pytest

from elench.errors import MissingModel, UsageError
from elench.models.base import ModelChoice, ModelSet, load_model
from elench.models.classes import QuestionClasses, torch_scores
from elench.models.tokens import Tokens
from elench.models.torch_networks import build_classes
from elench.requests import ClassifyQuestion
from tests.train.tiny import tiny_bert

LABELS = ["HUM:gr", "HUM:ind", "LOC:city"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    import torch
    from transformers import AutoTokenizer

    base = tiny_bert(tmp_path_factory.mktemp("base"))
    torch.manual_seed(1)
    net = build_classes(base, {"labels": LABELS}).eval()
    torch.nn.init.normal_(net["head"].weight, std=1.0)
    tokens = Tokens.from_transformers(AutoTokenizer.from_pretrained(base))
    return QuestionClasses(torch_scores(net), tokens, LABELS)


def test_coarse_is_the_sum_of_fine_and_all_add_up(model):
    found = model.answer([ClassifyQuestion("who sold the house ?")])[0]
    assert sum(found.fine.values()) == pytest.approx(1.0)
    assert found.coarse["HUM"] == pytest.approx(found.fine["HUM:gr"] + found.fine["HUM:ind"])
    assert found.best[0] == found.best[1].split(":")[0]


def test_answers_do_not_depend_on_the_batch_and_long_questions_are_not_cut(model):
    questions = [
        "who ?",
        "where does anna lives in oslo with her cats ?",
        "what " * 400,
        "anna " * 300 + "rome ?",
        "🍣",
    ]
    together = model.answer([ClassifyQuestion(q) for q in questions])
    for question, found in zip(questions, together, strict=True):
        assert found.fine == pytest.approx(model.answer([ClassifyQuestion(question)])[0].fine, abs=1e-5)
    assert model.lengths([ClassifyQuestion(q) for q in questions])[0] == 4
    front = model.answer([ClassifyQuestion("anna " * 300)])[0].fine
    assert together[3].fine != pytest.approx(front, abs=1e-6)


def test_any_sequence_classifier_of_the_taxonomy_can_take_its_place(tmp_path):
    from transformers import AutoModelForSequenceClassification

    folder = tiny_bert(tmp_path / "other")
    names = dict(enumerate(LABELS))
    AutoModelForSequenceClassification.from_pretrained(folder, id2label=names, num_labels=3).save_pretrained(folder)
    found = load_model(ModelChoice("classes", str(folder))).answer([ClassifyQuestion("who ?")])[0]
    assert set(found.fine) == set(LABELS)
    wrong = {i: name.replace(":", "-") for i, name in names.items()}
    AutoModelForSequenceClassification.from_pretrained(folder, id2label=wrong, num_labels=3).save_pretrained(folder)
    with pytest.raises(UsageError, match="labels must read COARSE:fine"):
        load_model(ModelChoice("classes", str(folder)))


@pytest.mark.embedded
@pytest.mark.parametrize(
    ("question", "label"),
    [
        ("How far is it from Denver to Aspen?", "NUM:dist"),
        ("who wrote hamlet", "HUM:ind"),
        ("When did Freddie Mercury die?", "NUM:date"),
        ("Why is the sky blue?", "DESC:reason"),
        ("What is the capital of Norway?", "LOC:city"),
        ("What does NASA stand for?", "ABBR:exp"),
    ],
)
def test_shipped_classes_know_the_plain_cases(question, label):
    try:
        model = ModelSet()["classes"]
    except MissingModel as missing:
        pytest.skip(str(missing))
    found = model.answer([ClassifyQuestion(question)])[0]
    assert found.best[1] == label
    assert found.fine[label] > 0.4
