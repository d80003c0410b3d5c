"""Notes in the evidence of every metric that judges an answer or a summary: what occurs on one side only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from elench.metrics.base import Metric, Score
from elench.metrics.evidence import Evidence
from elench.records.record import Record
from elench.text.answers import f1
from elench.text.one_sided import notes


def with_notes(metric: Metric, record: Record, score: Score) -> Score:
    """The score with a note for each negation, number or name that only the judged text has, or only the other."""
    if not metric.noted:
        return score
    judged = metric.judged(record)
    if judged == "question":
        return score
    by_context = "context" in metric.reads and "references" not in metric.reads
    return replace(score, evidence=Evidence(_noted, score.evidence, record, judged, by_context))


def _noted(evidence: Mapping[str, Any], record: Record, judged: str, by_context: bool) -> dict[str, Any]:
    text: str = getattr(record, judged) or ""
    others, against = _compared(record, text, by_context)
    found = notes(text, others, judged, against) if others else []
    if not found:
        return dict(evidence)
    return {**evidence, "notes": found, "kinds": {**evidence.get("kinds", {}), "notes": "notes"}}


def _compared(record: Record, text: str, by_context: bool) -> tuple[Sequence[str], str]:
    """What the metric compares the text with: the nearest reference, or the context where it reads that alone."""
    if record.references and not (by_context and record.context):
        return [max(record.references, key=lambda r: f1(text, r))], "reference"
    return ([record.context], "context") if record.context else ([], "")
