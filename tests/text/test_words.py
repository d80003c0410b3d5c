"""Each tokenizer cuts any text exactly as the outside tool does, however odd the text."""

from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.tokenize import word_tokenize
from rouge_score.tokenizers import DefaultTokenizer
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
from torchmetrics.functional.text.squad import _normalize_text

from elench.text.words import words_13a, words_nltk, words_plain, words_rouge, words_squad

ODD = [
    "can't", "cannot", "'tis", "wanna", "d'ye", "more'n", "''", '"', "...", "..", "-\n", "<skipped>", "&quot;", "&amp;lt;",
    "1,000.5", "U.S.", "a.", "(b)", "dogs'", "it's", "--", "gimme", "'hello", "'s", "x'", "\u2014", "café", "«", "”", "5-6",
    "The", "an", "running", "\t", "\n", "  ", ",", "?", "_", "#1", "naïve",
]  # fmt: skip
texts = st.lists(st.sampled_from(ODD), max_size=12).flatmap(
    lambda pieces: st.sampled_from([" ", "", " "]).map(lambda space: space.join(pieces))
)
many = settings(max_examples=500, deadline=None)


@many
@given(texts)
def test_13a_is_sacrebleu(text):
    assert " ".join(words_13a(text)) == Tokenizer13a()(text.rstrip())


@many
@given(texts)
def test_nltk_is_word_tokenize(text):
    assert list(words_nltk(text)) == word_tokenize(text, preserve_line=True)


@many
@given(texts)
def test_rouge_is_rouge_score(text):
    assert list(words_rouge(text)) == DefaultTokenizer().tokenize(text)
    assert list(words_rouge(text, True)) == DefaultTokenizer(use_stemmer=True).tokenize(text)


@many
@given(texts)
def test_squad_is_the_scripts_normalisation(text):
    assert " ".join(words_squad(text)) == _normalize_text(text)


def test_plain_words_know_every_script():
    assert words_plain("Zoë: 東京, can't!") == ("zoë", "東", "京", "can", "t")
