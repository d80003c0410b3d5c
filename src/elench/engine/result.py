"""What `elench.score` gives back: a run in memory that prints well and is easy to look into."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

from elench.errors import UsageError
from elench.metrics import metric as parse_metric
from elench.metrics.base import Metric
from elench.runs import Outcome, Run, Summary
from elench.runs.clusters import interval_lines
from elench.runs.summary import summary_grid

if TYPE_CHECKING:
    import pandas

    from elench.engine.session import Session


@dataclass(frozen=True, repr=False)
class Result(Run):
    """Scores of every record: prints as a table, indexes by metric, id and system, becomes a pandas table."""

    metrics: Sequence[Metric] = ()
    session: Session | None = None
    judging: str | None = None
    """What was judged where the records did not say."""

    def __len__(self) -> int:
        return len(self.outcomes)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """One output line per record, as `elench score --explain` writes it."""
        return (outcome.to_object(self.specs, explain=True) for outcome in self.outcomes)

    @overload
    def __getitem__(self, key: str) -> dict[Any, float | None]: ...
    @overload
    def __getitem__(self, key: tuple[str, str, str]) -> float | None: ...
    @overload
    def __getitem__(self, key: tuple[str, str]) -> Any: ...
    def __getitem__(self, key: str | tuple[str, ...]) -> Any:
        """Scores by metric, id and system.

        `result["bleu", "q1", "careful"]` and, where only one system has q1, `result["bleu", "q1"]` are numbers (None
        where unscored); `result["bleu"]` is {id: number}, or {(id, system): number} where systems share ids;
        `result["q1"]` and `result["q1", "careful"]` are {metric: number}. What is ambiguous raises KeyError.
        """
        parts = key if isinstance(key, tuple) else (key,)
        spec = self._spec(parts[0])
        if spec is None:
            return dict(self._one(parts, key).to_object(self.specs)["scores"])
        if len(parts) > 1:
            return self._one(parts[1:], key).value(spec)
        ids = [outcome.id for outcome in self.outcomes]
        if len(set(ids)) == len(ids):
            return {outcome.id: outcome.value(spec) for outcome in self.outcomes}
        return {(outcome.id, outcome.system): outcome.value(spec) for outcome in self.outcomes}

    def _spec(self, key: str) -> str | None:
        if key in self.specs:
            return key
        try:
            canonical = str(parse_metric(key))
        except UsageError:
            return None
        return canonical if canonical in self.specs else None

    def _one(self, parts: Sequence[str], key: Any) -> Outcome:
        found = [o for o in self.outcomes if o.id == parts[0]]
        if not found:
            raise KeyError(
                f"{key!r}: {parts[0]!r} is neither a metric of this result ({', '.join(self.specs)}) nor an id"
            )
        systems = ", ".join(repr(o.system) for o in found)
        if len(parts) > 1:
            found = [o for o in found if o.system == parts[1]]
        if len(found) != 1:
            raise KeyError(
                f"{key!r}: add the system, one of {systems}" if found else f"{key!r}: its systems are {systems}"
            )
        return found[0]

    def worst(self, n: int = 10, metric: str | None = None) -> list[dict[str, Any]]:
        """The records with the worst scores of a metric (the first one by default), worst first."""
        spec = self._spec(metric or self.specs[0])
        if spec is None:
            raise KeyError(f"{metric!r} is not a metric of this result ({', '.join(self.specs)})")
        sign = 1 if parse_metric(spec).higher_is_better else -1
        scored = sorted((o for o in self.scored if spec in o.scores), key=lambda o: sign * o.scores[spec].value)
        return [self._row(outcome, spec) for outcome in scored[:n]]

    @staticmethod
    def _row(outcome: Outcome, spec: str) -> dict[str, object]:
        row: dict[str, Any] = {"id": outcome.id, "system": outcome.system, spec: outcome.value(spec)}
        if record := outcome.record:
            row[record.judged] = record.judged_text
            row["references"] = list(record.references)
        return row

    @property
    def signatures(self) -> Mapping[str, str]:
        if self.session:
            return self.session.signatures(self.metrics, self.judging)
        return super().signatures

    def summary(self) -> dict[str, Any]:
        """Per metric: n, unscored and why, mean with 95 % interval, corpus score, and the same per system."""
        summary = Summary(self.metrics or self.specs)
        for outcome in self.outcomes:
            summary.add(outcome)
        return summary.to_object()

    def commonest_reason(self) -> str:
        """Why most of what is unscored is unscored."""
        reasons = Counter(f"{s}: {why}" for o in self.outcomes for s in self.specs if (why := o.reason(s)))
        return reasons.most_common(1)[0][0] if reasons else ""

    def to_pandas(self) -> pandas.DataFrame:
        """One row per record: id, system, a column per metric."""
        import pandas

        rows = [{"id": o.id, "system": o.system} for o in self.outcomes]
        return pandas.DataFrame(rows).assign(**{spec: self.values(spec) for spec in self.specs})

    def _notes(self) -> list[str]:
        notes = interval_lines(self.summary().values())
        notes += [f"judging {self.judging}"] if self.judging else []
        if any(not o.scores for o in self.scored):
            notes.append(f"most often unscored because {self.commonest_reason()}")
        if self.rejects:
            notes.append(f"{len(self.rejects)} rows are not valid records, the first: {self.rejects[0].reason}")
        return notes

    def _render(self, form: str) -> str:
        from elench.show.tables import render

        return render([summary_grid("", self.summary())], self._notes(), form)

    def __repr__(self) -> str:
        return self._render("text").strip("\n")

    def _repr_html_(self) -> str:
        return self._render("html")
