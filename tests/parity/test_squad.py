"""Token F1 and exact match equal the SQuAD script, as torchmetrics 1.x carries it."""

import pytest
from torchmetrics.functional.text.squad import _compute_exact_match_score, _compute_f1_score

from elench.text.words import words_squad

from .pairs import pairs, values


@pytest.mark.parametrize(("name", "outside"), [("f1", _compute_f1_score), ("em", _compute_exact_match_score)])
def test_the_best_gold_answer_counts_as_in_the_script(name, outside):
    given = [(c, r) for c, r in pairs() if words_squad(c) and all(map(words_squad, r))]
    assert len(given) >= 1000
    theirs = [max(float(outside(candidate, text)) for text in references) for candidate, references in given]
    assert values(name, given) == pytest.approx(theirs, abs=1e-6)
