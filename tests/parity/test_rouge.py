"""ROUGE equals rouge-score 0.1.2, and the COCO script (pycocoevalcap 1.2) in its dialect."""

import pytest
from pycocoevalcap.rouge.rouge import Rouge as CocoRouge
from rouge_score.rouge_scorer import RougeScorer

from elench.text.treebank import words_coco
from elench.text.words import words_rouge

from .pairs import pairs, result, values


@pytest.mark.parametrize("stem", [False, True])
@pytest.mark.parametrize(
    ("name", "theirs"),
    [("rouge-1", "rouge1"), ("rouge-2", "rouge2"), ("rouge-l", "rougeL"), ("rouge-lsum", "rougeLsum")],
)
def test_rouge_is_rouge_score(name, theirs, stem):
    least = 2 if name == "rouge-2" else 1
    given = [
        (candidate, references)
        for candidate, references in pairs()
        if len(words_rouge(candidate)) >= least and all(len(words_rouge(text)) >= 1 for text in references)
    ]
    assert len(given) >= 1000
    scorer = RougeScorer([theirs], use_stemmer=stem)
    outside = [scorer.score_multi(references, candidate)[theirs].fmeasure for candidate, references in given]
    assert values(f"{name}[stem={'on' if stem else 'off'}]", given) == pytest.approx(outside, abs=1e-6)


def test_the_coco_dialect_is_the_coco_script():
    given = [(c, r) for c, r in pairs() if words_coco(c) and all(map(words_coco, r))]
    assert len(given) >= 1000
    texts = {i: [" ".join(words_coco(text)) for text in references] for i, (_, references) in enumerate(given)}
    judged = {i: [" ".join(words_coco(candidate))] for i, (candidate, _) in enumerate(given)}
    _, theirs = CocoRouge().compute_score(texts, judged)
    assert values("rouge-l[dialect=coco]", given) == pytest.approx(theirs, abs=1e-6)


def test_two_texts_too_short_for_a_pair_of_words_are_unscored():
    assert result("rouge-2", "Paris", ["Rome"]) is None
    assert result("rouge-2", "Paris", ["in Paris"]).value == 0
