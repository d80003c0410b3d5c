"""Checks that every metric must pass; plugin authors import them: `from elench.testing import check_metric`.

def test_my_metric():
    check_metric("my-metric")
"""

from __future__ import annotations

import math
import pickle
from dataclasses import replace
from typing import Any

from elench.engine.scoring import score
from elench.metrics import metric as parse_metric
from elench.metrics.base import Metric
from elench.models.base import ModelSet
from elench.records.record import Record

STRANGE = "Zoë’s naïve café — 東京 🍣 costs 3,50 € (não?) \u200f\u0301…"


def check_metric(spec: str | Metric, models: ModelSet | None = None, tolerance: float = 1e-5) -> None:
    """Run all checks on one metric; an AssertionError names the promise that was broken."""
    metric = parse_metric(spec)
    check_card(metric)
    check_spec(metric)
    check_pickle(metric)
    models = models or ModelSet()
    records = _records(metric)
    check_range(metric, records, models)
    check_order(metric, records, models, tolerance)
    check_duplication(metric, records, models, tolerance)
    check_alone(metric, records, models, tolerance)
    check_strange(metric, records, models)
    check_emptiness(metric, records, models)


def _records(metric: Metric) -> list[Record]:
    """The card's example and three variations of it."""
    first = Record.from_object({**metric.example, "id": "example"})
    longer: dict[str, Any] = {
        n: f"{t} It was so, and it stayed so, for {i} long years." for i, (n, t) in enumerate(_texts(first), 3)
    }
    shorter: dict[str, Any] = {n: " ".join(t.split()[: max(3, len(t.split()) // 2)]) for n, t in _texts(first)}
    return [first, *(replace(first, id=name, **texts) for name, texts in (("longer", longer), ("shorter", shorter)))]


def _texts(record: Record) -> list[tuple[str, str]]:
    return [(n, t) for n in ("context", "question", "answer", "summary") if (t := getattr(record, n)) is not None]


def _values(metric: Metric, records: list[Record], models: ModelSet) -> dict[str, float | None]:
    values: dict[str, float | None] = score(records, metric, models=models, cache=False)[str(metric)]
    return values


def _same(a: dict[str, float | None], b: dict[str, float | None], tolerance: float, promise: str) -> None:
    for name, value in a.items():
        other = b[name]
        same = (value is None) == (other is None) and (value is None or abs(value - (other or 0.0)) <= tolerance)
        assert same, f"{promise}: record {name!r} scored {value} and {other}"


def check_card(metric: Metric) -> None:
    """Every metric describes itself: sentence, source, limits, an example that it can score, documented parameters."""
    cls = type(metric)
    for what in ("name", "judges", "citation", "limits", "example"):
        assert getattr(cls, what, None), f"{metric.name}: the card lacks {what!r}"
    assert cls.description(), f"{metric.name}: the class has no docstring"
    assert set(cls.judges) <= {"question", "answer", "summary"}, f"{metric.name}: judges {cls.judges}"
    assert cls.range[0] < cls.range[1], f"{metric.name}: range {cls.range}"
    for parameter in cls.parameters():
        assert parameter.metadata.get("doc"), f"{metric.name}: parameter {parameter.name} is not documented"


def check_spec(metric: Metric) -> None:
    """A metric prints as a spec that parses back to an equal metric, short and in full."""
    assert parse_metric(str(metric)) == metric, f"{metric} does not parse back"
    full = metric.spec(full=True)
    assert "=," in full or "=]" in full or parse_metric(full) == metric, f"{full} does not parse back"


def check_pickle(metric: Metric) -> None:
    """A metric travels to other processes."""
    assert pickle.loads(pickle.dumps(metric)) == metric, f"{metric} does not survive pickling"


def check_range(metric: Metric, records: list[Record], models: ModelSet) -> None:
    """The example is scored, every score is finite and within the range of the card."""
    values = _values(metric, records, models)
    assert values["example"] is not None, f"{metric} cannot score its own example"
    for value in values.values():
        low, high = metric.range
        assert value is None or low - 1e-6 <= value <= high + 1e-6, f"{metric}: {value} is outside {metric.range}"


def check_order(metric: Metric, records: list[Record], models: ModelSet, tolerance: float = 1e-5) -> None:
    """The order of the file changes no score."""
    there, back = _values(metric, records, models), _values(metric, records[::-1], models)
    _same(there, back, tolerance, f"{metric} depends on the order of the records")


def check_duplication(metric: Metric, records: list[Record], models: ModelSet, tolerance: float = 1e-5) -> None:
    """A record that occurs twice, under two ids, gets the same score twice."""
    twins = [*records, *(replace(r, id=f"{r.id} again") for r in records)]
    values = _values(metric, twins, models)
    again = {name: values[f"{name} again"] for name in (r.id for r in records)}
    _same({r.id: values[r.id] for r in records}, again, tolerance, f"{metric} scores equal records differently")


def check_alone(metric: Metric, records: list[Record], models: ModelSet, tolerance: float = 1e-5) -> None:
    """No score depends on which other records share the batch (corpus metrics see the corpus, so they are excused)."""
    from elench.metrics.base import CorpusMetric

    if isinstance(metric, CorpusMetric):
        return
    alone: dict[str, Any] = {}
    for record in records:
        alone |= _values(metric, [record], models)
    _same(_values(metric, records, models), alone, tolerance, f"{metric} depends on the batch")


def check_strange(metric: Metric, records: list[Record], models: ModelSet) -> None:
    """Emoji, combining marks and other scripts give a number or a reason, not an error."""
    texts: dict[str, Any] = {name: STRANGE for name, _ in _texts(records[0])}
    strange = replace(records[0], id="strange", **texts)
    strange = replace(strange, references=(STRANGE,) * len(records[0].references))
    result = score([records[0], strange], metric, models=models, cache=False)
    reason = result.unscored[str(metric)].get("strange", "")
    assert not reason.startswith("error:"), f"{metric} breaks on unicode: {reason}"


def check_emptiness(metric: Metric, records: list[Record], models: ModelSet) -> None:
    """Empty, blank and absent texts are unscored with a reason: never NaN, never a silent 0, never an error."""
    first = records[0]
    judged = metric.judged(first) if metric.noted else "context"  # metrics of the context read no other text
    nothing: list[tuple[str, dict[str, Any]]] = [("empty", {judged: ""}), ("blank", {judged: " \n"})]
    empty = [replace(first, id=name, **texts) for name, texts in nothing]
    if "references" in metric.reads:
        empty.append(replace(first, id="no reference", references=()))
    result = score(empty, metric, models=models, cache=False)
    for outcome in result.outcomes:
        reason = outcome.unscored.get(str(metric))
        assert reason and not reason.startswith("error:"), f"{metric}: {outcome.id!r} gave {outcome.scores or reason}"
        assert not any(math.isnan(s.value) for s in outcome.scores.values())
