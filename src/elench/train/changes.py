"""Changing one thing in a sentence or a question: what hard negatives are made of.

The changes work on plain text, without a parser, so that tens of thousands can be made while a model trains;
`elench perturb` has the careful ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from elench.text.wordnet import antonyms
from elench.train.examples import Example

NAME = re.compile(r"(?<!^)(?<![.?!\"] )\b[A-Z][\w'-]+(?: [A-Z][\w'-]+)*|\b\d[\d,.]*\d\b|\b\d\b")
"""Names and numbers; a capital at the beginning of a sentence does not show a name."""


# --- questions that a text does not answer ---------------------------------------------------------------------------


def changed(example: Example, rng: np.random.Generator) -> str | None:
    """The question made unanswerable by one change, as people write such questions: another name or number of the
    text, the opposite of a word, or a negation."""
    ways = (_other_name, _opposite, _negated)
    for i in rng.choice(3, 3, replace=False, p=(0.6, 0.2, 0.2)):
        question = ways[int(i)](example, rng)
        if question is not None:
            return question
    return None


def _other_name(example: Example, rng: np.random.Generator) -> str | None:
    in_question = list(NAME.finditer(example.question))
    if not in_question:
        return None
    old = in_question[int(rng.integers(len(in_question)))]
    others = {
        m.group()
        for m in NAME.finditer(example.context)
        if m.group()[0].isdigit() == old.group()[0].isdigit()
        and m.group() not in example.question
        and m.group() not in example.answers[0]
        and example.answers[0] not in m.group()
    }
    if not others:
        return None
    new = sorted(others)[int(rng.integers(len(others)))]
    return example.question[: old.start()] + new + example.question[old.end() :]


def _opposite(example: Example, rng: np.random.Generator) -> str | None:
    return opposite(example.question, example.context, rng)


NOT_AFTER = re.compile(r"\b(did|does|do|was|were|is|are|has|had|can|could|will|would)\b(?! not)(?=.*\s)")


def _negated(example: Example, rng: np.random.Generator) -> str | None:
    found = NOT_AFTER.search(example.question)
    if found is None or found.start() == 0 or found.group() in ("do", "has", "had"):
        return None
    if rng.random() < 0.5 and found.group() != "can":
        contracted = "won't" if found.group() == "will" else f"{found.group()}n't"
        return example.question[: found.start()] + contracted + example.question[found.end() :]
    rest = example.question[found.end() :].split()
    if found.group() in ("did", "does") and len(rest) > 1:  # "did the king rule" → "did the king not rule"
        at = min(len(rest) - 1, 2 if rest[0].lower() in ("the", "a", "an") else 1)
        rest.insert(at, "not")
        return f"{example.question[: found.end()]} {' '.join(rest)}"
    return f"{example.question[: found.end()]} not{example.question[found.end() :]}"


# --- sentences that say something else -------------------------------------------------------------------------------

ENDING = re.compile(
    r"(?<=\w) (?:in|at|on|for|by|with|after|before|because|to|from|during|against) [^.;,]{8,60}[.]?$|, [^,;]{10,80}[.]$"
)
PARENTHESES = re.compile(r" \([^()]*\)")
INSERTED = re.compile(r", (?:which|who|where|when|including|such as|as well as|also)\b[^,;.]{4,90},")
TAIL = re.compile(
    r",? (?:and|but|which|while|although|because|with|including|where|after|before|as well as)\b[^.]{6,}[.]?$"
)
HEAD = re.compile(r"^(?:In|On|At|During|After|Before|By|However|According to|For|As of)\b[^,.]{0,60}, ")


def cut(sentence: str, rng: np.random.Generator) -> str | None:
    """The sentence without one of its parts that can be spared; None where nothing can."""
    if re.search(r"\b(?:not|no|never|nor|if|unless|only)\b|n't", sentence):
        return None
    for pattern in [(PARENTHESES, INSERTED, TAIL, HEAD)[i] for i in rng.permutation(4)]:
        found = pattern.search(sentence)
        if found is None:
            continue
        left = sentence[: found.start()] + sentence[found.end() :]
        left = left[:1].upper() + left[1:]
        if len(left.split()) >= 5:
            return left if left.endswith((".", "!", "?", '"')) else f"{left.rstrip(' ,;')}."
    return None


AUXILIARY = re.compile(
    r"\b(is|are|was|were|has been|have been|had been|can|could|will|would|should|must|may|did)\b(?! not\b)"
)
NEGATION = re.compile(r"\b(?:not|never) |n't\b|\bcannot\b")


def negate(sentence: str, text: str, rng: np.random.Generator) -> str | None:
    """With a "not" after an auxiliary, or without the one it has."""
    negated = NEGATION.search(sentence)
    if negated:
        there = "can" if negated.group() == "cannot" else ""
        return sentence[: negated.start()] + there + sentence[negated.end() :]
    found = list(AUXILIARY.finditer(sentence))
    if not found:
        return None
    at = found[int(rng.integers(len(found)))]
    said = at.group()
    if " " in said:
        other = said.replace(" ", " not ", 1)
    elif said in ("is", "are", "was", "were", "did", "could", "would", "should") and rng.random() < 0.4:
        other = f"{said}n't"
    else:
        other = "cannot" if said == "can" else f"{said} {'never' if rng.random() < 0.15 else 'not'}"
    return sentence[: at.start()] + other + sentence[at.end() :]


NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
NUMBER_WORDS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "twelve", "twenty")
SPELT = re.compile(r"\b(?:" + "|".join(NUMBER_WORDS) + r")\b")


def other_number(sentence: str, text: str, rng: np.random.Generator) -> str | None:
    """Another number in place of one: of the text, or a little larger or smaller."""
    found = [*NUMBER.finditer(sentence), *SPELT.finditer(sentence)]
    if not found:
        return None
    at = found[int(rng.integers(len(found)))]
    old = at.group()
    if old in NUMBER_WORDS:
        others = [w for w in NUMBER_WORDS if w != old]
    else:
        others = sorted({m.group() for m in NUMBER.finditer(text)} - {m.group() for m in NUMBER.finditer(sentence)})
        if not others or rng.random() < 0.6:
            digits = old.replace(",", "").split(".")[0] or "0"
            value = int(digits[:12])
            step = int(rng.integers(1, 30 if 1400 < value < 2100 else max(2, value // 2 + 2)))
            others = [str(value + step), str(abs(value - step))]
            others = [f"{int(o):,}" if "," in old else o for o in others]
            others = [o + "." + old.split(".")[1] if "." in old else o for o in others]
    new = others[int(rng.integers(len(others)))]
    return None if new == old else sentence[: at.start()] + new + sentence[at.end() :]


def other_name(sentence: str, text: str, rng: np.random.Generator) -> str | None:
    """Another name of the text in place of one."""
    mine = [m for m in NAME.finditer(sentence) if not m.group()[0].isdigit()]
    if not mine:
        return None
    at = mine[int(rng.integers(len(mine)))]
    own = set(at.group().lower().split())
    others = {m.group() for m in NAME.finditer(text) if not m.group()[0].isdigit()}
    fitting = sorted(o for o in others if o not in sentence and not own & set(o.lower().split()))
    if not fitting:
        return None
    return sentence[: at.start()] + fitting[int(rng.integers(len(fitting)))] + sentence[at.end() :]


def swapped_names(sentence: str, text: str, rng: np.random.Generator) -> str | None:
    """Two names of the sentence change places: who did it to whom."""
    mine = [m for m in NAME.finditer(sentence) if not m.group()[0].isdigit()]
    if len(mine) < 2:
        return None
    i = int(rng.integers(len(mine) - 1))
    a, b = mine[i], mine[i + 1]
    between = sentence[a.end() : b.start()]
    if (
        a.group() == b.group()
        or not re.search(r"\w{3,}.*\w{3,}", between)
        or re.fullmatch(r"\W*(?:and|or)?\W*", between)
    ):
        return None
    return sentence[: a.start()] + b.group() + between + a.group() + sentence[b.end() :]


def opposite(sentence: str, text: str, rng: np.random.Generator) -> str | None:
    """The opposite of an adjective or adverb."""
    options = [
        (m.span(), sorted(o for part in "ar" for o in antonyms(m.group(), part) if o.isalpha() and o.islower()))
        for m in re.finditer(r"\b[a-z]{3,}\b", sentence)
    ]
    options = [(span, found) for span, found in options if found]
    if not options:
        return None
    (start, end), found = options[int(rng.integers(len(options)))]
    return sentence[:start] + found[int(rng.integers(len(found)))] + sentence[end:]


EDITS: dict[str, Callable[[str, str, np.random.Generator], str | None]] = {
    "negation": negate, "number": other_number, "name": other_name, "swapped names": swapped_names,
    "opposite": opposite,
}  # fmt: skip
