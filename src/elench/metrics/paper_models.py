"""Which checkpoints `--models paper` takes for a metric, which roles it cannot fill as the paper did, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from elench.metrics.base import Metric

OWN: Mapping[str, Mapping[str, str]] = {
    "bertscore-kpqa": {"encoder": "google-bert/bert-large-uncased-whole-word-masking-finetuned-squad"},
    "questeval": {"encoder": "google-bert/bert-base-multilingual-cased"},
}
"""Metric → role → its paper's checkpoint (QuestEval's program: form=code), where it is not the catalog's."""
KEYPHRASES = "the authors' keyphrase model is on no hub; elench's own is used"
QSTS = {
    "parser": "the paper has Stanza",
    "vectors": "the paper has GloVe 840B",
    "classes": "the paper has T5-large trained on TREC",
}
UNLIKE: Mapping[str, Mapping[str, str]] = {
    **{name: {"keyphrases": KEYPHRASES} for name in ("bleu1-kpqa", "rouge-l-kpqa", "bertscore-kpqa")},
    **dict.fromkeys(("qsts", "qsts-class", "qsts-names", "qsts-edges"), QSTS),
}
"""Metric → role → what the paper had."""


def paper_checkpoints(metrics: Sequence[Metric], named: Iterable[str]) -> dict[str, str]:
    """Role → checkpoint, where all metrics of a run want the same one and it is not the catalog's."""
    found: dict[str, set[str | None]] = {}
    for metric in metrics:
        for role in set(metric.roles) - set(named):
            found.setdefault(role, set()).add(OWN.get(metric.name, {}).get(role))
    return {role: name for role, (name, *more) in found.items() if name and not more}


def unlike_paper(metrics: Iterable[Metric], named: Iterable[str]) -> str | None:
    """One line on the roles that are not the paper's; None if all are, or were named by the user."""
    chosen = set(named)
    notes: dict[tuple[str, str], list[str]] = {}
    for metric in metrics:
        own = {role: f"the paper has {name}" for role, name in OWN.get(metric.name, {}).items()}
        for role, why in {**UNLIKE.get(metric.name, {}), **own}.items():
            if role in metric.roles and role not in chosen:
                notes.setdefault((role, why), []).append(str(metric))
    said = [f"{', '.join(names)} {role}: {why} (--model {role}=NAME)" for (role, why), names in notes.items()]
    return f"not the paper's models: {'; '.join(said)}" if said else None
