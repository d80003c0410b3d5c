"""Take ratings and raters out: a row each, with a data dictionary that says what each column means."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from statistics import mean
from typing import TYPE_CHECKING

from sqlalchemy import select

from elench.study.analyse.flags import habits
from elench.study.analyse.quality import Verdict, judge_rater, judge_raters
from elench.study.analyse.sittings import Sitting, by_rater, collect, rater_facts
from elench.study.collect.schema import steps
from elench.study.folder import Study

if TYPE_CHECKING:
    from elench.study.collect.store import Store

COLUMNS: dict[str, str] = {
    "rater": "pseudonym of the rater: a keyed hash that leads nowhere without the study's key",
    "source": "where the rater came from: link, invitation, mturk, prolific, simulated",
    "standing": "decision about the rater: stopped (by the filter), excluded, readmitted; empty: none",
    "passed": "whether the rater's work is kept in the analysis",
    "p": "the filter's p-value for the rater: small when the ratings show reading; empty where raters are not filtered",
    "flags": "signs that the rater may not have read, separated by ' | '; they exclude nobody",
    "task": "name of the task in plan.jsonl",
    "state": "state of the task: submitted, open, expired, returned",
    "counted": "whether the task fills a place of the target",
    "item": "place of the item in the plan's task, from 1",
    "position": "place at which the rater met the item, from 1",
    "screen": "items of a task with the same name were shown side by side; empty: alone",
    "kind": "ordinary; bad (bad reference); repeat (ordinary item again); check (output beside its bad reference)",
    "record": "id of the record",
    "system": "system that produced the judged text",
    "criterion": "name of the criterion",
    "answer": "as given: slider position, place of the label from 0, rank/outputs, marked words/number of words, text",
    "rating": "what the answer counts; empty for free text",
    "seconds": "seconds for which the item was in view, as the browser tells; empty without JavaScript",
    "task_seconds": "seconds from taking the task to submitting it",
    "changes": "ratings of this task that were changed before it was submitted",
    "code": "completion code of a submitted task",
    "feedback": "what the rater wrote at the end of the task",
}
"""Column of the ratings → what it means."""

RATER_COLUMNS: dict[str, str] = {
    "rater": COLUMNS["rater"],
    "source": COLUMNS["source"],
    "standing": COLUMNS["standing"],
    "passed": COLUMNS["passed"],
    "p": COLUMNS["p"],
    "flags": COLUMNS["flags"],
    "submitted": "tasks that the rater submitted",
    "counted": "submitted tasks that fill a place of the target",
    "minutes": "mean minutes per submitted task",
    "qualification": "share of right answers in the qualification test",
    "check_attempts": "attempts at the comprehension check",
}
"""Column of the raters → what it means; answers to the protocol's questions follow as before_… and after_…."""


def dictionary(study: Study) -> dict[str, object]:
    """The data dictionary of an export: columns, criteria with their scales, and how the study was run."""
    protocol = study.protocol
    return {
        "study": study.id,
        "protocol": {"name": protocol.name, "title": protocol.title, "source": protocol.source},
        "judged": protocol.judge,
        "filter": {"kind": protocol.filter.kind, "alpha": protocol.filter.alpha, "pairs": protocol.filter.pairs},
        "columns": COLUMNS,
        "rater_columns": rater_columns(study),
        "criteria": [
            {
                "name": c.name,
                "statement": c.statement,
                "scale": c.scale,
                "labels": list(c.labels),
                "values": list(c.values) if c.measures else [],
            }
            for c in protocol.asked
        ],
        "systems": list(study.systems),
        "human_system": study.human,
    }


def rating_rows(store: Store) -> Iterator[dict[str, object]]:
    """One row per rating as it is now; raters are pseudonyms, and whoever withdrew is left out."""
    study = store.study
    sittings = [s for s in collect(store) if s.standing != "withdrawn"]
    verdicts = judge_raters(study, sittings)
    own = by_rater(sittings)
    judged = {s.rater: _verdict(study, verdicts.get(s.rater), own.get(s.rater, ())) for s in sittings}
    for sitting in sittings:
        task = study.by_id[sitting.task]
        position = {place: n for n, place in enumerate(sitting.order, 1)}
        head = {
            "rater": sitting.rater,
            "source": sitting.source,
            "standing": sitting.standing,
            **judged[sitting.rater],
            "task": sitting.task,
            "state": sitting.state,
            "counted": sitting.state == "submitted" and sitting.slot is not None,
        }
        tail = {
            "task_seconds": None if sitting.minutes is None else round(60 * sitting.minutes, 1),
            "changes": sitting.changes,
            "code": sitting.code if sitting.state == "submitted" else "",
            "feedback": sitting.feedback,
        }
        for place, given in sorted(sitting.answers.items()):
            item = task.items[place]
            for criterion, answer in given.items():
                yield {
                    **head,
                    "item": place + 1,
                    "position": position.get(place),
                    "screen": item.screen,
                    "kind": item.kind,
                    "record": item.record,
                    "system": item.system,
                    "criterion": criterion,
                    "answer": answer,
                    "rating": sitting.values.get(place, {}).get(criterion),
                    "seconds": sitting.seconds.get(place),
                    **tail,
                }


def rater_columns(study: Study) -> dict[str, str]:
    """The columns of the raters, with the protocol's own questions."""
    asked = (("before", study.protocol.before), ("after", study.protocol.after))
    return RATER_COLUMNS | {f"{step}_{q.name}": q.text for step, questions in asked for q in questions}


def rater_rows(store: Store) -> Iterator[dict[str, object]]:
    """One row per rater with verdict and answers about themselves; whoever withdrew is left out."""
    study = store.study
    own = by_rater(collect(store))
    with store.reading() as connection:
        said = connection.execute(select(steps).order_by(steps.c.id)).all()
    answers = {(row.rater, f"{row.step}_{row.field}"): row.value for row in said}
    attempts = Counter(row.rater for row in said if (row.step, row.field) == ("check", "done"))
    for rater in rater_facts(store):
        if rater.standing == "withdrawn":
            continue
        done = own.get(rater.id, [])
        verdict = judge_rater(study, rater.id, done) if done else None
        minutes = [s.minutes for s in done if s.minutes is not None]
        yield {
            "rater": rater.id,
            "source": rater.source,
            "standing": rater.standing,
            **_verdict(study, verdict, done),
            "submitted": len(done),
            "counted": sum(s.slot is not None for s in done),
            "minutes": round(mean(minutes), 2) if minutes else None,
            "qualification": rater.qualification,
            "check_attempts": attempts[rater.id],
            **{name: answers.get((rater.id, name), "") for name in rater_columns(study) if name not in RATER_COLUMNS},
        }


def _verdict(study: Study, verdict: Verdict | None, done: Sequence[Sitting]) -> dict[str, object]:
    """The columns that tell what the filter and the flags say about a rater."""
    return {
        "passed": None if verdict is None else verdict.passed,
        "p": None if verdict is None or verdict.p is None else round(verdict.p, 6),
        "flags": "" if verdict is None else " | ".join(habits(study, list(done), verdict).flags),
    }


def as_jsonl(rows: Iterable[dict[str, object]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def as_csv(rows: Iterable[dict[str, object]], columns: Iterable[str]) -> str:
    """For spreadsheets: a text that could be taken for a formula gets a quote before it."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(columns), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: harmless(value) for name, value in row.items()})
    return out.getvalue()


def ratings_jsonl(store: Store) -> str:
    return as_jsonl(rating_rows(store))


def ratings_csv(store: Store) -> str:
    return as_csv(rating_rows(store), COLUMNS)


def raters_csv(store: Store) -> str:
    return as_csv(rater_rows(store), rater_columns(store.study))


def harmless(value: object) -> object:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
