"""What `elench calibrate` learns from: a rated file with the scores of every metric that may help."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from elench.errors import MissingModel, Unscored, UsageError
from elench.evaluate.judgements import Judgements, load

if TYPE_CHECKING:
    from elench.metrics.base import Metric
    from elench.models.base import ModelSet

SIGNALS = ("finished", "brevity", "variety", "grounded", "names", "standalone")
CANDIDATES = {
    "question": (
        "length", "answer-leak", "near-answer", *(f"signal[of={kind}]" for kind in SIGNALS), "wellformed", "meteor",
        "answerable", "qa-overlap[view=probability]",
    ),
    "answer": (
        "length", "f1", "novel-f1", "meteor", "rouge-l-kpqa[form=ours]", "bertscore-kpqa[form=ours]", "equivalent",
    ),
    "summary": (
        "length", "source-overlap[n=1]", "source-overlap", "source-overlap[n=5]", "lead-overlap",
        *(f"signal[of={kind}]" for kind in (*SIGNALS, "phrases", "copied")), "support",
        "support[words=off]", "likelihood",
    ),
}  # fmt: skip
"""What is judged → the metrics tried where `-m` names none, few and mostly cheap. A metric that needs what the
file lacks is left out."""


def rated_table(
    path: Path,
    score_files: Sequence[Path] = (),
    metrics: Sequence[Metric] = (),
    dimensions: Sequence[str] = (),
    models: ModelSet | None = None,
) -> tuple[Judgements, str]:
    """A rated file with the scores a profile may be made of, and what its records judge.

    Scores come from score files where given, else the metrics (or the candidates) are run now."""
    from elench.metrics.profile import usable

    table = load(path, score_files).choose((), dimensions)
    judge = judged(table)
    unfit = [str(m) for m in metrics if not usable(m)]
    if unfit:
        raise UsageError(f"{unfit[0]}: cannot be part of a profile: it needs the whole file, or is a profile itself")
    if score_files:
        table = _only_metrics(table, [str(m) for m in metrics])
        wanted = [m for m in metrics if str(m) not in table.metrics]
    else:
        table = replace(table, metrics=(), scores=np.empty((len(table.records), 0)), kinds={})
        wanted = list(metrics) or _candidates(table, judge)
    return (_scored(table, wanted, models) if wanted else table), judge


def judged(table: Judgements) -> str:
    """What the records of a table judge; UsageError when they differ."""
    kinds = Counter(record.judged for record in table.records)
    if len(kinds) > 1:
        counts = ", ".join(f"{kind} {count}" for kind, count in kinds.most_common())
        raise UsageError(f"{table.source}: records judge different things ({counts}); give one file for each")
    return next(iter(kinds))


def file_source(path: Path, table: Judgements) -> dict[str, object]:
    """Name, hash and size of the rated file, for the profile."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return {"file": path.name, "sha256": digest, "records": len(table.records), "groups": len(set(table.items))}


def text_hashes(table: Judgements) -> list[str]:
    """A short hash of each record's texts: by these a profile knows the records that it learned from."""
    texts = ((r.context, r.question, r.answer, r.summary) for r in table.records)
    return [
        hashlib.sha256("\0".join(t or "" for t in four).encode("utf-8", "replace")).hexdigest()[:12] for four in texts
    ]


def _only_metrics(table: Judgements, wanted: Sequence[str]) -> Judgements:
    """The columns that elench itself can compute again: a profile cannot be made of another tool's scores."""
    from elench.metrics import metric
    from elench.metrics.profile import usable

    keep: list[str] = []
    dropped: list[str] = []
    for name in table.metrics:
        try:
            fits = table.kinds[name] == "metric" and usable(metric(name))
        except UsageError:
            fits = False
        if not wanted or name in wanted:
            (keep if fits else dropped).append(name)
    if not keep:
        raise UsageError(f"{table.source}: the score files hold no metric that can be part of a profile")
    notes = (f"not part of the profile: {', '.join(dropped)}",) if dropped else ()
    return replace(table.choose(keep), notes=table.notes + notes)


def _candidates(table: Judgements, judge: str) -> list[Metric]:
    from elench.metrics import metric

    found = []
    for spec in CANDIDATES[judge]:
        one = metric(spec)
        lacking = sum(bool(one.missing(record)) for record in table.records)
        if lacking < len(table.records) / 2:
            found.append(one)
    return found


def _scored(table: Judgements, metrics: Sequence[Metric], models: ModelSet | None) -> Judgements:
    """The table with further metrics computed now; those whose models are missing are left out with a note."""
    import elench
    from elench.engine.session import Session

    models = models or Session().models
    ready, notes = [], []
    missing: dict[str, str] = {}
    for one in metrics:
        try:
            for role in one.roles:
                if role in missing:
                    raise MissingModel(missing[role])
                models.fingerprint(role)
            ready.append(one)
        except (MissingModel, Unscored) as problem:
            missing.update(dict.fromkeys(one.roles, str(problem)))
            notes.append(f"{one}: left out, {problem}")
    if not ready:
        raise UsageError(f"{table.source}: no metric can be computed: {'; '.join(notes)}")
    result = elench.score(table.records, ready, models=models)
    columns = np.array([[np.nan if v is None else v for v in result.values(str(m))] for m in ready], dtype=np.float64).T
    return table.with_metrics([str(m) for m in ready], columns, "metric", notes)
