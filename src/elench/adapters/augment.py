"""Generated question/answer pairs worth training on: asked, filtered as in QRelScore §3.3, kept above a score."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elench.adapters.rewards import usable_question
from elench.engine.scoring import score
from elench.engine.session import Session
from elench.errors import UsageError
from elench.metrics import metric
from elench.metrics.questeval_questions import candidates, spread
from elench.models.base import ModelSet
from elench.records.record import Record
from elench.requests import Ask, Failure, Parse, together

if TYPE_CHECKING:
    from elench.metrics.questeval_questions import Candidate


@dataclass(frozen=True)
class QuestionPair:
    """A question with its answer's place in a text, and what it scored."""

    text: str
    question: str
    answer: str
    start: int
    score: float


async def ask_about(text: str, most: int, beams: int) -> list[tuple[str, Candidate]]:
    """Questions about names and noun phrases spread over a text."""
    chosen = spread(candidates(text, await Parse(text)), most)
    asked = await together(*[Ask(text, c.text, c.start, beams) for c in chosen])
    return [(question, candidate) for variants, candidate in zip(asked, chosen, strict=True) for question in variants]


def augment(
    texts: Sequence[str],
    spec: str = "roundtrip",
    threshold: float = 0.5,
    per_text: int = 8,
    beams: int = 1,
    models: ModelSet | None = None,
) -> tuple[list[QuestionPair], dict[str, int]]:
    """Pairs that pass the filters and the threshold, and how many fell to what."""
    models = models or ModelSet()
    chosen = metric(spec)
    counts: Counter[str] = Counter()
    found: list[tuple[str, str, Candidate]] = []
    for text, (asked,) in Session(models).map(texts, lambda t: [ask_about(t, per_text, beams)]):
        if isinstance(asked, Failure):
            counts["texts could not be read"] += 1
            continue
        for question, candidate in dict.fromkeys(asked):
            if usable_question(question, candidate.text):
                counts["not 6–30 words or with the answer in them"] += 1
            else:
                found.append((text, question, candidate))
    records = [
        Record(str(i), context=text, question=question, answer=c.text, judge="question")
        for i, (text, question, c) in enumerate(found)
    ]
    if not records:
        return [], dict(counts)
    pairs = []
    scored = score(records, chosen, models=models)
    reasons = scored.unscored[str(chosen)]
    if len(reasons) == len(records):
        raise UsageError(f"{chosen} scores none of the {len(records)} questions asked: {next(iter(reasons.values()))}")
    for (text, question, c), value in zip(found, scored.values(str(chosen)), strict=True):
        if value is None or (value < threshold) == chosen.higher_is_better:
            counts[f"below {threshold:g} in {chosen}"] += 1
        else:
            pairs.append(QuestionPair(text, question, c.text, c.start, value))
    return pairs, dict(counts)


def write_squad(pairs: Sequence[QuestionPair], path: Path) -> None:
    """Pairs as a SQuAD 1.1 file; each question keeps its score."""
    paragraphs: dict[str, list[dict[str, Any]]] = {}
    for pair in pairs:
        digest = hashlib.sha256(f"{pair.text}\0{pair.question}\0{pair.start}".encode()).hexdigest()[:24]
        answers = [{"text": pair.answer, "answer_start": pair.start}]
        entry = {"id": digest, "question": pair.question, "answers": answers, "score": round(pair.score, 6)}
        paragraphs.setdefault(pair.text, []).append(entry)
    data = [
        {"title": f"text {i}", "paragraphs": [{"context": c, "qas": q}]} for i, (c, q) in enumerate(paragraphs.items())
    ]
    path.write_text(json.dumps({"version": "1.1", "data": data}, ensure_ascii=False), encoding="utf-8")
