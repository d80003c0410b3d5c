"""Tasks in which outputs are compared side by side: preference, ranking, best–worst."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from elench.errors import UsageError
from elench.perturb.bad_reference import BadReferences
from elench.records.record import Record
from elench.study.design.checks import control_pairs_per_task, pairs_needed
from elench.study.design.compose import Item, blocks, judged
from elench.study.design.protocol import Protocol

Block = dict[str, Record]


def comparison_tasks(
    records: Sequence[Record], systems: Sequence[str], protocol: Protocol, tasks: int | None, rng: np.random.Generator
) -> list[list[Item]]:
    """Screens of `task.outputs` outputs about one passage, and control screens with an output beside its bad reference.

    Two at a time: a task holds screens of one pair of systems, so that a running study can ask for the pair it is least
    sure of. More at a time: systems are drawn evenly.
    """
    rule = protocol.task
    size = min(rule.outputs, len(systems))
    complete = blocks(records, systems, protocol.judge)
    if not complete:
        raise UsageError(f"no passage has an output of every one of the {len(systems)} systems: nothing to compare")
    controls = _control_count(protocol)
    each = rule.items - controls
    if each < 1:
        raise UsageError(f"task.items = {rule.items} leaves no room beside {controls} control screens: raise it")
    spoil = BadReferences(record.context or "" for record in records)
    plan: list[list[Item]] = []
    for screens in _batches(complete, systems, size, each, rng):
        if tasks is not None and len(plan) == tasks:
            break
        items: list[Item] = []
        for number, (block, names) in enumerate(screens, 1):
            items += [_shown(block[name], protocol, "ordinary", f"s{number}") for name in names]
        for number in range(len(screens) + 1, len(screens) + 1 + controls):
            block, names = screens[int(rng.integers(len(screens)))]
            items += _control(block, names, protocol, spoil, f"s{number}", rng)
        plan.append(items)
    return plan


def _control_count(protocol: Protocol) -> int:
    rule = protocol.task
    if not rule.bad_references:
        return 0
    controls = max(1, math.floor(rule.bad_references * rule.items + 0.5))
    if protocol.filter.kind == "wilcoxon":
        while control_pairs_per_task(controls, protocol) < pairs_needed(protocol.filter):
            controls += 1
    return controls


def _batches(
    complete: list[Block], systems: Sequence[str], size: int, each: int, rng: np.random.Generator
) -> Iterator[list[tuple[Block, tuple[str, ...]]]]:
    """The ordinary screens of one task after the other."""
    order = [complete[int(place)] for place in rng.permutation(len(complete))]
    if size == 2:
        pairs = list(itertools.combinations(systems, 2))
        per_pair = [order[start : start + each] for start in range(0, len(order), each)]
        for part in per_pair:  # all pairs on the same passages before the next passages
            for place in rng.permutation(len(pairs)):
                yield [(block, pairs[int(place)]) for block in part]
        return
    used: Counter[str] = Counter()
    for start in range(0, len(order), each):
        screens = []
        for block in order[start : start + each]:
            chance = {name: float(rng.random()) for name in systems}
            names = tuple(sorted(systems, key=lambda s: (used[s], chance[s]))[:size])
            used.update(names)
            screens.append((block, names))
        yield screens


def _control(
    block: Block,
    names: tuple[str, ...],
    protocol: Protocol,
    spoil: BadReferences,
    screen: str,
    rng: np.random.Generator,
) -> list[Item]:
    """One system's output, its bad reference, and as many others as an ordinary screen has."""
    twin = names[int(rng.integers(len(names)))]
    others = [name for name in names if name != twin][: len(names) - 2]
    items = [_shown(block[name], protocol, "check", screen) for name in (twin, *others)]
    bad = spoil.make(judged(block[twin], protocol.judge), block[twin].context or "", rng)
    return [*items, Item(block[twin].id, twin, "bad", bad, screen)]


def _shown(record: Record, protocol: Protocol, kind: str, screen: str) -> Item:
    text = judged(record, protocol.judge)
    if not text.strip():
        raise UsageError(f"record {record.id!r} (system {record.system}) has no {protocol.judge} to judge")
    return Item(record.id, record.system or "", kind, text, screen)  # type: ignore[arg-type]
