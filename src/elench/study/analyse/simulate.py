"""Judge a protocol before money is spent: fill a study with raters of known kinds and look what the filter does."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import mean

import numpy as np

from elench.stats.agreement import wilson
from elench.study.analyse.crowd import KINDS, Crowd, SimulatedRater, Truth, answers_of
from elench.study.analyse.quality import judge_rater, judge_raters
from elench.study.analyse.replication import correlate
from elench.study.analyse.scores import Array, judgements, kept_sittings, tabulate
from elench.study.analyse.sittings import Sitting
from elench.study.design.compose import Task
from elench.study.design.protocol import PAPER_FILTER
from elench.study.folder import Study, write_study


@dataclass(frozen=True)
class KindResult:
    """What the filter did with one kind of rater."""

    kind: str
    should_pass: bool
    raters: int
    accepted: int
    share: float | None
    interval: tuple[float, float] | None
    """95 %, Wilson."""


@dataclass(frozen=True)
class Simulation:
    """What a simulated crowd shows about a protocol."""

    runs: int
    raters: int
    tasks_per_rater: int
    alpha: float
    kinds: tuple[KindResult, ...]
    false_accept: float | None
    false_accept_n: int
    false_reject: float | None
    false_reject_n: int
    spearman_filtered: float | None
    """Between true and found system scores, mean over runs; None when no run could be ranked."""
    spearman_unfiltered: float | None
    ranked_runs: int
    replication: tuple[float, ...]
    """Pearson's r between the system scores of two runs on the same truth, one per pair of runs."""
    kept_tasks: float
    """Mean number of kept tasks per run."""
    submitted_tasks: float
    """Mean number of submitted, hence paid, tasks per run."""
    careless_work: float | None
    """Share of the kept tasks that come from raters who should fail."""

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1) + "\n"


def simulate_run(
    study: Study, truth: Truth, crowd: Crowd, rng: np.random.Generator
) -> tuple[list[Sitting], dict[str, str]]:
    """One crowd through the study: its sittings, and the kind of every rater.

    As when served: a rater takes `tasks_per_rater` tasks, stops when rejected, and goes on while undecided.
    """
    protocol = study.protocol
    kinds = {f"s{k:04d}": kind for k, kind in enumerate(crowd.draw(rng))}
    taken = dict.fromkeys((task.id for task in study.tasks), 0)
    sittings = []
    for name, kind in kinds.items():
        rater = SimulatedRater(kind, rng)
        own: list[Sitting] = []
        while (task := _next_task(study.tasks, taken, own, rng)) is not None:
            positions = rater.rate(truth.quality(task))
            values = {
                place: {name: protocol.criterion(name).value(answer) or 0.0 for name, answer in given.items()}
                for place, given in answers_of(protocol, task, positions).items()
            }
            own.append(Sitting(f"{name}-{task.id}", task.id, name, "simulated", "submitted", 0.0, 0.0, values))
            verdict = judge_rater(study, name, own)
            if not verdict.undecided and (not verdict.passed or len(own) >= crowd.tasks_per_rater):
                break
        sittings += own
    return sittings, kinds


def _next_task(
    tasks: Sequence[Task], taken: dict[str, int], own: Sequence[Sitting], rng: np.random.Generator
) -> Task | None:
    """The next task for one rater: one they have not had, the least taken first."""
    had = {sitting.task for sitting in own}
    chance = rng.random(len(tasks))
    free = [k for k in range(len(tasks)) if tasks[k].id not in had]
    if not free:
        return None
    best = tasks[min(free, key=lambda k: (taken[tasks[k].id], chance[k]))]
    taken[best.id] += 1
    return best


def _system_scores(study: Study, sittings: Sequence[Sitting], systems: Sequence[str]) -> Array | None:
    found = judgements(study, sittings, study.protocol.standardise)
    return tabulate(found, systems, len(study.protocol.criteria)).scores()[:, -1] if found else None


@dataclass(frozen=True)
class _Run:
    """One crowd, judged."""

    kinds: Counter[str]
    accepted: Counter[str]
    """Raters who passed, by kind."""
    submitted: int
    kept: int
    careless: int
    """Kept tasks of raters who should fail."""
    scores: Array | None
    """Of the systems, from kept tasks; None when there is nothing to rank."""
    spearman_filtered: float | None
    spearman_unfiltered: float | None


def _run(study: Study, truth: Truth, crowd: Crowd, rng: np.random.Generator) -> _Run:
    sittings, kinds = simulate_run(study, truth, crowd, rng)
    passed = {rater for rater, verdict in judge_raters(study, sittings).items() if verdict.passed}
    kept = kept_sittings(sittings, passed)
    systems = list(study.systems)
    true = np.array([truth.systems[name] for name in systems])
    scores, blurred = (_system_scores(study, some, systems) for some in (kept, kept_sittings(sittings, None)))
    return _Run(
        kinds=Counter(kinds.values()),
        accepted=Counter(kinds[rater] for rater in passed),
        submitted=len(sittings),
        kept=len(kept),
        careless=sum(not KINDS[kinds[s.rater]][0] for s in kept),
        scores=scores,
        spearman_filtered=None if scores is None else correlate("", true, scores).spearman,
        spearman_unfiltered=None if blurred is None else correlate("", true, blurred).spearman,
    )


def simulate_study(study: Study, crowd: Crowd, runs: int, seed: int) -> Simulation:
    """Several crowds; every two runs share a truth, so that they replicate each other as two runs of one study."""
    found = [
        _run(study, Truth(study, np.random.default_rng([seed, run // 2, 7])), crowd, np.random.default_rng([seed, run]))
        for run in range(runs)
    ]
    seen, accepted = (sum((getattr(one, name) for one in found), Counter[str]()) for name in ("kinds", "accepted"))
    rows = tuple(_kind(kind, seen[kind], accepted[kind]) for kind in KINDS if seen[kind])
    bad, good = ([row for row in rows if row.should_pass is wanted] for wanted in (False, True))
    n_bad, n_good = sum(row.raters for row in bad), sum(row.raters for row in good)
    filtered = [one.spearman_filtered for one in found if one.spearman_filtered is not None]
    unfiltered = [one.spearman_unfiltered for one in found if one.spearman_unfiltered is not None]
    kept = sum(one.kept for one in found)
    return Simulation(
        runs=runs,
        raters=crowd.raters,
        tasks_per_rater=crowd.tasks_per_rater,
        alpha=study.protocol.filter.alpha,
        kinds=rows,
        false_accept=sum(row.accepted for row in bad) / n_bad if n_bad else None,
        false_accept_n=n_bad,
        false_reject=1 - sum(row.accepted for row in good) / n_good if n_good else None,
        false_reject_n=n_good,
        spearman_filtered=mean(filtered) if filtered else None,
        spearman_unfiltered=mean(unfiltered) if unfiltered else None,
        ranked_runs=len(filtered),
        replication=_replications(found),
        kept_tasks=kept / runs,
        submitted_tasks=sum(one.submitted for one in found) / runs,
        careless_work=sum(one.careless for one in found) / kept if kept else None,
    )


def _replications(found: Sequence[_Run]) -> tuple[float, ...]:
    """Pearson's r between the system scores of each two runs on the same truth."""
    pairs = [(a.scores, b.scores) for a, b in zip(found[::2], found[1::2], strict=False)]
    values = [correlate("", a, b).pearson for a, b in pairs if a is not None and b is not None]
    return tuple(r for r in values if r is not None)


def as_published(study: Study) -> Study:
    """The same study under the paper's quality control."""
    return replace(study, protocol=replace(study.protocol, filter=PAPER_FILTER))


def _kind(kind: str, raters: int, accepted: int) -> KindResult:
    share = accepted / raters if raters else None
    return KindResult(kind, KINDS[kind][0], raters, accepted, share, wilson(accepted, raters) if raters else None)


def fill_study(study: Study, folder: Path, crowd: Crowd, seed: int) -> Study:
    """Write a study folder of its own, filled by one simulated crowd through the real store."""
    from elench.study.collect.handout import NoTask
    from elench.study.collect.store import Arrival, Store

    needed = -(-crowd.raters * crowd.tasks_per_rater // len(study.tasks))
    tasks = [replace(task, raters=max(task.raters, needed)) for task in study.tasks]
    filled = write_study(
        folder, study.protocol, tasks, list(study.records.values()), human=study.human, seed=study.seed
    )
    rng = np.random.default_rng([seed, 0])
    truth = Truth(study, np.random.default_rng([seed, 0, 7]))
    store = Store(filled)
    now = time.time() - 86400
    for number, kind in enumerate(crowd.draw(rng)):
        rater = SimulatedRater(kind, rng)
        for turn in range(crowd.tasks_per_rater):
            try:
                held = store.assign(Arrival(f"s{number:04d}-{kind}", "simulated", f"{number}.{turn}"), now)
            except NoTask:
                break
            positions = rater.rate(truth.quality(filled.by_id[held.task]))
            minutes = float(rng.gamma(9, 3.5) if KINDS[kind][0] else rng.gamma(9, 2.8))
            answers = answers_of(study.protocol, filled.by_id[held.task], positions)
            for step, screen in enumerate(held.order):
                at = now + 60 * minutes * (step + 1) / len(held.order)
                store.rate_screen(held.id, {place: answers[place] for place in screen}, at)
            store.submit(held.id, "", now + 60 * minutes)
    store.close()
    return filled
