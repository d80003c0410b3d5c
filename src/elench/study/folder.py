"""A study folder: what a person can read and edit (protocol, plan, records), its secrets, and where ratings go."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from elench.errors import UsageError
from elench.records.record import Record, read_records, write_records
from elench.study.design.checks import marked_answer
from elench.study.design.compose import KINDS, Item, Task
from elench.study.design.protocol import KnownItem, Protocol
from elench.study.design.protocol_file import parse_protocol

QUALIFICATION = "qualification"
TRAINING = "training"
KNOWN = (TRAINING, QUALIFICATION)
"""Tasks of known items that come before the real ones; nothing in them is measured."""
IN_POSTGRESQL = "postgresql"
"""An empty file in the folder of a study whose ratings are in PostgreSQL."""
UNLIMITED = 1_000_000_000


@dataclass(frozen=True)
class Secrets:
    """Who holds these may rate (join), manage (admin); `key` signs links and hides worker ids."""

    join: str
    admin: str
    key: str
    earlier: tuple[tuple[str, frozenset[str]], ...] = ()
    """Raters of earlier studies who are not admitted: the key that made their pseudonyms, and the pseudonyms."""


@dataclass(frozen=True)
class Study:
    """A study as read from its folder."""

    folder: Path
    id: str
    human: str | None
    seed: int
    keep_worker_ids: bool
    adaptive: bool
    """Stop comparing systems that are decided: an anytime-valid test."""
    compare: tuple[str, str] | None
    """The comparison that the study is planned for; None: all pairs."""
    invitations: Mapping[str, str]
    """Secret of a personal link → the name it was made for."""
    protocol: Protocol
    tasks: tuple[Task, ...]
    records: Mapping[tuple[str, str], Record]
    """By id and system."""
    secrets: Secrets = field(repr=False)

    @cached_property
    def by_id(self) -> dict[str, Task]:
        found = {task.id: task for task in self.tasks}
        for name, known in ((QUALIFICATION, self.protocol.qualification), (TRAINING, self.protocol.training)):
            items = tuple(
                Item(f"{name}-{n}", "", "ordinary", item.shown.get(self.protocol.judge, ""))
                for n, item in enumerate(known)
            )
            if items:
                found[name] = Task(name, UNLIMITED, items)
        return found

    @cached_property
    def systems(self) -> tuple[str, ...]:
        return tuple(sorted({item.system for task in self.tasks for item in task.items}))

    @cached_property
    def overlaps(self) -> dict[str, frozenset[str]]:
        """Task → all tasks that show one of its records, itself included: one rater gets at most one of them."""
        holders: dict[tuple[str, str], list[str]] = {}
        for task in self.tasks:
            for key in {(item.record, item.system) for item in task.items}:
                holders.setdefault(key, []).append(task.id)
        found: dict[str, set[str]] = {task.id: {task.id} for task in self.tasks}
        for names in holders.values():
            if len(names) > 1:
                for name in names:
                    found[name].update(names)
        return {name: frozenset(names) for name, names in found.items()}

    @cached_property
    def fingerprint(self) -> str:
        """Hash of everything that gives a rating its meaning: items, texts and scales."""
        design = {
            "tasks": [(task.id, task.raters, [item.key for item in task.items]) for task in self.tasks],
            "asked": [(c.name, c.statement, c.scale, c.labels, c.values) for c in self.protocol.asked],
            "records": sorted(
                (record.id, record.system, record.context, record.question, record.answer, record.summary)
                for record in self.records.values()
            ),
        }
        return hashlib.sha256(json.dumps(design, default=str).encode()).hexdigest()[:32]

    def known(self, task: str) -> tuple[KnownItem, ...]:
        """The known items of the training or the test."""
        return self.protocol.training if task == TRAINING else self.protocol.qualification

    def passage(self, record: str, system: str) -> str:
        """What outputs are drawn together in resampling: those about one passage."""
        source = self.records.get((record, system))
        return f"output {record}" if source is None else source.group or source.context or record

    def shown(self, task: Task, place: int) -> dict[str, Any]:
        """What a rater sees of an item: texts by name, and the characters of the context to highlight."""
        item = task.items[place]
        if task.id in KNOWN:
            known = self.known(task.id)[place].shown
            record = Record(item.record, known.get("context"), answer=known.get("answer"))
            texts = {name: known.get(name, "") for name in self.protocol.show}
            return {"texts": texts, "mark": self._mark(record)}
        record = self.records[item.record, item.system]
        texts = {
            "context": record.context or "",
            "question": record.question or "",
            "answer": record.answer or "",
            "summary": record.summary or "",
            "reference": record.references[0] if record.references else "",
        }
        texts[self.protocol.judge] = item.text
        return {"texts": {name: texts[name] for name in self.protocol.show}, "mark": self._mark(record)}

    def _mark(self, record: Record) -> tuple[int, int] | None:
        return marked_answer(record) if self.protocol.highlight and self.protocol.judge != "answer" else None

    @property
    def default_database(self) -> str:
        return f"sqlite:///{(self.folder / 'study.db').resolve()}"


def require_database(folder: Path, url: str | None) -> None:
    """Ask for the URL where a study's ratings are in PostgreSQL."""
    if url is None and (folder / IN_POSTGRESQL).exists():
        raise UsageError(f"{folder}: the ratings of this study are in PostgreSQL: give --db postgresql://…")


def note_database(folder: Path, url: str | None) -> None:
    """Remember that a study's ratings are in PostgreSQL; not where: the URL may hold a password."""
    if url is not None and url.startswith("postgres"):
        private(folder / IN_POSTGRESQL)


def private(path: Path) -> Path:
    """A file that only its owner can read; the plan shows which items are controls, the database who rated what."""
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    path.chmod(0o600)
    return path


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
    adaptive: bool = False,
    compare: tuple[str, str] | None = None,
    earlier: Sequence[tuple[str, Sequence[str]]] = (),
    exclude: Sequence[str] = (),
) -> Study:
    """Write a new study folder; an existing study is never overwritten."""
    if (folder / "study.json").exists():
        raise UsageError(f"{folder} already holds a study: choose another folder, or delete this one yourself")
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    used = {(item.record, item.system) for task in tasks for item in task.items}
    head = {
        "id": secrets.token_hex(8),
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "protocol": protocol.name,
        "human": human,
        "seed": seed,
        "keep_worker_ids": keep_worker_ids,
        "adaptive": adaptive,
        "compare": compare,
    }
    key = secrets.token_hex(32)
    hidden = {
        "join": secrets.token_urlsafe(16),
        "admin": secrets.token_urlsafe(24),
        "key": key,
        "invitations": {secrets.token_urlsafe(16): name for name in invite},
        "earlier": [*([k, list(names)] for k, names in earlier), *_banned(key, exclude)],
    }
    private(folder / "protocol.toml").write_text(protocol.text, "utf-8")
    lines = [json.dumps(asdict(task), ensure_ascii=False) + "\n" for task in tasks]
    private(folder / "plan.jsonl").write_text("".join(lines), "utf-8")
    kept = [record for record in records if (record.id, record.system) in used]
    write_records(kept, private(folder / "records.jsonl"))
    private(folder / "secrets.json").write_text(json.dumps(hidden, indent=1) + "\n", "utf-8")
    private(folder / "study.json").write_text(json.dumps(head, indent=1) + "\n", "utf-8")
    return load_study(folder)


def _banned(key: str, workers: Sequence[str]) -> list[list[object]]:
    """Worker ids that are not admitted, stored as pseudonyms of every source they could come from."""
    from elench.study.collect.security import Signer

    signer = Signer(key)
    names = [signer.pseudonym(source, worker) for worker in workers for source in ("mturk", "prolific", "invitation")]
    return [[key, names]] if names else []


def load_study(folder: Path) -> Study:
    """Read a study folder and check that its parts, perhaps edited by hand, fit together."""
    if not (folder / "study.json").is_file():
        raise UsageError(f"{folder} is not a study: make one with `elench study new records.jsonl -o {folder}`")
    head = _json(folder / "study.json")
    hidden = _json(folder / "secrets.json")
    protocol = parse_protocol((folder / "protocol.toml").read_text("utf-8"), str(folder / "protocol.toml"))
    records = {(record.id, record.system or ""): record for record in read_records(folder / "records.jsonl")}
    tasks = _plan(folder / "plan.jsonl", records)
    try:
        earlier = tuple((key, frozenset(names)) for key, names in hidden.get("earlier", []))
        return Study(
            folder=folder,
            id=head["id"],
            human=head["human"],
            seed=head["seed"],
            keep_worker_ids=head["keep_worker_ids"],
            adaptive=head.get("adaptive", False),
            compare=tuple(head["compare"]) if head.get("compare") else None,
            invitations=hidden["invitations"],
            protocol=protocol,
            tasks=tuple(tasks),
            records=records,
            secrets=Secrets(hidden["join"], hidden["admin"], hidden["key"], earlier),
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
            if task.id in seen or task.id in KNOWN:
                raise UsageError(f"{path}:{number}: task id {task.id!r} is used twice or reserved")
            seen.add(task.id)
            if problem := _item_problem(task, records):
                raise UsageError(f"{path}:{number}: {problem}")
            tasks.append(task)
    if not tasks:
        raise UsageError(f"{path}: no task")
    return tasks


def _item_problem(task: Task, records: Mapping[tuple[str, str], Record]) -> str:
    intact = {(item.record, item.system) for item in task.items if item.kind in ("ordinary", "check")}
    if len(task.place_of) != len(task.items):
        return "an item is listed twice"
    for item in task.items:
        if (item.record, item.system) not in records:
            return f"record {item.record!r} of {item.system!r} is not in records.jsonl"
        if item.kind not in KINDS:
            return f"kind {item.kind!r} is not one of {', '.join(KINDS)}"
        if (item.record, item.system) not in intact:
            return f"{item.kind} of {item.record!r} without its ordinary item"
    return ""
