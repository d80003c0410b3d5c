"""Metrics as rewards for training generators.

from trl import GRPOTrainer
from elench.adapters.rewards import reward
trainer = GRPOTrainer(reward_funcs=[reward("qrelscore")], …)   # the data set has a column `context`
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from elench.engine.scoring import score
from elench.errors import UsageError
from elench.metrics import metric as parse_metric
from elench.metrics.base import Metric
from elench.records.judging import choices_of
from elench.records.record import JUDGES
from elench.text.answers import holds

if TYPE_CHECKING:
    from elench.models.base import ModelSet

FIELDS = ("context", "question", "answer", "summary", "references")
WORDS = (6, 30)
"""How many words a usable question has (QRelScore §3.3)."""


def reward(
    metric: str | Metric,
    *,
    judge: str | None = None,
    missing: float | Literal["worst"] | None = "worst",
    models: ModelSet | None = None,
) -> Callable[..., list[float | None]]:
    """A reward function as TRL's trainers take it: (prompts, completions, **columns) → one number per completion.

    What the generator wrote becomes the judged text; the data set's columns `context`, `answer`, `references` … fill
    the rest. A completion that cannot be scored gets `missing`; by default the worst score the metric can give, or,
    where there is no worst (a log-probability), one below the worst of the batch: empty output never earns a reward.
    """
    chosen = parse_metric(metric)
    able = choices_of(chosen)
    judged = judge or (able[0] if len(able) == 1 else "")
    if judged not in (chosen.judges or JUDGES):
        raise UsageError(f"{chosen} can judge {', '.join(chosen.judges)}: name what the generator writes with judge=…")

    def function(
        prompts: Sequence[Any] | None = None, completions: Sequence[Any] = (), **columns: Any
    ) -> list[float | None]:
        if not completions:
            return []
        rows = _rows(chosen, judged, completions, {name: columns[name] for name in FIELDS if name in columns})
        return _rewards(chosen, score(rows, chosen, models=models).values(str(chosen)), missing)

    function.__name__ = re.sub(r"\W+", "_", f"elench_{chosen}").strip("_")
    return function


def _rows(
    metric: Metric, judged: str, completions: Sequence[Any], columns: Mapping[str, Sequence[Any]]
) -> list[dict[str, Any]]:
    """Completions and columns of the data set as records; an empty cell is a field that the record does not have."""
    if lacking := [name for name in metric.reads if name != judged and name not in columns]:
        raise UsageError(f"{metric} reads {' and '.join(lacking)}: the data set has no such column")
    for name, column in columns.items():
        if len(column) != len(completions):
            raise UsageError(f"column {name!r} has {len(column)} rows for {len(completions)} completions")
    rows = []
    for i, completion in enumerate(completions):
        fields = {name: column[i] for name, column in columns.items() if column[i] is not None}
        rows.append({"id": str(i), "judge": judged, **fields, judged: completion_text(completion)})
    return rows


def _rewards(
    metric: Metric, values: Sequence[float | None], missing: float | Literal["worst"] | None
) -> list[float | None]:
    """Scores as rewards: more is better, and `missing` for what has no score."""
    sign = 1.0 if metric.higher_is_better else -1.0
    known = [sign * value for value in values if value is not None]
    if missing == "worst":
        bound = sign * metric.range[0 if metric.higher_is_better else 1]
        missing = bound if math.isfinite(bound) else min(known, default=0.0) - 1.0
    return [missing if value is None else sign * value for value in values]


def completion_text(completion: Any) -> str:
    """What was written: a string, or the content of the last message of a conversation."""
    if isinstance(completion, str):
        return completion.strip()
    if isinstance(completion, Sequence) and completion and isinstance(completion[-1], dict):
        content = completion[-1].get("content") or ""
        if isinstance(content, list):  # parts of a message: the text ones count
            content = "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
        return str(content).strip()
    raise UsageError(f"a completion is a string or a list of messages, not {type(completion).__name__}")


def usable_question(question: str, answer: str) -> str | None:
    """Why a generated question is not worth keeping (QRelScore §3.3: 6–30 words, answer not in it); None when it is."""
    count = len(question.split())
    if not WORDS[0] <= count <= WORDS[1]:
        return f"{count} words"
    if holds(question, answer):
        return "the answer occurs in the question"
    return None
