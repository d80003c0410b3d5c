"""Every elench metric as a torchmetrics `Metric`: update, compute, reset, states that merge over processes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from elench.adapters.columns import rows_from_lists
from elench.engine.scoring import score
from elench.errors import MissingExtra
from elench.metrics import metric as parse_metric
from elench.metrics.base import CorpusMetric

try:
    import torch
    from torchmetrics import Metric
except ImportError:
    raise MissingExtra("The torchmetrics adapter", "models,adapters") from None

if TYPE_CHECKING:
    from elench.models.base import ModelSet


class ElenchMetric(Metric):
    """`ElenchMetric("rouge-l").update(predictions, references=…)`; `compute()` is the corpus score.

    The states are sums (total, count, sufficient statistics), so that they merge over processes. Metrics that need a
    first pass over the file keep the records instead (as bytes, which gather over processes) and score in `compute()`.
    """

    full_state_update = False

    def __init__(self, spec: str, *, models: ModelSet | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.metric = parse_metric(spec)
        self.models = models
        self.total: Any
        self.counted: Any
        self.counts: Any
        self.add_state("total", torch.zeros((), dtype=torch.float64), dist_reduce_fx="sum")
        self.add_state("counted", torch.zeros((), dtype=torch.int64), dist_reduce_fx="sum")
        self.add_state("unscored", torch.zeros((), dtype=torch.int64), dist_reduce_fx="sum")
        size = self._statistics()
        self.add_state("counts", torch.zeros(size, dtype=torch.float64), dist_reduce_fx="sum")
        self.kept: Any
        self.add_state("kept", [], dist_reduce_fx="cat")

    def _statistics(self) -> int:
        """How many sufficient statistics the metric has: as many as its own example gives."""
        if self.metric.roles or isinstance(self.metric, CorpusMetric):
            return 0
        example = {**self.metric.example, "id": "example"}
        # has a judge: checked before
        as_shown = replace(self.metric, judge="") if hasattr(self.metric, "judge") else self.metric  # type: ignore[call-arg]
        found = score([example], as_shown).outcomes[0].scores.get(str(as_shown))
        return len(found.counts) if found else 0

    def update(self, predictions: Sequence[str], references: Sequence[Any] | None = None, **columns: Any) -> None:
        """Add texts: `predictions` are judged; columns are context, question, answer, summary as parallel lists."""
        rows = rows_from_lists(self.metric, list(predictions), references, columns)
        if not rows:
            return
        if isinstance(self.metric, CorpusMetric):
            lines = "".join(json.dumps(row) + "\n" for row in rows)
            self.kept.append(torch.tensor(list(lines.encode()), dtype=torch.uint8))
            return
        for outcome in score(rows, self.metric, models=self.models).outcomes:
            found = outcome.scores.get(str(self.metric))
            if found is None:
                self.unscored += 1
                continue
            self.total += found.value
            self.counted += 1
            if found.counts and self.counts.numel():
                self.counts += torch.tensor(found.counts, dtype=torch.float64, device=self.counts.device)

    def compute(self) -> torch.Tensor:
        """The corpus score over everything seen; NaN with a warning is torchmetrics' way, an error is ours."""
        if isinstance(self.metric, CorpusMetric):
            parts = self.kept if isinstance(self.kept, list) else [self.kept]
            lines = b"".join(bytes(part.tolist()) for part in parts).decode().splitlines()
            rows = [{**json.loads(line), "id": str(i)} for i, line in enumerate(lines)]
            if not rows:
                raise ValueError(f"{self.metric}: nothing was given to score")
            summary = score(rows, self.metric, models=self.models).summary()[str(self.metric)]
            return torch.tensor(summary["corpus"], dtype=torch.float64)
        if not int(self.counted):
            raise ValueError(f"{self.metric}: nothing was scored ({int(self.unscored)} texts unscored)")
        corpus = self.metric.corpus_score(self.counts.tolist()) if self.counts.numel() else None
        return self.total / self.counted if corpus is None else torch.tensor(corpus, dtype=torch.float64)
