"""The desk: every action works, is logged, and the log cannot be changed; payments, export, the human side."""

from __future__ import annotations

import csv
import io
import json

import pytest
from sqlalchemy import delete
from sqlalchemy.exc import DBAPIError

from elench.errors import UsageError
from elench.study.analyse.export import COLUMNS, dictionary, rater_rows, raters_csv, rating_rows
from elench.study.analyse.ranking import Options, analyse_study
from elench.study.analyse.sittings import collect
from elench.study.collect import actions, steps
from elench.study.collect.handout import NoTask
from elench.study.collect.payments import PLATFORM_FILES
from elench.study.collect.progress import progress
from elench.study.collect.schema import events
from elench.study.collect.store import Arrival, Store
from elench.study.folder import load_study
from tests.study.conftest import STEPS, MakeStudy
from tests.study.test_store import person, rate_all
from tests.study.web import Visitor


def finish(store: Store, name: str, careful: bool = True, source: str = "link") -> str:
    held = store.assign(Arrival(name, source, f"{name}-session", f"W-{name}", {"assignment": f"A-{name}"}))
    rate_all(store, held, careful=careful)
    store.submit(held.id, f"note of {name}")
    return held.id


def test_exclude_readmit_return_extend_and_invite_are_logged_for_good(store: Store) -> None:
    finish(store, "ann")
    finish(store, "flat", careful=False)
    assert [s.slot is not None for s in collect(store)] == [True, False]
    with pytest.raises(UsageError, match="give a reason"):
        actions.exclude(store, "ann", " ")
    actions.exclude(store, "ann", "told us she guessed")
    actions.readmit(store, "flat", "looked through by hand")
    assert [s.slot is not None for s in collect(store)] == [False, True]
    with pytest.raises(NoTask, match="not_admitted"):
        store.assign(person("ann"))
    held = store.assign(person("eve"))
    actions.return_slot(store, held.id, "asked us to")
    with pytest.raises(UsageError, match="no unfinished task"):
        actions.return_slot(store, held.id, "")
    before = progress(store).planned
    actions.extend(store, 2, "t0001")
    assert progress(store).planned == before + 2
    (secret,) = actions.invite(store, ["zoe"]).values()
    assert actions.all_invitations(store)[secret] == "zoe"
    log = [(e.action, e.subject) for e in reversed(actions.event_log(store))]
    assert log == [
        ("stopped", "flat"), ("excluded", "ann"), ("readmitted", "flat"), ("slot returned", held.id),
        ("extended", "t0001"), ("invited", "zoe"),
    ]  # fmt: skip
    with pytest.raises(DBAPIError, match="append-only"), store._writing() as connection:
        connection.execute(delete(events))


def test_the_desk_shows_ranking_flags_cost_and_answers_feedback(store: Store) -> None:
    for k in range(6):
        finish(store, f"r{k}")
    boss = Visitor(store)
    page = boss.enter().text
    for part in ("Ranking so far, all raters", "more to completion", "chance that", "fast: ", "note of r3"):
        assert part in page, part
    card = boss.get("/admin/raters/r3")
    assert "control pairs" in card.text and "mildness" in card.text
    boss.post("/admin/act", {"csrf": boss.csrf, "action": "reply", "subject": "r3", "text": "thank <b>you</b>"})
    assert [m.author for m in steps.thread(store, "r3")] == ["rater", "researcher"]
    assert "thank &lt;b&gt;you" in boss.get("/admin/raters/r3").text
    boss.get("/admin/raters/r3")
    done = boss.post("/admin/act", {"csrf": boss.csrf, "action": "exclude", "subject": "r3", "reason": ""})
    assert done.status_code == 400 and "reason" in done.text
    boss.get("/admin/raters/r3")
    boss.post("/admin/act", {"csrf": boss.csrf, "action": "exclude", "subject": "r3", "reason": "test"})
    assert "excluded" in boss.get("/admin/events").text
    assert boss.post("/admin/act", {"csrf": "x", "action": "pause"}).status_code == 403


def test_payments_say_why(make_study: MakeStudy) -> None:
    folder = make_study(keep_worker_ids=True).folder
    protocol = folder / "protocol.toml"
    protocol.write_text(protocol.read_text("utf-8").replace("[pay]", '[pay]\nfailed = "none"\nbonus = 0.5'), "utf-8")
    store = Store(load_study(folder))
    finish(store, "ann", source="mturk")
    finish(store, "flat", careful=False, source="mturk")
    rows = {row["WorkerId"]: row for row in csv.DictReader(io.StringIO(PLATFORM_FILES["mturk"](store)))}
    assert rows["W-ann"]["Approve"] == "x" and rows["W-ann"]["Bonus"] == "0.50" and not rows["W-ann"]["Reject"]
    assert rows["W-flat"]["AssignmentId"] == "A-flat" and "spoilt items" in rows["W-flat"]["Reject"]
    assert PLATFORM_FILES["bonus"](store).splitlines() == ["participant_id,amount", "W-ann,0.50"]


def test_every_exported_column_is_in_the_dictionary(store: Store) -> None:
    finish(store, "ann")
    rows = list(rating_rows(store))
    assert len(rows) == 80 and set(rows[0]) == set(COLUMNS)
    assert sorted({row["position"] for row in rows}) == list(range(1, 21)) and rows[0]["feedback"] == "note of ann"
    found = dictionary(store.study)
    assert json.loads(json.dumps(found))["criteria"][0]["scale"] == "slider"


def test_the_human_side_from_consent_to_exit_survey(make_study: MakeStudy, database: str | None) -> None:
    folder = make_study().folder
    protocol = folder / "protocol.toml"
    protocol.write_text(protocol.read_text("utf-8") + STEPS, "utf-8")
    store = Store(load_study(folder), database)
    join = f"/join/{store.study.secrets.join}"
    rater = Visitor(store)
    assert "a@example.org" in rater.get(join).text
    refuser = Visitor(store, rater.app)
    refuser.get(join)
    refuser.post(join, {"csrf": refuser.csrf, "step": "consent", "agree": "no"})
    assert "Nothing was stored" in refuser.page.text
    rater.post(join, {"csrf": rater.csrf, "step": "consent", "agree": "yes"})
    assert "I understand" in rater.page.text and "0.99 USD" in rater.page.text
    rater.post(join, {"csrf": rater.csrf, "step": "instructions"})
    rater.post(join, {"csrf": rater.csrf, "step": "check", "q-what": "passages", "attempt": "0"})
    assert "Not all answers were right" in rater.page.text and "1 more attempt" in rater.page.text
    rater.post(join, {"csrf": rater.csrf, "step": "check", "q-what": "questions", "attempt": "1"})
    assert "How old are you" in rater.page.text
    rater.post(join, {"csrf": rater.csrf, "step": "before", "q-age": "under 30"})
    task = rater.path.rsplit("/", 1)[0]
    assert "Withdraw from the study" in rater.get(f"{task}/instructions").text
    rater.get(task)
    rater.rate_all()
    rater.post(f"{task}/submit", {"csrf": rater.csrf, "feedback": ""})
    assert "How hard was it" in rater.page.text
    rater.post(rater.path, {"csrf": rater.csrf, "q-hard": "not very"})
    assert 'id="code"' in rater.page.text
    careless = Visitor(store, rater.app)
    careless.get(join)
    careless.post(join, {"csrf": careless.csrf, "step": "consent", "agree": "yes"})
    careless.post(join, {"csrf": careless.csrf, "step": "instructions"})
    for attempt in ("0", "1"):
        careless.post(join, {"csrf": careless.csrf, "step": "check", "q-what": "passages", "attempt": attempt})
    assert "were not answered correctly" in careless.page.text
    steps.withdraw(store, collect(store)[0].rater)
    assert all(s.slot is None and s.standing == "withdrawn" for s in collect(store))
    store.close()


def asked(make_study: MakeStudy, more: str = STEPS) -> Store:
    folder = make_study().folder
    protocol = folder / "protocol.toml"
    protocol.write_text(protocol.read_text("utf-8") + more, "utf-8")
    return Store(load_study(folder))


def test_a_check_whose_button_is_pressed_twice_is_one_attempt(make_study: MakeStudy) -> None:
    """Before, a double click on a wrong answer used up both attempts."""
    store = asked(make_study)
    join = f"/join/{store.study.secrets.join}"
    rater = Visitor(store)
    rater.get(join)
    rater.post(join, {"csrf": rater.csrf, "step": "consent", "agree": "yes"})
    rater.post(join, {"csrf": rater.csrf, "step": "instructions"})
    form = {"csrf": rater.csrf, "step": "check", "q-what": "passages", "attempt": "0"}
    assert 'name="attempt" value="0"' in rater.page.text
    for _ in range(2):
        rater.post(join, form)
        assert "1 more attempt" in rater.page.text
    rater.post(join, form | {"attempt": "1"})
    assert "were not answered correctly" in rater.page.text
    assert [e.action for e in actions.event_log(store)] == ["screened out"]
    store.close()


def test_whoever_withdraws_is_in_no_export_and_no_ranking_and_cannot_be_readmitted(store: Store) -> None:
    for k in range(4):
        finish(store, f"r{k}")
    steps.withdraw(store, "r2")
    for act in (actions.readmit, actions.exclude):
        with pytest.raises(UsageError, match="withdrew from the study"):
            act(store, "r2", "we want the ratings")
    assert {row["rater"] for row in rating_rows(store)} == {row["rater"] for row in rater_rows(store)} == {
        "r0", "r1", "r3",
    }  # fmt: skip
    assert {j.n for j in progress(store).heavy.ranking_all} <= {3, 4, 5, 6}  # three raters, repeats counted
    report = analyse_study(store, options=Options(unfiltered=True, draws=20))
    assert sum(s.questions for s in report.scores) == 33


def test_answers_about_the_raters_are_exported_with_what_was_asked(make_study: MakeStudy) -> None:
    """Before, demographics and exit survey were stored and could not be taken out."""
    store = asked(make_study)
    for name, age in (("ann", "under 30"), ("ben", "")):
        finish(store, name)
        steps.check(store, name, {"what": "questions"}, "0")
        steps.record(store, name, "before", {"age": age})
        steps.record(store, name, "after", {"hard": "=not very"})
    rows = list(csv.DictReader(io.StringIO(raters_csv(store))))
    assert [row["before_age"] for row in rows] == ["under 30", ""]
    assert rows[0]["after_hard"] == "'=not very" and rows[0]["check_attempts"] == "1"
    assert rows[0]["passed"] == "True" and rows[0]["submitted"] == rows[0]["counted"] == "1"
    assert dictionary(store.study)["rater_columns"]["before_age"] == "How old are you?"
    assert set(rows[0]) == set(dictionary(store.study)["rater_columns"])
    boss = Visitor(store)
    boss.enter()
    assert boss.get("/admin/export.raters.csv").text == raters_csv(store)
    assert "exported" in boss.get("/admin/events").text
    store.close()


def test_training_items_show_the_highlight_that_the_task_will_show(make_study: MakeStudy) -> None:
    training = """
[[training]]
context = "The Danube flows through Vienna."
question = "What flows through Vienna?"
answer = "The Danube"
expected = { relevancy = "high" }
"""
    store = asked(make_study, training)
    rater = Visitor(store)
    rater.join()
    assert "Example 1 of 1" in rater.page.text and "<mark>" in rater.page.text
    assert "</span>The Danube<span" in rater.page.text
    store.close()
