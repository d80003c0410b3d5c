"""Can a metric tell good text from text broken on purpose? Area under the ROC curve, per kind (QRelScore Table 4)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quaestor.errors import UsageError
from quaestor.records import Record

Array = npt.NDArray[np.float64]
LABELS = ("positive", "negative")


@dataclass(frozen=True)
class Area:
    """How often a positive outscores a negative (ties count half)."""

    metric: str
    kind: str
    """The kind of negative; 'all' for every negative at once."""
    auc: float
    low: float
    high: float
    positives: int
    negatives: int
    left_out: int
    """Records of either side without a score."""


def auc(positives: Array, negatives: Array) -> float:
    """The probability that a positive scores above a negative, ties half (Mann–Whitney)."""
    order = np.sort(negatives)
    below = np.searchsorted(order, positives, "left") + np.searchsorted(order, positives, "right")
    return float(below.mean() / (2 * len(negatives)))


def areas(
    records: Sequence[Record],
    scores: Mapping[str, Sequence[float | None]],
    higher_is_better: Mapping[str, bool] | None = None,
    draws: int = 1000,
    seed: int = 0,
) -> list[Area]:
    """AUC of every metric against every kind of negative, with a 95 % interval by bootstrap over the original records.

    An original and everything made from it are drawn together, because their scores are not independent.
    """
    told = [_unpacked(r.extra.get("perturbed")) for r in records]
    if not all(isinstance(t, dict) and t.get("label") in LABELS and {"kind", "of"} <= t.keys() for t in told):
        raise UsageError("AUC needs records made by quaestor perturb: each with 'perturbed' {kind, label, of}")
    facts = [t for t in told if isinstance(t, dict)]
    labels = np.array([t["label"] == "positive" for t in facts])
    kinds = np.array([str(t["kind"]) for t in facts])
    units = np.unique([str(t["of"]) for t in facts], return_inverse=True)[1]
    if not labels.any() or labels.all():
        raise UsageError("AUC needs both positives and negatives: perturb with --originals or a paraphrase kind")
    found = []
    for metric, column in scores.items():
        values = np.array([np.nan if v is None else v for v in column], dtype=float)
        if higher_is_better and not higher_is_better.get(metric, True):
            values = -values
        for kind in [*dict.fromkeys(kinds[~labels]), "all"]:
            chosen = labels | ((~labels) & ((kinds == kind) | (kind == "all")))
            scored = chosen & ~np.isnan(values)
            good, bad = np.flatnonzero(scored & labels), np.flatnonzero(scored & ~labels)
            if not len(good) or not len(bad):
                continue
            low, high = _interval(values, good, bad, units, draws, seed)
            area = auc(values[good], values[bad])
            found.append(Area(metric, str(kind), area, low, high, len(good), len(bad), int((chosen & ~scored).sum())))
    if not found:
        raise UsageError("no metric has scores of both positives and negatives")
    return found


def _unpacked(told: object) -> object:
    """In a CSV file what was done is written as JSON."""
    try:
        return json.loads(told) if isinstance(told, str) else told
    except ValueError:
        return None


def _interval(
    values: Array,
    good: npt.NDArray[np.int64],
    bad: npt.NDArray[np.int64],
    units: npt.NDArray[np.int64],
    draws: int,
    seed: int,
) -> tuple[float, float]:
    rng = np.random.default_rng(seed)
    count = int(units.max()) + 1
    order = np.argsort(values[bad], kind="stable")
    bad = bad[order]
    left = np.searchsorted(values[bad], values[good], "left")
    right = np.searchsorted(values[bad], values[good], "right")
    results = []
    for _ in range(draws):
        weights = np.bincount(rng.integers(0, count, count), minlength=count).astype(float)
        positive, negative = weights[units[good]], weights[units[bad]]
        if positive.sum() and negative.sum():
            cumulative = np.concatenate([[0.0], np.cumsum(negative)])
            wins = (cumulative[left] + cumulative[right]) / 2
            results.append(float(positive @ wins / (positive.sum() * negative.sum())))
    low, high = np.quantile(results, [0.025, 0.975])
    return float(low), float(high)


def table(found: Sequence[Area], markdown: bool = False) -> str:
    """Metrics × kinds of negative: AUC [interval], best metric over all kinds first.

    The number of negatives stands in the head of a column, or in its cells when the metrics differ in it.
    """
    kinds = list(dict.fromkeys(area.kind for area in found))
    counts = {kind: {a.negatives for a in found if a.kind == kind} for kind in kinds}
    cells = {
        (a.metric, a.kind): f"{a.auc:.3f} [{a.low:.3f}, {a.high:.3f}]"
        + (f" n={a.negatives}" if len(counts[a.kind]) > 1 else "")
        for a in found
    }
    whole = {a.metric: a.auc for a in found if a.kind == "all"}
    names = sorted({a.metric for a in found}, key=lambda name: -whole.get(name, 0.0))
    rows = [["metric", *(f"{kind} (n={max(n)})" if len(n) == 1 else kind for kind, n in counts.items())]]
    rows += [[name, *(cells.get((name, kind), "–") for kind in kinds)] for name in names]
    notes = _notes(found, names)
    if markdown:
        lines = ["| " + " | ".join(row) + " |" for row in rows]
        return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:], "", *notes])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows] + notes)


def _notes(found: Sequence[Area], names: Sequence[str]) -> list[str]:
    """What the numbers are and, in a line, how many records each metric left out."""
    whole = {a.metric: a for a in found if a.kind == "all"}
    positives = {a.positives for a in found}
    same = len(positives) == 1
    n = str(max(positives)) if same else f"{min(positives)}–{max(positives)}"
    notes = [f"AUC with 95 % bootstrap interval over originals; {n} positives; n: negatives of each kind."]
    left = [
        f"{name} {whole[name].left_out}" + ("" if same else f" ({whole[name].positives} positives kept)")
        for name in names
        if name in whole and whole[name].left_out
    ]
    return [*notes, f"Records left out because the metric has no score of them: {', '.join(left)}."] if left else notes
