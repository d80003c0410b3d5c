"""The pages without JavaScript, on both databases: arriving, rating, resuming, finishing, the researcher's view."""

from __future__ import annotations

import json
import re

import pytest

from elench.records.record import Record
from elench.study.analyse.sittings import collect
from elench.study.collect.screens import cut
from elench.study.collect.store import Store
from elench.study.design.checks import marked_answer
from tests.study.conftest import MakeStudy
from tests.study.web import Visitor


def test_a_whole_task_from_the_link_to_the_code(store: Store) -> None:
    rater = Visitor(store)
    rater.get(f"/join/{store.study.secrets.join}")
    assert "I understand" in rater.page.text and store.study.protocol.instructions[2] in rater.page.text
    task = rater.join()
    assert re.fullmatch(r"/t/[0-9a-f]{16}\.[\w-]{22}", task)
    assert "Item 1 of 20" in rater.page.text and "<mark>" in rater.page.text
    assert 'value=""' in rater.page.text  # nothing is pre-selected
    rater.rate_all()
    assert "All items are rated" in rater.page.text
    code = rater.submit("the third was odd")
    sitting = collect(store)[0]
    assert sitting.code == code and sitting.feedback == "the third was odd"
    assert len(sitting.values) == 20 and all(len(given) == 4 for given in sitting.values.values())
    rater.post(f"{task}/another", {"csrf": rater.csrf})
    assert "Item 1 of 20" in rater.page.text and not rater.path.startswith(task)


def test_a_reload_resumes_where_the_rater_was_and_shows_earlier_ratings(store: Store) -> None:
    rater = Visitor(store)
    task = rater.join()
    for answer in (11, 22):
        rater.post(rater.path, {"csrf": rater.csrf, "go": "next", **rater.answers(answer)})
    assert rater.get(task).url.path == f"{task}/3"
    assert rater.get(f"{task}/2").text.count('value="22"') == 4
    rater.post(f"{task}/2", {"csrf": rater.csrf, "go": "back", "c-relevancy": "33"})
    assert rater.path == f"{task}/1"
    assert rater.get(f"{task}/2").text.count('value="33"') == 1
    again = Visitor(store)
    assert again.get(task).url.path == f"{task}/3"  # the link alone, in another browser
    rater.join()
    assert rater.path == f"{task}/3"  # arriving again with the same cookie


def test_incomplete_items_and_tasks_are_pointed_out(sqlite_store: Store) -> None:
    rater = Visitor(sqlite_store)
    task = rater.join()
    rater.post(rater.path, {"csrf": rater.csrf, "go": "next", "c-relevancy": "50"})
    assert rater.page.status_code == 422 and "Please rate every statement" in rater.page.text
    assert rater.page.text.count("criterion lacking") == 3
    rater.post(rater.path, {"csrf": rater.csrf, "go": "next", **rater.answers(), "c-relevancy": ""})
    assert rater.path == f"{task}/2"  # what was saved before counts
    rater.get(f"{task}/review")
    assert "19 of 20 items still need a rating" in rater.page.text


def test_a_rater_who_comes_back_late_goes_on_or_is_told(sqlite_store: Store) -> None:
    rater = Visitor(sqlite_store)
    task = rater.join()
    csrf = rater.csrf
    answers = {"csrf": csrf, "go": "next", **rater.answers()}
    sqlite_store.expire(now=10**11)
    assert rater.post(f"{task}/1", answers).url.path == f"{task}/2"  # the place was still free
    sqlite_store.expire(now=10**11)
    for _ in range(12):
        Visitor(sqlite_store, rater.app).join()
    assert "given to somebody else" in rater.post(f"{task}/2", answers).text and rater.page.status_code == 410
    assert rater.get(f"{task}/2").status_code == 410


def test_saving_in_the_background(sqlite_store: Store) -> None:
    rater = Visitor(sqlite_store)
    rater.join()
    quiet = {"accept": "application/json"}
    reply = rater.client.post(rater.path, data={"csrf": rater.csrf, "c-relevancy": "50"}, headers=quiet)
    assert reply.json()["saved"] and reply.json()["seen"] == 1
    everything = {"csrf": rater.csrf, "go": "next", **rater.answers()}
    assert rater.client.post(rater.path, data=everything, headers=quiet).json()["next"].endswith("/2")


def test_mturk(store: Store) -> None:
    rater = Visitor(store)
    preview = rater.get(f"/join/{store.study.secrets.join}?assignmentId=ASSIGNMENT_ID_NOT_AVAILABLE&hitId=H")
    assert "preview" in preview.text and "I understand" not in preview.text
    assert "https://worker.mturk.com" in preview.headers["content-security-policy"]
    query = "?assignmentId=A1&hitId=H1&workerId=W1&turkSubmitTo=https%3A%2F%2Fworkersandbox.mturk.com"
    rater.join(query)
    assert "https://worker.mturk.com" in rater.page.headers["content-security-policy"]
    rater.rate_all()
    code = rater.submit()
    assert 'action="https://workersandbox.mturk.com/mturk/externalSubmit"' in rater.page.text
    assert 'name="assignmentId" value="A1"' in rater.page.text and f'value="{code}"' in rater.page.text
    again = Visitor(store)
    again.join(query)
    assert code in again.page.text  # no second task for the same assignment


def test_prolific(make_study: MakeStudy) -> None:
    study = make_study()
    protocol = study.folder / "protocol.toml"
    protocol.write_text(
        protocol.read_text("utf-8") + '\n[prolific]\ncompleted = "C0FFEE"\nfailed_check = "N0PE"\n', "utf-8"
    )
    from elench.study.folder import load_study

    store = Store(load_study(study.folder))
    rater = Visitor(store)
    rater.join("?PROLIFIC_PID=P1&STUDY_ID=S1&SESSION_ID=X1")
    rater.rate_all()
    rater.submit()
    assert 'href="https://app.prolific.com/submissions/complete?cc=C0FFEE"' in rater.page.text


def test_invitations_are_personal(make_study: MakeStudy) -> None:
    store = Store(make_study("qg-expert", systems=4, passages=10, invite=("anna", "ben")))
    links = {name: f"?invite={secret}" for secret, name in store.study.invitations.items()}
    anna, ben = Visitor(store), Visitor(store)
    assert anna.join(links["anna"]) != ben.join(links["ben"])
    assert "Examples" in anna.page.text and 'type="radio"' in anna.page.text and "checked" not in anna.page.text
    elsewhere = Visitor(store)
    assert elsewhere.join(links["anna"]) == anna.path.rsplit("/", 1)[0]
    assert Visitor(store).get(f"/join/{store.study.secrets.join}?invite=guess").status_code == 400


def test_the_qualification_test_in_the_pages(make_study: MakeStudy) -> None:
    store = Store(make_study("qg-similarity", systems=4, passages=10))
    rater = Visitor(store)
    rater.join()
    assert "Test item 1 of 5" in rater.page.text
    rater.rate_all()
    rater.post(rater.path.replace("/review", "/submit"), {"csrf": rater.csrf})
    assert "The test was not passed" in rater.page.text


def test_choices_that_count_the_same_are_remembered_apart(make_study: MakeStudy) -> None:
    store = Store(make_study("qg-similarity", systems=4, passages=10))
    rater = Visitor(store)
    task = rater.join()
    rater.post(rater.path, {"csrf": rater.csrf, "go": "next", **rater.answers(), "c-similar": "4"})
    rater.get(f"{task}/1")
    assert re.search(r'name="c-similar" value="4" required checked', rater.page.text)


def test_the_researchers_page(store: Store) -> None:
    rater = Visitor(store)
    rater.join()
    rater.rate_all()
    rater.submit("hello <b>there</b>")
    boss = Visitor(store, rater.app)
    assert boss.get("/admin").status_code == 401
    page = boss.enter()
    assert page.url.query == b"" and page.status_code == 200  # the token is gone from the address
    for part in ("1 / 12", "1 submitted", "Krippendorff", "kept", "hello &lt;b&gt;there", "t0012"):
        assert part in page.text, part
    rows = [json.loads(line) for line in boss.get("/admin/export.jsonl").text.splitlines()]
    assert len(rows) == 80 and {row["kind"] for row in rows} == {"ordinary", "bad", "repeat"}
    assert boss.get("/admin/export.csv").text.count("\n") == 81
    boss.get("/admin/preview")
    assert "I understand" in boss.page.text
    assert "Preview, not seen by raters" in boss.get("/admin/preview/t0001/20").text
    assert boss.get("/admin/preview/t0001/21").status_code == 404
    boss.get("/admin")
    boss.post("/admin/act", {"csrf": boss.csrf, "action": "pause"})
    assert "paused" in boss.page.text
    late = Visitor(store, rater.app)
    late.get(f"/join/{store.study.secrets.join}")
    late.join()
    assert "The study is paused" in late.page.text


@pytest.mark.parametrize(
    ("context", "answer", "marked"),
    [
        ("In art, the art of war.", "art of war", "art of war"),
        ("Earth is art.", "art", "art"),
        ("He was Born here.", "born", "Born"),
        ("Yes it is.", "no", ""),
        ("C++ (1985) is old.", "(1985)", "(1985)"),
        ("Anything", "", ""),
    ],
)
def test_the_answer_is_highlighted_as_whole_words(context: str, answer: str, marked: str) -> None:
    before, found, after = cut(context, marked_answer(Record("1", context, answer=answer)))
    assert found == marked and before + found + after == context
    if answer == "art":
        assert before == "Earth is "
