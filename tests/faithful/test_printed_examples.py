"""Numbers that the papers print for single items, where they can be worked out."""

from __future__ import annotations

import numpy as np
import pytest

from elench.metrics.qsts_edges import Similarity, match_edges, outline
from elench.requests import Parsed, Word

# word/part of speech/relation/head, as Stanza's universal dependencies have them; a head of 0 is the root
TITLE = (
    "What/PRON/root/0 was/AUX/cop/1 the/DET/det/4 title/NOUN/nsubj/1 of/ADP/case/10 Bob/PROPN/nmod:poss/10 "
    "Dylan/PROPN/flat/6 's/PART/case/6 first/ADJ/amod/10 album/NOUN/nmod/4 ?/PUNCT/punct/1"
)
CALLED = (
    "What/PRON/xcomp/8 was/AUX/aux:pass/8 Bob/PROPN/nmod:poss/7 Dylan/PROPN/flat/3 's/PART/case/3 first/ADJ/amod/7 "
    "album/NOUN/nsubj:pass/8 called/VERB/root/0 ?/PUNCT/punct/8"
)
NAME = (
    "What/PRON/root/0 was/AUX/cop/1 the/DET/det/4 name/NOUN/nsubj/1 of/ADP/case/8 Vincent/PROPN/nmod:poss/8 "
    "'s/PART/case/6 brother/NOUN/nmod/4"
)
WHO = "Who/PRON/root/0 was/AUX/cop/1 Vincent/PROPN/nmod:poss/5 's/PART/case/3 brother/NOUN/nsubj/1 ?/PUNCT/punct/1"


def parsed(written: str) -> Parsed:
    words = []
    for i, token in enumerate(written.split()):
        text, pos, relation, head = token.rsplit("/", 3)
        lemma = {"was": "be", "called": "call"}.get(text, text.lower())
        place = i if head == "0" else int(head) - 1
        words.append(Word(text, lemma, pos, "", relation, place, "", (0, 0), False))
    return Parsed(tuple(words), (), (), ())


@pytest.mark.parametrize(
    ("reference", "candidate", "form", "printed"),
    [
        (TITLE, CALLED, "code", 0.928),
        (NAME, WHO, "code", 0.874),
        (TITLE, CALLED, "paper", 0.909),  # not printed: without the edge of 's, which §2 ignores
        (NAME, WHO, "paper", 0.794),
    ],
)
def test_qsts_table_1_on_universal_dependencies(reference: str, candidate: str, form: str, printed: float) -> None:
    """Classes and names agree in both pairs, so QSTS is the cube root of semsim alone.

    4 of 5 edges of the first reference match and 2 of 3 of the second: the printed values are the program's, which
    counts the possessive 's as a word ("'s" is not on its list of stop words, "s" is). No vectors are needed: what
    matches is equal, and nothing else has the same relation.
    """
    wanted, found = outline(parsed(reference), form), outline(parsed(candidate), form)
    words = tuple(sorted(wanted.words() | found.words()))
    similar = Similarity(words, np.zeros((len(words), 2), dtype=np.float32), form)
    edges = [m.similarity for m in match_edges(wanted, found, similar, other=0.0)]
    assert np.cbrt(np.mean(edges)) == pytest.approx(printed, abs=0.0006)
