"""Names written in lower case take the form they have in another text."""

from __future__ import annotations

import pytest

from elench.text.casing import cased_like

SOURCE = "Japan said on Monday that Gen Nakatani, the FBI and Apple had met. The minister of Japan may stay. The end."


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Defence minister gen nakatani left japan.", "Defence minister Gen Nakatani left Japan."),
        ("Fbi men came on monday. The minister may go.", "FBI men came on Monday. The minister may go."),
        ("Nakatani ate an apple in Japan on Monday.", "Nakatani ate an apple in Japan on Monday."),  # uses capitals
        ("nothing is known here", "nothing is known here"),
        ("the end", "the end"),  # "The" only begins sentences
        ("", ""),
    ],
)
def test_lower_case_names_are_written_as_in_the_other_text(text: str, wanted: str) -> None:
    assert cased_like(text, SOURCE) == wanted


def test_places_stay_the_same_even_where_capitals_are_longer() -> None:
    text = "straße in istanbul"
    assert len(cased_like(text, "Die STRASSE in ISTANBUL, İstanbul")) == len(text)


def test_a_word_that_the_other_text_writes_both_ways_is_left_alone() -> None:
    assert cased_like("we may go to rome", "It was in May. It may be Rome. In Rome.") == "we may go to Rome"
