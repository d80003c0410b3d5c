"""`elench.judge(...)`: one question, answer or summary, several metrics, and the evidence in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from elench.errors import MissingModel, UsageError

if TYPE_CHECKING:
    from elench.engine.result import Result
    from elench.engine.scoring import Metrics
    from elench.models.base import ModelSet
    from elench.records.record import Record


@dataclass(frozen=True, repr=False)
class Case:
    """The scores of one record. Printed, it shows the evidence of each."""

    record: Record
    result: Result

    @property
    def scores(self) -> dict[str, float | None]:
        """{metric: number}, None where unscored."""
        return {spec: self.result.outcomes[0].value(spec) for spec in self.result.specs}

    @property
    def unscored(self) -> dict[str, str]:
        """{metric: why it has no number}."""
        return dict(self.result.outcomes[0].unscored)

    @property
    def evidence(self) -> dict[str, dict[str, Any]]:
        """{metric: what made the number}."""
        return {spec: dict(score.evidence) for spec, score in self.result.outcomes[0].scores.items()}

    def __getitem__(self, spec: str) -> float | None:
        found: float | None = self.result[spec, self.record.id]
        return found

    def __repr__(self) -> str:
        from elench.show.evidence import evidence_text

        lines = [f"judging the {self.record.judged}: {self.record.judged_text}"]
        for spec, value in self.scores.items():
            if value is None:
                lines.append(f"{spec}: unscored, {self.unscored[spec]}")
                continue
            lines.append(f"{spec}: {value:.4f}")
            evidence = evidence_text(self.evidence[spec]).rstrip()
            lines += [f"    {line}" for line in evidence.splitlines()]
        return "\n".join(lines)


def judge(
    *,
    question: str | None = None,
    answer: str | None = None,
    summary: str | None = None,
    context: str | Sequence[str] | None = None,
    references: str | Sequence[str] | None = None,
    metrics: Metrics | None = None,
    judge: str | None = None,
    models: ModelSet | None = None,
) -> Case:
    """Judge one case and show the evidence.

        elench.judge(question="Who built it?", answer="Ada Marsh", context="Ada Marsh built the lighthouse.")

    Without `metrics`, those that fit the given texts are chosen, at most four (without a model where models are not
    installed); without `judge`, the references decide
    what is judged, else the answer is, else the summary or the question.
    """
    from elench.engine.scoring import score
    from elench.evaluate.contents import abilities, suggested
    from elench.metrics import metric as parse_metric
    from elench.records.record import Record

    texts = {"question": question, "answer": answer, "summary": summary, "context": context, "references": references}
    given = {name: value for name, value in texts.items() if value is not None}
    if not {"question", "answer", "summary"} & set(given):
        raise UsageError("give at least one of question, answer and summary")
    record = Record.from_object({"id": "1", **given, **({"judge": judge} if judge else {})})
    if judge is None:
        fitting = record.guess_judge() if record.references else ""
        judge = fitting or next(name for name in ("answer", "summary", "question") if name in given)
        record = Record.from_object({"id": "1", **given, "judge": judge})
    if metrics is not None:
        return Case(record, score([record], metrics, models=models))
    able, _ = abilities([record])
    try:
        return Case(record, score([record], suggested(judge, able), models=models))
    except MissingModel:
        alone = suggested(judge, [name for name in able if not parse_metric(name).roles])
        if not alone:
            raise
        return Case(record, score([record], alone, models=models))
