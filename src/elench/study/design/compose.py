"""Compose tasks (HITs) from system outputs: every system equally often, controls spread, nothing in a fixed place."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from elench.errors import UsageError
from elench.perturb.bad_reference import BadReferences
from elench.records.record import Record
from elench.study.design.checks import check_reachable, enough_controls, smallest_permutation_p
from elench.study.design.protocol import Protocol

Kind = Literal["ordinary", "bad", "repeat", "check"]
KINDS: tuple[str, ...] = ("ordinary", "bad", "repeat", "check")
"""check: the intact output shown beside its bad reference on a screen that compares."""
HUMAN_NAMES = ("human", "reference", "references", "gold", "ground truth", "ground_truth")


@dataclass(frozen=True)
class Item:
    """One thing to rate. A control refers to the ordinary item of the same record in the same task."""

    record: str
    system: str
    kind: Kind
    text: str
    """The judged text as the rater sees it."""
    screen: str = ""
    """Items of a task with the same name are shown side by side; empty: alone."""

    @cached_property
    def key(self) -> str:
        """What ratings are filed under: it changes when anything about the item does."""
        parts = [self.record, self.system, self.kind, self.text, self.screen]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]

    @property
    def scored(self) -> bool:
        """Whether its ratings enter the score of its system."""
        return self.kind in ("ordinary", "repeat")


@dataclass(frozen=True)
class Task:
    """What one rater does in one sitting."""

    id: str
    raters: int
    items: tuple[Item, ...]

    @cached_property
    def screens(self) -> tuple[tuple[int, ...], ...]:
        """Places of the items that are shown together."""
        found: dict[str, list[int]] = {}
        for place, item in enumerate(self.items):
            found.setdefault(item.screen or f"\0{place}", []).append(place)
        return tuple(tuple(places) for places in found.values())

    @cached_property
    def place_of(self) -> dict[str, int]:
        """Key of an item → its place."""
        return {item.key: place for place, item in enumerate(self.items)}


def judged(record: Record, judge: str) -> str:
    """The text that is judged."""
    return str(getattr(record, judge) or "")


def find_human(systems: Sequence[str], wanted: str | None) -> str | None:
    """The system that represents human performance: the one asked for, or one with a telling name."""
    if wanted is not None:
        if wanted not in systems:
            raise UsageError(f"no system {wanted!r} in the file: it has {', '.join(systems)}")
        return wanted
    return next((name for name in systems if name.casefold() in HUMAN_NAMES), None)


def add_references(records: Sequence[Record], judge: str, name: str = "human") -> list[Record]:
    """The records and, per group, one more of the system `name` made of the first reference."""
    added: dict[tuple[str, str], Record] = {}
    for record in records:
        if record.references:
            key = (_group(record), record.references[0])
            text = {judge: record.references[0]}
            added.setdefault(key, replace(record, id=f"{record.id}-{name}", system=name, references=(), **text))  # type: ignore[arg-type]
    if not added:
        raise UsageError("no record has references to make a human system of")
    return [*records, *added.values()]


def control_counts(systems: int, human: bool, bad_share: float, repeat_share: float) -> tuple[int, int]:
    """How many non-human systems of a task get a bad reference and how many a repeat: (5, 2) of the paper's 10."""
    others = systems - 1 if human else systems
    bad = max(1, math.floor(bad_share * others + 0.5)) if bad_share else 0
    repeats = math.floor(repeat_share * others + 0.5) if repeat_share else 0
    if repeat_share and not human:
        repeats = max(1, repeats)
    return min(bad, others), min(repeats, others - min(bad, others))


def judged_after_one_task(systems: int, human: bool, protocol: Protocol) -> bool:
    """Whether one task has enough items for the permutation test; raters from a platform often take only one."""
    if protocol.filter.kind != "permutation":
        return True
    bad, repeats = control_counts(systems, human, protocol.task.bad_references, protocol.task.repeats)
    bad = enough_controls(bad, systems, human, protocol) + human
    items = systems + bad + repeats + (human and protocol.task.repeats > 0)
    return 2 * smallest_permutation_p(items, bad, 1) < protocol.filter.alpha


def compose(
    records: Sequence[Record], protocol: Protocol, tasks: int | None, human: str | None, seed: int
) -> list[Task]:
    """The plan of a study: tasks with their items, in an order that carries no meaning (raters get their own)."""
    systems = sorted({record.system or "" for record in records})
    if "" in systems:
        nameless = next(record for record in records if not record.system)
        raise UsageError(f"record {nameless.id!r} has no system: a study compares systems, so every record names one")
    if len(systems) < 2:
        raise UsageError(f"a study compares at least 2 systems; the file has only {', '.join(systems) or 'none'}")
    rng = np.random.default_rng(seed)
    if protocol.comparative:
        from elench.study.design.comparison_tasks import comparison_tasks

        chosen = comparison_tasks(records, systems, protocol, tasks, rng)
    elif protocol.task.compose == "pool":
        chosen = _pool(records, systems, protocol, tasks, rng)
    else:
        chosen = _by_passage(records, systems, protocol, tasks, human, rng)
    width = max(4, len(str(len(chosen))))
    return [
        Task(f"t{number:0{width}d}", protocol.task.raters, tuple(items[place] for place in rng.permutation(len(items))))
        for number, items in enumerate(chosen, 1)
    ]


def _group(record: Record) -> str:
    return record.group or record.context or ""


def blocks(records: Sequence[Record], systems: Sequence[str], judge: str) -> list[dict[str, Record]]:
    """One record of every system about the same passage; a group with several answers makes several blocks."""
    groups: dict[str, dict[str, list[Record]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        groups[_group(record)][record.system or ""].append(record)
    found = []
    for by_system in groups.values():
        for several in by_system.values():
            several.sort(key=lambda r: str((r.question if judge == "answer" else r.answer) or ""))
        for place in range(min((len(by_system[name]) for name in systems), default=0)):
            found.append({name: by_system[name][place] for name in systems})
    return found


def _by_passage(
    records: Sequence[Record],
    systems: Sequence[str],
    protocol: Protocol,
    tasks: int | None,
    human: str | None,
    rng: np.random.Generator,
) -> list[list[Item]]:
    complete = blocks(records, systems, protocol.judge)
    if not complete:
        raise UsageError(
            f"no passage has an output of every one of the {len(systems)} systems ({', '.join(systems)}): "
            "items of a task share a passage and show every system once; check `group` (or `context`) and `system`"
        )
    rule = protocol.task
    bad, repeats = control_counts(len(systems), human is not None, rule.bad_references, rule.repeats)
    bad = enough_controls(bad, len(systems), human is not None, protocol)
    if bad:
        controls = bad + repeats + (2 if human else 0)
        check_reachable(len(systems) + controls, bad + bool(human), len(complete), protocol)
    spoil = BadReferences(record.context or "" for record in records)
    others = [name for name in systems if name != human]
    given_bad, given_repeat = Counter[str](), Counter[str]()
    order = [int(place) for place in rng.permutation(len(complete))]
    plan = []
    for number in range(tasks if tasks is not None else len(complete)):
        block = complete[order[number % len(order)]]
        # Least used first, chance between equals; a system rich in repeats is preferred for the bad reference, so
        # that both kinds of control stay spread over the systems.
        chance = {name: float(rng.random()) for name in others}
        with_bad = sorted(others, key=lambda s: (given_bad[s], -given_repeat[s], chance[s]))[:bad]
        rest = [name for name in others if name not in with_bad] or others
        with_repeat = sorted(rest, key=lambda s: (given_repeat[s], chance[s]))[:repeats]
        given_bad.update(with_bad)
        given_repeat.update(with_repeat)
        if human is not None:
            with_bad = [*with_bad, human] if bad else with_bad
            with_repeat = [*with_repeat, human] if rule.repeats else with_repeat
        items = [_item(block[name], protocol.judge, "ordinary") for name in systems]
        items += [_item(block[name], protocol.judge, "repeat") for name in with_repeat]
        for name in with_bad:
            record = block[name]
            spoilt = spoil.make(judged(record, protocol.judge), record.context or "", rng)
            items.append(Item(record.id, name, "bad", spoilt))
        plan.append(items)
    return plan


def _item(record: Record, judge: str, kind: Kind) -> Item:
    text = judged(record, judge)
    if not text.strip():
        raise UsageError(f"record {record.id!r} (system {record.system}) has no {judge} to judge")
    return Item(record.id, record.system or "", kind, text)


def _pool(
    records: Sequence[Record],
    systems: Sequence[str],
    protocol: Protocol,
    tasks: int | None,
    rng: np.random.Generator,
) -> list[list[Item]]:
    by_system: dict[str, list[Record]] = defaultdict(list)
    for place in rng.permutation(len(records)):
        by_system[records[place].system or ""].append(records[place])
    per_task = protocol.task.items
    if tasks is not None:  # equally many of every system
        each = min(tasks * per_task // len(systems), *(len(found) for found in by_system.values()))
        if each == 0:
            raise UsageError(f"{tasks} tasks of {per_task} items have no room for {len(systems)} systems")
        by_system = {name: found[:each] for name, found in by_system.items()}
    # Dealing the systems out in turn gives every task nearly the same number of each.
    rounds = [
        by_system[systems[place]][depth]
        for depth in range(max(len(found) for found in by_system.values()))
        for place in rng.permutation(len(systems))
        if depth < len(by_system[systems[place]])
    ]
    count = math.ceil(len(rounds) / per_task)
    cuts = [round(number * len(rounds) / count) for number in range(count + 1)]
    return [
        [_item(record, protocol.judge, "ordinary") for record in rounds[start:end]]
        for start, end in itertools.pairwise(cuts)
    ]
