"""BLEU and GLEU equal sacrebleu 2.x, the COCO script (pycocoevalcap 1.2) and nltk 3.9+."""

import pytest
from nltk.translate.gleu_score import corpus_gleu
from nltk.translate.gleu_score import sentence_gleu as nltk_gleu
from pycocoevalcap.bleu.bleu import Bleu as CocoBleu
from sacrebleu.metrics import BLEU
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

from elench.metrics import metric
from elench.text.treebank import words_coco

from .pairs import pairs, result, values


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_sentence_bleu_is_sacrebleu(n):
    outside = BLEU(effective_order=True, max_ngram_order=n)
    theirs = [outside.sentence_score(candidate, references).score / 100 for candidate, references in pairs()]
    assert values(f"bleu[n={n}]", pairs()) == pytest.approx(theirs, abs=1e-6)


@pytest.mark.parametrize("smooth", ["floor", "add-k", "none"])
def test_smoothing_names_are_sacrebleus(smooth):
    outside = BLEU(effective_order=True, smooth_method=smooth)
    theirs = [outside.sentence_score(candidate, references).score / 100 for candidate, references in pairs()]
    assert values(f"bleu[smooth={smooth}]", pairs()) == pytest.approx(theirs, abs=1e-6)


@pytest.mark.parametrize("smooth", ["exp", "floor", "add-k", "none"])
@pytest.mark.parametrize("count", [3, 1200])
def test_corpus_bleu_is_sacrebleu(smooth, count):
    given = pairs()[:count]
    outside = BLEU(smooth_method=smooth)
    most = max(len(references) for _, references in given)
    columns = [[references[i] if i < len(references) else None for _, references in given] for i in range(most)]
    theirs = outside.corpus_score([candidate for candidate, _ in given], columns).score / 100
    ours = metric(f"bleu[smooth={smooth}]")
    counts = [result(str(ours), *pair).counts for pair in given]
    assert ours.corpus_score([sum(column) for column in zip(*counts, strict=True)]) == pytest.approx(theirs, abs=1e-6)


@pytest.mark.parametrize("n", [1, 4])
def test_the_coco_dialect_is_the_coco_script(n):
    given = [(c, r) for c, r in pairs() if words_coco(c) and all(map(words_coco, r))]
    assert len(given) >= 1000
    texts = {i: [" ".join(words_coco(text)) for text in references] for i, (_, references) in enumerate(given)}
    judged = {i: [" ".join(words_coco(candidate))] for i, (candidate, _) in enumerate(given)}
    whole, single = CocoBleu(n).compute_score(texts, judged, verbose=0)
    spec = f"bleu[n={n},dialect=coco]"
    scores = [result(spec, *pair) for pair in given]
    assert [score.value for score in scores] == pytest.approx(single[n - 1], abs=1e-6)
    summed = [sum(column) for column in zip(*(score.counts for score in scores), strict=True)]
    assert metric(spec).corpus_score(summed) == pytest.approx(whole[n - 1], abs=1e-6)


def test_gleu_is_nltk_on_13a_words():
    cut = Tokenizer13a()
    judged = [cut(candidate.rstrip()).split() for candidate, _ in pairs()]
    texts = [[cut(text.rstrip()).split() for text in references] for _, references in pairs()]
    theirs = [nltk_gleu(references, candidate) for candidate, references in zip(judged, texts, strict=True)]
    assert values("gleu", pairs()) == pytest.approx(theirs, abs=1e-6)
    counts = [result("gleu", *pair).counts for pair in pairs()]
    summed = [sum(column) for column in zip(*counts, strict=True)]
    assert metric("gleu").corpus_score(summed) == pytest.approx(corpus_gleu(texts, judged), abs=1e-6)
