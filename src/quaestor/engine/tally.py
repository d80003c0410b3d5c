"""Running means, intervals and corpus scores of a run: small sums that survive an interruption."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from quaestor.engine.windows import Outcome
from quaestor.metrics.base import Metric


@dataclass
class Sums:
    """What is kept of the scores of one metric."""

    n: int = 0
    unscored: int = 0
    total: float = 0.0
    squares: float = 0.0
    counts: list[float] = field(default_factory=list)

    def add(self, value: float, counts: tuple[float, ...]) -> None:
        self.n += 1
        self.total += value
        self.squares += value * value
        if counts:
            self.counts = [a + b for a, b in zip(self.counts or [0.0] * len(counts), counts, strict=True)]

    def summary(self) -> dict[str, Any]:
        """Mean with a 95 % t interval, and n."""
        if not self.n:
            return {"n": 0, "unscored": self.unscored, "mean": None, "ci95": None}
        mean = self.total / self.n
        interval = None
        if self.n > 1:
            from scipy.stats import t

            variance = max(self.squares - self.n * mean * mean, 0.0) / (self.n - 1)
            half = float(t.ppf(0.975, self.n - 1)) * math.sqrt(variance / self.n)
            interval = [mean - half, mean + half]
        return {"n": self.n, "unscored": self.unscored, "mean": mean, "ci95": interval}


class Tally:
    """The running sums of every metric, overall and per system."""

    def __init__(self, metrics: list[Metric], state: dict[str, dict[str, Any]] | None = None) -> None:
        self.metrics = {str(m): m for m in metrics}
        self.sums: dict[str, dict[str, Sums]] = {spec: {} for spec in self.metrics}
        for spec, systems in (state or {}).items():
            self.sums[spec] = {system: Sums(**sums) for system, sums in systems.items()}

    def add(self, outcome: Outcome) -> None:
        keys = ("", f"system {outcome.system}") if outcome.system is not None else ("",)
        for spec, systems in self.sums.items():
            for key in keys:
                sums = systems.get(key) or systems.setdefault(key, Sums())
                if spec in outcome.scores:
                    sums.add(outcome.scores[spec].value, outcome.scores[spec].counts)
                else:
                    sums.unscored += 1

    def state(self) -> dict[str, dict[str, Any]]:
        """Everything, as JSON: what the journal keeps."""
        return {spec: {key: asdict(sums) for key, sums in systems.items()} for spec, systems in self.sums.items()}

    def summary(self) -> dict[str, Any]:
        """Per metric: n, unscored, mean with interval, corpus score, and the same per system."""
        found: dict[str, Any] = {}
        for spec, systems in self.sums.items():
            whole = systems.get("") or Sums()
            found[spec] = {
                **whole.summary(),
                "interval": "95 % t interval of the mean over records",
                "corpus": self._corpus(spec, whole),
                "systems": {
                    key.removeprefix("system "): {**sums.summary(), "corpus": self._corpus(spec, sums)}
                    for key, sums in systems.items()
                    if key
                },
            }
        return found

    def _corpus(self, spec: str, sums: Sums) -> float | None:
        if not sums.n:
            return None
        corpus = self.metrics[spec].corpus_score(sums.counts) if sums.counts else None
        return sums.total / sums.n if corpus is None else corpus
