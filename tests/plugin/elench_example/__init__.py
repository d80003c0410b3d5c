"""A plugin metric: the share of the reference's words that the judged text has."""

from dataclasses import dataclass
from typing import ClassVar

from elench.metrics import ReferenceMetric, Score, param, register


@register
@dataclass(frozen=True)
class SharedWords(ReferenceMetric):
    """Share of the reference's distinct words that the judged text has too."""

    name: ClassVar[str] = "shared-words"
    citation: ClassVar[str] = "elench's own example."
    limits: ClassVar[str] = "Blind to word order and to meaning."
    example: ClassVar[dict] = {
        "judge": "answer",
        "question": "Who?",
        "answer": "Ann Lee",
        "references": ["Ann Lee sang"],
    }
    lower: bool = param(True, "compare in lower case")

    async def compare(self, candidate, reference, record):
        said, wanted = (set(self.words(text)) for text in (candidate, reference))
        return Score(len(said & wanted) / len(wanted), {"shared": sorted(said & wanted)})

    def words(self, text):
        return (text.lower() if self.lower else text).split()
