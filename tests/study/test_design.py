"""What a plan promises: balance, spread controls, and nothing to be guessed from positions."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from scipy.stats import chisquare

from elench.errors import UsageError
from elench.study.collect.store import Arrival, Store
from elench.study.design.compose import Task, add_references, compose, control_counts
from elench.study.design.protocol_file import load_protocol
from tests.study.conftest import outputs

CROWD = load_protocol("qg-crowd")


def kinds(task: Task) -> Counter[str]:
    return Counter(item.kind for item in task.items)


def test_eleven_systems_give_the_papers_task() -> None:
    """QAScore figure 5: 20 items, 11 ordinary, 6 bad references, 3 repeats, arranged 3 + 4 + 10 + 3."""
    for task in compose(outputs(), CROWD, None, "human", 0):
        assert kinds(task) == {"ordinary": 11, "bad": 6, "repeat": 3}
        per_system: dict[str, list[str]] = {}
        for item in task.items:
            per_system.setdefault(item.system, []).append(item.kind)
        assert sorted(per_system.pop("human")) == ["bad", "ordinary", "repeat"]
        shapes = Counter(tuple(sorted(found)) for found in per_system.values())
        assert shapes == {("ordinary", "repeat"): 2, ("bad", "ordinary"): 5, ("ordinary",): 3}


@pytest.mark.parametrize("systems", [2, 3, 5, 11, 16])
def test_every_system_is_shown_equally_often_and_controls_are_spread(systems: int) -> None:
    records = outputs(systems, passages=12)
    plan = compose(records, CROWD, 40, "human", 3)
    assert len(plan) == 40
    for task in plan:
        ordinary = Counter(item.system for item in task.items if item.kind == "ordinary")
        assert set(ordinary.values()) == {1} and len(ordinary) == systems
        groups = {next(r.group for r in records if r.id == item.record) for item in task.items}
        assert len(groups) == 1  # one passage per task
    for kind, slack in (("bad", 1), ("repeat", 2)):
        spread = Counter({f"system{s:02d}": 0 for s in range(1, systems)})
        spread.update(i.system for t in plan for i in t.items if i.kind == kind and i.system != "human")
        assert max(spread.values()) - min(spread.values()) <= slack
        assert sum(i.kind == kind and i.system == "human" for t in plan for i in t.items) == 40


def test_controls_without_a_human_system() -> None:
    assert control_counts(11, True, 0.5, 0.2) == (5, 2)
    assert control_counts(2, False, 0.5, 0.2) == (1, 1)
    plan = compose(outputs(), CROWD, 5, None, 0)
    assert all(kinds(task)["bad"] == 6 and kinds(task)["repeat"] == 2 for task in plan)


def test_bad_references_differ_from_their_question_and_repeats_do_not() -> None:
    for task in compose(outputs(), CROWD, None, "human", 0):
        ordinary = {item.record: item.text for item in task.items if item.kind == "ordinary"}
        for item in task.items:
            assert (item.text == ordinary[item.record]) == (item.kind != "bad")


def test_the_same_seed_gives_the_same_plan() -> None:
    assert compose(outputs(), CROWD, None, "human", 5) == compose(outputs(), CROWD, None, "human", 5)
    assert compose(outputs(), CROWD, None, "human", 5) != compose(outputs(), CROWD, None, "human", 6)


def test_pool_tasks_hold_every_record_once_and_systems_evenly() -> None:
    records = outputs(4, passages=15)
    plan = compose(records, load_protocol("qg-expert"), None, None, 0)
    assert sorted(item.record for task in plan for item in task.items) == sorted(r.id for r in records)
    assert {task.raters for task in plan} == {5}
    for task in plan:
        each = Counter(item.system for item in task.items)
        assert max(each.values()) - min(each.values()) <= 2
    short = compose(records, load_protocol("qg-expert"), 2, None, 0)
    assert set(Counter(item.system for task in short for item in task.items).values()) == {10}


def test_position_tells_nothing_about_the_kind_of_an_item(sqlite_store: Store) -> None:
    """The strongest guess by position, learnt on half of the raters, is no better than chance on the other half."""
    study = sqlite_store.study
    rows = []
    for k in range(80):
        held = sqlite_store.assign(Arrival(f"r{k}", "link", f"s{k}"))
        sqlite_store.expire(now=held.expires + 1)
        rows.append([study.by_id[held.task].items[place].kind for (place,) in held.order])
    for kind in ("bad", "repeat", "ordinary"):
        counts = [sum(row[place] == kind for row in rows) for place in range(20)]
        assert chisquare(counts).pvalue > 1e-4, (kind, counts)
    learnt = [Counter(row[place] for row in rows[:40]) for place in range(20)]
    best = sorted(range(20), key=lambda place: -learnt[place]["bad"])[:6]
    hits = sum(row[place] == "bad" for row in rows[40:] for place in best) / (40 * 6)
    assert abs(hits - 0.3) < 0.12  # 6 of 20 items are bad references: chance is .30, standard error .03


def test_orders_differ_between_raters(sqlite_store: Store) -> None:
    orders = {sqlite_store.assign(Arrival(f"r{k}", "link", f"s{k}")).order for k in range(8)}
    assert len(orders) == 8


def test_references_make_a_human_system() -> None:
    records = [r for r in outputs(3, 4) if r.system != "human"]
    added = add_references(records, "question")
    assert [r.question for r in added if r.system == "human"] == [
        f"What is in {p}?" for p in ("Lyon", "Oslo", "Graz", "Turin")
    ]
    assert len(compose(added, CROWD, None, "human", 0)) == 4


def test_mistakes_are_named() -> None:
    with pytest.raises(UsageError, match="at least 2 systems"):
        compose(outputs(1), CROWD, None, None, 0)
    with pytest.raises(UsageError, match="no passage has an output of every one of the 3 systems"):
        compose([r for r in outputs(3, 3) if r.id not in ("p0-s0", "p1-s1", "p2-s2")], CROWD, None, None, 0)
    nameless = [replace(outputs(2)[0], system=None), *outputs(2)[1:]]
    with pytest.raises(UsageError, match="'p0-s0' has no system"):
        compose(nameless, CROWD, None, None, 0)
