"""From the ratings of a study to a ranking that can be defended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import mean

import numpy as np

from elench.errors import UsageError
from elench.stats.correlation import coefficient
from elench.stats.mixed import MixedFit, mixed_model
from elench.study.analyse.powered import Powered, powered_scores
from elench.study.analyse.quality import Verdict, judge_raters
from elench.study.analyse.rater_agreement import CriterionAlpha, agreement
from elench.study.analyse.replication import SelfReplication, between, halves
from elench.study.analyse.scores import (
    Judged,
    RatedPair,
    compare_systems,
    intervals,
    judgements,
    kept_sittings,
    tabulate,
)
from elench.study.analyse.sittings import Sitting, collect, rater_facts
from elench.study.collect.store import Store
from elench.study.folder import Study

SPLITS = 100


@dataclass(frozen=True)
class Options:
    """What `elench study analyse` was asked for."""

    unfiltered: bool = False
    difference: float = 0.1
    power: float = 0.8
    draws: int = 1000
    seed: int = 0
    scores: Path | None = None
    metric: str | None = None


@dataclass(frozen=True)
class Group:
    """Passed, failed or all raters: one column of the paper's Tables 4a and 4b."""

    raters: int
    tasks: int
    minutes: float | None
    """Mean time per task."""
    tasks_per_rater: float | None


@dataclass(frozen=True)
class SystemScore:
    """A row of the paper's Table 5."""

    system: str
    n: int
    """Items shown, repeats counted (the paper's N)."""
    questions: int
    """Judgements after the mean of repeats."""
    overall: float
    interval: tuple[float, float]
    criteria: dict[str, float]
    criteria_intervals: dict[str, tuple[float, float]]
    cluster: str


@dataclass(frozen=True)
class Report:
    """Everything the analysis found."""

    title: str
    protocol: str
    source: str
    human: str | None
    standardised: bool
    filter: str
    filtered: bool
    passed: Group
    failed: Group
    total: Group
    tests_taken: int
    tests_passed: int
    paid: float
    paid_all: float
    currency: str
    criteria: tuple[str, ...]
    scores: tuple[SystemScore, ...]
    pairs: tuple[RatedPair, ...]
    raters: tuple[Verdict, ...]
    repeat_pairs: int
    repeat_gap: float | None
    agreement: tuple[CriterionAlpha, ...]
    replication: tuple[SelfReplication, ...]
    replication_how: str
    deviation: float | None
    difference: float
    power: float
    needed: int | None
    needed_with_metric: int | None
    correlation: float | None
    metric: str | None
    powered: tuple[Powered, ...]
    mixed: MixedFit | None
    """System means by a mixed model, beside the paper's procedure: passages, raters and raters' tastes are drawn"""
    notes: tuple[str, ...]


def analyse_study(store: Store, other: Store | None = None, options: Options = Options()) -> Report:
    """Analyse what is there now; `other` is a second run for self-replication."""
    study = store.study
    sittings = collect(store)
    facts = [f for f in rater_facts(store) if f.qualification is not None]
    second = None if other is None else (other.study, collect(other))
    return analyse_sittings(study, sittings, options, second, (len(facts), sum(bool(f.qualified) for f in facts)))


def analyse_sittings(
    study: Study,
    sittings: Sequence[Sitting],
    options: Options,
    other: tuple[Study, Sequence[Sitting]] | None = None,
    tests: tuple[int, int] = (0, 0),
) -> Report:
    """The analysis itself, on sittings from a store or from a simulation."""
    protocol = study.protocol
    names = tuple(c.name for c in protocol.criteria)
    done = [s for s in sittings if s.state == "submitted"]
    if not done:
        raise UsageError("no task has been submitted yet: there is nothing to analyse")
    verdicts = judge_raters(study, done)
    passed = {v.rater for v in verdicts.values() if v.passed}
    kept, found = _kept(study, done, None if options.unfiltered else passed)
    scores, pairs, notes = _ranking(study, found, names, options)
    how, replication = _replicate(study, found, names, other, options)
    repeat_pairs, repeat_gap = _repeats([v for v in verdicts.values() if options.unfiltered or v.passed])
    mixed, why = _mixed(found)
    metric = None if options.scores is None else powered_scores(study, found, options.scores, options.metric)
    correlation = None if metric is None else metric.correlation
    deviation = _deviation(found)
    needed, with_metric = _needed(deviation, correlation, _alike(study, found, len(names)), len(pairs), options)
    return Report(
        title=protocol.title, protocol=protocol.name, source=protocol.source, human=study.human,
        standardised=protocol.standardise,
        filter=_filter_text(study, options),
        filtered=protocol.filter.judges_raters,
        passed=_group([s for s in done if s.rater in passed]),
        failed=_group([s for s in done if s.rater not in passed]),
        total=_group(done),
        tests_taken=tests[0], tests_passed=tests[1],
        paid=protocol.pay * sum(s.rater in passed for s in done),
        paid_all=protocol.pay * len(done),
        currency=protocol.currency,
        criteria=names,
        scores=scores,
        pairs=tuple(pairs),
        raters=tuple(sorted(verdicts.values(), key=_by_p)),
        repeat_pairs=repeat_pairs,
        repeat_gap=repeat_gap,
        agreement=tuple(agreement(study, kept, options.draws, options.seed)),
        replication=tuple(replication),
        replication_how=how,
        deviation=deviation, difference=options.difference, power=options.power,
        needed=needed, needed_with_metric=with_metric, correlation=correlation,
        metric=None if metric is None else metric.name, powered=() if metric is None else metric.systems,
        mixed=mixed, notes=(*notes, *why, *_constant_raters(kept, found, protocol.standardise)),
    )  # fmt: skip


def _kept(study: Study, done: Sequence[Sitting], raters: set[str] | None) -> tuple[list[Sitting], list[Judged]]:
    """The sittings that count, those of these raters or all, and their judgements; refused when nothing is left."""
    kept = list(kept_sittings(done, raters))
    if not kept:
        everyone = len({s.rater for s in done})
        raise UsageError(f"none of {everyone} raters passes the filter: nothing to rank (--unfiltered keeps them all)")
    found = judgements(study, kept, study.protocol.standardise)
    if not found:
        raise UsageError("no rater ever changed a rating: nothing can be standardised or ranked")
    return kept, found


def _repeats(verdicts: Sequence[Verdict]) -> tuple[int, float | None]:
    """Pairs of ratings of the same item by the same rater, and how far they are apart on average."""
    pairs = sum(v.repeat_pairs for v in verdicts if v.repeat_gap is not None)
    return pairs, sum((v.repeat_gap or 0) * v.repeat_pairs for v in verdicts) / pairs if pairs else None


def _by_p(verdict: Verdict) -> tuple[bool, float, str]:
    """For sorting raters by their p-value; those without one come last."""
    return verdict.p is None, verdict.p or 0.0, verdict.rater


def _filter_text(study: Study, options: Options) -> str:
    rule = study.protocol.filter
    if options.unfiltered:
        return "none: every rater was kept on request"
    if rule.kind == "permutation":
        levels = f"p < {rule.alpha:g}, {rule.later:g} from twice {rule.controls} bad references on"
        return f"permutation test of bad references and repeats together, per rater, {levels}"
    if rule.kind == "wilcoxon":
        return f"one-sided Wilcoxon signed-rank test, ordinary above bad reference, per rater, p < {rule.alpha:g}"
    if rule.kind == "z":
        return f"ratings with |z| > {rule.z:g} within an item dropped, farthest first, at most {rule.most}"
    return "none"


def _group(sittings: Sequence[Sitting]) -> Group:
    raters = len({s.rater for s in sittings})
    times = [s.minutes for s in sittings if s.minutes is not None]
    return Group(raters, len(sittings), mean(times) if times else None, len(sittings) / raters if raters else None)


def _ranking(
    study: Study, found: Sequence[Judged], names: tuple[str, ...], options: Options
) -> tuple[tuple[SystemScore, ...], list[RatedPair], list[str]]:
    rated = [name for name in study.systems if any(j.system == name for j in found)]
    table = tabulate(found, rated, len(names))
    values = table.scores()
    low, high = intervals(table)
    order = sorted(range(len(rated)), key=lambda k: -values[k, -1])
    pairs, letters = compare_systems(table, order)
    notes = (
        [] if study.protocol.one_scale else ["the criteria have different scales: ratings are taken in percent of each"]
    )
    notes += [f"{name} has no kept rating yet" for name in study.systems if name not in rated]
    if len(table.units) < 6:
        notes.append(f"only {len(table.units)} passages: differences can hardly become significant")
    questions = {name: sum(j.system == name for j in found) for name in rated}
    scores = tuple(
        SystemScore(
            rated[k],
            int(table.shown[k]),
            questions[rated[k]],
            float(values[k, -1]),
            (float(low[k, -1]), float(high[k, -1])),
            {name: float(values[k, c]) for c, name in enumerate(names)},
            {name: (float(low[k, c]), float(high[k, c])) for c, name in enumerate(names)},
            letters[place],
        )
        for place, k in enumerate(order)
    )
    return scores, pairs, notes


def _replicate(
    study: Study,
    found: Sequence[Judged],
    names: tuple[str, ...],
    other: tuple[Study, Sequence[Sitting]] | None,
    options: Options,
) -> tuple[str, list[SelfReplication]]:
    if other is None:
        how = f"mean over {SPLITS} random halves of the raters, seed {options.seed}"
        return how, halves(found, study.systems, names, SPLITS, options.seed)
    second, rows = other
    if tuple(c.name for c in second.protocol.criteria) != names:
        raise UsageError("the two studies ask for different criteria: self-replication compares runs of one protocol")
    passed = {v.rater for v in judge_raters(second, rows).values() if v.passed}
    kept = kept_sittings(rows, None if options.unfiltered else passed)
    return f"against {second.folder}", between(
        found, judgements(second, kept, second.protocol.standardise), study.systems, names
    )


def _deviation(found: Sequence[Judged]) -> float | None:
    """Standard deviation of a judgement's overall score around its system's mean."""
    by_system: dict[str, list[float]] = {}
    for j in found:
        value = float(np.mean(j.values))
        if np.isfinite(value):
            by_system.setdefault(j.system, []).append(value)
    freedom = sum(len(values) - 1 for values in by_system.values())
    if freedom < 1:
        return None
    return float(np.sqrt(sum(np.var(values) * len(values) for values in by_system.values()) / freedom))


def _mixed(found: Sequence[Judged]) -> tuple[MixedFit | None, list[str]]:
    """The mixed model of the overall ratings; without it the reason."""
    values = [float(np.mean(j.values)) for j in found]
    try:
        fit = mixed_model(values, [j.system for j in found], [j.unit for j in found], [j.rater for j in found])
    except UsageError as why:
        return None, [f"no mixed model: {why}"]
    return fit, []


def _constant_raters(kept: Sequence[Sitting], found: Sequence[Judged], standardised: bool) -> list[str]:
    """Raters without any variation have no z-scores."""
    gone = sorted({s.rater for s in kept} - {j.rater for j in found})
    if not gone or not standardised:
        return []
    return [f"left out, because raters who never changed a rating have no z-scores: {', '.join(gone)}"]


def _alike(study: Study, found: Sequence[Judged], criteria: int) -> float:
    """How much two systems' scores on the same passages correlate: what pairing saves."""
    rated = [name for name in study.systems if any(j.system == name for j in found)]
    means = tabulate(found, rated, criteria).unit_means
    pairs = [coefficient(*means[:, pair].T) for pair in combinations(range(len(rated)), 2)]
    values = [r.value for r in pairs if r.value is not None and r.n > 4]
    return min(0.95, max(0.0, mean(values))) if values else 0.0


def _needed(
    deviation: float | None, correlation: float | None, alike: float, pairs: int, options: Options
) -> tuple[int | None, int | None]:
    """Judgements per system, for the hardest step of Holm over all pairs and systems rated on the same passages."""
    if not deviation:
        return None, None
    from elench.stats.estimation import ratings_needed

    def need(metric: float) -> int | None:
        return ratings_needed(
            options.difference, deviation, correlation=metric, same_items=alike, comparisons=max(1, pairs),
            power=options.power,
        ).ratings  # fmt: skip

    return need(0.0), None if correlation is None or abs(correlation) >= 1 else need(correlation)
