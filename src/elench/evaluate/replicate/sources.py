"""Where the numbers of a replication come from: given score files first, else the metrics themselves."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from elench.errors import ElenchError, UsageError
from elench.records.record import Record, read_records
from elench.runs import Run

if TYPE_CHECKING:
    from elench.metrics.base import Metric, Score
    from elench.models.base import ModelSet

Array = NDArray[np.float64]
Specs = str | Sequence[str]
Entry = Mapping[str, Any]
"""A table of a paper as its TOML file describes it."""


@dataclass(frozen=True)
class MetricScores:
    """One metric's scores of some records (NaN where unscored), or the reason why there are none."""

    spec: str
    values: Array | None
    signature: str
    reason: str | None = None


@dataclass(frozen=True)
class Explained:
    """One metric's evidence for some records (None where unscored), or the reason why there is none."""

    spec: str
    evidence: list[Mapping[str, Any] | None] | None
    reason: str = ""


@dataclass
class Materials:
    """The data folder, the score files at hand, and the models that may be asked."""

    folder: Path | None
    models: ModelSet | None = None
    score_files: Sequence[Path] = ()
    lexical: bool = False
    """Only metrics that need no model (score files may still hold others)."""
    limit: int | None = None
    """At most this many records of a file, drawn with the seed."""
    groups: int | None = None
    """Only the records of so many groups (the summaries of so many sources), drawn with the seed."""
    seed: int = 0
    tell: Callable[[str], None] = lambda line: None
    """Called with what is being scored."""
    signatures: dict[str, str] = field(default_factory=dict)
    _records: dict[str, list[Record]] = field(default_factory=dict)
    _places: dict[str, NDArray[np.int64]] = field(default_factory=dict)
    _columns: dict[tuple[int, ...] | str, MetricScores] = field(default_factory=dict)

    def records(self, name: str) -> list[Record]:
        """The records of a data file, or a sample of them."""
        if name not in self._records:
            records = self.all_records(name)
            self._places[name] = self._sample(records)
            self._records[name] = [records[k] for k in self._places[name]]
        return self._records[name]

    def places(self, name: str) -> NDArray[np.int64]:
        """Where the records of a data file stand in it."""
        self.records(name)
        return self._places[name]

    def _sample(self, records: Sequence[Record]) -> NDArray[np.int64]:
        kept, rng = np.arange(len(records)), np.random.default_rng(self.seed)
        if self.groups is not None:
            names = [r.group or r.context for r in records]
            different = list(dict.fromkeys(names))
            chosen = {different[k] for k in rng.permutation(len(different))[: self.groups]}
            kept = np.array([k for k in kept if names[k] in chosen])
        if self.limit is not None and len(kept) > self.limit:
            kept = kept[np.sort(rng.choice(len(kept), self.limit, replace=False))]
        return kept

    def all_records(self, name: str) -> list[Record]:
        """The records of a data file, found in the folder, its `judgements` or its `corpora`."""
        if self.folder is None:
            raise UsageError(f"no data: give --data DIR (or set ELENCH_DATA) with {name}")
        places = [self.folder / part / name for part in ("", "judgements", "corpora")]
        found = [path for path in places if path.is_file()]
        if not found:
            raise UsageError(f"no data: {name} is not in {self.folder}")
        return list(read_records(found[0]))

    def column(
        self, data: str, specs: Specs, reference: int | None = None, models: Mapping[str, str] | None = None
    ) -> MetricScores:
        """A metric's scores of a data file; with `reference`, against only that one of the references; with `models`,
        by these in their roles instead of the run's."""
        spec, reason = _first_known(specs)
        if reason:
            return MetricScores(spec, None, "", reason)
        key = f"{data} {spec} {reference} {models}"
        if key not in self._columns:
            given = None if models else self._from_files(data, spec, reference)
            self._columns[key] = given or self._score(data, spec, reference, models)
        column = self._columns[key]
        if column.values is not None:
            self.signatures[f"{spec} {models}" if models else spec] = column.signature
        return column

    def _from_files(self, data: str, spec: str, reference: int | None) -> MetricScores | None:
        given, signature = self._given(spec)
        if not given or reference is not None:
            return None
        found = [given.get((record.id, record.system)) for record in self.records(data)]
        values = np.array([np.nan if score is None else score.value for score in found], dtype=np.float64)
        if not np.isfinite(values).any():
            return None
        return MetricScores(spec, values, signature or f"{spec} | from a score file, unsigned")

    @cached_property
    def _runs(self) -> list[Run]:
        return [Run.read(path) for path in self.score_files]

    def _given(self, spec: str) -> tuple[dict[tuple[str, str | None], Score], str | None]:
        """(id, system) → score of a metric in the score files and its signature; files may spell the spec otherwise."""
        scores: dict[tuple[str, str | None], Score] = {}
        signature = None
        for run in self._runs:
            for name in run.specs:
                if _first_known(name)[0] == spec:
                    scores.update({(o.id, o.system): o.scores[name] for o in run.scored if name in o.scores})
                    signature = signature or run.signatures.get(name)
        return scores, signature

    def _score(self, data: str, spec: str, reference: int | None, models: Mapping[str, str] | None) -> MetricScores:
        import elench

        metric = elench.metric(spec)
        if self.lexical and metric.roles:
            roles = ", ".join(metric.roles)
            return MetricScores(spec, None, "", f"not computed: asks models ({roles}), left out by --lexical")
        records = self.records(data)
        if reference is not None:
            records = [replace(r, references=r.references[reference : reference + 1]) for r in records]
        more = f", reference {reference}" if reference else f", {', '.join(models.values())}" if models else ""
        self.tell(f"{spec} on {data} ({len(records)} records){more}")
        return self._values(metric, records, models)

    def inline(self, specs: Specs, records: Sequence[Record], models: Mapping[str, str] | None = None) -> MetricScores:
        """A metric's scores of records made here, such as examples that the paper prints."""
        import elench

        spec, reason = _first_known(specs)
        if reason is None and self.lexical and elench.metric(spec).roles:
            reason = "not computed: asks models, left out by --lexical"
        if reason:
            return MetricScores(spec, None, "", reason)
        column = self._values(elench.metric(spec), records, models)
        if column.values is not None:
            self.signatures[f"{spec} {models}" if models else spec] = column.signature
        return column

    def evidence(self, data: str, specs: Specs) -> Explained:
        """A metric's evidence for a data file: from a score file written with --explain, else computed."""
        import elench

        spec, reason = _first_known(specs)
        records = self.records(data)
        given = {key: score.evidence for key, score in self._given(spec)[0].items() if score.evidence}
        if given:
            return Explained(spec, [given.get((r.id, r.system)) for r in records])
        if reason or self.lexical:
            return Explained(spec, None, reason or "not computed: asks models, left out by --lexical")
        self.tell(f"{spec} on {data} ({len(records)} records)")
        try:
            result = elench.score(records, [spec], models=self.models)
        except ElenchError as error:
            return Explained(spec, None, f"not computed: {error}")
        self.signatures[spec] = result.signatures[spec]
        return Explained(spec, [o.scores[spec].evidence if spec in o.scores else None for o in result.outcomes])

    def question_classes(self, data: str) -> list[str]:
        """The coarse class of each record's question (ABBR, DESC, ENTY, HUM, LOC, NUM), by the question classifier."""
        from elench.engine.session import Session
        from elench.requests import ClassifyQuestion, result_of

        if self.lexical:
            raise UsageError("asks models (the question classifier), left out by --lexical")

        async def coarse(question: str) -> str:
            fine = (await ClassifyQuestion(question)).fine
            return max(fine, key=fine.__getitem__).split(":")[0]

        session = Session(self.models) if self.models else Session()
        questions = [r.question or "" for r in self.records(data)]
        return [result_of(found[0]) for _, found in session.map(questions, lambda q: [coarse(q)])]

    def played_by(self, names: Mapping[str, str] | None) -> ModelSet | None:
        """The models of the run, with others in some roles."""
        from elench.engine.session import Session

        if not names:
            return self.models
        own = self.models or Session().models
        return replace(own, names={**own.names, **names}, loaded={}, resolved={})

    def _values(
        self, metric: Metric, records: Sequence[Record], models: Mapping[str, str] | None = None
    ) -> MetricScores:
        import elench

        spec = str(metric)
        try:
            result = elench.score(list(records), [metric], models=self.played_by(models))
            values = np.array([np.nan if v is None else v for v in result.values(spec)], dtype=np.float64)
            signature = result.signatures[spec]
        except ElenchError as error:
            return MetricScores(spec, None, "", f"not computed: {error}")
        if not np.isfinite(values).any():
            reasons = sorted(set(result.unscored[spec].values()))
            return MetricScores(spec, None, "", f"no record could be scored: {'; '.join(reasons[:2])}")
        return MetricScores(spec, values, signature)


def data_folder(given: Path | None) -> Path | None:
    """The folder named on the command line, else the one in ELENCH_DATA."""
    folder = given or (Path(os.environ["ELENCH_DATA"]) if os.environ.get("ELENCH_DATA") else None)
    if folder is not None and not folder.is_dir():
        raise UsageError(f"{folder}: no such folder")
    return folder


def _first_known(specs: Specs) -> tuple[str, str | None]:
    """The canonical form of the first spec that is known here, or the reason why none is."""
    from elench.metrics import metric

    wanted = [specs] if isinstance(specs, str) else list(specs)
    reason = ""
    for spec in wanted:
        try:
            return metric(spec).spec(), None
        except UsageError as error:
            reason = reason or str(error)
    return wanted[0], f"not computed: {reason}"
