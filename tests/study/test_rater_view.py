"""What a rater sees of a record."""

from __future__ import annotations

from dataclasses import replace

from quaestor.study.rater import item_view
from tests.study.conftest import MakeStudy


def test_answers_are_shown_beside_the_correct_one_and_empty_fields_not_at_all(make_study: MakeStudy) -> None:
    study = make_study("qa-correctness", systems=2, passages=3)
    view = item_view(study, "t0001", 0)
    assert [name for name, _, _ in view["parts"]] == ["Question", "Predicted answer", "Correct answer"]
    assert [judged for _, _, judged in view["parts"]] == [False, True, False]
    assert view["passage"][1] == ""  # nothing is marked when the answer is what is judged
    item = study.tasks[0].items[0]
    bare = replace(study.records[item.record, item.system], context=None, references=())
    view = item_view(replace(study, records={(item.record, item.system): bare}), "t0001", 0)
    assert view["passage"] is None and [name for name, _, _ in view["parts"]] == ["Question", "Predicted answer"]
