"""A language model as judge: it reads a rubric and rates, or compares with a reference."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, ClassVar

from elench.errors import Unscored, UsageError
from elench.metrics import Metric, Score, param, register
from elench.metrics.sanity import QUESTION, scorable
from elench.records.record import JUDGES, Record
from elench.requests import Choose, together

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TITLES = {"question": "Question", "answer": "Answer", "summary": "Summary"}


@cache
def rubrics() -> dict[str, dict[str, str]]:
    """What is judged → dimension → the rubric's text."""
    return tomllib.loads(files("elench.metrics").joinpath("judge_rubrics.toml").read_text(encoding="utf-8"))


@register
@dataclass(frozen=True)
class Judge(Metric):
    """A language model rates the text by a rubric: the expected value of its rating, or its preference in a pair.

    form=rate: Σ k · p(k) over the numbers of the scale, p from the model's token probabilities (G-Eval's weighting);
    where a server gives none, the number it wrote. form=pair: the probability that the text is preferred to a
    reference, asked twice with the places swapped and averaged; half their difference is the position bias. The rubric
    of each dimension comes with elench, and its hash is part of the signature.
    """

    name: ClassVar[str] = "judge"
    judges: ClassVar[tuple[str, ...]] = ("question", "answer", "summary")
    range: ClassVar[tuple[float, float]] = (0.0, 9.0)
    roles: ClassVar[tuple[str, ...]] = ("judge",)
    citation: ClassVar[str] = "Liu et al. 2023, G-Eval: NLG Evaluation using GPT-4 with Better Human Alignment, EMNLP"
    limits: ClassVar[str] = (
        "As good as the model behind it. The embedded one (135M parameters) is weak and hardly agrees with people: use "
        "--models large-lm or --model judge=URL, and certify it on rated records (elench certify). Favours its own "
        "style and length."
    )
    example: ClassVar[Mapping[str, Any]] = {**QUESTION, "references": ["Who built the lighthouse on Gull Rock?"]}
    dimension: str = param("overall", "which rubric: a dimension such as fluency, correctness or coherence")
    scale: int = param(5, "the best rating; 1 is the worst", (3, 4, 5, 7, 9))
    form: str = param("rate", "a rating, or the preference against a reference", ("rate", "pair"))
    judge: str = param(
        "", "which text is judged; default: the record's own field", ("", "question", "answer", "summary")
    )
    prompt: str = param("", "hash of the rubrics; refused when it is no longer theirs")

    def check(self) -> None:
        known = {name for kind in JUDGES for name in rubrics()[kind]}
        if self.dimension not in known:
            raise UsageError(f"judge[dimension={self.dimension}]: no rubric; there are: {', '.join(sorted(known))}")
        if self.prompt and self.prompt != self.prompt_hash():
            raise UsageError(f"judge[prompt={self.prompt}]: the rubric now has the hash {self.prompt_hash()}")

    def prompt_hash(self) -> str:
        """Hash over everything that is said to the model."""
        said = [rubrics()[kind].get(self.dimension, "") for kind in JUDGES] + [rubrics()["form"][self.form]]
        return hashlib.sha256("\n".join([*said, LAYOUT]).encode()).hexdigest()[:12]

    def spec(self, full: bool = False) -> str:
        printed = super().spec(full)
        return printed.replace("prompt=]", f"prompt={self.prompt_hash()}]") if full else printed

    @property
    def reads(self) -> tuple[str, ...]:
        return ("references",) if self.form == "pair" else ()

    async def score(self, record: Record) -> Score:
        judged = self.judged(record)
        text = self.candidate(record)
        scorable(text, judged)
        rubric = rubrics()[judged].get(self.dimension)
        if rubric is None:
            raise Unscored(f"no rubric for {self.dimension} of {judged}; there are: {', '.join(rubrics()[judged])}")
        given = _given(self, record, judged)
        if self.form == "pair":
            return await self._pair(given, judged, text, self.given_references(record)[0], rubric)
        ask = rubrics()["form"]["rate"].format(scale=self.scale)
        prompt = LAYOUT.format(given=given, texts=f"{TITLES[judged]}: {text}", rubric=rubric, ask=ask)
        found = await Choose(prompt, tuple(str(k) for k in range(1, self.scale + 1)))
        value = sum(int(k) * p for k, p in found.probabilities.items())
        return Score(value, {"probabilities": found.probabilities, "wrote": found.written, "measured": found.measured})

    async def _pair(self, given: str, judged: str, text: str, other: str, rubric: str) -> Score:
        ask = rubrics()["form"]["pair"]

        def prompt(first: str, second: str) -> Choose:
            texts = f"{TITLES[judged]} A: {first}\n\n{TITLES[judged]} B: {second}"
            return Choose(LAYOUT.format(given=given, texts=texts, rubric=rubric, ask=ask), ("A", "B"))

        there, back = await together(prompt(text, other), prompt(other, text))
        first, second = there.probabilities["A"], back.probabilities["B"]
        evidence = {"preferred_as_A": first, "preferred_as_B": second, "position_bias": (first - second) / 2}
        return Score((first + second) / 2, {**evidence, "reference": other, "measured": there.measured})


LAYOUT = "{given}{texts}\n\n{rubric}\n{ask}"
"""The long text first: where a window is too small, its beginning is lost, not the instruction."""


def _given(metric: Metric, record: Record, judged: str) -> str:
    """What the judge reads besides the judged text; a context is needed for questions and summaries."""
    lines = []
    if judged != "answer" or record.context:
        lines.append(f"Text: {metric.text(record, 'context')}")
    if judged == "answer":
        lines.append(f"Question: {metric.text(record, 'question')}")
        lines += [f"Reference answer: {reference}" for reference in record.references[:5]]
    if judged == "question" and record.answer:
        lines.append(f"Intended answer: {record.answer}")
    return "".join(f"{line}\n\n" for line in lines)
