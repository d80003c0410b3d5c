"""`elench.score(...)`: metrics from Python, on whatever holds the records."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from elench.engine.result import Result
from elench.errors import Unscored, UsageError
from elench.metrics import metric as parse_metric
from elench.metrics import split_specs
from elench.metrics.base import Metric
from elench.records.fields import JUDGES
from elench.records.judging import SAMPLE
from elench.records.objects import as_rows, map_hint
from elench.records.record import Record, Reject
from elench.records.source import Source, as_source, refusing

if TYPE_CHECKING:
    from elench.models.base import ModelSet

Metrics = str | Metric | Sequence[str | Metric]


class Columnar(Protocol):
    """A pandas, polars, pyarrow or datasets table."""

    @property
    def shape(self) -> tuple[int, ...]: ...


Records = str | Path | Source | Record | Mapping[str, object] | Iterable[object] | Columnar
"""What `score` takes: a file name, one record, a dict of columns, several records, or a table."""


def score(
    records: Records,
    metrics: Metrics,
    *,
    judge: str | None = None,
    map: Mapping[str, str] | None = None,
    any_language: bool = False,
    models: ModelSet | None = None,
    cache: bool = True,
    strict: bool = False,
    on_step: Callable[[], None] = lambda: None,
) -> Result:
    """Score records with one or more metrics.

        result = elench.score([{"answer": "a red fox", "references": ["the red fox"]}], "f1,bleu")
        result = elench.score("rag.jsonl", ["support", "f1"], map={"answer": "prediction", "references": "gold"})
        result["f1", "q1", "careful"]        # one number: metric, id, system
        result.worst(10)                     # what to look at first
        result.to_pandas()

    Args:
        records: a file name; a list of dicts, dataclasses or Records; one dict; a dict of columns; a pandas, polars,
            pyarrow or datasets table. Exports of ragas, deepeval and others are recognised by their column names.
        metrics: a spec such as "f1" or "f1,bleu[n=2]", a metric, or a list of them (see `elench metrics`).
        judge: which text is judged, "question", "answer" or "summary"; by default each record's `judge`, else what
            the references fit.
        map: {field: column} where the columns have other names.
        any_language: let metrics that are made for English score other languages too.
        models: which models answer; by default the small ones that run offline.
        cache: keep the models' answers on disk.
        strict: end the call at the first row that is not a valid record, instead of setting it aside.
        on_step: called before each batch that a model answers and after each finished score; an exception it raises
            stops the run.

    Returns:
        A `Result`. A record that cannot be scored keeps its reason (`result.unscored`), a row that is not a valid
        record its own (`result.rejects`). A warning says when nothing could be scored; UsageError is raised when no
        row is a valid record.
    """
    from elench.engine.session import Session
    from elench.models.base import ModelSet

    chosen = parse_metrics(metrics)
    session = Session(models or ModelSet(), cache)
    given = _rows_of(records, chosen, judge, map, any_language)
    if isinstance(given, Source):
        where, judging, rows = f"{given}:", given.judging, given.read()
    else:
        assumed = {row.assumed for row in given if isinstance(row, Record) and row.judge is None}
        where, judging, rows = "record ", judge or (assumed.pop() if len(assumed) == 1 else None), iter(given)
    checked = refusing(rows, where) if strict else rows
    outcomes = [outcome for window in session.windows(checked, chosen, on_step=on_step) for outcome in window]
    if all(outcome.reject for outcome in outcomes):
        first = outcomes[0].reject if outcomes else None
        raise UsageError(f"{where}{first.line}: {first.reason}" if first else "no records given")
    result = Result(outcomes, [str(m) for m in chosen], metrics=chosen, session=session, judging=judging)
    if not any(outcome.scores for outcome in outcomes):
        hint = map_hint(result.records[:SAMPLE], chosen, map or {})
        warnings.warn(f"nothing could be scored: {result.commonest_reason()}{hint}", stacklevel=2)
    return result


def parse_metrics(metrics: Metrics) -> list[Metric]:
    """Metrics from specs, metrics, or a list of both."""
    given = [metrics] if isinstance(metrics, (str, Metric)) else list(metrics)
    return [parse_metric(s) for spec in given for s in (split_specs(spec) if isinstance(spec, str) else [spec])]


def _rows_of(
    records: object, metrics: Sequence[Metric], judge: str | None, map: Mapping[str, str] | None, any_language: bool
) -> Source | list[Record | Reject]:
    from dataclasses import replace

    if isinstance(records, (str, Path, Source)):
        source = as_source(records, map, judge).for_metrics(metrics)
        return replace(source, any_language=True) if any_language else source
    return as_rows(records, metrics, map, judge, any_language)


def score_text(metric: Metric, text: str, references: str | Sequence[str], fields: Mapping[str, Any]) -> float:
    """One text, one metric, one number; Unscored says why there is none."""
    models = fields.get("models")
    given = {name: value for name, value in fields.items() if name != "models"}
    able = getattr(metric, "judge", "") or next(
        (name for name in ("answer", *JUDGES) if name in metric.judges and name not in given), metric.judges[0]
    )
    if references:
        given["references"] = references
    record = Record.from_object({**given, able: text, "judge": able}, default_id="1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcome = score([record], metric, models=models).outcomes[0]
    value = outcome.value(str(metric))
    if value is None:
        raise Unscored(outcome.reason(str(metric)) or "no score")
    return value
