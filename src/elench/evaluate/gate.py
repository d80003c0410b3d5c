"""A gate for builds: is the new run worse than the old one, by more than matters, beyond chance?

Records are paired by id and system, and those of one group are drawn together. The change of a metric has a bootstrap-t
interval. It *passes* when the interval excludes a drop as large as the one allowed, *fails* when the drop is
significant (Holm over the metrics) and at least as large, and is *undecided* otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from elench.errors import UsageError
from elench.grid import Cell, Grid
from elench.metrics import higher_is_better, metric, split_specs
from elench.runs import Run
from elench.runs.summary import known
from elench.stats.resampling_plan import resampling_plan
from elench.stats.significance import holm
from elench.stats.totals import Studentised, Totals, bootstrap_t

USUAL_DROP = 0.02
"""The drop that matters where none is given, for metrics between 0 and 1."""
REACH = 1.959964 + 0.841621
"""Standard errors between 0 and a drop that 95 % intervals exclude in 80 % of the runs that changed nothing."""
PASS, FAIL, UNDECIDED = "pass", "fail", "undecided"


@dataclass(frozen=True)
class Change:
    """One metric in both runs, on the items that both scored."""

    metric: str
    before: float
    now: float
    change: float
    """now − before"""
    low: float | None
    high: float | None
    """95 % bootstrap-t interval of the change"""
    p: float | None
    """Two-sided, Holm-corrected over the metrics"""
    drop: float
    """The smallest loss that matters"""
    n: int
    verdict: str
    needed: int | None
    """About how many items would decide; None where the question is decided or the number cannot be determined"""
    reason: str = ""


@dataclass(frozen=True)
class Gate:
    """The outcome of a gate."""

    changes: Sequence[Change]
    under: Sequence[tuple[str, float, float]] = ()
    """(metric, mean, limit) of metrics below an absolute limit"""
    notes: Sequence[str] = ()

    @property
    def verdict(self) -> str:
        verdicts = [change.verdict for change in self.changes]
        if self.under or FAIL in verdicts:
            return FAIL
        return UNDECIDED if UNDECIDED in verdicts else PASS

    @property
    def exit_code(self) -> int:
        return {PASS: 0, FAIL: 1, UNDECIDED: 2}[self.verdict]

    def sentences(self) -> list[str]:
        """The outcome in words."""
        lines = [f"The gate says: {self.verdict}."]
        for c in self.changes:
            if c.verdict == FAIL:
                lines.append(f"{c.metric} is significantly worse, by {abs(c.change):.3f} (allowed: {c.drop:g}).")
            elif c.verdict == UNDECIDED:
                more = f"; about {c.needed:,} items would decide" if c.needed else ""
                why = c.reason or f"a drop of {c.drop:g} can neither be shown nor excluded"
                lines.append(f"{c.metric}: {why} with {c.n} items{more}.")
        lines += [f"{spec}: mean {mean:.4f} is below the limit of {limit:g}." for spec, mean, limit in self.under]
        return lines

    def grid(self) -> Grid:
        tones = {PASS: "good", FAIL: "bad", UNDECIDED: "warn"}
        rows = tuple(
            (
                c.metric, f"{c.before:.4f}", f"{c.now:.4f}", f"{c.change:+.4f}",
                "–" if c.low is None or c.high is None else f"{c.low:+.4f} … {c.high:+.4f}", f"{c.drop:g}", str(c.n),
                Cell(c.verdict, tone=tones[c.verdict]),
            )
            for c in self.changes
        )  # fmt: skip
        header = ("metric", "baseline", "now", "change", "95 % interval", "allowed drop", "n", "verdict")
        return Grid("", header, rows)

    def to_object(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict, "exit_code": self.exit_code, "changes": [asdict(c) for c in self.changes],
            "under": [list(row) for row in self.under], "notes": list(self.notes),
        }  # fmt: skip


def gate(
    run: Run,
    baseline: Run | None,
    drops: Mapping[str, float] | None = None,
    limits: Mapping[str, float] | None = None,
    *,
    alpha: float = 0.05,
    draws: int = 2000,
    seed: int = 0,
) -> Gate:
    """Compare `run` with `baseline`; `drops` are the losses that matter, `limits` means that must be reached."""
    under = _under(run, limits or {})
    if baseline is None:
        return Gate([], under)
    common = [spec for spec in run.specs if spec in baseline.specs]
    notes = _differences(run, baseline, common)
    wanted = dict(drops or {})
    if not wanted:
        wanted = {spec: USUAL_DROP for spec in common if (m := known(spec)) and m.range == (0.0, 1.0)}
        if not wanted:
            raise UsageError("no metric between 0 and 1 in both runs: give --min-effect METRIC=-DROP")
        notes.append(f"No --min-effect given: a drop of {USUAL_DROP} matters, for every metric between 0 and 1.")
    for spec in wanted:
        if spec not in common:
            raise UsageError(f"{spec} is not in both runs; they share: {', '.join(common) or 'no metric'}")
    found = [_estimate(run, baseline, spec, draws, seed) for spec in wanted]
    known_p = [1.0 if e.p is None else e.p for e, _, _ in found]
    corrected = holm(known_p).tolist() if known_p else []
    changes = [
        _change(spec, drop, estimate, means, n, p, alpha)
        for (spec, drop), (estimate, means, n), p in zip(wanted.items(), found, corrected, strict=True)
    ]
    return Gate(changes, under, notes)


def _differences(run: Run, baseline: Run, common: Sequence[str]) -> list[str]:
    """What else changed besides the system: a metric computed with other models is another metric."""
    return [
        f"{spec}: the two runs have different signatures, so part of the change may be the metric's own."
        for spec in common
        if run.signatures.get(spec) != baseline.signatures.get(spec)
    ]


def _estimate(
    run: Run, baseline: Run, spec: str, draws: int, seed: int
) -> tuple[Studentised, tuple[float, float], int]:
    """The change with its interval, both means, and the number of items."""
    old = {(o.id, o.system): value for o in baseline.scored if (value := o.value(spec)) is not None}
    pairs = [
        (o.record.group if o.record else None, old[o.id, o.system], value)
        for o in run.scored
        if (value := o.value(spec)) is not None and (o.id, o.system) in old
    ]
    if not pairs:
        raise UsageError(f"{spec}: no record is scored in both runs; records are paired by id and system")
    plan = resampling_plan([group for group, _, _ in pairs], [None] * len(pairs))
    sums = np.zeros((plan.groups, 2, 2))
    for group, (_, before, now) in zip(plan.group, pairs, strict=True):
        sums[group, 0] += (before, 1.0)
        sums[group, 1] += (now, 1.0)
    totals = Totals(sums)
    before, now = totals.values().tolist()
    if all(a == b for _, a, b in pairs):  # the same scores: nothing changed, however few items there are
        return Studentised(0.0, 0.0, None, None, None, None), (before, now), len(pairs)
    return bootstrap_t(totals, np.array([[-1.0, 1.0]]), draws, seed)[0], (before, now), len(pairs)


def _change(
    spec: str, drop: float, estimate: Studentised, means: tuple[float, float], n: int, p: float, alpha: float
) -> Change:
    sign = 1 if higher_is_better(spec) else -1
    gain = sign * estimate.value
    worst = None if estimate.low is None or estimate.high is None else min(sign * estimate.low, sign * estimate.high)
    verdict, needed, reason = UNDECIDED, None, ""
    if estimate.error == 0.0:  # every group changed by the same amount: nothing is left to chance
        verdict = PASS if gain > -drop else FAIL
    elif worst is None:
        reason = estimate.reason or "no interval"
    elif gain <= -drop and p < alpha:
        verdict = FAIL
    elif worst > -drop:
        verdict = PASS
    elif estimate.error:
        needed = _needed(n, estimate.error, gain, drop)
    return Change(spec, *means, estimate.value, estimate.low, estimate.high, p, drop, n, verdict, needed, reason)


def _needed(n: int, error: float, gain: float, drop: float) -> int | None:
    """Items for a verdict with 80 % power: if nothing changed; or, where that many are there, at the change seen."""
    for distance in (drop, abs(gain + drop)):
        if distance > 0:
            needed = math.ceil(n * (REACH * error / distance) ** 2)
            if n < needed < 10_000_000:
                return needed
    return None


def _under(run: Run, limits: Mapping[str, float]) -> list[tuple[str, float, float]]:
    found = []
    for spec, limit in limits.items():
        values = [v for v in run.values(spec) if v is not None] if spec in run.specs else []
        if not values:
            raise UsageError(f"--fail-under {spec}: the run has no score of it; it has: {', '.join(run.specs)}")
        mean = float(np.mean(values))
        if (mean < limit) if higher_is_better(spec) else (mean > limit):
            found.append((spec, mean, limit))
    return found


def parse_numbers(given: Sequence[str], option: str) -> dict[str, float]:
    """`support=-0.02,f1=-0.01` as {spec: number}."""
    found = {}
    for part in (p for text in given for p in split_specs(text)):
        name, equals, value = part.rpartition("=")
        try:
            found[_canonical(name.strip())] = float(value) if equals else float("nan")
        except ValueError:
            found[name] = float("nan")
        if not name or not math.isfinite(next(reversed(found.values()))):
            example = "0.5" if option == "--fail-under" else "-0.02"
            raise UsageError(f"{option} {part}: write METRIC=NUMBER, such as support={example}")
    return found


def _canonical(spec: str) -> str:
    try:
        return str(metric(spec))
    except UsageError:
        return spec
