"""What an outside probe found wrong, each with the test that failed before."""

from __future__ import annotations

import json
import re
import stat
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from sqlalchemy import text

from elench.cli.study import command
from elench.errors import UsageError
from elench.records.record import write_records
from elench.study.analyse.sittings import collect
from elench.study.collect.database import Stale
from elench.study.collect.handout import NoTask
from elench.study.collect.site import Site
from elench.study.collect.store import Arrival, Store
from elench.study.collect.web import application
from elench.study.design.checks import answer_places, check_kinds, smallest_p, warnings
from elench.study.design.compose import compose
from elench.study.design.protocol import PAPER_FILTER
from elench.study.design.protocol_file import load_protocol, parse_protocol, with_paper_filter
from elench.study.folder import load_study
from tests.study.conftest import MakeStudy, outputs
from tests.study.test_store import person, rate_all
from tests.study.web import Visitor

CROWD = load_protocol("qg-crowd")


def test_1_a_task_past_its_time_that_nobody_swept_is_simply_rated_on(store: Store) -> None:
    rater = Visitor(store)
    task = rater.join()
    with store._writing() as connection:
        connection.execute(text("UPDATE assignments SET expires = 1"))  # long ago, and still open
    reply = rater.post(f"{task}/1", {"csrf": rater.csrf, "go": "next", **rater.answers()})
    assert reply.status_code == 200 and rater.path == f"{task}/2"


@pytest.mark.parametrize(("systems", "human"), [(2, None), (2, "human"), (3, None)])
def test_2_a_perfect_rater_can_pass_every_design_that_is_accepted(systems: int, human: str | None) -> None:
    """Before, two systems without a human one gave 4 control pairs: smallest p .0625, everybody rejected."""
    for task in compose(outputs(systems), with_paper_filter(CROWD), None, human, 0):
        pairs = 4 * sum(item.kind == "bad" for item in task.items)
        assert 2 * smallest_p(pairs) < 0.05


def test_2_a_design_that_nobody_can_pass_is_refused_with_a_remedy() -> None:
    by_item = replace(CROWD, filter=replace(PAPER_FILTER, pairs="items"))
    with pytest.raises(UsageError, match=r"smallest reachable p is 0\.2500.*filter\.patience = 3"):
        compose(outputs(2), by_item, None, None, 0)
    patient = replace(by_item, filter=replace(by_item.filter, patience=3))
    assert compose(outputs(2), patient, None, None, 0)


def test_4_rejected_work_is_replaced_and_its_rater_stopped_kindly(store: Store) -> None:
    for k in range(12):
        held = store.assign(person(f"flat{k}"))
        rate_all(store, held, careful=False)
        store.submit(held.id, "")
    with pytest.raises(NoTask, match="stopped"):
        store.assign(person("flat0"))
    for k in range(12):  # all twelve places are free again
        held = store.assign(person(f"good{k}"))
        rate_all(store, held)
        store.submit(held.id, "")
    with pytest.raises(NoTask, match="nothing_left"):
        store.assign(person("late"))
    assert sum(s.slot is not None for s in collect(store)) == 12
    assert {s.rater[:4] for s in collect(store) if s.slot is not None} == {"good"}


def test_4_a_stopped_rater_sees_a_kind_page_with_a_code_by_the_protocols_rule(make_study: MakeStudy) -> None:
    study = make_study()
    for rule, paid in (("full", True), ("none", False)):
        folder = make_study().folder
        protocol = folder / "protocol.toml"
        protocol.write_text(study.protocol.text.replace("[pay]", f'[pay]\nfailed = "{rule}"'), "utf-8")
        store = Store(load_study(folder))
        rater = Visitor(store)
        task = rater.join()
        rater.rate_all(careful=False)
        rater.post(f"{task}/submit", {"csrf": rater.csrf})
        assert "Thank you" in rater.page.text and "last task" in rater.page.text
        assert ('id="code"' in rater.page.text) == paid and "another" not in rater.page.text


def test_5_a_changed_plan_is_refused_after_the_first_rating(store: Store) -> None:
    held = store.assign(person("ann"))
    store.rate(held.id, 3, {"relevancy": 40})
    plan = store.study.folder / "plan.jsonl"
    lines = plan.read_text("utf-8").splitlines()
    row = json.loads(lines[0])
    row["items"] = row["items"][::-1]
    plan.write_text("\n".join([json.dumps(row), *lines[1:]]) + "\n", "utf-8")
    with pytest.raises(UsageError, match="changed after the first rating"):
        Store(load_study(store.study.folder), store.url)
    plan.write_text("\n".join(lines) + "\n", "utf-8")
    again = Store(load_study(store.study.folder), store.url)
    with again.reading() as connection:  # filed under what was shown, not under a place
        key = connection.execute(text("SELECT item FROM ratings")).scalar()
    assert key == again.study.by_id[held.task].items[3].key
    again.close()


def test_8_records_of_another_kind_are_refused() -> None:
    with pytest.raises(UsageError, match="has judge = 'question', and protocol qa-correctness judges the answer"):
        check_kinds(outputs(2), load_protocol("qa-correctness"))
    unmarked = [replace(record, judge=None) for record in outputs(2)]
    with pytest.raises(UsageError, match="confirm with --judge answer"):
        check_kinds(unmarked, load_protocol("qa-correctness"))
    check_kinds(unmarked, load_protocol("qa-correctness"), "answer")


def test_9_a_missing_or_doubtful_highlight_is_warned_about_and_answer_start_is_followed(tmp_path: Path) -> None:
    records = outputs(2, 3)
    lost = replace(records[0], answer="nowhere to be found")
    vague = replace(records[1], context="art and art again", answer="art")
    found = warnings([lost, vague, *records[2:]], CROWD)
    assert any("p0-s0" in line and "does not occur" in line for line in found)
    assert any("occurs several times" in line for line in found)
    exact = replace(vague, extra={"answer_start": 8})
    from elench.study.design.checks import marked_answer

    assert marked_answer(exact) == (8, 11)
    assert not any("several" in line for line in warnings([exact], CROWD))
    write_records([lost, *records[1:]], tmp_path / "records.jsonl")
    done = CliRunner().invoke(command, ["new", str(tmp_path / "records.jsonl"), "-o", str(tmp_path / "s")])
    assert done.exit_code == 0 and "does not occur in the context" in done.output


def test_9_a_chinese_answer_is_highlighted_inside_a_sentence_without_spaces() -> None:
    """Before, whole words were looked for, and Chinese writes none: nothing was ever highlighted."""
    assert answer_places("北京是中国的首都。", "中国") == [(3, 5)]
    assert answer_places("artful art", "art") == [(7, 10)]


def test_11_a_rater_never_meets_an_item_again_in_another_task(make_study: MakeStudy, database: str | None) -> None:
    store = Store(make_study(passages=3, tasks=12), database)  # every passage in four tasks
    seen: list[tuple[str, str]] = []
    for _ in range(3):
        held = store.assign(person("ann"))
        seen += {(i.record, i.system) for i in store.study.by_id[held.task].items}
        rate_all(store, held)
        store.submit(held.id, "")
    assert len(seen) == len(set(seen)) == 33
    with pytest.raises(NoTask, match="nothing_left"):
        store.assign(person("ann"))
    store.close()


def test_12_one_browser_is_one_rater(make_study: MakeStudy) -> None:
    store = Store(make_study(invite=("anna",)))
    (secret,) = store.study.invitations
    person_ = Visitor(store)
    person_.join()
    for query in (f"?invite={secret}", "?PROLIFIC_PID=P1&STUDY_ID=S&SESSION_ID=X"):
        person_.join(query)
        assert "already taken part from this browser" in person_.page.text
    person_.join()
    assert "/t/" in person_.path  # the first one goes on
    assert len(collect(store)) == 1


def test_12_a_shared_computer_is_flagged_instead_when_the_protocol_allows_it(make_study: MakeStudy) -> None:
    folder = make_study(invite=("anna",)).folder
    protocol = folder / "protocol.toml"
    protocol.write_text(protocol.read_text("utf-8") + "\n[raters]\none_person = false\n", "utf-8")
    store = Store(load_study(folder))
    (secret,) = store.study.invitations
    person_ = Visitor(store)
    person_.join()
    person_.join(f"?invite={secret}")
    assert len(collect(store)) == 2
    assert person_.enter().text.count("same browser as another rater") == 2


def test_13_a_worker_who_returns_a_task_and_takes_it_again_is_not_locked_out(
    make_study: MakeStudy, database: str | None
) -> None:
    store = Store(make_study(tasks=1), database)
    first = store.assign(Arrival("w", "mturk", "A1"))
    store.rate(first.id, 0, {"relevancy": 9})
    again = store.assign(Arrival("w", "mturk", "A2"))  # returned on MTurk, accepted anew
    assert again.task == first.task and again.id != first.id and store.current(again.id) == {}
    assert store.assignment(first.id).state == "returned"  # type: ignore[union-attr]
    store.close()


def test_13_on_prolific_a_new_session_means_that_the_old_one_was_returned(store: Store) -> None:
    first = store.assign(Arrival("p", "prolific", "S1"))
    second = store.assign(Arrival("p", "prolific", "S2"))
    assert second.id != first.id and store.assignment(first.id).state == "returned"  # type: ignore[union-attr]


def test_14_only_the_owner_can_read_a_study(sqlite_store: Store) -> None:
    held = sqlite_store.assign(person("ann"))
    sqlite_store.rate(held.id, 0, {"relevancy": 1})
    folder = sqlite_store.study.folder
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    names = {path.name for path in folder.iterdir()}
    assert {"plan.jsonl", "protocol.toml", "records.jsonl", "study.db", "study.db-wal"} <= names
    for path in folder.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_15_the_address_decides_links_and_cookies(sqlite_store: Store) -> None:
    site = Site.at("https://study.example.org/", "127.0.0.1", 8765)
    app = application(sqlite_store.study, sqlite_store, site)
    boss = Visitor(sqlite_store, app)
    boss.client.base_url = "http://127.0.0.1"  # what the proxy calls
    entered = boss.client.get(f"/admin?token={sqlite_store.study.secrets.admin}", follow_redirects=False)
    assert "Secure" in entered.headers["set-cookie"]
    name, value = entered.headers["set-cookie"].split(";")[0].split("=", 1)
    page = boss.client.get("/admin", headers={"cookie": f"{name}={value}", "host": "evil.example"}).text
    assert f"https://study.example.org/join/{sqlite_store.study.secrets.join}" in page and "evil.example" not in page
    joined = boss.client.get(f"/join/{sqlite_store.study.secrets.join}")
    assert "Secure" in joined.headers["set-cookie"]
    with pytest.raises(UsageError, match="write scheme and host"):
        Site.at("study.example.org", "127.0.0.1", 8765)
    assert not Site.at(None, "127.0.0.1", 8765).proxied


def test_16_texts_carry_their_own_direction(sqlite_store: Store) -> None:
    rater = Visitor(sqlite_store)
    rater.join()
    assert '<div class="text" dir="auto"' in rater.page.text and 'class="subject" dir="auto"' in rater.page.text
    rater.rate_all()
    assert '<textarea dir="auto" id="feedback"' in rater.page.text  # what raters write, too


def test_17_nul_in_feedback_is_stored_without_it(store: Store) -> None:
    rater = Visitor(store)
    rater.join()
    rater.rate_all()
    rater.submit("before\0after")
    assert [s.feedback for s in collect(store)] == ["beforeafter"]


def test_19_a_stale_tab_never_overwrites_newer_ratings(store: Store) -> None:
    rater = Visitor(store)
    task = rater.join()
    csrf = rater.csrf
    quiet = {"accept": "application/json"}

    def save(value: int, seen: int, tab: str) -> object:
        data = {"csrf": csrf, "c-relevancy": str(value), "seen": str(seen), "tab": tab}
        return rater.client.post(f"{task}/1", data=data, headers=quiet)

    first = save(10, 0, "old").json()  # type: ignore[attr-defined]
    assert save(20, first["seen"], "new").status_code == 200  # type: ignore[attr-defined]
    late = save(30, first["seen"], "old")
    assert late.status_code == 409 and late.json()["stale"]  # type: ignore[attr-defined]
    (sitting,) = collect(store)
    assert next(iter(sitting.values.values()))["relevancy"] == 20
    held = sitting.id
    place = next(iter(sitting.values))
    with pytest.raises(Stale):
        store.rate(held, place, {"relevancy": 5}, seen=0)
    store.rate(
        held, place, {"relevancy": 40}, seen=first["seen"], tab="new"
    )  # the tab's own answer was lost, not its rating


def test_20_a_criterion_may_have_any_name() -> None:
    for name in ("action", "csrf", "go", "seen", "method", "submit"):
        protocol = parse_protocol(CROWD.text.replace('"relevancy"', f'"{name}"'), "x")
        assert f"c-{name}" in {c.field for c in protocol.asked}


def test_21_signing_out_ends_the_session(sqlite_store: Store) -> None:
    boss = Visitor(sqlite_store)
    boss.enter()
    cookie = boss.client.cookies["elench_admin"]
    boss.post("/admin/logout", {"csrf": boss.csrf})
    thief = Visitor(sqlite_store, boss.app)
    thief.client.cookies.set("elench_admin", cookie)
    assert thief.get("/admin").status_code == 401 and thief.get("/admin/export.csv").status_code == 401


def test_21_guessing_the_token_is_slowed_down(sqlite_store: Store) -> None:
    eve = Visitor(sqlite_store)
    answers = [eve.post("/admin/login", {"token": f"guess{k}"}).status_code for k in range(15)]
    assert answers[:10] == [403] * 10 and set(answers[10:]) == {429}
    assert eve.post("/admin/login", {"token": sqlite_store.study.secrets.admin}).status_code == 429


def test_22_the_desk_computes_nothing_twice(sqlite_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    from elench.study.collect import progress

    for k in range(3):
        held = sqlite_store.assign(person(f"r{k}"))
        rate_all(sqlite_store, held)
        sqlite_store.submit(held.id, "")
    calls = []
    real = progress.agreement
    monkeypatch.setattr(progress, "agreement", lambda *a, **k: calls.append(1) or real(*a, **k))
    boss = Visitor(sqlite_store)
    boss.enter()
    for _ in range(5):
        assert boss.get("/admin").status_code == 200
    assert len(calls) == 1


def test_23_a_double_post_lands_on_the_same_page(sqlite_store: Store) -> None:
    rater = Visitor(sqlite_store)
    task = rater.join()
    form = {"csrf": rater.csrf, "go": "next", "seen": "0", "tab": "t", **rater.answers()}
    replies = []

    def press() -> None:
        replies.append(rater.client.post(f"{task}/1", data=form, headers={"accept": "application/json"}).json())

    threads = [threading.Thread(target=press) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [reply["next"] for reply in replies] == [f"{task}/2"] * 2
    (sitting,) = collect(sqlite_store)
    assert sitting.changes == 0
    script = (Path(__file__).parents[2] / "src/elench/study/collect/static/rate.js").read_text()
    assert re.search(r"if \(leaving \|\| waiting\) return", script)


def test_17_nul_in_a_platforms_link_is_a_bad_link(make_study: MakeStudy, database: str | None) -> None:
    store = Store(make_study(keep_worker_ids=True), database)
    page = Visitor(store).get(f"/join/{store.study.secrets.join}?PROLIFIC_PID=a%00b&STUDY_ID=s&SESSION_ID=v")
    assert page.status_code == 400 and "not complete or was changed" in page.text
    store.close()


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"action": "extend", "more": "9" * 30}, "is not a whole number"),
        ({"action": "extend", "more": "²"}, "is not a whole number"),
        ({"action": "extend", "more": "5000"}, "extend by 1 to 1000 raters"),
        ({"action": "reply", "subject": "nobody", "text": "hello"}, "no rater &#39;nobody&#39;"),
    ],
)
def test_odd_actions_of_the_desk_are_refused_with_a_reason(store: Store, form: dict[str, str], message: str) -> None:
    researcher = Visitor(store)
    researcher.enter()
    page = researcher.post("/admin/act", {"csrf": researcher.csrf, **form})
    assert page.status_code == 400 and message in page.text


def test_an_odd_version_number_is_no_version(sqlite_store: Store) -> None:
    rater = Visitor(sqlite_store)
    rater.join()
    page = rater.post(rater.path, {"csrf": rater.csrf, "seen": "²", "go": "next", **rater.answers()})
    assert page.status_code == 200 and rater.path.endswith("/2")
