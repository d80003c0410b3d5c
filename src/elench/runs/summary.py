"""What became of each row of the input, and of all of them: running sums, which survive an interruption."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from elench.errors import UsageError
from elench.grid import Grid
from elench.metrics import metric as parse_metric
from elench.metrics.base import Metric, Score
from elench.records.record import Record, Reject
from elench.runs.clusters import Clusters


@dataclass(frozen=True, slots=True)
class Outcome:
    """Scores of one record, with the reason where there is none; or, for a row that is not a record, the reject."""

    id: str
    system: str | None
    scores: Mapping[str, Score] = field(default_factory=dict)
    unscored: Mapping[str, str] = field(default_factory=dict)
    record: Record | None = None
    """The record that was scored; None where a run was read from disk without its input."""
    reject: Reject | None = None
    """Why the row is not a record; such an outcome has no scores."""

    @classmethod
    def rejected(cls, reject: Reject) -> Outcome:
        """The outcome of a row that is not a valid record."""
        given = reject.raw.get("id") if isinstance(reject.raw, dict) else None
        return cls(str(given) if isinstance(given, (str, int)) else f"line {reject.line}", None, reject=reject)

    def value(self, spec: str) -> float | None:
        """The number a metric gave, or None."""
        score = self.scores.get(spec)
        return None if score is None else score.value

    def reason(self, spec: str) -> str | None:
        """Why there is no number; None when there is one."""
        return self.reject.reason if self.reject else self.unscored.get(spec)

    def to_object(self, specs: Sequence[str], explain: bool = False) -> dict[str, Any]:
        """The output line: id, system, scores, unscored; counts of metrics that have them; evidence on request."""
        line: dict[str, Any] = {
            "id": self.id,
            "system": self.system,
            "scores": {spec: self.value(spec) for spec in specs},
            "unscored": dict(self.unscored),
        }
        counts = {spec: list(score.counts) for spec, score in self.scores.items() if score.counts}
        if counts:
            line["counts"] = counts
        if explain:
            line["evidence"] = {spec: dict(score.evidence) for spec, score in self.scores.items()}
        return line

    @classmethod
    def from_object(cls, line: Mapping[str, Any]) -> Outcome:
        """The outcome that a checked output line describes (see `runs.run`)."""
        counts, evidence = line.get("counts") or {}, line.get("evidence") or {}
        scores = {
            spec: Score(float(value), evidence.get(spec) or {}, tuple(counts.get(spec) or ()))
            for spec, value in line["scores"].items()
            if value is not None
        }
        return cls(str(line["id"]), line.get("system"), scores, dict(line.get("unscored") or {}))


@dataclass
class Sums:
    """What is kept of the scores of one metric."""

    n: int = 0
    unscored: int = 0
    mean: float = 0.0
    spread: float = 0.0
    """Sum of squared deviations from the mean, updated score by score (Welford): keeps its digits at large offsets."""
    counts: list[float] = field(default_factory=list)
    """Summed sufficient statistics; empty for a metric that has none."""

    def add(self, value: float, counts: Sequence[float]) -> None:
        self.n += 1
        away = value - self.mean
        self.mean += away / self.n
        self.spread += away * (value - self.mean)
        if counts:
            self.counts = [a + b for a, b in zip(self.counts or [0.0] * len(counts), counts, strict=True)]

    def corpus_score(self, metric: Metric | None) -> float | None:
        """The corpus score: from the summed counts where the metric defines one, else the mean; None without scores."""
        if not self.n:
            return None
        corpus = metric.corpus_score(self.counts) if metric and self.counts else None
        return self.mean if corpus is None else corpus


def known(spec: str) -> Metric | None:
    """The metric of a spec; None for a column of another tool."""
    try:
        return parse_metric(spec)
    except UsageError:
        return None


def summary_grid(title: str, summary: Mapping[str, Any]) -> Grid:
    """The table of a run's means, from what `Summary.to_object` gives."""
    rows = []
    for spec, found in summary.items():
        interval = "–" if found["ci95"] is None else f"{found['ci95'][0]:.4f} … {found['ci95'][1]:.4f}"
        mean, corpus = ("–" if found[k] is None else f"{found[k]:.4f}" for k in ("mean", "corpus"))
        rows.append((spec, mean, interval, corpus, str(found["n"]), str(found["unscored"] or "")))
    return Grid(title, ("metric", "mean", "95 % interval", "corpus", "n", "unscored"), tuple(rows))


class Summary:
    """The running sums of every metric, overall and per system."""

    def __init__(
        self,
        metrics: Sequence[Metric | str],
        state: dict[str, Any] | None = None,
        changes: Sequence[dict[str, Any]] = (),
    ) -> None:
        self.metrics = {str(m): known(m) if isinstance(m, str) else m for m in metrics}
        specs = list(self.metrics)
        self.whole: dict[str, Sums] = {spec: Sums() for spec in specs}
        self.by_system: dict[str, dict[str, Sums]] = {spec: {} for spec in specs}
        self.reasons: dict[str, dict[str, int]] = {spec: {} for spec in specs}
        """How often each reason left a record unscored; the first hundred different ones."""
        self.records = self.rejected = 0
        self.first_reject: dict[str, Any] | None = None
        """Line and reason of the first row that is not a record."""
        if state:
            self.records, self.rejected, self.reasons = state["records"], state["rejected"], state["reasons"]
            self.first_reject = state["first_reject"]
            self.whole = {spec: Sums(**sums) for spec, sums in state["whole"].items()}
            for spec, systems in state["systems"].items():
                self.by_system[spec] = {system: Sums(**sums) for system, sums in systems.items()}
        self.clusters = Clusters()
        for one in changes:
            self.clusters.restore(one)

    def add(self, outcome: Outcome) -> None:
        if outcome.reject:
            self.rejected += 1
            self.first_reject = self.first_reject or {"line": outcome.reject.line, "reason": outcome.reject.reason}
            return
        self.records += 1
        place = self.clusters.at(outcome.record.group if outcome.record else None, outcome.id)
        for spec, whole in self.whole.items():
            places = [whole]
            if outcome.system is not None:
                places.append(self.by_system[spec].setdefault(outcome.system, Sums()))
            score = outcome.scores.get(spec)
            if score is not None:
                self.clusters.add(spec, outcome.system, place, score.value)
            for sums in places:
                if score is None:
                    sums.unscored += 1
                else:
                    sums.add(score.value, score.counts)
            if score is None:
                reasons, why = self.reasons[spec], outcome.unscored.get(spec, "")
                if why in reasons or len(reasons) < 100:
                    reasons[why] = reasons.get(why, 0) + 1

    def state(self) -> dict[str, Any]:
        """Everything but the clusters, as JSON: what the journal keeps."""
        return {
            "records": self.records,
            "rejected": self.rejected,
            "first_reject": self.first_reject,
            "reasons": self.reasons,
            "whole": {spec: asdict(sums) for spec, sums in self.whole.items()},
            "systems": {spec: {k: asdict(s) for k, s in kept.items()} for spec, kept in self.by_system.items()},
        }

    def to_object(self) -> dict[str, Any]:
        """Per metric: n, unscored and why, mean with interval, corpus score, and the same per system."""
        return {
            spec: {
                **self._mean(spec, None, whole),
                "reasons": self.reasons[spec],
                "systems": {system: self._mean(spec, system, sums) for system, sums in self.by_system[spec].items()},
            }
            for spec, whole in self.whole.items()
        }

    def _mean(self, spec: str, system: str | None, sums: Sums) -> dict[str, Any]:
        """n, mean with its interval inside the metric's range and how that was made, and the corpus score."""
        metric = self.metrics[spec]
        found: dict[str, Any] = {"n": sums.n, "unscored": sums.unscored, "mean": None, "ci95": None}
        if sums.n:
            limits = (-math.inf, math.inf) if metric is None else metric.range
            interval = self.clusters.interval(spec, system, sums.mean, sums.spread, limits)
            found |= {"mean": sums.mean, "ci95": interval.limits, "interval": interval.text}
            found |= {"clusters": interval.clusters, "effective_n": interval.effective}
        return {**found, "corpus": sums.corpus_score(metric)}
