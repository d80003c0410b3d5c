"""The n-grams of a text as sorted 64-bit integers, so that numpy counts and intersects them.

A word's key is a hash of its letters, the same in every process; an n-gram's key combines those of its words, and its
two lowest bits say its order. Two different n-grams of one file share a key with a probability below 1e-6 (a million
n-grams, 62 bits), which this package accepts.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from elench.text.words import Words

Keys = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]
LONGEST = 4
"""1-grams to 4-grams."""
_STEP = np.uint64(0xD1B54A32D192ED03)
_ORDER_BITS = np.uint64(3)


@lru_cache(maxsize=1 << 18)
def _word_key(word: str) -> int:
    return int.from_bytes(blake2b(word.encode(), digest_size=8).digest(), "big") & ~3


def gram_keys(text: Words) -> Keys:
    """The keys of all 1- to 4-grams, in the order of the text, shorter ones first."""
    words = rolling = np.fromiter(map(_word_key, text), np.uint64, len(text))
    found = [words]
    for order in range(1, min(LONGEST, len(text))):
        rolling = rolling[:-1] * _STEP
        rolling += words[order:]
        found.append(rolling + np.uint64(order))
    return np.concatenate(found)


def counted(keys: Keys) -> tuple[Keys, Floats]:
    """Distinct keys, sorted, and how often each occurs (np.unique, without its checks)."""
    keys.sort()
    first = np.empty(len(keys), bool)
    first[:1] = True
    np.not_equal(keys[1:], keys[:-1], out=first[1:])
    starts = first.nonzero()[0]
    counts = np.empty(len(starts))
    counts[:-1] = starts[1:] - starts[:-1]
    counts[-1:] = len(keys) - starts[-1:]
    return keys[starts], counts


def find(keys: Keys, among: Keys) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """For each key: its place among sorted keys, and whether it is there."""
    at = among.searchsorted(keys)
    np.minimum(at, len(among) - 1, out=at)
    return at, among[at] == keys


def sums_by_order(keys: Keys, values: Floats) -> Floats:
    """The values of 1-grams, 2-grams, … summed up."""
    sums: Floats = np.bincount((keys & _ORDER_BITS).view(np.intp), values, LONGEST).astype(np.float64, copy=False)
    return sums
