"""The stem of an English word: Porter's algorithm with nltk's refinements (its default mode).

Porter, "An algorithm for suffix stripping", Program 14(3), 1980. Step numbers are the paper's.
"""

from __future__ import annotations

from functools import lru_cache

IRREGULAR = {
    "skies": "sky", "sky": "sky", "dying": "die", "lying": "lie", "tying": "tie", "news": "news",
    "innings": "inning", "inning": "inning", "outings": "outing", "outing": "outing",
    "cannings": "canning", "canning": "canning", "howe": "howe",
    "proceed": "proceed", "exceed": "exceed", "succeed": "succeed",
}  # fmt: skip


def _rules(text: str) -> list[tuple[str, str]]:
    return [(old, new) for old, _, new in (rule.partition(">") for rule in text.split())]


STEP2 = _rules(
    "ational>ate tional>tion enci>ence anci>ance izer>ize bli>ble alli>al entli>ent eli>e ousli>ous ization>ize "
    "ation>ate ator>ate alism>al iveness>ive fulness>ful ousness>ous aliti>al iviti>ive biliti>ble fulli>ful"
)
STEP3 = _rules("icate>ic ative> alize>al iciti>ic ical>ic ful> ness>")
STEP4 = _rules("al> ance> ence> er> ic> able> ible> ant> ement> ment> ent> ion> ou> ism> ate> iti> ous> ive> ize>")


@lru_cache(maxsize=1 << 17)
def stem(word: str) -> str:
    """The stem of a word, in lower case."""
    length, word = len(word), word.lower()
    if word in IRREGULAR:
        return IRREGULAR[word]
    if length <= 2:
        return word
    word = _step1c(_step1b(_step1a(word)))
    word = _replace(_step2(word), STEP3, 0)
    word = _replace(word, STEP4, 1)
    return _step5(word)


def _shape(word: str) -> str:
    """`trouble` → `ccvvccv`: v is a, e, i, o, u, or a y after a consonant; all else is c."""
    shape = ""
    for letter in word:
        shape += "v" if letter in "aeiou" or (letter == "y" and shape[-1:] == "c") else "c"
    return shape


def _measure(word: str) -> int:
    """The paper's m: how often a vowel gives way to a consonant."""
    return _shape(word).count("vc")


def _ends_cvc(word: str) -> bool:
    """The paper's *o; nltk adds the two-letter vowel-consonant words."""
    shape = _shape(word)
    return (shape[-3:] == "cvc" and word[-1] not in "wxy") or shape == "vc"


def _replace(word: str, rules: list[tuple[str, str]], least: int) -> str:
    """Apply the first rule whose ending fits, if the part before it measures more than `least`."""
    for old, new in rules:
        if word.endswith(old):
            rest = word[: -len(old)]
            fits = _measure(rest) > least and (old != "ion" or rest[-1] in "st")
            return rest + new if fits else word
    return word


def _step1a(word: str) -> str:
    if word.endswith("ies"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("sses"):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _step1b(word: str) -> str:
    if word.endswith("ied"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for ending in ("ed", "ing"):
        if word.endswith(ending) and "v" in _shape(word[: -len(ending)]):
            return _mend(word[: -len(ending)])
    return word


def _mend(word: str) -> str:
    """Second part of step 1b: what -ed or -ing leaves behind becomes a word again."""
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    if word[-2:] == word[-1] * 2 and _shape(word)[-1] == "c":
        return word if word[-1] in "lsz" else word[:-1]
    return word + "e" if _measure(word) == 1 and _ends_cvc(word) else word


def _step1c(word: str) -> str:
    return word[:-1] + "i" if word.endswith("y") and len(word) > 2 and _shape(word[:-1])[-1] == "c" else word


def _step2(word: str) -> str:
    if word.endswith("alli") and _measure(word[:-4]) > 0:
        return _step2(word[:-2])
    if word.endswith("logi"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    return _replace(word, STEP2, 0)


def _step5(word: str) -> str:
    if word.endswith("e"):
        rest = word[:-1]
        measure = _measure(rest)
        if measure > 1 or (measure == 1 and not _ends_cvc(rest)):
            word = rest
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word
