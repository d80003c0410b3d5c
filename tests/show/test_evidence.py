"""Evidence is shown by its kind, in words, and nothing of it becomes markup."""

import pytest

import elench
from elench.metrics.evidence import KINDS, with_kinds
from elench.records.record import Record
from elench.show.blocks import marked
from elench.show.evidence import PRESENTERS, evidence_html, evidence_text
from elench.show.pieces import matched_words, summed_words


def test_every_kind_has_a_presenter_and_an_unknown_kind_is_refused():
    assert set(PRESENTERS) == set(KINDS)
    with pytest.raises(ValueError, match="no kind 'heat'"):
        with_kinds({"words": []}, words="heat")


def test_pieces_become_words_whatever_the_tokenizer():
    assert summed_words([["sk", 1.0], ["##erry", 0.5], ["point", 2.0]]) == [("skerry", 1.5), ("point", 2.0)]
    assert summed_words([["The", -1.0], ["ĠSk", -2.0], ["er", -0.5], ["ry", -0.5]]) == [("The", -1.0), ("Skerry", -3.0)]
    assert summed_words([["▁The", 1.0], ["▁be", 1.0], ["es", 1.0]]) == [("The", 1.0), ("bees", 2.0)]
    assert summed_words([["Ã©", -1.0], ["tÃ©", -1.0], ["Ġfini", 0.0]]) == [("été", -2.0), ("fini", 0.0)]  # bytes of é
    assert summed_words([["a", 1.0], ["b", 2.0]]) == [("a", 1.0), ("b", 2.0)]


def test_a_matched_word_is_spoken_for_by_its_best_piece():
    rows = [["bee", "bees", 0.4, 1], ["##keeper", "##keeping", 0.9, 3], ["?", ".", 0.2, 1]]
    assert matched_words(rows) == [["beekeeper", "beeskeeping", 0.9, 3], ["?", ".", 0.2, 1]]
    assert matched_words([["lone", "##bee", 0.5]]) == [["lone", "…bee", 0.5]]


def test_sentences_with_verdicts():
    rows = [
        {"sentence": "It is <open>.", "passage": "The hall is open.", "verdict": "supported", "probabilities": {"supported": 0.9}},
        {"sentence": "It is not.", "passage": "The hall is open.", "verdict": "contradicted", "probabilities": {"supported": 0.04, "contradicted": 0.9}},
        {"sentence": "It is old.", "passage": None, "verdict": "not found", "probabilities": {}},
    ]  # fmt: skip
    evidence = with_kinds({"sentences": rows, "support": 0.5}, sentences="sentences")
    text = evidence_text(evidence, width=140)
    assert text.index("contradicted") < text.index("not found") < text.index("It is <open>.")  # the worst first
    html = evidence_html(evidence)
    assert '<span class="bad">contradicted</span>' in html and "&lt;open&gt;" in html and "<open>" not in html
    assert "supported .04, contradicted .90" in html


def test_notes_name_the_side():
    rows = [
        {"what": "negation", "text": "not", "side": "answer"},
        {"what": "number", "text": "1902", "side": "context"},
    ]
    text = evidence_text(with_kinds({"notes": rows}, notes="notes"))
    assert "negation only in the answer: not" in text and "number only in the context: 1902" in text


def test_gains_and_losses_have_two_colours():
    html = evidence_html(with_kinds({"gains": [["Ġlamp", 8.0], ["Ġoil", -4.0], ["Ġa", 0.01]]}, gains="gains"))
    assert '<i class="p10" title="+8.00">lamp</i>' in html and '<i class="n5" title="-4.00">oil</i>' in html
    assert "Ġ" not in html and '<span title="+0.01">a</span>' in html


def test_edges_and_nested_evidence():
    edges = with_kinds({"edges": [{"wanted": "built –dobj→ tower", "found": None, "similarity": 0.0}]}, edges="edges")
    html = evidence_html(with_kinds({"score": 0.5, "the other way": edges}, **{"the other way": "evidence"}))
    assert "<summary>the other way</summary>" in html and '<span class="bad">none</span>' in html


def test_entries_without_a_kind_are_shown_by_what_they_are():
    shown = evidence_text({"matched": ["a", "b"], "n": 3, "leaked": True, "missing": [], "counts": {"x": 0.25}})
    assert shown.splitlines() == ["    numbers: n 3", "    matched: a; b", "    leaked: yes", "    counts: x: 0.25"]
    assert evidence_html(None) == evidence_html({}) == ""


def test_lexical_metrics_say_what_matched():
    result = elench.score(
        [{"id": "1", "judge": "answer", "answer": "in the old mill", "references": ["the mill"]}], "f1"
    )
    assert "matched: mill" in evidence_text(next(iter(result))["evidence"]["f1"])


# --- questions asked of both texts ------------------------------------------------------------------------------------

SUMMARY = Record(
    "1", context="The old bridge is shut.", summary="The bridge is shut.", references=("", "A bridge fell.", "Shut!")
)


def questions(**more):
    one = {"direction": "recall", "question": "A what fell?", "answer": "bridge", "other": "bridge", "weight": 1.0,
           "verdict": "supported", "span": [2, 8], "other_span": [4, 10]}  # fmt: skip
    return with_kinds({"questions": [one], **more}, questions="questions")


def test_the_text_that_was_compared_is_shown_and_marked():
    html = evidence_html(questions(against="reference 2"), SUMMARY)
    assert '<b>reference 2</b><p class="text">A <mark>bridge</mark> fell.</p>' in html
    assert '<td class="l" data-h="asked of">reference 2</td>' in html and "source" not in html and "old" not in html
    html = evidence_html(questions(), SUMMARY)
    assert '<b>source</b><p class="text">Th<mark>e old </mark>bridge is shut.</p>' in html


@pytest.mark.parametrize("told", ["reference 4", "reference 0", 1])
def test_where_the_compared_text_is_not_at_hand_nothing_is_marked(told):
    html = evidence_html(questions(against=told), SUMMARY)
    assert "<mark" not in html and "A what fell?" in html


def test_marks_merge_and_bad_wins():
    assert marked("a <b c", [((2, 4), False), ((3, 6), True)]) == 'a <mark>&lt;</mark><mark class="bad">b c</mark>'
