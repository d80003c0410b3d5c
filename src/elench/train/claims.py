"""Claims about a passage, made from question-answering data: supported, contradicted, or not found in it.

A claim is a question with an answer ("Who built it? Gustave Eiffel"), the two as a statement ("Gustave Eiffel built
it."), alone or behind the question, or a sentence of the passage: unchanged, cut
to some of its parts or paraphrased (supported); with a negation, a number, a name or an opposite changed
(contradicted); with an ending from elsewhere, or taken from another place (not found).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from elench.text.passages import sentences
from elench.train.changes import EDITS, ENDING, NAME, changed, cut
from elench.train.examples import Example
from elench.train.fused import Fused, fused, with_detail
from elench.train.statements import statement

SUPPORTED, CONTRADICTED, NOT_FOUND, UNSUPPORTED = range(4)
"""The last is a target, not a class: contradicted or not found, and nobody said which."""
LABELS = ("supported", "contradicted", "not found")
STATED = 0.75
"""Share of the answers that are made statements where a rule can."""
SCATTERED = 0.25
"""Share of the texts that are sentences from several places of a paragraph, as the metric joins the nearest ones."""

WHOLE = 0.4
"""Share of the texts that are a whole paragraph and more, as long as what the metric shows of a source."""
WHOLE_WORDS = 230


@dataclass(frozen=True)
class Claim:
    """A claim, the text it is compared with, and whether it follows."""

    premise: str
    claim: str
    label: int
    kind: str


@dataclass(frozen=True)
class Paragraph:
    """A paragraph with its sentences and questions."""

    text: str
    spans: tuple[tuple[int, int], ...]
    examples: tuple[Example, ...]
    group: str

    def sentence(self, i: int) -> str:
        return self.text[self.spans[i][0] : self.spans[i][1]]

    def window(self, i: int, rng: np.random.Generator, most: int = 3) -> str:
        """One to `most` sentences, sentence i among them."""
        size = int(rng.integers(1, most + 1))
        if len(self.spans) > most and rng.random() < SCATTERED:
            others = [k for k in range(len(self.spans)) if k != i]
            chosen = sorted([i, *(others[int(k)] for k in rng.choice(len(others), size, replace=False))])
            return " ".join(self.sentence(k) for k in chosen)
        first = max(0, min(i - int(rng.integers(size)), len(self.spans) - size))
        return self.text[self.spans[first][0] : self.spans[min(first + size, len(self.spans)) - 1][1]]

    def around(self, places: Sequence[int], rng: np.random.Generator) -> str:
        """These sentences, and now and then one between or beside them."""
        chosen = {*places, *(k for k in (min(places) - 1, max(places) + 1) if rng.random() < 0.4)}
        return " ".join(self.sentence(k) for k in sorted(chosen) if 0 <= k < len(self.spans))

    def at(self, start: int) -> int:
        """The sentence that contains a character."""
        return max((i for i, (a, _) in enumerate(self.spans) if a <= start), default=0)


def paragraphs(examples: Sequence[Example]) -> list[Paragraph]:
    """The paragraphs of the examples, each once."""
    known: dict[str, list[Example]] = defaultdict(list)
    for e in examples:
        known[e.context].append(e)
    cut = ((text, sentences(text), found) for text, found in known.items())
    return [Paragraph(text, tuple(spans), tuple(found), found[0].group) for text, spans, found in cut if spans]


class ClaimMaker:
    """Draws claims about a paragraph; the paragraphs of an article are each other's near misses."""

    def __init__(self, known: Sequence[Paragraph], paraphrases: Mapping[str, str] | None = None) -> None:
        self.known, self.paraphrases = list(known), dict(paraphrases or {})
        self.groups: dict[str, list[Paragraph]] = defaultdict(list)
        for p in known:
            self.groups[p.group].append(p)
        self.translated = [
            (p, i) for p in known for i in range(len(p.spans)) if p.sentence(i) in self.paraphrases
        ]  # fmt: skip

    def window(self, p: Paragraph, i: int, rng: np.random.Generator) -> str:
        """A text that holds sentence i of a paragraph: a few sentences, or the paragraph with some of another's."""
        return (rng.random() < WHOLE and self._whole(p, rng)) or p.window(i, rng)

    def around(self, p: Paragraph, places: Sequence[int], rng: np.random.Generator) -> str:
        """A text that holds these sentences of a paragraph, and few or many others."""
        return (rng.random() < WHOLE and self._whole(p, rng)) or p.around(places, rng)

    def _whole(self, p: Paragraph, rng: np.random.Generator) -> str | None:
        """A paragraph, and up to four sentences of another one of its article; None where that is too long."""
        pool = self.groups[p.group]
        other = pool[int(rng.integers(len(pool)))]
        most = 0 if other is p else min(4, len(other.spans))
        chosen = sorted(int(k) for k in rng.choice(len(other.spans), int(rng.integers(most + 1)), replace=False))
        texts = [p.text, " ".join(other.sentence(k) for k in chosen)]
        made = " ".join(texts if rng.random() < 0.5 else texts[::-1]).strip()
        return made if len(made.split()) <= WHOLE_WORDS else None

    def draw(self, n: int, rng: np.random.Generator) -> list[Claim]:
        """`n` claims, kinds in fixed shares."""
        kinds, shares = list(KINDS), np.array([KINDS[k][0] for k in KINDS])
        made: list[Claim] = []
        while len(made) < n:
            kind = kinds[int(rng.choice(len(kinds), p=shares / shares.sum()))]
            paragraph = self.known[int(rng.integers(len(self.known)))]
            claim = KINDS[kind][1](self, paragraph, rng)
            if claim is not None and claim.claim.strip() and claim.premise.strip():
                made.append(claim)
        return made

    # --- a question with an answer -----------------------------------------------------------------------------------

    def right_answer(self, p: Paragraph, rng: np.random.Generator) -> Claim | None:
        e = _asked(p, rng)
        if e is None:
            return None
        return Claim(
            self.window(p, p.at(e.start), rng), _joined(e.question, e.answers[0], rng), SUPPORTED, "right answer"
        )

    def wrong_answer(self, p: Paragraph, rng: np.random.Generator) -> Claim | None:
        e = _asked(p, rng)
        other = _another_answer(p, e, rng) if e else None
        if e is None or other is None:
            return None
        return Claim(self.window(p, p.at(e.start), rng), _joined(e.question, other, rng), CONTRADICTED, "wrong answer")

    def changed_question(self, p: Paragraph, rng: np.random.Generator) -> Claim | None:
        e = _asked(p, rng)
        question = changed(e, rng) if e else None
        if e is None or question is None:
            return None
        return Claim(
            self.window(p, p.at(e.start), rng), _joined(question, e.answers[0], rng), CONTRADICTED, "changed question"
        )

    def answer_elsewhere(self, p: Paragraph, rng: np.random.Generator) -> Claim | None:
        e = _asked(p, rng)
        if e is None:
            return None
        other, i = self._near(p, e.question, rng)
        premise = self.window(other, i, rng)
        if e.answers[0].lower() in premise.lower():
            return None
        return Claim(premise, _joined(e.question, e.answers[0], rng), NOT_FOUND, "answer elsewhere")

    # --- a sentence --------------------------------------------------------------------------------------------------

    def copied(self, p: Paragraph, rng: np.random.Generator) -> Claim | None:
        i = int(rng.integers(len(p.spans)))
        return Claim(self.window(p, i, rng), p.sentence(i), SUPPORTED, "copied")

    def shortened(self, p: Paragraph, rng: np.random.Generator) -> Claim | None:
        i = int(rng.integers(len(p.spans)))
        short = cut(p.sentence(i), rng)
        return None if short is None else Claim(self.window(p, i, rng), short, SUPPORTED, "shortened")

    def paraphrased(self, p: Paragraph, rng: np.random.Generator) -> Claim | None:
        if not self.translated:
            return None
        p, i = self.translated[int(rng.integers(len(self.translated)))]
        said = self.paraphrases[p.sentence(i)]
        return Claim(self.window(p, i, rng), (rng.random() < 0.3 and cut(said, rng)) or said, SUPPORTED, "paraphrased")

    def edited(self, p: Paragraph, rng: np.random.Generator) -> Claim | None:
        i = int(rng.integers(len(p.spans)))
        said = p.sentence(i)
        if self.translated and rng.random() < 0.35:
            p, i = self.translated[int(rng.integers(len(self.translated)))]
            said = self.paraphrases[p.sentence(i)]
        if rng.random() < 0.3:
            said = cut(said, rng) or said
        names, chances = list(EDIT_CHANCES), list(EDIT_CHANCES.values())
        for k in rng.choice(len(names), len(names), replace=False, p=chances):
            other = EDITS[names[int(k)]](said, p.text, rng)
            if other is not None and other != said:
                return Claim(self.window(p, i, rng), other, CONTRADICTED, names[int(k)])
        return None

    def fused(self, p: Paragraph, rng: np.random.Generator) -> Claim | None:
        p, made = self._fused(p, rng)
        return None if made is None else Claim(self.around(p, made[1], rng), made[0], SUPPORTED, "fused")

    def fused_and_edited(self, p: Paragraph, rng: np.random.Generator) -> Claim | None:
        p, made = self._fused(p, rng)
        name = list(EDIT_CHANCES)[int(rng.choice(len(EDIT_CHANCES), p=list(EDIT_CHANCES.values())))]
        other = EDITS[name](made[0], p.text, rng) if made else None
        if made is None or other is None or other == made[0]:
            return None
        return Claim(self.around(p, made[1], rng), other, CONTRADICTED, "fused and edited")

    def _fused(self, p: Paragraph, rng: np.random.Generator) -> tuple[Paragraph, Fused | None]:
        """A fused claim of this paragraph or, as few lend themselves to it, of one of some others."""
        for _ in range(12):
            made = fused([p.sentence(i) for i in range(len(p.spans))], rng)
            if made is not None:
                return p, made
            p = self.known[int(rng.integers(len(self.known)))]
        return p, None

    def with_detail(self, p: Paragraph, rng: np.random.Generator) -> Claim | None:
        i, other = int(rng.integers(len(p.spans))), self.known[int(rng.integers(len(self.known)))]
        made = with_detail(p.sentence(i), [other.sentence(k) for k in range(len(other.spans))], rng)
        return None if made is None else Claim(self.window(p, i, rng), made, NOT_FOUND, "added detail")

    def other_ending(self, p: Paragraph, rng: np.random.Generator) -> Claim | None:
        i = int(rng.integers(len(p.spans)))
        other = self.known[int(rng.integers(len(self.known)))]
        mine = list(ENDING.finditer(p.sentence(i)))
        theirs = list(ENDING.finditer(other.sentence(int(rng.integers(len(other.spans))))))
        if not mine or not theirs or other.group == p.group:
            return None
        ending = theirs[int(rng.integers(len(theirs)))].group()
        claim = p.sentence(i)[: mine[int(rng.integers(len(mine)))].start()].rstrip(" ,") + ending
        return Claim(self.window(p, i, rng), claim, NOT_FOUND, "other ending")

    def elsewhere(self, p: Paragraph, rng: np.random.Generator) -> Claim | None:
        i = int(rng.integers(len(p.spans)))
        other, k = self._near(p, p.sentence(i), rng)
        premise = self.window(other, k, rng)
        return None if p.sentence(i) in premise else Claim(premise, p.sentence(i), NOT_FOUND, "elsewhere")

    def _near(self, p: Paragraph, said: str, rng: np.random.Generator) -> tuple[Paragraph, int]:
        """A sentence of the same article that shares many words with a text, but is not in its place."""
        pool = self.groups[p.group]
        drawn = [pool[int(i)] for i in rng.integers(len(pool), size=4)]
        places = [(o, k) for o in drawn for k in range(len(o.spans)) if said not in o.sentence(k)] or [(p, 0)]
        words = set(said.lower().split())
        best = sorted(places, key=lambda at: -len(words & set(at[0].sentence(at[1]).lower().split())))
        return best[int(rng.integers(min(4, len(best))))]


EDIT_CHANCES = {"negation": 0.22, "number": 0.16, "name": 0.22, "swapped names": 0.26, "opposite": 0.14}
"""Which edit is tried first; few sentences have two names to swap."""
Made = Callable[[ClaimMaker, Paragraph, np.random.Generator], "Claim | None"]
KINDS: dict[str, tuple[float, Made]] = {
    "right answer": (0.15, ClaimMaker.right_answer),
    "wrong answer": (0.13, ClaimMaker.wrong_answer),
    "changed question": (0.05, ClaimMaker.changed_question),
    "answer elsewhere": (0.07, ClaimMaker.answer_elsewhere),
    "copied": (0.05, ClaimMaker.copied),
    "shortened": (0.08, ClaimMaker.shortened),
    "paraphrased": (0.12, ClaimMaker.paraphrased),
    "edited": (0.26, ClaimMaker.edited),
    "fused": (0.12, ClaimMaker.fused),
    "fused and edited": (0.07, ClaimMaker.fused_and_edited),
    "added detail": (0.05, ClaimMaker.with_detail),
    "other ending": (0.06, ClaimMaker.other_ending),
    "elsewhere": (0.07, ClaimMaker.elsewhere),
}
"""Relative share and maker of each kind of claim."""


def _asked(p: Paragraph, rng: np.random.Generator) -> Example | None:
    found = [e for e in p.examples if e.start >= 0]
    return found[int(rng.integers(len(found)))] if found else None


def _joined(question: str, answer: str, rng: np.random.Generator) -> str:
    """The claim that an answer makes: behind its question, as a statement, or as a statement behind its question."""
    stated = statement(question, answer) if rng.random() < STATED else None
    if stated is None:
        return f"{question} {answer}"
    return stated if rng.random() < 0.5 else f"{question} {stated}"


def _another_answer(p: Paragraph, e: Example, rng: np.random.Generator) -> str | None:
    """A wrong answer of the same kind from the same paragraph: of another question, or a name or number of the text."""
    gold = e.answers[0]
    own = set(gold.lower().split())
    options = {a for other in p.examples for a in other.answers} | {m.group() for m in NAME.finditer(p.text)}
    fitting = [
        o
        for o in sorted(options)
        if _shape(o) == _shape(gold) and not own & set(o.lower().split()) and o.lower() not in e.question.lower()
    ]
    return fitting[int(rng.integers(len(fitting)))] if fitting else None


def _shape(text: str) -> str:
    if any(c.isdigit() for c in text):
        return "number"
    return "name" if text[:1].isupper() and len(text.split()) < 5 else "phrase"
