"""What a rater sees of a record."""

from __future__ import annotations

from dataclasses import replace

from elench.study.collect.pages import language
from elench.study.collect.screens import screen_view
from tests.study.conftest import MakeStudy


def test_answers_are_shown_beside_the_correct_one_and_empty_fields_not_at_all(make_study: MakeStudy) -> None:
    study = make_study("qa-correctness", systems=2, passages=3)
    view = screen_view(study, "t0001", (0,), language("en"))
    assert [name for name, _ in view["beside"]] == ["Question", "Correct answer"]
    assert [output["name"] for output in view["outputs"]] == ["Predicted answer"]
    assert view["passage"][1] == ""  # nothing is marked when the answer is what is judged
    item = study.tasks[0].items[0]
    bare = replace(study.records[item.record, item.system], context=None, references=())
    view = screen_view(replace(study, records={(item.record, item.system): bare}), "t0001", (0,), language("en"))
    assert view["passage"] is None and [name for name, _ in view["beside"]] == ["Question"]


def test_every_language_has_every_text_with_the_same_places_to_fill() -> None:
    import re

    english = language("en")
    alike = ("direction", "output", "quoted", "plain_slider")  # signs and numbers only
    for name in ("de", "zh", "ar"):
        other = language(name)
        assert set(other) == set(english)
        for key, text in english.items():
            assert sorted(re.findall(r"\{\w+\}", other[key])) == sorted(re.findall(r"\{\w+\}", text)), (name, key)
        same = [key for key in english if other[key] == english[key] and key not in alike]
        assert not same, (name, same)  # everything is translated
    assert language("ar")["direction"] == "rtl"
