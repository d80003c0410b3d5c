"""The weighter: plain features, a probability, no dependence on letter case."""

from __future__ import annotations

import json

import pytest

from elench.errors import MissingModel
from elench.models.base import ModelChoice, load_model
from elench.models.weights import FEATURES, FeatureWeighter, features
from elench.requests import Importance

SOURCE = "The bridge in Ulm was closed. Engineers found cracks. Repairs cost 3 million euros. A dog barked at Tom."


def test_features_have_names_and_see_place_count_and_kind():
    row = dict(zip(FEATURES, features(SOURCE, "Where was the bridge closed?", "Ulm"), strict=True))
    assert row["answer in the lead"] == 1 and row["answer has a digit"] == 0
    late = dict(zip(FEATURES, features(SOURCE, "Who was barked at?", "Tom"), strict=True))
    assert late["answer in the lead"] == 0 and late["place of the answer"] > row["place of the answer"]
    assert late["question in the lead"] < row["question in the lead"]


def test_letter_case_plays_no_part():
    assert features(SOURCE, "Where?", "Ulm") == features(SOURCE.lower(), "where?", "ulm")


def test_an_answer_that_is_not_in_the_source_still_gets_features():
    assert len(features("", "", "")) == len(features(SOURCE, "Who?", "nobody")) == len(FEATURES)


def test_a_stored_weighter_gives_probabilities(tmp_path):
    n = len(FEATURES)
    stored = {"features": list(FEATURES), "mean": [0.0] * n, "scale": [1.0] * n, "weights": [-9.0] + [0.0] * (n - 1)}
    (tmp_path / "weights.json").write_text(json.dumps({**stored, "bias": 2.0}))
    model = load_model(ModelChoice("weights", str(tmp_path)))
    early, late = model.answer([Importance(SOURCE, "Where?", "The"), Importance(SOURCE, "Who?", "Tom")])
    assert 0 < late < early < 1
    (tmp_path / "weights.json").write_text(json.dumps({**stored, "bias": 0.0, "features": ["x"]}))
    with pytest.raises(MissingModel, match="other features"):
        FeatureWeighter(tmp_path / "weights.json")
