"""A study folder: what a person can read and edit (protocol, plan, records), its secrets, and where ratings go."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from quaestor.errors import UsageError
from quaestor.records import Record, read_records, write_records
from quaestor.study.design import Item, Task
from quaestor.study.protocol import Protocol, parse_protocol

QUALIFICATION = "qualification"
UNLIMITED = 1_000_000_000


@dataclass(frozen=True)
class Secrets:
    """Who holds these may rate (join), manage (admin); `key` signs links and hides worker ids."""

    join: str
    admin: str
    key: str


@dataclass(frozen=True)
class Study:
    """A study as it lies in its folder."""

    folder: Path
    id: str
    human: str | None
    seed: int
    keep_worker_ids: bool
    invitations: Mapping[str, str]
    """Secret of a personal link → the name it was made for."""
    protocol: Protocol
    tasks: tuple[Task, ...]
    records: Mapping[tuple[str, str], Record]
    """By id and system."""
    secrets: Secrets

    @cached_property
    def by_id(self) -> dict[str, Task]:
        found = {task.id: task for task in self.tasks}
        if self.protocol.qualification:
            items = tuple(
                Item(f"{QUALIFICATION}-{n}", "", "ordinary", item.shown.get(self.protocol.judge, ""))
                for n, item in enumerate(self.protocol.qualification)
            )
            found[QUALIFICATION] = Task(QUALIFICATION, UNLIMITED, items)
        return found

    @cached_property
    def systems(self) -> tuple[str, ...]:
        return tuple(sorted({item.system for task in self.tasks for item in task.items}))

    def shown(self, task: Task, place: int) -> dict[str, Any]:
        """What a rater sees of an item: texts by name, and the answer to highlight."""
        item = task.items[place]
        if task.id == QUALIFICATION:
            texts = dict(self.protocol.qualification[place].shown)
            return {"texts": {name: texts.get(name, "") for name in self.protocol.show}, "answer": ""}
        record = self.records[item.record, item.system]
        texts = {
            "context": record.context or "",
            "question": record.question or "",
            "answer": record.answer or "",
            "summary": record.summary or "",
            "reference": record.references[0] if record.references else "",
        }
        texts[self.protocol.judge] = item.text
        highlight = record.answer if self.protocol.highlight and self.protocol.judge != "answer" else ""
        return {"texts": {name: texts[name] for name in self.protocol.show}, "answer": highlight or ""}

    @property
    def default_database(self) -> str:
        return f"sqlite:///{(self.folder / 'study.db').resolve()}"


def write_study(
    folder: Path,
    protocol: Protocol,
    tasks: Sequence[Task],
    records: Sequence[Record],
    *,
    human: str | None,
    seed: int,
    keep_worker_ids: bool = False,
    invite: Sequence[str] = (),
) -> Study:
    """Write a new study folder; an existing study is never overwritten."""
    if (folder / "study.json").exists():
        raise UsageError(f"{folder} already holds a study: choose another folder, or delete this one yourself")
    folder.mkdir(parents=True, exist_ok=True)
    used = {(item.record, item.system) for task in tasks for item in task.items}
    head = {
        "id": secrets.token_hex(8),
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "protocol": protocol.name,
        "human": human,
        "seed": seed,
        "keep_worker_ids": keep_worker_ids,
    }
    (folder / "protocol.toml").write_text(protocol.text, "utf-8")
    with (folder / "plan.jsonl").open("w", encoding="utf-8") as file:
        for task in tasks:
            file.write(json.dumps(asdict(task), ensure_ascii=False) + "\n")
    write_records([record for record in records if (record.id, record.system) in used], folder / "records.jsonl")
    hidden = {
        "join": secrets.token_urlsafe(16),
        "admin": secrets.token_urlsafe(24),
        "key": secrets.token_hex(32),
        "invitations": {secrets.token_urlsafe(16): name for name in invite},
    }
    path = folder / "secrets.json"
    path.touch(mode=0o600)
    path.write_text(json.dumps(hidden, indent=1) + "\n", "utf-8")
    (folder / "study.json").write_text(json.dumps(head, indent=1) + "\n", "utf-8")
    return load_study(folder)


def load_study(folder: Path) -> Study:
    """Read a study folder and check that its parts, perhaps edited by hand, fit together."""
    if not (folder / "study.json").is_file():
        raise UsageError(f"{folder} is not a study: make one with `quaestor study new records.jsonl -o {folder}`")
    head = _json(folder / "study.json")
    hidden = _json(folder / "secrets.json")
    protocol = parse_protocol((folder / "protocol.toml").read_text("utf-8"), str(folder / "protocol.toml"))
    records = {(record.id, record.system or ""): record for record in read_records(folder / "records.jsonl")}
    tasks = _plan(folder / "plan.jsonl", records)
    try:
        return Study(
            folder=folder,
            id=head["id"],
            human=head["human"],
            seed=head["seed"],
            keep_worker_ids=head["keep_worker_ids"],
            invitations=hidden["invitations"],
            protocol=protocol,
            tasks=tuple(tasks),
            records=records,
            secrets=Secrets(hidden["join"], hidden["admin"], hidden["key"]),
        )
    except KeyError as error:
        raise UsageError(f"{folder}: study.json or secrets.json lacks {error}") from None


def _json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from None
    if not isinstance(value, dict):
        raise UsageError(f"{path}: must be a JSON object")
    return value


def _plan(path: Path, records: Mapping[tuple[str, str], Record]) -> list[Task]:
    tasks: list[Task] = []
    seen: set[str] = set()
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                row = json.loads(line)
                items = tuple(Item(**item) for item in row["items"])
                task = Task(str(row["id"]), int(row["raters"]), items)
            except (ValueError, TypeError, KeyError) as error:
                raise UsageError(f"{path}:{number}: not a task: {error!r}") from None
            if task.id in seen or task.id == QUALIFICATION:
                raise UsageError(f"{path}:{number}: task id {task.id!r} is used twice or reserved")
            seen.add(task.id)
            ordinary = {(item.record, item.system) for item in items if item.kind == "ordinary"}
            for item in items:
                if (item.record, item.system) not in records:
                    raise UsageError(
                        f"{path}:{number}: record {item.record!r} of {item.system!r} is not in records.jsonl"
                    )
                if item.kind not in ("ordinary", "bad", "repeat"):
                    raise UsageError(f"{path}:{number}: kind {item.kind!r} is not ordinary, bad or repeat")
                if (item.record, item.system) not in ordinary:
                    raise UsageError(f"{path}:{number}: {item.kind} of {item.record!r} without its ordinary item")
            tasks.append(task)
    if not tasks:
        raise UsageError(f"{path}: no task")
    return tasks
