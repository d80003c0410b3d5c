"""Words of a text, as each outside scorer cuts it: sacrebleu (13a), rouge-score, nltk, COCO (Penn Treebank), SQuAD.

Most rules look only at what is between two spaces, so each such piece is cut once and remembered; a text is then a row
of dictionary look-ups. Texts where a rule reaches over a space take the slow road through the rules themselves.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from functools import lru_cache
from itertools import chain

from elench.text.unspaced import is_other_script, is_unspaced, spaced, without_punctuation

Words = tuple[str, ...]
Span = tuple[int, int]
"""A place in a text: first character, one past the last."""
REMEMBERED = 4096
"""How many texts each tokenizer remembers: references and contexts come again with every system."""


class Pieces(dict[str, Words]):
    """Remembers how each piece between two spaces is cut."""

    def __init__(self, cut: Callable[[str], Words], most: int = 1 << 18) -> None:
        self.cut, self.most = cut, most

    def __missing__(self, piece: str) -> Words:
        if len(self) >= self.most:
            self.clear()
        self[piece] = tokens = self.cut(piece)
        return tokens

    def of(self, pieces: list[str]) -> Words:
        return tuple(chain.from_iterable(map(self.__getitem__, pieces)))


# --- sacrebleu -------------------------------------------------------------------------------------------------------

_SYMBOLS = [(c, f" {c} ") for c in '!"#$%&()*+/:;<=>?@[\\]^_`{|}~']
_STOPS = [(c, f" {c} ") for c in ".,"]
_STOP_AFTER_NONDIGIT = re.compile(r"([^0-9])([.,])")
_STOP_BEFORE_NONDIGIT = re.compile(r"([.,])([^0-9])")
_DASH_AFTER_DIGIT = re.compile(r"([0-9])(-)")
_ENTITIES = {"&quot;": '"', "&amp;": "&", "&lt;": "<", "&gt;": ">"}


@lru_cache(maxsize=REMEMBERED)
def words_13a(text: str) -> Words:
    """As sacrebleu's default tokenizer (mteval-v13a), its `zh` for scripts without spaces; case is kept."""
    text = spaced(text)
    if "<" in text or "\n" in text:
        text = text.rstrip().replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    if "&" in text:
        for entity, character in _ENTITIES.items():
            text = text.replace(entity, character)
    for symbol, apart in _SYMBOLS:
        if symbol in text:
            text = text.replace(symbol, apart)
    if any(digit in text for digit in string.digits):  # 1,000.5 and 3-fold: a stop or dash may belong to a number
        text = _STOP_AFTER_NONDIGIT.sub(r"\1 \2 ", f" {text} ")
        text = _STOP_BEFORE_NONDIGIT.sub(r" \1 \2", text)
        text = _DASH_AFTER_DIGIT.sub(r"\1 \2 ", text)
    else:
        for stop, apart in _STOPS:
            text = text.replace(stop, apart)
    return tuple(text.split())


# --- rouge-score -----------------------------------------------------------------------------------------------------

_ALPHANUMERIC = frozenset(string.ascii_lowercase + string.digits)
_TO_SPACE = {code: " " for code in range(128) if chr(code) not in _ALPHANUMERIC}
_RUNS = re.compile(r"[a-z0-9]+")


def words_rouge(text: str, stemmed: bool = False) -> Words:
    """As rouge-score: runs of a–z and 0–9 in lower case; with `stemmed`, Porter stems of those longer than three.

    It finds no word at all in other alphabets; texts in those are cut as `words_plain` does."""
    text = text.lower()
    if is_unspaced(text) or is_other_script(text):
        return words_plain(text)
    words = text.translate(_TO_SPACE).split() if text.isascii() else _RUNS.findall(text)
    if stemmed:
        from elench.text.porter import stem

        return tuple(stem(word) if len(word) > 3 else word for word in words)
    return tuple(words)  # as fast as remembering it would be


# --- SQuAD -----------------------------------------------------------------------------------------------------------

_NO_PUNCTUATION = dict.fromkeys(map(ord, string.punctuation))
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")


@lru_cache(maxsize=REMEMBERED)
def words_squad(text: str) -> Words:
    """As the SQuAD script normalises an answer: lower case, no ASCII punctuation, no articles.

    Scripts without spaces are cut by character, and their own punctuation goes too."""
    if (apart := spaced(text)) is not text:
        return without_punctuation(tuple(apart.lower().translate(_NO_PUNCTUATION).split()))
    return tuple(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


# --- nltk ------------------------------------------------------------------------------------------------------------

_CLOSERS = "[\\])}>\"'»”’ ]*"
_NLTK_RULES = [
    (re.compile(pattern), to)
    for pattern, to in (
        # opening quotes
        (r"([«“‘„]|`+)", r" \1 "),
        (r'^"', "``"),
        (r"(``)", r" \1 "),
        (r"([ (\[{<])(\"|'')", r"\1 `` "),
        (r"(?i)(?<!\w)(')(?!(?:re|ve|ll|m|t|s|d|n)\b)(?=\w)", r"\1 "),
        # punctuation; the period that ends the text first
        (rf"([^.])(\.)({_CLOSERS})\s*$", r"\1 \2 \3 "),
        (r"([:,])(\D)", r" \1 \2"),
        (r"([:,])$", r" \1 "),
        (r"(\.{2,})", r" \1 "),
        (r"([;@#$%&\u2012-\u2015])", r" \1 "),
        (r"([^.])(\.)([\])}>\"']*)\s*$", r"\1 \2\3 "),
        (r"([?!])", r" \1 "),
        (r"([^'])' ", r"\1 ' "),
        (r"([*\][(){}<>])", r" \1 "),
        (r"--", " -- "),
        (r"^|$", " "),
        # closing quotes and clitics
        (r"([»”’])", r" \1 "),
        (r"''|\"", " '' "),
        (r"\s+", " "),
        (r"([^' ])('[sSmMdD]|') ", r"\1 \2 "),
        (r"([^' ])('ll|'LL|'re|'RE|'ve|'VE|n't|N'T) ", r"\1 \2 "),
        # two words written as one
        (r"(?i)\b(can)(not)\b", r" \1 \2 "),
        (r"(?i)\b(d)('ye)\b", r" \1 \2 "),
        (r"(?i)\b(gim|lem)(me)\b", r" \1 \2 "),
        (r"(?i)\b(gon)(na)\b", r" \1 \2 "),
        (r"(?i)\b(got)(ta)\b", r" \1 \2 "),
        (r"(?i)\b(more)('n)\b", r" \1 \2 "),
        (r"(?i)\b(wan)(na)\s", r" \1 \2 "),
        (r"(?i) ('t)(is|was)\b", r" \1 \2 "),
    )
]
_ONLY_CLOSERS = re.compile(_CLOSERS)


def _cut_nltk(text: str) -> Words:
    for rule, to in _NLTK_RULES:
        text = rule.sub(to, text)
    return tuple(text.split())


_NLTK_FIRST = Pieces(lambda piece: _cut_nltk(f"{piece} y")[:-1], 1 << 16)
_NLTK_INNER = Pieces(lambda piece: _cut_nltk(f"x {piece} y")[1:-1])
_NLTK_LAST = Pieces(lambda piece: _cut_nltk(f"x {piece}")[1:], 1 << 16)


@lru_cache(maxsize=REMEMBERED)
def words_nltk(text: str, lower: bool = False) -> Words:
    """As nltk's word_tokenize with preserve_line: no sentence splitting, so no model to download."""
    text = spaced(text)
    pieces = text.split(" ")
    reaches_over = _ONLY_CLOSERS.fullmatch(pieces[-1])  # then an earlier period may be the one that ends the text
    if len(pieces) < 2 or reaches_over or len(text.split()) != len(pieces):
        tokens = _cut_nltk(text)
    else:
        tokens = (*_NLTK_FIRST[pieces[0]], *_NLTK_INNER.of(pieces[1:-1]), *_NLTK_LAST[pieces[-1]])
    return tuple(map(str.lower, tokens)) if lower else tokens


# --- our own ---------------------------------------------------------------------------------------------------------

_WORD = re.compile(r"\w+")


@lru_cache(maxsize=REMEMBERED)
def words_plain(text: str) -> Words:
    """Runs of letters and digits of any script, in lower case; single characters where words have no spaces."""
    return tuple(_WORD.findall(spaced(text).lower()))
