"""Which language a text is in, and words where the script has no spaces between them."""

from importlib import import_module

import pytest
from sacrebleu import sentence_bleu as sacrebleu_sentence
from sacrebleu.tokenizers.tokenizer_zh import TokenizerZh

import elench
from elench.metrics.bleu import sentence_bleu
from elench.text.languages import NAMES, UNKNOWN, language_of
from elench.text.treebank import words_coco
from elench.text.unspaced import is_unspaced
from elench.text.words import words_13a, words_plain, words_rouge, words_squad

CHINESE = [
    "这座灯塔建于1874年，由工程师艾达·马什设计。",
    "灯塔由工程师艾达·马什在1874年建造。",
    "“海鸥岩”位于3.5公里外；票价为1,000元（约140美元）。",
    "使用 Python 3.11 运行 elench-score，得分为0.85！",
]
PARALLEL = {
    "de": ("Der Leuchtturm wurde 1874 von der Ingenieurin gebaut.", "Die Ingenieurin hat den Leuchtturm 1874 gebaut."),
    "zh": (CHINESE[0], CHINESE[1]),
    "ja": ("この灯台は1874年に建てられました。", "灯台は1874年に建てられた。"),
    "th": ("ประภาคารสร้างขึ้นในปี 1874", "ประภาคารนี้สร้างในปี 1874"),
    "ru": ("Маяк был построен в 1874 году инженером.", "Инженер построил маяк в 1874 году."),
}


def test_sentences_of_another_library_are_in_the_language_it_says():
    """spaCy's example sentences: a wrong language is rare, an undecided one is allowed, English is never claimed."""
    pytest.importorskip("spacy")
    right = wrong = english = total = 0
    for code in NAMES:
        try:
            sentences = import_module(f"spacy.lang.{'nb' if code == 'no' else code}.examples").sentences
        except ModuleNotFoundError:
            continue
        for sentence in sentences:
            found = language_of(sentence)
            total += 1
            right += found == code
            wrong += found not in (code, UNKNOWN)
            english += found == "en" and code != "en"
    assert total > 250 and right >= 0.7 * total and wrong <= 0.02 * total and english <= 1


@pytest.mark.parametrize("text", ["", "42", "Ada Marsh", "1874–1880", "Zürich", "r2d2", "🙂🙂"])
def test_too_little_text_is_left_open(text):
    assert language_of(text) == UNKNOWN


@pytest.mark.parametrize("text", CHINESE)
def test_chinese_words_are_those_of_sacrebleu(text):
    assert list(words_13a(text)) == TokenizerZh()(text).split()


@pytest.mark.parametrize(("candidate", "reference"), [(a, b) for a in CHINESE for b in CHINESE if a != b])
def test_chinese_bleu_is_that_of_sacrebleu(candidate, reference):
    theirs = sacrebleu_sentence(candidate, [reference], tokenize="zh", use_effective_order=True).score / 100
    assert sentence_bleu(candidate, [reference]) == pytest.approx(theirs, abs=1e-9)


def test_a_foreign_name_in_an_english_sentence_changes_nothing():
    text = "The novel 紅樓夢 was “widely” read in the eighteenth century."
    assert not is_unspaced(text) and "紅樓夢" in words_13a(text)


def test_other_scripts_have_words_in_every_tokenizer():
    for candidate, _ in PARALLEL.values():
        for words in (words_13a, words_plain, words_rouge, words_squad, words_coco):
            assert len(words(candidate)) >= 6, (words, candidate)
    assert words_squad("灯塔。") == ("灯", "塔")


@pytest.mark.parametrize("language", PARALLEL)
@pytest.mark.parametrize(
    "spec", ["bleu[n=1]", "gleu", "rouge-1", "rouge-l", "rouge-lsum", "f1", "cider-d", "bleu[n=1,dialect=coco]"]
)
def test_pairs_that_share_words_never_score_zero(language, spec):
    answer, reference = PARALLEL[language]
    rows = [{"answer": answer, "references": [reference]}, {"answer": "x y", "references": ["y z"]}]
    assert next(iter(elench.score(rows, spec)[spec].values())) > 0


def test_rouge_reads_chinese_beside_latin_words():
    """Half of the letters are Latin, and the Chinese half was dropped: rouge-1 was 0. By hand: 6 of 6, 6 of 7 words."""
    assert elench.metric("rouge-1")("谁建造了灯塔", "谁建造了灯塔 damals?") == pytest.approx(12 / 13)


@pytest.mark.parametrize("name", ["context-recall", "context-precision"])
def test_metrics_of_the_context_leave_other_languages_unscored(name):
    german = "Ada Marsh hat den Leuchtturm im Jahr 1874 auf der Insel gebaut."
    with pytest.raises(elench.Unscored, match="looks German"):
        elench.metric(name)(german, german, context=german)
