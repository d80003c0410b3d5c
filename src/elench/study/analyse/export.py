"""Take ratings out: every rating as a row, with a data dictionary that says what each column means."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from elench.study.analyse.flags import habits
from elench.study.analyse.quality import judge_raters
from elench.study.analyse.sittings import by_rater, collect
from elench.study.folder import Study

if TYPE_CHECKING:
    from elench.study.collect.store import Store

COLUMNS: dict[str, str] = {
    "rater": "pseudonym of the rater: a keyed hash that leads nowhere without the study's key",
    "source": "where the rater came from: link, invitation, mturk, prolific, simulated",
    "standing": "decision about the rater: stopped (by the filter), excluded, readmitted, withdrawn; empty: none",
    "passed": "whether the rater's work is kept in the analysis",
    "p": "one-sided Wilcoxon signed-rank p of the rater's ordinary items against their bad references",
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
"""Column → what it means."""


def dictionary(study: Study) -> dict[str, Any]:
    """The data dictionary of an export: columns, criteria with their scales, and how the study was run."""
    protocol = study.protocol
    return {
        "study": study.id,
        "protocol": {"name": protocol.name, "title": protocol.title, "source": protocol.source},
        "judged": protocol.judge,
        "filter": {"kind": protocol.filter.kind, "alpha": protocol.filter.alpha, "pairs": protocol.filter.pairs},
        "columns": COLUMNS,
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
    """One row per rating as it is now; raters are pseudonyms."""
    study = store.study
    sittings = collect(store)
    verdicts = judge_raters(study, sittings)
    flags = {rater: habits(study, own, verdicts[rater]).flags for rater, own in by_rater(sittings).items()}
    for sitting in sittings:
        verdict = verdicts.get(sitting.rater)
        task = study.by_id[sitting.task]
        position = {place: n for n, place in enumerate(sitting.order, 1)}
        head = {
            "rater": sitting.rater,
            "source": sitting.source,
            "standing": sitting.standing,
            "passed": None if verdict is None else verdict.passed,
            "p": None if verdict is None or verdict.p is None else round(verdict.p, 6),
            "flags": " | ".join(flags.get(sitting.rater, ())),
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


def ratings_jsonl(store: Store) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rating_rows(store))


def ratings_csv(store: Store) -> str:
    """For spreadsheets: a text that could be taken for a formula gets a quote before it."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(COLUMNS), lineterminator="\n")
    writer.writeheader()
    for row in rating_rows(store):
        writer.writerow({name: harmless(value) for name, value in row.items()})
    return out.getvalue()


def harmless(value: object) -> object:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
