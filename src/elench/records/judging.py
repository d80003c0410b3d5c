"""What a file judges — questions, answers or summaries — decided once, by what its references fit."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from elench.errors import UsageError
from elench.records.fields import JUDGES

if TYPE_CHECKING:
    from elench.records.record import Record

PLURAL = {"question": "questions", "answer": "answers", "summary": "summaries"}
SAMPLE = 1000
"""So many records decide for the file."""
CLEAR = 0.8
"""Share of the votes that one text needs."""
ALIKE = 0.3
"""References that share so many words with a question (Dice) are questions, whatever their punctuation."""
_ASKING = re.compile(
    r"\W*(?:\w+\W+)?(?:who|whom|whose|what|when|where|why|which|how|what's|who's)\b|"
    r"\W*(?:is|are|was|were|do|does|did|can|could|will|would|should|has|have|had)\s+\w+\s+\w+",
    re.IGNORECASE,
)


class Need(Protocol):
    """What must be known of a metric: which texts it can judge, which fields it reads, and which a record lacks."""

    @property
    def judges(self) -> tuple[str, ...]: ...
    @property
    def reads(self) -> tuple[str, ...]: ...
    def missing(self, record: Record) -> str | None: ...


def choices_of(metric: Need) -> tuple[str, ...]:
    """Which texts a metric may judge with its parameters."""
    chosen: str = getattr(metric, "judge", "")
    return (chosen,) if chosen else metric.judges


def has_field(record: Record, name: str) -> bool:
    """Does a record have this text field?"""
    return record.has_references if name == "references" else getattr(record, name) is not None


def lacking_fields(records: Sequence[Record], metrics: Sequence[Need]) -> list[str]:
    """The fields that metrics need and no record has; none as soon as one metric finds all of its fields."""
    lacking: dict[str, None] = {}
    for metric in metrics:
        able = choices_of(metric)
        needed = [name for name in metric.reads if not any(has_field(r, name) for r in records)]
        if not any(has_field(r, name) for name in able for r in records):
            needed.insert(0, able[0] if len(able) == 1 else "answer" if "answer" in able else able[-1])
        if not needed:
            return []
        lacking.update(dict.fromkeys(needed))
    return list(lacking)


def asks(text: str) -> bool:
    """Does a text look like a question? By its question mark, else by its first words."""
    return text.rstrip(" \"'”’)»").endswith(("?", "？", "؟")) or (len(text) < 300 and bool(_ASKING.match(text)))


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def _likeness(text: str, references: Sequence[str]) -> float:
    """Share of common words (Dice), with the most similar reference."""
    own = _words(text)
    found = [2 * len(own & other) / (len(own) + len(other)) for other in map(_words, references) if own or other]
    return max(found, default=0.0)


def fits(record: Record) -> str | None:
    """Which text a record's references are of, also where that text is missing; None when nothing tells."""
    references = [r for r in record.references[:5] if r.strip()]
    texts = {name: text for name in JUDGES if (text := getattr(record, name))}
    if not references or not texts:
        return None
    if len(texts) == 1:
        return "answer" if record.question and _answered_by(references, record.question) else next(iter(texts))
    points = {name: _likeness(text[:4000], references) for name, text in texts.items()}
    if record.question:
        asking = sum(map(asks, references)) > len(references) / 2
        weight = 1.0 if asks(record.question) else 0.3
        for name in points:
            points[name] += weight * (asking == (name == "question"))
    best, second = sorted(points, key=lambda name: points[name], reverse=True)[:2]
    return best if points[best] > points[second] else None


def _answered_by(references: Sequence[str], question: str) -> bool:
    """Are the references answers to a question, and not other forms of it?"""
    return asks(question) and not any(map(asks, references)) and _likeness(question, references) < ALIKE


def judge_of_one(record: Record) -> str:
    """For a record on its own: what its references fit, else summary, question (with a context), answer."""
    fit = fits(record)
    if fit:
        return fit
    if record.summary is not None:
        return "summary"
    if record.question is not None and (record.context is not None or record.answer is None):
        return "question"
    return "answer"


def _forced(metrics: Sequence[Need], present: set[str], with_references: bool) -> set[str]:
    """What the metrics that leave no choice judge."""
    forced = set()
    for metric in metrics:
        if "references" in metric.reads or not with_references:
            able = set(choices_of(metric)) & present
            if len(able) == 1:
                forced |= able
    return forced


def decide(records: Sequence[Record], metrics: Sequence[Need], name: str) -> str | None:
    """What the records without `judge` judge: by what the references fit, then by what the metrics need.

    None when nothing has to be decided; UsageError when it has to and cannot.
    """
    open_records = [record for record in records if record.judge is None]
    present = {field for record in open_records for field in JUDGES if getattr(record, field) is not None}
    referenced = any(record.references for record in open_records)
    votes = _votes(open_records)
    if votes:
        best, count = votes.most_common(1)[0]
        compared = not metrics or any("references" in metric.reads for metric in metrics)
        if count >= CLEAR * votes.total() and (best in present or compared):
            return best
    if len(present) < 2:
        return next(iter(present), None)
    forced = _forced(metrics, present, with_references=referenced)
    if len(forced) == 1:
        return next(iter(forced))
    if any(len(set(choices_of(metric)) & present) > 1 for metric in metrics):
        raise UsageError(_undecided(votes, present, referenced, name))
    return None


def _votes(records: Sequence[Record]) -> Counter[str]:
    """How many records' references fit which text; among questions with answers, one without its answer has no vote."""
    pairs = any(record.question and record.answer for record in records)
    voters = [record for record in records if record.answer or record.summary or not pairs]
    return Counter(filter(None, map(fits, voters)))


def _undecided(votes: Counter[str], present: set[str], referenced: bool, name: str) -> str:
    """Why it cannot be told what is judged, and what to add."""
    choices = [choice for choice in JUDGES if choice in present]
    if votes:
        why = f"references fit {' and '.join(f'{v} {PLURAL[k] if v > 1 else k}' for k, v in votes.most_common())}"
    else:
        why = "nothing shows what the references are of" if referenced else "there are no references"
    python = name == "records"  # not a file
    options = " or ".join(f'judge="{choice}"' if python else f"--judge {choice}" for choice in choices)
    each = "; a file of several kinds needs the field `judge` in each record" if len(votes) > 1 else ""
    return (
        f"{name}: cannot tell whether {' or '.join(PLURAL[c] for c in choices)} are judged ({why}): add {options}{each}"
    )
