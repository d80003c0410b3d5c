"""Which roles of a metric `--models paper` does not fill with the paper's own checkpoint, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from elench.metrics.base import Metric

KEYPHRASES = "the authors' keyphrase model is on no hub; elench's own is used"
QSTS = {
    "parser": "the paper has Stanza",
    "vectors": "the paper has GloVe 840B",
    "classes": "the paper has T5-large trained on TREC",
}
UNLIKE: Mapping[str, Mapping[str, str]] = {
    "bleu1-kpqa": {"keyphrases": KEYPHRASES},
    "rouge-l-kpqa": {"keyphrases": KEYPHRASES},
    "bertscore-kpqa": {
        "keyphrases": KEYPHRASES,
        "encoder": "the paper has bert-large-uncased-whole-word-masking-finetuned-squad",
    },
    **dict.fromkeys(("qsts", "qsts-class", "qsts-names", "qsts-edges"), QSTS),
    "questeval": {"encoder": "QuestEval 0.2.4 has bert-base-multilingual-cased"},
}
"""Metric → role → what the paper had."""


def unlike_paper(metrics: Iterable[Metric], named: Iterable[str]) -> str | None:
    """One line on the roles that are not the paper's; None if all are, or were named by the user."""
    chosen = set(named)
    notes = [
        f"{metric} {role}: {why} (--model {role}=NAME)"
        for metric in metrics
        for role, why in UNLIKE.get(metric.name, {}).items()
        if role in metric.roles and role not in chosen
    ]
    return f"not the paper's models: {'; '.join(notes)}" if notes else None
