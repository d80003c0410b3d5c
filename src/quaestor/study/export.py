"""Take ratings out: every rating as a row, or the records with their human scores for `quaestor meta`."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

from quaestor.study.quality import judge_raters
from quaestor.study.sittings import collect
from quaestor.study.store import Store

COLUMNS = ["rater", "passed", "p", "task", "state", "item", "kind", "record", "system", "criterion", "rating"]
COLUMNS += ["seconds", "code"]


def rating_rows(store: Store) -> Iterator[dict[str, Any]]:
    """One row per rating as it stands; raters are pseudonyms."""
    sittings = collect(store)
    verdicts = judge_raters(store.study, sittings)
    for sitting in sittings:
        verdict = verdicts.get(sitting.rater)
        task = store.study.by_id[sitting.task]
        for place, given in sorted(sitting.values.items()):
            item = task.items[place]
            for criterion, value in given.items():
                yield {
                    "rater": sitting.rater,
                    "passed": None if verdict is None else verdict.passed,
                    "p": None if verdict is None or verdict.p is None else round(verdict.p, 6),
                    "task": sitting.task,
                    "state": sitting.state,
                    "item": place + 1,
                    "kind": item.kind,
                    "record": item.record,
                    "system": item.system,
                    "criterion": criterion,
                    "rating": value,
                    "seconds": None if sitting.minutes is None else round(60 * sitting.minutes, 1),
                    "code": sitting.code if sitting.state == "submitted" else "",
                }


def ratings_jsonl(store: Store) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rating_rows(store))


def ratings_csv(store: Store) -> str:
    """For spreadsheets: a text that could be taken for a formula gets a quote before it."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in rating_rows(store):
        writer.writerow({name: _harmless(value) for name, value in row.items()})
    return out.getvalue()


def _harmless(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
