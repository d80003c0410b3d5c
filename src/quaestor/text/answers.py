"""Comparing two short answers as SQuAD does: without case, punctuation and articles."""

from __future__ import annotations

import re
import string
from collections import Counter

_DROPPED = str.maketrans("", "", string.punctuation)


def normalise(answer: str) -> str:
    """Lower case, no punctuation, no a/an/the, single blanks (the SQuAD evaluation script's order)."""
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", answer.lower().translate(_DROPPED)).split())


def exact(answer: str, gold: str) -> bool:
    """Are the two the same after normalising?"""
    return normalise(answer) == normalise(gold)


def f1(answer: str, gold: str) -> float:
    """Harmonic mean of word precision and recall; two empty answers agree, an empty one agrees with no other."""
    said, wanted = normalise(answer).split(), normalise(gold).split()
    if not said or not wanted:
        return float(said == wanted)
    common = sum((Counter(said) & Counter(wanted)).values())
    return 2 * common / (len(said) + len(wanted))
