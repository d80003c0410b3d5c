"""QSTS: do two questions ask the same thing? Their class, names and dependency edges (Gollapalli & Ng 2022)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any, ClassVar

import numpy as np

from elench.errors import Unscored, UsageError
from elench.metrics import register
from elench.metrics.base import ReferenceMetric, Score, param
from elench.metrics.evidence import with_kinds
from elench.metrics.qsts_edges import Similarity, match_edges, match_words, missing_names, outline
from elench.records.record import Record
from elench.requests import ClassifyQuestion, Parse, WordVectors, together

CITATION = "Gollapalli & Ng 2022, QSTS: A Question-Sensitive Text Similarity Measure for Question Generation (COLING)"
LIKELY = 0.25
"""A class this probable, against the best one, is shown in the evidence."""
SURELY_OTHER = 0.1
"""form=ours: an expected class similarity below this counts as none."""
FORMS = ("paper", "code", "ours")
FORM = "the paper's definition, what the published code computes, or our improvements (docs/decisions/0010)"
OTHER_RELATION = {"paper": 0.0, "code": 0.0, "ours": 0.5}
"""What an edge counts that is matched by one of another relation; the paper's Kronecker δ is 0."""
NOTHING = np.zeros((0, 1), dtype=np.float32)
EXAMPLE = {
    "id": "example",
    "context": "After the eponymous first album, Bob Dylan went on to become the breakthrough songwriter.",
    "question": "What was Bob Dylan's first album called?",
    "references": ["What was the title of Bob Dylan's first album?"],
    "judge": "question",
}


@cache
def class_similarity(one: str, other: str) -> float:
    """1 for the same class; .75 in the same coarse class if a side is its "other"; .5 in the same coarse class; else 0.

    A class given without a fine level (NUM) matches all of its fine ones.
    """
    (coarse, _, fine), (coarse2, _, fine2) = one.partition(":"), other.partition(":")
    if coarse != coarse2:
        return 0.0
    if fine == fine2 or not fine or not fine2:
        return 1.0
    return 0.75 if "other" in (fine, fine2) else 0.5


def likely(chances: Mapping[str, float]) -> list[str]:
    """The classes a question may have: the most probable one, and those at least a quarter as probable."""
    return [label for label, p in chances.items() if p >= LIKELY * max(chances.values())]


def class_factor(mine: Mapping[str, float], theirs: Mapping[str, float], form: str) -> float:
    """qcsim of two questions: of their most probable classes, or (form=ours) expected over the probabilities."""
    if form == "ours":
        if mine == theirs:
            return 1.0  # the same question, however unsure its class
        ours, others = ([(c, p) for c, p in chances.items() if p > 1e-6] for chances in (mine, theirs))
        mean = sum(p * q * class_similarity(a, b) for a, p in ours for b, q in others if p * q > 1e-6)
        return mean if mean >= SURELY_OTHER else 0.0
    return class_similarity(max(mine, key=mine.__getitem__), max(theirs, key=theirs.__getitem__))


async def compare_classes(question: str, others: Sequence[str], form: str) -> tuple[float, dict[str, object]]:
    """qcsim of a question and the most alike of others; each is a question, or a class written `=NUM:dist`."""
    texts = dict.fromkeys([question, *(o for o in others if not o.startswith("="))])
    found = dict(zip(texts, await together(*[ClassifyQuestion(text) for text in texts]), strict=True))
    mine = found[question].fine
    theirs = [{o[1:]: 1.0} if o.startswith("=") else found[o].fine for o in others]
    value, best = max(((class_factor(mine, t, form), -i) for i, t in enumerate(theirs)))
    return value, {"classes": {"question": _shown(mine), "expected": _shown(theirs[-best])}}


def _shown(chances: Mapping[str, float]) -> dict[str, float]:
    """The likely classes with their probabilities, best first."""
    return {label: round(chances[label], 3) for label in sorted(likely(chances), key=lambda k: -chances[k])}


@dataclass(frozen=True)
class QstsMetric(ReferenceMetric):
    """What QSTS and its parts share: which text must be found in which, and the factors that are asked for."""

    judges: ClassVar[tuple[str, ...]] = ("question",)
    citation: ClassVar[str] = CITATION
    example: ClassVar[Mapping[str, Any]] = EXAMPLE
    limits: ClassVar[str] = (
        "English. Directional: what the candidate adds is free. Misspelt names do not match; search-style questions "
        "parse badly. A wrong class makes the whole score 0."
    )
    parts: ClassVar[tuple[str, ...]]

    against: str = param("reference", "what the question is compared with", ("reference", "context"))
    form: str = param("paper", FORM, FORMS)
    symmetric: bool = param(False, "the mean of both directions")

    def compares_class(self) -> bool:
        """Is there a second question whose class counts?"""
        return False

    @property
    def reads(self) -> tuple[str, ...]:
        return ("references",) if self.against == "reference" else ("context",)

    def check(self) -> None:
        if self.symmetric and self.against == "context":
            raise UsageError(f"{self.name}: symmetric=on needs against=reference (a passage asks nothing)")

    async def score(self, record: Record) -> Score:
        if self.against == "reference":
            return await super().score(record)
        question, context = self.candidate(record), self.text(record, "context")
        expected: tuple[str, ...] = ()
        if self.compares_class():
            given = record.extra.get("answer_type")
            expected = (f"={given}",) if given else self.given_references(record)
        return await self.contain(question, context, question, expected)

    async def compare(self, candidate: str, reference: str, record: Record) -> Score:
        expected = (reference,) if self.compares_class() else ()
        if not self.symmetric:
            return await self.contain(reference, candidate, candidate, expected)
        one, two = await together(
            self.contain(reference, candidate, candidate, expected),
            self.contain(candidate, reference, candidate, expected),
        )
        evidence = {"forward": one.value, "backward": two.value, **one.evidence, "backward_evidence": two.evidence}
        kinds = {**one.evidence["kinds"], "backward_evidence": "evidence"}
        return Score((one.value + two.value) / 2, with_kinds(evidence, **kinds))

    async def contain(self, wanted: str, found: str, question: str, expected: tuple[str, ...]) -> Score:
        """One direction: how much of `wanted` is in `found`; the class of `question` is compared with `expected`."""
        if expected:
            (texts, evidence), (same, classes) = await together(
                self.texts(wanted, found), compare_classes(question, expected, self.form)
            )
            evidence = {**classes, **evidence}
        else:
            (texts, evidence), same = await self.texts(wanted, found), 1.0
        factors = {part: texts.get(part, same) for part in self.parts}
        if len(factors) > 1:
            evidence = {"factors": {k: round(v, 4) for k, v in factors.items()}, **evidence}
        kinds = {"edges": "edges"} if "edges" in evidence else {}
        return Score(prod(factors.values()) ** (1 / len(factors)), with_kinds(evidence, **kinds))

    async def texts(self, wanted: str, found: str) -> tuple[dict[str, float], dict[str, Any]]:
        """The name and edge factors, and what made them."""
        one, two = await together(Parse(wanted), Parse(found))
        for text, parsed in ((wanted, one), (found, two)):
            if not any(c.isalnum() for word in parsed.words for c in word.text):
                raise Unscored(f"no words in {text.strip()[:40]!r}")
        a, b = outline(one, self.form), outline(two, self.form)
        factors: dict[str, float] = {}
        evidence: dict[str, Any] = {}
        if "names" in self.parts:
            missing = missing_names(a, b)
            factors["names"] = 1 - len(missing) / len(a.names) if a.names else 1.0
            evidence |= {"names": [t.text for t in a.names], "missing_names": [t.text for t in missing]}
        if "edges" in self.parts:
            words = tuple(sorted(a.words() | b.words()))
            similar = Similarity(words, await WordVectors(words) if words else NOTHING, self.form)
            matches = match_edges(a, b, similar, OTHER_RELATION[self.form])
            if not matches and self.form == "ours":
                matches = match_words(a, b, similar)
            factors["edges"] = sum(m.similarity for m in matches) / len(matches) if matches else 1.0
            evidence["edges"] = [m.shown() for m in matches]
        return factors, evidence


@register
@dataclass(frozen=True)
class Qsts(QstsMetric):
    """Do two questions ask the same thing: same class of answer, same names, same dependency edges?

    QSTS(r, g) = (qcsim · nesim · semsim)^(1/3), equation (1); directional, counted over the reference r. With
    `against=context` the question takes the reference's place and the passage the candidate's: no reference is needed.
    Choices the paper leaves open: words are compared without case; edges are universal dependencies, as its parser
    writes them, read from the embedded parser's labels; a reference without an edge between content words has semsim 1.
    form=ours: qcsim is expected over the classes' probabilities; an edge found under another relation counts half, and
    kindred relations are one; names are compared without accents, hyphens and possessives; a reference without edges is
    compared by its content words. form=code: lemmas; any entity counts as a name; root edges count.
    """

    name: ClassVar[str] = "qsts"
    parts: ClassVar[tuple[str, ...]] = ("class", "names", "edges")

    class_: str = param(
        "on",
        "compare the classes of two questions; off: that factor is 1; reference: against a context, compare with the "
        "class of the reference questions or the record's answer_type (with on it is 1 there)",
        ("on", "off", "reference"),
    )

    def compares_class(self) -> bool:
        return self.class_ == "reference" or (self.class_ == "on" and self.against == "reference")

    @property
    def roles(self) -> tuple[str, ...]:
        return ("parser", "vectors", "classes") if self.compares_class() else ("parser", "vectors")


@register
@dataclass(frozen=True)
class QstsClass(ReferenceMetric):
    """Do two questions ask for the same class of answer (QSTS's qcsim)?"""

    name: ClassVar[str] = "qsts-class"
    judges: ClassVar[tuple[str, ...]] = ("question",)
    roles: ClassVar[tuple[str, ...]] = ("classes",)
    citation: ClassVar[str] = CITATION
    example: ClassVar[Mapping[str, Any]] = EXAMPLE
    limits: ClassVar[str] = "English. Classes were learnt from short factual questions; others are guesses."

    form: str = param("paper", FORM, FORMS)

    async def compare(self, candidate: str, reference: str, record: Record) -> Score:
        if not any(c.isalnum() for c in candidate) or not any(c.isalnum() for c in reference):
            raise Unscored("no words to classify")
        return Score(*await compare_classes(candidate, [reference], self.form))


@register
@dataclass(frozen=True)
class QstsNames(QstsMetric):
    """How many name words of the reference (or of the question, against a context) are found (QSTS's nesim)?"""

    name: ClassVar[str] = "qsts-names"
    roles: ClassVar[tuple[str, ...]] = ("parser",)
    parts: ClassVar[tuple[str, ...]] = ("names",)


@register
@dataclass(frozen=True)
class QstsEdges(QstsMetric):
    """How well are the dependency edges of the reference matched by the candidate's (QSTS's semsim)?"""

    name: ClassVar[str] = "qsts-edges"
    roles: ClassVar[tuple[str, ...]] = ("parser", "vectors")
    parts: ClassVar[tuple[str, ...]] = ("edges",)
