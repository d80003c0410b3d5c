"""QSTS: do two questions ask the same thing? Their class, their names, their dependency edges (Gollapalli & Ng 2022)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from quaestor.errors import Unscored, UsageError
from quaestor.metrics import register
from quaestor.metrics.base import ReferenceMetric, Score, param
from quaestor.metrics.qsts_edges import Outline, Similarity, match_edges, match_words, missing_names, outline
from quaestor.records import Record
from quaestor.requests import Classify, Parse, QuestionClass, WordVectors, together

CITATION = "Gollapalli & Ng 2022, QSTS: A Question-Sensitive Text Similarity Measure for Question Generation (COLING)"
EXAMPLE = {
    "id": "example",
    "context": "After the eponymous first album, Bob Dylan went on to become the breakthrough songwriter.",
    "question": "What was Bob Dylan's first album called?",
    "references": ["What was the title of Bob Dylan's first album?"],
    "judge": "question",
}


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


@dataclass(frozen=True)
class Comparison(ReferenceMetric):
    """What QSTS and its parts share: who is compared with whom, and the factors asked for."""

    judges: ClassVar[tuple[str, ...]] = ("question",)
    citation: ClassVar[str] = CITATION
    example: ClassVar[dict[str, Any]] = EXAMPLE
    parts: ClassVar[tuple[str, ...]]
    limits: ClassVar[str] = (
        "English. Directional: what the candidate adds is free. Misspelt names do not match; search-style questions parse "
        "badly. A wrong class makes the whole score 0."
    )

    against: str = param("reference", "compare with the reference questions, or with the context", ("reference", "context"))
    form: str = param("paper", "the paper's definition, or what the published code computes", ("paper", "code"))
    symmetric: bool = param(False, "the mean of both directions")

    def compares_class(self) -> bool:
        """Is there a second question whose class counts?"""
        return "class" in self.parts

    def roles_needed(self) -> tuple[str, ...]:
        roles = ["parser"] if set(self.parts) & {"names", "edges"} else []
        return (*roles, *["vectors"] * ("edges" in self.parts), *["classes"] * self.compares_class())

    def needs(self) -> tuple[str, ...]:
        if self.against == "reference":
            return ("references",)
        return ("context",)

    def check(self) -> None:
        if self.symmetric and self.against == "context":
            raise UsageError(f"{self.name}: symmetric=on needs against=reference (a passage asks nothing)")

    async def score(self, record: Record) -> Score:
        if self.against == "reference":
            return await super().score(record)
        question, context = self.candidate(record), self.text(record, "context")
        return await self._join(question, context, question, self._expected(record), "passage")

    async def compare(self, candidate: str, reference: str, record: Record) -> Score:
        expected = reference if self.compares_class() else None
        ahead = self._join(reference, candidate, candidate, expected, "reference")
        if not self.symmetric:
            return await ahead
        one, two = await together(ahead, self._join(candidate, reference, reference, candidate, "question"))
        evidence = {**one.evidence, "forward": one.value, "backward": two.value, "backward_evidence": two.evidence}
        return Score((one.value + two.value) / 2, evidence)

    def _expected(self, record: Record) -> str | None:
        """Whose class the question's is compared with: a reference question, or a class as such; None for nobody's."""
        if not self.compares_class():
            return None
        given = record.extra.get("answer_type")
        return f"={given}" if given else self.given_references(record)[0]

    async def _join(self, wanted: str, found: str, question: str, expected: str | None, other: str) -> Score:
        """All factors of one direction: what `wanted` says must be found in `found`."""
        factors: dict[str, float] = {}
        evidence: dict[str, Any] = {}
        asked = [self._classes(question, expected, other)] if expected is not None else []
        if set(self.parts) & {"names", "edges"}:
            asked.append(self._texts(wanted, found))
        for values, shown in await together(*asked):
            factors.update(values)
            evidence.update(shown)
        value = 1.0
        for factor in factors.values():
            value *= factor
        if len(self.parts) > 1:
            value = value ** (1 / len(self.parts))  # equation (1): the cube root, also where the class factor is 1
            evidence = {"factors": {part: factors.get(part, 1.0) for part in self.parts}, **evidence}
        return Score(value, evidence)

    async def _classes(self, question: str, expected: str, other: str) -> tuple[dict[str, float], dict[str, Any]]:
        if expected.startswith("="):
            mine, theirs = _named(await Classify(question)), expected[1:]
        else:
            one, two = await together(Classify(question), Classify(expected))
            mine, theirs = _named(one), _named(two)
        return {"class": class_similarity(mine, theirs)}, {"classes": {"question": mine, other: theirs}}

    async def _texts(self, wanted: str, found: str) -> tuple[dict[str, float], dict[str, Any]]:
        """The name and edge factors, and what made them."""
        one, two = await together(Parse(wanted), Parse(found))
        a, b = outline(one, self.form), outline(two, self.form)
        if not any(c.isalnum() for word in one.words for c in word.text):
            raise Unscored("no words to compare")
        factors: dict[str, float] = {}
        evidence: dict[str, Any] = {}
        if "names" in self.parts:
            missing = missing_names(a, b)
            factors["names"] = 1 - len(missing) / len(a.names) if a.names else 1.0
            evidence["names"] = [t.text for t in a.names]
            evidence["missing_names"] = [t.text for t in missing]
        if "edges" in self.parts:
            factors["edges"], evidence["edges"] = await self._edges(a, b)
        return factors, evidence

    async def _edges(self, a: Outline, b: Outline) -> tuple[float, list[dict[str, Any]]]:
        words = tuple(sorted(a.words() | b.words()))
        similar = Similarity(words, await WordVectors(words), self.form) if words else None
        matches = match_edges(a, b, similar) if similar and a.wanted else []
        if similar and not matches:
            matches = match_words(a, b, similar)
        if not matches:
            return 1.0, []
        shown = [
            {"wanted": _shown(m.wanted), "found": _shown(m.found), "similarity": round(m.similarity, 4)} for m in matches
        ]
        return sum(m.similarity for m in matches) / len(matches), shown


def _named(found: QuestionClass) -> str:
    return found.best[1]


def _shown(thing: Any) -> str | None:
    return None if thing is None else str(thing)


@register
@dataclass(frozen=True)
class Qsts(Comparison):
    """Do two questions ask the same thing: same class of answer, same names, same dependency edges?

    QSTS(r, g) = (qcsim · nesim · semsim)^(1/3), equation (1); directional, counted over the reference r. With
    `against=context` the question takes the reference's place and the passage the candidate's: no reference is needed.
    A reference without edges between content words is compared by its content words.
    """

    name: ClassVar[str] = "qsts"
    parts: ClassVar[tuple[str, ...]] = ("class", "names", "edges")
    class_: str = param(
        "on",
        "compare the classes of two questions; off: the factor is 1; reference: against a context, compare with the "
        "class of the reference or of the record's answer_type (on: 1 there)",
        ("on", "off", "reference"),
    )

    def compares_class(self) -> bool:
        return self.class_ == "reference" or (self.class_ == "on" and self.against == "reference")

    def needs(self) -> tuple[str, ...]:
        return super().needs()


@register
@dataclass(frozen=True)
class QstsClass(Comparison):
    """Do two questions ask for the same class of answer (QSTS's qcsim)?"""

    name: ClassVar[str] = "qsts-class"
    parts: ClassVar[tuple[str, ...]] = ("class",)


@register
@dataclass(frozen=True)
class QstsNames(Comparison):
    """How many name words of the reference (or of the question, against a context) are found (QSTS's nesim)?"""

    name: ClassVar[str] = "qsts-names"
    parts: ClassVar[tuple[str, ...]] = ("names",)


@register
@dataclass(frozen=True)
class QstsEdges(Comparison):
    """How well the reference's dependency edges are matched by the candidate's (QSTS's semsim)?"""

    name: ClassVar[str] = "qsts-edges"
    parts: ClassVar[tuple[str, ...]] = ("edges",)
