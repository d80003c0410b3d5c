"""Scores as tests: the `elench_metric` and `assert_score` fixtures, and a test per record of a file.

    @pytest.mark.elench_records("answers.jsonl")
    def test_answers_are_supported(record, assert_score):
        assert_score(record, "support", at_least=0.5)

Models are loaded once per session. Without a test that uses it, the plugin imports nothing of elench.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from elench.engine.session import Session
    from elench.metrics.base import Score


def pytest_configure(config: pytest.Config) -> None:
    description = "elench_records(path): run the test once per record of a file; the test takes the argument `record`"
    config.addinivalue_line("markers", description)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test per record; the path is seen from the test file's folder, then from where pytest was started."""
    marker = metafunc.definition.get_closest_marker("elench_records")
    if marker is None:
        return
    if "record" not in metafunc.fixturenames:
        raise pytest.UsageError(f"{metafunc.definition.nodeid}: a test with elench_records takes the argument 'record'")
    from elench.errors import ElenchError
    from elench.records.record import read_records

    beside = metafunc.definition.path.parent / marker.args[0]
    try:
        records = list(read_records(beside if beside.exists() else Path(marker.args[0])))
    except ElenchError as wrong:
        raise pytest.UsageError(f"{metafunc.definition.nodeid}: {wrong}") from None
    names = [f"{record.id}-{record.system}" if record.system else record.id for record in records]
    metafunc.parametrize("record", records, ids=names)


@pytest.fixture(scope="session")
def elench_session() -> Session:
    """The models that all tests share."""
    from elench.engine.session import Session

    return Session()


@pytest.fixture(scope="session")
def elench_metric(elench_session: Session) -> Callable[[str], Callable[..., Score]]:
    """`elench_metric("f1")(answer="…", references=["…"])`: the score of one case, with `.value` and `.evidence`."""
    from elench.errors import ElenchError
    from elench.metrics import metric

    def chosen(spec: str) -> Callable[..., Score]:
        try:
            parsed = metric(spec)
        except ElenchError as wrong:
            raise pytest.fail.Exception(str(wrong), pytrace=False) from None

        def score(record: Any = None, **fields: Any) -> Score:
            try:
                case = _record(record, fields, parsed.judges)
                (outcome,) = elench_session.score([case], [parsed])
            except ElenchError as wrong:
                raise pytest.fail.Exception(f"{parsed}: {wrong}", pytrace=False) from None
            if str(parsed) not in outcome.scores:
                pytest.fail(f"{parsed} cannot score this: {outcome.reason(str(parsed))}", pytrace=False)
            return outcome.scores[str(parsed)]

        return score

    return chosen


@pytest.fixture(scope="session")
def assert_score(elench_metric: Callable[[str], Callable[..., Score]]) -> Callable[..., float]:
    """`assert_score(record, "support", at_least=0.5)`; a failure shows the evidence."""

    def check(
        record: Any, spec: str, *, at_least: float | None = None, at_most: float | None = None, **fields: Any
    ) -> float:
        __tracebackhide__ = True
        if at_least is None and at_most is None:
            raise pytest.UsageError("assert_score: give at_least=…, at_most=… or both")
        score = elench_metric(spec)(record, **fields)
        low = at_least is not None and score.value < at_least
        if low or (at_most is not None and score.value > at_most):
            from elench.show.evidence import evidence_text

            wanted = f"at least {at_least:g}" if low else f"at most {at_most:g}"
            shown = evidence_text(score.evidence)
            pytest.fail(f"{spec} is {score.value:.4f}, expected {wanted}\n{shown}", pytrace=False)
        return score.value

    return check


def _record(given: Any, fields: Mapping[str, Any], judges: tuple[str, ...]) -> Any:
    """A record from a Record, a dict or keywords; where nothing says what is judged, what the metric judges."""
    from elench.records.record import Record

    if isinstance(given, Record):
        return given
    values = {**(given or {}), **fields}
    if "judge" not in values and sum(name in values for name in judges) == 1:
        values["judge"] = next(name for name in judges if name in values)
    return Record.from_object(values, default_id="case")
