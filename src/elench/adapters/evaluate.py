"""Every elench metric as a Hugging Face `evaluate` module.

from elench.adapters.evaluate import load
load("rouge-l").compute(predictions=[…], references=[…])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from elench.adapters.columns import rows_from_lists
from elench.engine.scoring import score
from elench.errors import MissingExtra
from elench.metrics import metric as parse_metric

try:
    import datasets
    import evaluate
except ImportError:
    raise MissingExtra("The evaluate adapter", "adapters") from None

if TYPE_CHECKING:
    from elench.models.base import ModelSet


class ElenchModule(evaluate.Metric):
    """A module for one metric; `compute` gives the corpus score, the single scores, and what was unscored."""

    def __init__(
        self, spec: str, columns: tuple[str, ...] = (), models: ModelSet | None = None, **options: Any
    ) -> None:
        self.chosen = parse_metric(spec)
        self.columns = columns or tuple(n for n in self.chosen.reads if n != "references")
        self.models = models
        super().__init__(config_name=str(self.chosen), **options)

    def _info(self) -> evaluate.MetricInfo:
        text = datasets.Value("string")
        features: dict[str, Any] = {"predictions": text, **dict.fromkeys(self.columns, text)}
        one = datasets.Features(features | ({"references": text} if "references" in self.chosen.reads else {}))
        several = datasets.Features(
            features | ({"references": datasets.Sequence(text)} if "references" in self.chosen.reads else {})
        )
        return evaluate.MetricInfo(
            description=self.chosen.description(),
            citation=self.chosen.citation,
            inputs_description="predictions, references (one or several each), and the columns the metric reads",
            features=[several, one] if one != several else one,
        )

    def _compute(self, predictions: list[str], references: Any = None, **columns: Any) -> dict[str, Any]:
        rows = rows_from_lists(self.chosen, predictions, references, columns)
        result = score(rows, self.chosen, models=self.models)
        name = str(self.chosen)
        return {
            self.chosen.name: result.summary()[name]["corpus"],
            "scores": result.values(name),
            "unscored": result.unscored[name],
        }


def load(spec: str, columns: tuple[str, ...] = (), models: ModelSet | None = None, **options: Any) -> ElenchModule:
    """The module of a metric spec; `columns` names further inputs (context, question …) beyond those it needs."""
    return ElenchModule(spec, columns, models, **options)
