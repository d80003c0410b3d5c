"""Words as the COCO caption scripts see them: Penn Treebank tokens in lower case, punctuation dropped; no Java needed.

The scripts call Stanford's PTBTokenizer 3.4.1. This is our own short tokenizer after the same conventions; it gives the
same words on ordinary prose (tests/text/test_treebank.py holds Stanford's output to compare with), not on every oddity.
"""

from __future__ import annotations

import re
from functools import lru_cache

from elench.text.unspaced import spaced
from elench.text.words import REMEMBERED, Pieces, Words

_ABBREVIATIONS = (
    "mr mrs ms dr prof gen rep sen gov st jr sr vs etc inc corp ltd co bros jan feb mar apr jun jul aug sep sept oct",
    "nov dec capt col lt sgt maj cmdr adm rev hon pres ph.d ste ave blvd rd mt ft al cf approx est fig vol pp ed eds",
)
_ABBREVIATED = frozenset(word for line in _ABBREVIATIONS for word in line.split())
_PLAIN = str.maketrans(
    dict.fromkeys("’‘´", "'")
    | dict.fromkeys("“”«»", '"')
    | dict.fromkeys("–—", "--")
    | {"…": "...", "£": "#", "€": "$", "½": "1/2", "¼": "1/4", "¾": "3/4"}
)
_BRACKETS = {"(": "-lrb-", ")": "-rrb-", "[": "-lsb-", "]": "-rsb-", "{": "-lcb-", "}": "-rcb-"}
_DROPPED = frozenset(["''", "'", "``", "`", ".", "?", "!", ",", ":", "-", "--", "...", ";", '"'])
_TOKEN = re.compile(
    r"""https?://\S*[^\s.,;:!?'")\]]            # web address
      | [\w.+-]+@[\w-]+(?:\.[\w-]+)+            # mail address
      | '(?:em|til|twas|tis|cause|n)\b'?        # words that begin with an apostrophe
      | '(?:[smd]|ll|re|ve)\b | n't\b            # a clitic on its own
      | '\d\ds\b                                # '90s
      | [a-z]\.(?:[a-z]\.)*(?:-\w+)*(?!\w)      # u.s.  j.  u.s.-based
      | \.?\d+(?:[.,:/-]\d+)*(?:-?\w+(?:-\w+)*)?  # 3,000.5  5:30  1/2  1990s  20-year-old
      | [^\W_]+(?:(?:['&/_.]|-(?!-))[^\W_]+)*     # well-known  and/or  at&t  don't
      | \.{2,} | --+ | ''|``
      | \S
    """,
    re.VERBOSE,
)
_CLITIC = re.compile(r"(.+?)('d)?(n't|'(?:s|m|d|ll|re|ve))$")
_JOINED = {"cannot": ("can", "not"), "gonna": ("gon", "na"), "wanna": ("wan", "na"), "gotta": ("got", "ta"),
           "gimme": ("gim", "me"), "lemme": ("lem", "me"),
    "'tis": ("'t", "is"),
    "'twas": ("'t", "was")}  # fmt: skip


def _cut(piece: str) -> Words:
    piece = piece.lower().translate(_PLAIN)
    tokens: list[str] = []
    for found in _TOKEN.finditer(piece):
        token = found.group()
        if token in _JOINED:
            tokens += _JOINED[token]
        elif clitic := _CLITIC.match(token):
            tokens += filter(None, clitic.groups())
        elif token == "." and tokens and tokens[-1] in _ABBREVIATED:
            tokens[-1] += "."
        elif token not in _DROPPED and not token.startswith("--") and not token.startswith(".."):
            tokens.append(_BRACKETS.get(token, token))
    return tuple(tokens)


_PIECES = Pieces(_cut)


@lru_cache(maxsize=REMEMBERED)
def words_coco(text: str) -> Words:
    """As the COCO scripts' tokenizer: lower case, clitics apart, brackets by name, punctuation dropped."""
    return _PIECES.of(spaced(text).split())
