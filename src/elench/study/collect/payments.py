"""Who is to be paid: lists in the form that MTurk and Prolific take, with a reason for each decision."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from elench.study.analyse.export import harmless
from elench.study.analyse.quality import judge_raters
from elench.study.analyse.sittings import Sitting, collect
from elench.study.collect.store import Store


@dataclass(frozen=True)
class Payment:
    """The decision about one submitted task."""

    sitting: Sitting
    worker: str
    approved: bool
    amount: float
    bonus: float
    reason: str


def payments(store: Store) -> Iterator[Payment]:
    """One decision per submitted task, by the protocol's rule."""
    reward = store.study.protocol.reward
    sittings = [s for s in collect(store) if s.state == "submitted"]
    verdicts = judge_raters(store.study, sittings)
    for sitting in sittings:
        row = store.rater(sitting.rater)
        verdict = verdicts[sitting.rater]
        approved = verdict.passed or verdict.undecided or reward.failed
        p = "" if verdict.p is None else f" (p = {verdict.p:.4f} on {verdict.pairs} control pairs)"
        if verdict.passed:
            reason = "ratings passed the quality control"
        elif verdict.undecided:
            reason = f"too few control items to judge the ratings{p}"
        elif sitting.standing in ("excluded", "withdrawn"):
            reason = f"rater was {sitting.standing}"
        else:
            reason = f"ordinary and spoilt items were not distinguished{p}"
        yield Payment(
            sitting=sitting,
            worker=(row.worker if row is not None else None) or sitting.rater,
            approved=approved,
            amount=reward.per_task if approved else 0.0,
            bonus=reward.bonus if verdict.passed else 0.0,
            reason=reason if verdict.passed or not approved else f"{reason}; paid by the protocol's rule",
        )


def _table(head: list[str], rows: Iterator[list[str]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    for row in rows:
        writer.writerow([harmless(cell) for cell in row])
    return out.getvalue()


def mturk(store: Store) -> str:
    """MTurk's results file: Approve or Reject per assignment, each with a reason, and a bonus."""
    head = ["AssignmentId", "WorkerId", "Approve", "Reject", "Bonus", "Reason"]
    rows = (
        [
            p.sitting.platform.get("assignment", ""),
            p.worker,
            "x" if p.approved else "",
            "" if p.approved else f"Sorry, we cannot pay for this task: {p.reason}.",
            f"{p.bonus:.2f}" if p.bonus else "",
            p.reason,
        ]
        for p in payments(store)
        if p.sitting.source == "mturk"
    )
    return _table(head, rows)


def prolific(store: Store) -> str:
    """Submissions with the decision about each."""
    head = ["submission_id", "participant_id", "status", "amount", "currency", "reason"]
    currency = store.study.protocol.currency
    rows = (
        [
            p.sitting.platform.get("session", ""),
            p.worker,
            "APPROVE" if p.approved else "REJECT",
            f"{p.amount:.2f}",
            currency,
            p.reason,
        ]
        for p in payments(store)
        if p.sitting.source == "prolific"
    )
    return _table(head, rows)


def bonus(store: Store) -> str:
    """Bonuses per rater, one line each, as Prolific's bulk form takes them (without the head)."""
    totals: dict[str, float] = {}
    for p in payments(store):
        if p.bonus:
            totals[p.worker] = totals.get(p.worker, 0.0) + p.bonus
    return _table(["participant_id", "amount"], ([worker, f"{amount:.2f}"] for worker, amount in totals.items()))


def everybody(store: Store) -> str:
    """All submitted tasks, whatever their source."""
    head = ["rater", "worker", "source", "task", "code", "approved", "amount", "bonus", "currency", "reason"]
    currency = store.study.protocol.currency
    rows = (
        [
            p.sitting.rater, p.worker, p.sitting.source, p.sitting.task, p.sitting.code, "yes" if p.approved else "no",
            f"{p.amount:.2f}", f"{p.bonus:.2f}", currency, p.reason,
        ]
        for p in payments(store)
    )  # fmt: skip
    return _table(head, rows)


PLATFORM_FILES: dict[str, Callable[[Store], str]] = {
    "all": everybody,
    "mturk": mturk,
    "prolific": prolific,
    "bonus": bonus,
}
