"""Can a metric tell good text from text broken on purpose? Area under the ROC curve, per kind (QRelScore Table 4)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from elench.errors import UsageError
from elench.grid import Grid
from elench.records.record import Record
from elench.stats.letters import letters
from elench.stats.resampling_plan import FEW_GROUPS
from elench.stats.roc import area_and_influence, area_interval, equal_areas
from elench.stats.significance import holm

Array = npt.NDArray[np.float64]
LABELS = ("positive", "negative")


@dataclass(frozen=True)
class Area:
    """How often a positive outscores a negative (ties count half)."""

    metric: str
    kind: str
    """The kind of negative; 'all' for every negative at once."""
    auc: float
    low: float | None
    high: float | None
    """95 %; None with too few originals or without any variation"""
    positives: int
    negatives: int
    left_out: int
    """Records of either side without a score."""
    originals: int = 0
    letters: str = ""
    """Metrics that share a letter do not differ significantly on these negatives (Holm, .05)"""


@dataclass(frozen=True)
class _Labelled:
    """What was done to each record."""

    good: npt.NDArray[np.bool_]
    kind: npt.NDArray[np.str_]
    original: npt.NDArray[np.int64]


def areas(
    records: Sequence[Record],
    scores: Mapping[str, Sequence[float | None]],
    higher_is_better: Mapping[str, bool] | None = None,
    alpha: float = 0.05,
    human: str | None = None,
) -> list[Area]:
    """AUC of every metric against every kind of negative, with a 95 % interval, and letters from paired tests.

    With `human` the positives are the records that people gave the higher of that dimension's two values.

    An original and everything made from it count as one unit, because their scores are not independent (DeLong's
    variance with clusters, Obuchowski 1997). Two metrics are compared on the records that both score."""
    told = _rated(records, human) if human else _labels(records)
    columns = {}
    for metric, column in scores.items():
        values = np.array([np.nan if v is None else v for v in column], dtype=float)
        columns[metric] = -values if higher_is_better and not higher_is_better.get(metric, True) else values
    found: list[Area] = []
    for kind in dict.fromkeys([*told.kind[~told.good], *(() if human else ("all",))]):
        chosen = told.good | ((told.kind == kind) | (kind == "all"))
        own = [area for name, values in columns.items() if (area := _area(name, str(kind), values, chosen, told))]
        found += _with_letters(own, columns, chosen, told, alpha)
    if not found:
        raise UsageError("no metric has scores of both positives and negatives")
    order = {name: k for k, name in enumerate(columns)}
    return sorted(found, key=lambda area: order[area.metric])


def _labels(records: Sequence[Record]) -> _Labelled:
    told = [_unpacked(r.extra.get("perturbed")) for r in records]
    if not all(isinstance(t, dict) and t.get("label") in LABELS and {"kind", "of"} <= t.keys() for t in told):
        raise UsageError("AUC needs records made by elench perturb: each with 'perturbed' {kind, label, of}")
    facts = [t for t in told if isinstance(t, dict)]
    good = np.array([t["label"] == "positive" for t in facts])
    if not good.any() or good.all():
        raise UsageError("AUC needs both positives and negatives: perturb with --originals or a paraphrase kind")
    original = np.unique([str(t["of"]) for t in facts], return_inverse=True)[1]
    return _Labelled(good, np.array([str(t["kind"]) for t in facts]), original)


def _rated(records: Sequence[Record], dimension: str) -> _Labelled:
    """Records that people judged good or bad; those about one context count as one unit."""
    values = [r.human.get(dimension) for r in records]
    found = sorted({v for v in values if v is not None})
    if None in values or len(found) != 2:
        raise UsageError(f"AUC needs a judgement with two values; {dimension!r} has {len(found)}")
    named = [r.group or f"record {k}" for k, r in enumerate(records)]
    unit = np.unique(named, return_inverse=True)[1]
    return _Labelled(np.array([v == found[1] for v in values]), np.array([dimension] * len(records)), unit)


def _unpacked(told: object) -> object:
    """In a CSV file what was done is written as JSON."""
    try:
        return json.loads(told) if isinstance(told, str) else told
    except ValueError:
        return None


def _area(name: str, kind: str, values: Array, chosen: npt.NDArray[np.bool_], told: _Labelled) -> Area | None:
    scored = chosen & ~np.isnan(values)
    good, bad = scored & told.good, scored & ~told.good
    if not good.any() or not bad.any():
        return None
    area, influence = area_and_influence(values[scored], told.good[scored], told.original[scored])
    low, high = area_interval(area, influence)
    left = int((chosen & ~scored).sum())
    return Area(name, kind, area, low, high, int(good.sum()), int(bad.sum()), left, len(influence))


def _with_letters(
    found: list[Area], columns: Mapping[str, Array], chosen: npt.NDArray[np.bool_], told: _Labelled, alpha: float
) -> list[Area]:
    ranked = sorted(found, key=lambda area: -area.auc)
    pairs = list(combinations(range(len(ranked)), 2))
    p = []
    for i, j in pairs:
        first, second = columns[ranked[i].metric], columns[ranked[j].metric]
        both = chosen & ~np.isnan(first) & ~np.isnan(second)
        p.append(equal_areas(first[both], second[both], told.good[both], told.original[both]))
    differs = np.zeros((len(ranked), len(ranked)), dtype=bool)
    for (i, j), corrected in zip(pairs, holm(p).tolist(), strict=True):
        differs[i, j] = corrected < alpha
    return [replace(area, letters=own) for area, own in zip(ranked, letters(differs), strict=True)]


def grid(found: Sequence[Area]) -> Grid:
    """Metrics × kinds of negative: AUC, letters, interval; the best metric over all kinds first."""
    from elench.grid import Cell

    kinds = list(dict.fromkeys(area.kind for area in found))
    counts = {kind: {a.negatives for a in found if a.kind == kind} for kind in kinds}
    cells = {}
    for a in found:
        n = f" n={a.negatives}" if len(counts[a.kind]) > 1 else ""
        limits = "–" if a.low is None or a.high is None else f"{a.low:.3f}, {a.high:.3f}"
        cells[a.metric, a.kind] = Cell(f"{a.auc:.3f}", a.letters, limits + n)
    whole = {a.metric: a.auc for a in found if a.kind == kinds[-1]}
    names = sorted({a.metric for a in found}, key=lambda name: -whole.get(name, 0.0))
    header = ("metric", *(f"{kind} (n={max(n)})" if len(n) == 1 else kind for kind, n in counts.items()))
    return Grid("", header, tuple((name, *(cells.get((name, kind), "–") for kind in kinds)) for name in names))


def notes(found: Sequence[Area], units: str = "originals", alpha: float = 0.05) -> list[str]:
    """What the numbers are and, in a line, how many records each metric left out."""
    whole = {a.metric: a for a in found if a.kind == found[-1].kind}
    positives, originals = {a.positives for a in found}, max(a.originals for a in found)
    same = len(positives) == 1
    n = str(max(positives)) if same else f"{min(positives)}–{max(positives)}"
    lines = [
        f"AUC with 95 % interval (DeLong's variance over {originals} {units}, t); {n} positives; n: negatives of each "
        f"kind; metrics that share a letter in a column do not differ (paired test by {units}, Holm, p < {alpha:g})."
    ]
    if any(a.low is None for a in found):
        lines.append(
            f"Interval –: too few {units}, or no spread (every positive outscores every negative, or all are tied)."
        )
    if originals < FEW_GROUPS:
        lines.append(f"Only {originals} {units}: intervals and letters are rough below {FEW_GROUPS}.")
    left = [
        f"{a.metric} {a.left_out}" + ("" if same else f" ({a.positives} positives kept)")
        for a in whole.values()
        if a.left_out
    ]
    return [*lines, f"Records left out because the metric has no score of them: {', '.join(left)}."] if left else lines
