"""How a running study stands: what `quaestor study status` prints and the researcher's page shows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from statistics import median

from quaestor.study.agreement import Agreement, agreement
from quaestor.study.quality import Verdict, judge_raters
from quaestor.study.sittings import Sitting, collect, rater_facts
from quaestor.study.store import Store


@dataclass(frozen=True)
class TaskProgress:
    id: str
    passage: str
    items: int
    planned: int
    submitted: int
    open: int
    expired: int
    minutes: float | None


@dataclass(frozen=True)
class SystemProgress:
    name: str
    planned: int
    rated: int
    """Ordinary and repeated items in submitted tasks."""


@dataclass(frozen=True)
class RaterProgress:
    id: str
    source: str
    worker: str | None
    submitted: int
    open: int
    minutes: float | None
    qualification: float | None
    verdict: Verdict | None


@dataclass(frozen=True)
class Progress:
    """Everything at a glance."""

    paused: bool
    tasks: tuple[TaskProgress, ...]
    systems: tuple[SystemProgress, ...]
    raters: tuple[RaterProgress, ...]
    planned: int
    submitted: int
    open: int
    expired: int
    ratings: int
    minutes: float | None
    judged: int
    passed: int
    filtered: bool
    agreement: tuple[Agreement, ...]
    feedback: tuple[tuple[str, str, str], ...]
    """Rater, task, text."""


def progress(store: Store) -> Progress:
    """Count what is there now."""
    study = store.study
    store.expire()
    sittings = collect(store)
    done = [s for s in sittings if s.state == "submitted"]
    verdicts = judge_raters(study, done)
    states = Counter((s.task, s.state) for s in sittings)
    planned, rated = Counter[str](), Counter[str]()
    for task in study.tasks:
        for item in task.items:
            if item.kind != "bad":
                planned[item.system] += task.raters
                rated[item.system] += states[task.id, "submitted"]
    own: dict[str, list[Sitting]] = {}
    for sitting in sittings:
        own.setdefault(sitting.rater, []).append(sitting)
    return Progress(
        paused=store.paused,
        tasks=tuple(
            TaskProgress(
                task.id,
                (study.records[task.items[0].record, task.items[0].system].context or "")[:80],
                len(task.items),
                task.raters,
                states[task.id, "submitted"],
                states[task.id, "open"],
                states[task.id, "expired"],
                _minutes([s for s in done if s.task == task.id]),
            )
            for task in study.tasks
        ),
        systems=tuple(SystemProgress(name, planned[name], rated[name]) for name in study.systems),
        raters=tuple(
            RaterProgress(
                facts.id,
                facts.source,
                facts.worker,
                sum(s.state == "submitted" for s in own.get(facts.id, [])),
                sum(s.state == "open" for s in own.get(facts.id, [])),
                _minutes(own.get(facts.id, [])),
                facts.qualification,
                verdicts.get(facts.id),
            )
            for facts in rater_facts(store)
        ),
        planned=sum(task.raters for task in study.tasks),
        submitted=len(done),
        open=sum(s.state == "open" for s in sittings),
        expired=sum(s.state == "expired" for s in sittings),
        ratings=sum(len(given) for s in sittings for given in s.values.values()),
        minutes=_minutes(done),
        judged=len(verdicts),
        passed=sum(v.passed for v in verdicts.values()),
        filtered=study.protocol.filter.kind == "wilcoxon",
        agreement=tuple(agreement(study, done, draws=0)),
        feedback=tuple((s.rater, s.task, s.feedback) for s in done if s.feedback.strip()),
    )


def _minutes(sittings: list[Sitting]) -> float | None:
    times = [s.minutes for s in sittings if s.minutes is not None]
    return median(times) if times else None
