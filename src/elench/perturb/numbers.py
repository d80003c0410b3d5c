"""Another number in place of one: in digits or in words, and one that fits where the old one was."""

from __future__ import annotations

import re

import numpy as np

from elench.perturb.edit import Edit, Scene, pick, replaced
from elench.requests import Span

DIGITS = re.compile(
    r"(?<![\w.])(?<!\d[,:/])(?<!\w-)(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,40})(?:\.[0-9]{1,40})?(?!\w|[,.:/]\d)"
)
"""1,000 is a number; 1,2,3 is a list, 12:30 a time, 1/2 a fraction, COVID-19 a name: these are left alone."""
WORDS = "two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905
IN_WORDS = re.compile(r"(?<![\w-])(?:" + "|".join(WORDS) + r")\b", re.IGNORECASE)
TENS = re.compile(r"\b(?:twen|thir|for|fif|six|seven|eigh|nine)ty\s+$", re.IGNORECASE)
PARTS = re.compile(
    r"[-\s]+(?:hal(?:f|ves)|thirds?|quarters?|(?:four|fif|six|seven|eigh|nin|ten|eleven|twelf|\w+teen|\w+tie|\w+dred)ths?)\b",
    re.IGNORECASE,
)
"""What makes a fraction of the number before it: two-thirds, five eighths."""
MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?|"
    r"Nov(?:ember)?|Dec(?:ember)?)\.?"
)


async def number(scene: Scene, rng: np.random.Generator) -> Edit | None:
    """A number becomes another of the same form."""
    text = scene.text
    # 1 takes a singular, 007 is a name
    digits = [m.span() for m in DIGITS.finditer(text) if not re.fullmatch(r"1|0\d.*", m[0])]
    words = [
        m.span()
        for m in IN_WORDS.finditer(text)
        if not TENS.search(text[: m.start()]) and not PARTS.match(text[m.end() :])
    ]
    if not digits and not words:
        return None
    at = pick([*digits, *words], rng)
    old = text[at[0] : at[1]]
    if not old[0].isdigit():
        return replaced(text, at, pick([word for word in WORDS if word != old.lower()], rng), "another number")
    return replaced(text, at, _another(text, at, rng), "another number")


def _another(text: str, at: Span, rng: np.random.Generator) -> str:
    """Another number in digits, with the commas and decimals of the one at this place."""
    old = text[at[0] : at[1]]
    integer, point, decimals = old.partition(".")
    whole = int(integer.replace(",", ""))
    most = _most(text, at, whole)
    if most is not None:
        value = pick([n for n in range(2, most + 1 - bool(point)) if n != whole], rng)
    else:
        year = re.fullmatch(r"(?:1[5-9]|20)\d\d", old) is not None
        step = int(rng.integers(2, 30)) if year else int(rng.integers(1, min(max(whole, 9), 10**15) + 1))
        value = whole + step * (-1 if whole > step and rng.random() < 0.5 else 1)
        value = value if value != 1 or point else whole + 1
    return (f"{value:,}" if "," in old else str(value)) + point + decimals


def _most(text: str, at: Span, value: int) -> int | None:
    """The largest number that fits here: a share of 100, a day of a month, an hour; None if there is no end."""
    before, after = text[: at[0]], text[at[1] :]
    if value <= 100 and re.match(r"\s?(?:%|per\s?cent\b)", after):
        return 100
    if value <= 31 and (re.match(rf"\s+(?:of\s+)?{MONTH}(?!\w)", after) or re.search(rf"\b{MONTH}\s+$", before)):
        return 28
    if value <= 12 and re.match(r"\s*(?:[ap]\.?m\b|o['’]clock)", after, re.IGNORECASE):
        return 12
    return None
