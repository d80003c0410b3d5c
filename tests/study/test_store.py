"""The store, on SQLite and on PostgreSQL: nothing over-assigned, nothing lost, nobody sees a task twice."""

from __future__ import annotations

import threading
import time
from collections import Counter

import pytest
from sqlalchemy import delete, func, select, update
from sqlalchemy.exc import DBAPIError

from elench.errors import UsageError
from elench.study.analyse.sittings import collect
from elench.study.collect.database import Closed, Stale
from elench.study.collect.handout import NoTask
from elench.study.collect.schema import assignments, raters, ratings
from elench.study.collect.store import Arrival, Assignment, Store
from elench.study.folder import load_study
from tests.study.conftest import MakeStudy


def person(name: str, session: str | None = None, source: str = "link") -> Arrival:
    return Arrival(name, source, session or name)


def rate_all(store: Store, held: Assignment, answer: int = 60, careful: bool = True) -> None:
    for place, item in enumerate(store.study.by_id[held.task].items):
        given = answer - 30 if careful and item.kind == "bad" else answer
        store.rate(held.id, place, {c.name: given if c.slider else 0 for c in store.study.protocol.criteria})


def test_a_rater_gets_a_task_and_the_same_one_again_until_it_is_submitted(store: Store) -> None:
    held = store.assign(person("ann"))
    assert store.assign(person("ann")) == held
    assert store.submit(held.id, "") == list(range(20))  # nothing rated yet: it stays open
    rate_all(store, held)
    assert store.submit(held.id, "all fine") == []
    assert store.submit(held.id, "again") == []
    following = store.assign(person("ann"))
    assert following.task != held.task
    assert [s.feedback for s in collect(store)] == ["all fine", ""]


def test_no_task_is_handed_out_more_often_than_planned_nor_twice_to_one_rater(store: Store) -> None:
    """60 raters storm 12 tasks from 12 threads."""
    held: list[Assignment] = []
    refused: list[str] = []

    def storm(first: int) -> None:
        for k in range(first, 60, 12):
            try:
                held.append(store.assign(person(f"r{k}")))
            except NoTask as reason:
                refused.append(str(reason))

    threads = [threading.Thread(target=storm, args=(k,)) for k in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(held) == 12 and len(refused) == 48
    assert set(Counter(a.task for a in held).values()) == {1}


def test_a_rater_goes_through_all_tasks_and_never_meets_one_again(store: Store) -> None:
    seen = set()
    for _ in range(12):
        held = store.assign(person("ann"))
        assert held.task not in seen
        seen.add(held.task)
        rate_all(store, held)
        store.submit(held.id, "")
    with pytest.raises(NoTask, match="nothing_left"):
        store.assign(person("ann"))


def test_an_unfinished_task_returns_to_the_pool_and_its_ratings_stay(store: Store) -> None:
    held = store.assign(person("ann"))
    store.rate(held.id, 3, {"relevancy": 40})
    late = store.assignment(held.id).expires + 1  # type: ignore[union-attr]
    everybody = [store.assign(person(f"r{k}"), now=late) for k in range(12)]
    assert held.task in {a.task for a in everybody}
    with pytest.raises(Closed, match="expired"):
        store.rate(held.id, 4, {"relevancy": 40})
    assert not store.resume(held.id)  # its place is taken
    assert store.current(held.id) == {3: {"relevancy": "40"}}


def test_a_late_rater_goes_on_when_the_place_is_still_free(store: Store) -> None:
    held = store.assign(person("ann"))
    store.rate(held.id, 3, {"relevancy": 40})
    store.expire(now=held.expires + 10**6)
    assert store.assignment(held.id).state == "expired"  # type: ignore[union-attr]
    assert store.resume(held.id)
    store.rate(held.id, 3, {"relevancy": 50})
    assert store.current(held.id) == {3: {"relevancy": "50"}}


def test_ratings_are_append_only(store: Store) -> None:
    held = store.assign(person("ann"))
    for answer in (10, 20, 20, 30):
        store.rate(held.id, 0, {"relevancy": answer})
    with store.reading() as connection:
        query = select(ratings.c.value).where(ratings.c.assignment == held.id).order_by(ratings.c.id)
        assert list(connection.scalars(query)) == [10, 20, 30]  # an unchanged rating is not written again
    assert store.current(held.id) == {0: {"relevancy": "30"}}
    for statement in (update(ratings).values(value=99), delete(ratings)):
        with pytest.raises(DBAPIError, match="append-only"), store._writing() as connection:
            connection.execute(statement)


def test_writes_of_many_raters_at_once_are_all_kept_and_refusals_hurt_nobody(store: Store) -> None:
    held = [store.assign(person(f"r{k}")) for k in range(12)]
    rate_all(store, held[0])
    store.submit(held[0].id, "")
    refused = []

    def work(one: Assignment) -> None:
        for place in range(20):
            try:
                store.rate(one.id, place, {"relevancy": place, "answerability": 5})
            except Closed:
                refused.append(place)

    threads = [threading.Thread(target=work, args=(one,)) for one in held]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(refused) == list(range(20))
    for one in held[1:]:
        assert store.current(one.id) == {place: {"relevancy": str(place), "answerability": "5"} for place in range(20)}


@pytest.mark.parametrize("trouble", ["stale", "broken"])
def test_a_rater_whose_write_fails_does_not_spoil_those_that_are_committed_with_it(
    sqlite_store: Store, trouble: str
) -> None:
    database, (bad, good) = sqlite_store._database, [sqlite_store.assign(person(name)) for name in ("bad", "good")]
    sqlite_store.rate(bad.id, 0, {"relevancy": 50}, tab="new")
    failed: list[Exception] = []

    def spoil() -> None:
        try:
            if trouble == "stale":
                sqlite_store.rate(bad.id, 0, {"relevancy": 10}, seen=0, tab="old")
            else:
                sqlite_store.rate(bad.id, 99, {"relevancy": 10})
        except (Stale, IndexError) as error:
            failed.append(error)

    def work() -> None:
        sqlite_store.rate(good.id, 0, {"relevancy": 70})

    assert database._line is not None
    threads = [threading.Thread(target=one) for one in (spoil, work)]
    with database._line:  # both wait for the disk, so that one transaction holds both
        for thread in threads:
            thread.start()
        while len(database._jobs) < 2:
            time.sleep(0.01)
    for thread in threads:
        thread.join()
    assert len(failed) == 1
    assert sqlite_store.current(good.id) == {0: {"relevancy": "70"}}
    assert sqlite_store.current(bad.id) == {0: {"relevancy": "50"}}


def test_a_submitted_task_cannot_be_changed(store: Store) -> None:
    held = store.assign(person("ann"))
    rate_all(store, held)
    store.submit(held.id, "")
    with pytest.raises(Closed, match="submitted"):
        store.rate(held.id, 0, {"relevancy": 1})


def test_pausing_stops_new_tasks_only(store: Store) -> None:
    held = store.assign(person("ann"))
    store.pause(True)
    with pytest.raises(NoTask, match="paused"):
        store.assign(person("ben"))
    assert store.assign(person("ann")) == held
    store.rate(held.id, 0, {"relevancy": 1})
    store.pause(False)
    store.assign(person("ben"))


def test_platform_sessions(store: Store) -> None:
    """MTurk: the same assignment resumes and stays finished; another one of the same worker is another task."""
    held = store.assign(person("w", "A1", "mturk"))
    other = store.assign(person("w", "A2", "mturk"))
    assert other.task != held.task
    assert store.assign(person("w", "A1", "mturk")) == held
    rate_all(store, held)
    store.submit(held.id, "")
    assert store.assign(person("w", "A1", "mturk")).id == held.id


def test_everything_survives_closing_and_opening_again(store: Store) -> None:
    held = store.assign(person("ann"))
    store.rate(held.id, 0, {"relevancy": 77})
    store.close()
    again = Store(load_study(store.study.folder), store.url)
    assert again.current(held.id) == {0: {"relevancy": "77"}}
    assert again.assign(person("ann")).id == held.id
    again.close()


def test_several_raters_per_task_fill_evenly(make_study: MakeStudy, database: str | None) -> None:
    store = Store(make_study("qg-expert", systems=4, passages=10), database)
    held = [store.assign(person(f"r{k}")) for k in range(10)]
    assert set(Counter(a.task for a in held).values()) == {5}
    with pytest.raises(NoTask):
        store.assign(person("r10"))
    store.close()


@pytest.mark.parametrize("careful", [True, False])
def test_the_qualification_test_decides(make_study: MakeStudy, database: str | None, careful: bool) -> None:
    store = Store(make_study("qg-similarity", systems=4, passages=10), database)
    held = store.assign(person("ann"))
    assert held.task == "qualification"
    for place, item in enumerate(store.study.protocol.qualification):
        right = {
            c.name: c.values.index(item.expected[c.name][0]) if c.name in item.expected else 0
            for c in store.study.protocol.criteria
        }
        store.rate(held.id, place, right if careful else dict.fromkeys(right, 0))
    assert store.submit(held.id, "") == []
    if careful:
        assert store.another(held).task.startswith("t")
    else:
        with pytest.raises(NoTask, match="test_failed"):
            store.another(held)
    with store.reading() as connection:
        share = connection.scalar(select(raters.c.qualification))
    assert share == 1.0 if careful else share < 0.8
    store.close()


def test_worker_ids_are_not_stored_unless_asked(make_study: MakeStudy, database: str | None) -> None:
    store = Store(make_study(), database)
    store.assign(Arrival("pseudonym", "mturk", "s", "A1WORKERID"))
    with store.reading() as connection:
        assert connection.scalar(select(raters.c.worker)) is None
        assert connection.scalar(select(func.count()).select_from(assignments)) == 1
    store.close()


def test_worker_ids_are_kept_when_asked(make_study: MakeStudy) -> None:
    store = Store(make_study(keep_worker_ids=True))
    store.assign(Arrival("pseudonym", "mturk", "s", "A1WORKERID"))
    with store.reading() as connection:
        assert connection.scalar(select(raters.c.worker)) == "A1WORKERID"


def test_a_database_belongs_to_one_study(store: Store, make_study: MakeStudy) -> None:
    with pytest.raises(UsageError, match="belongs to another study"):
        Store(make_study(), store.url)


def test_an_edited_plan_is_followed(store: Store) -> None:
    folder = store.study.folder
    lines = (folder / "plan.jsonl").read_text("utf-8").splitlines()
    more = lines[0].replace('"raters": 1', '"raters": 3')
    (folder / "plan.jsonl").write_text("\n".join([more, *lines[1:3]]) + "\n", "utf-8")
    again = Store(load_study(folder), store.url)
    taken = Counter(again.assign(person(f"r{k}")).task for k in range(5))
    assert taken == {"t0001": 3, "t0002": 1, "t0003": 1}
    with pytest.raises(NoTask):
        again.assign(person("r5"))
    again.close()


def test_an_unreachable_database_is_one_clear_line(make_study: MakeStudy) -> None:
    with pytest.raises(UsageError, match="cannot open the database"):
        Store(make_study(), "postgresql://nobody@127.0.0.1:1/none")
