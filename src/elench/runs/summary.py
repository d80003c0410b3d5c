"""What became of each row of the input, and of all of them: running sums, which survive an interruption."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from elench.errors import UsageError
from elench.metrics import metric as parse_metric
from elench.metrics.base import Metric, Score
from elench.records.record import Record, Reject
from elench.stats.plan import FEWEST_UNITS


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

    def mean_and_interval(self, limits: tuple[float, float] = (-math.inf, math.inf)) -> dict[str, Any]:
        """Mean with a 95 % t interval inside the metric's range (none below five scores), and n."""
        if not self.n:
            return {"n": 0, "unscored": self.unscored, "mean": None, "ci95": None}
        interval = None
        if self.n >= FEWEST_UNITS:
            from scipy.stats import t

            half = float(t.ppf(0.975, self.n - 1)) * math.sqrt(self.spread / (self.n - 1) / self.n)
            interval = [max(limits[0], self.mean - half), min(limits[1], self.mean + half)]
        return {"n": self.n, "unscored": self.unscored, "mean": self.mean, "ci95": interval}

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


def _range(metric: Metric | None) -> tuple[float, float]:
    return (-math.inf, math.inf) if metric is None else metric.range


class Summary:
    """The running sums of every metric, overall and per system."""

    def __init__(self, metrics: Sequence[Metric | str], state: dict[str, Any] | None = None) -> None:
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

    def add(self, outcome: Outcome) -> None:
        if outcome.reject:
            self.rejected += 1
            self.first_reject = self.first_reject or {"line": outcome.reject.line, "reason": outcome.reject.reason}
            return
        self.records += 1
        for spec, whole in self.whole.items():
            places = [whole]
            if outcome.system is not None:
                places.append(self.by_system[spec].setdefault(outcome.system, Sums()))
            score = outcome.scores.get(spec)
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
        """Everything, as JSON: what the journal keeps."""
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
                **whole.mean_and_interval(_range(self.metrics[spec])),
                "interval": "95 % t interval of the mean, records taken as independent (elench compare draws groups)",
                "corpus": whole.corpus_score(self.metrics[spec]),
                "reasons": self.reasons[spec],
                "systems": {
                    system: {
                        **sums.mean_and_interval(_range(self.metrics[spec])),
                        "corpus": sums.corpus_score(self.metrics[spec]),
                    }
                    for system, sums in self.by_system[spec].items()
                },
            }
            for spec, whole in self.whole.items()
        }
