"""Every safety promise, attacked."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import text

from elench.study.analyse.sittings import collect
from elench.study.collect import security
from elench.study.collect.security import Limiter, Signer
from elench.study.collect.store import Store
from elench.study.design.compose import compose
from elench.study.design.protocol_file import load_protocol
from elench.study.folder import Study, write_study
from tests.study.conftest import outputs
from tests.study.web import Visitor

SCRIPT = '<script>alert(1)</script><img src=x onerror="alert(2)">'


@pytest.fixture
def hostile(tmp_path: Path) -> Store:
    """A study whose every text tries to run a script."""
    records = [
        replace(r, context=f"{SCRIPT} {r.context}", question=f"{SCRIPT} {r.question}", answer=SCRIPT, system=f"{r.system}{SCRIPT}")
        for r in outputs(3, 3)
    ]  # fmt: skip
    protocol = load_protocol("qg-crowd")
    plan = compose(records, protocol, None, None, 0)
    return Store(write_study(tmp_path / "hostile", protocol, plan, records, human=None, seed=0))


def test_a_script_in_a_passage_question_system_or_feedback_stays_text(hostile: Store) -> None:
    rater = Visitor(hostile)
    rater.join()
    pages = [rater.page.text]
    rater.rate_all()
    rater.submit(SCRIPT)
    boss = Visitor(hostile)
    pages += [boss.enter().text, boss.get(f"/admin/preview/{hostile.study.tasks[0].id}/1").text]
    for page in pages:
        assert "&lt;script&gt;" in page
        assert not re.search(r"<script(?! src=\"/static/)", page) and "<img" not in page
    policy = boss.page.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "script-src 'self'" in policy and "unsafe" not in policy


def test_no_page_loads_anything_from_elsewhere(sqlite_store: Store) -> None:
    rater = Visitor(sqlite_store)
    rater.join()
    pages = [rater.page.text, rater.enter().text]
    for name in ("study.css", "rate.js", "outbox.js", "review.js", "desk.js"):
        pages.append(rater.get(f"/static/{name}").text)
    for page in pages:
        outside = re.findall(r"""(?:src|href|action|url)\s*[=(]\s*["']?(https?://[^"')\s]+)""", page)
        assert outside == []


def test_anothers_task_cannot_be_opened_or_changed(sqlite_store: Store) -> None:
    ann, eve = Visitor(sqlite_store), Visitor(sqlite_store)
    task = ann.join()
    eve.join()
    own, forged_mac = eve.path.split("/")[2].split(".")
    anns, _ = task.split("/")[2].split(".")
    for link in (f"{anns}.{forged_mac}", anns, f"{anns}.", f"{anns}.{'A' * 22}", f"{own}x.{forged_mac}"):
        assert eve.get(f"/t/{link}/1").status_code == 404
        assert eve.post(f"/t/{link}/1", {"csrf": "x", "c-relevancy": "1"}).status_code == 404
        assert eve.post(f"/t/{link}/submit", {"csrf": "x"}).status_code == 404
    assert all(not s.values for s in collect(sqlite_store))


def test_a_known_worker_id_does_not_open_the_workers_task(sqlite_store: Store) -> None:
    ann, eve = Visitor(sqlite_store), Visitor(sqlite_store)
    task = ann.join("?assignmentId=SECRET1&hitId=H&workerId=ANN&turkSubmitTo=https%3A%2F%2Fwww.mturk.com")
    other = eve.join("?assignmentId=GUESS&hitId=H&workerId=ANN&turkSubmitTo=https%3A%2F%2Fwww.mturk.com")
    assert other != task


def test_links_cannot_be_guessed_nor_read_from_the_database(sqlite_store: Store) -> None:
    rater = Visitor(sqlite_store)
    link = rater.join().split("/")[2]
    with sqlite_store.reading() as connection:
        dump = str([connection.execute(text(f"SELECT * FROM {t}")).all() for t in ("assignments", "raters", "facts")])
    assert link.split(".")[1] not in dump and sqlite_store.study.secrets.key not in dump
    assert (sqlite_store.study.folder / "secrets.json").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("where", ["item", "submit", "another", "join", "pause"])
def test_forged_forms_are_refused(sqlite_store: Store, where: str) -> None:
    rater = Visitor(sqlite_store)
    task = rater.join()
    stranger = Visitor(sqlite_store)
    other = stranger.join()
    wrong = Signer(sqlite_store.study.secrets.key).mac("form", "someone else")
    if where in ("submit", "another"):
        rater.rate_all()
    if where == "another":
        rater.submit()
    if where == "pause":
        rater.enter()
    path = {
        "item": f"{task}/1",
        "submit": f"{task}/submit",
        "another": f"{task}/another",
        "join": f"/join/{sqlite_store.study.secrets.join}",
        "pause": "/admin/act",
    }[where]
    before = len(collect(sqlite_store))
    stranger.get(f"{other}/1")
    for token in ("", wrong, stranger.csrf):
        reply = rater.client.post(path, data={"csrf": token, "action": "pause", **rater.answers()})
        assert reply.status_code == 403
    assert len(collect(sqlite_store)) == before and not sqlite_store.paused
    if where == "item":
        assert all(not s.values for s in collect(sqlite_store))


def test_a_wrong_admin_token_opens_nothing(sqlite_store: Store) -> None:
    eve = Visitor(sqlite_store)
    right = sqlite_store.study.secrets.admin
    for token in ("", "x", right[:-1], right + "x", right.swapcase()):
        assert eve.get("/admin", params={"token": token}).status_code == 403
        assert eve.post("/admin/login", {"token": token}).status_code == 403
    for cookie in ("", "9999999999.", f"9999999999.{'A' * 22}", f"0.{'A' * 22}"):
        eve.client.cookies.set("elench_admin", cookie)
        for path in ("/admin", "/admin/preview", "/admin/preview/t0001/1", "/admin/export.jsonl", "/admin/export.csv"):
            assert eve.get(path).status_code == 401
        assert eve.post("/admin/act", {"csrf": "x", "action": "pause"}).status_code == 401
    assert not sqlite_store.paused


def test_the_admin_session_ends(sqlite_store: Store) -> None:
    boss = Visitor(sqlite_store)
    signer = Signer(sqlite_store.study.secrets.key)
    end = str(int(time.time()) - 1)
    boss.client.cookies.set("elench_admin", f"{end}.{signer.mac('admin', sqlite_store.study.secrets.admin, end)}")
    assert boss.get("/admin").status_code == 401


def test_secrets_are_compared_in_constant_time(sqlite_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every comparison of a token, link or form goes through hmac.compare_digest, with the whole of both."""
    compared = []
    real = hmac.compare_digest

    def watch(given: bytes, right: bytes) -> bool:
        compared.append(right)
        return real(given, right)

    monkeypatch.setattr(security.hmac, "compare_digest", watch)
    eve = Visitor(sqlite_store)
    eve.get("/admin", params={"token": "guess"})
    eve.post("/admin/login", {"token": "guess"})
    assert compared.count(sqlite_store.study.secrets.admin.encode()) == 2
    eve.get("/join/guess")
    assert compared[-1] == sqlite_store.study.secrets.join.encode()
    eve.get("/t/0123456789abcdef.guess/1")
    assert compared[-1] == Signer(sqlite_store.study.secrets.key).mac("task", "0123456789abcdef").encode()


def test_a_replayed_submission_changes_nothing(sqlite_store: Store) -> None:
    rater = Visitor(sqlite_store)
    task = rater.join()
    csrf = rater.csrf
    rater.rate_all()
    code = rater.submit("first")
    with sqlite_store.reading() as connection:
        before = connection.execute(text("SELECT count(*) FROM ratings")).scalar()
    for _ in range(5):
        assert code in rater.post(f"{task}/submit", {"csrf": csrf, "feedback": "again"}).text
        assert code in rater.post(f"{task}/1", {"csrf": csrf, "go": "next", **rater.answers(1)}).text
        reply = rater.client.post(
            f"{task}/1", data={"csrf": csrf, "c-relevancy": "1"}, headers={"accept": "application/json"}
        )
        assert reply.status_code == 409
    with sqlite_store.reading() as connection:
        assert connection.execute(text("SELECT count(*) FROM ratings")).scalar() == before
    assert [s.feedback for s in collect(sqlite_store)] == ["first"]


def test_large_bodies_are_refused_before_they_are_read(sqlite_store: Store) -> None:
    rater = Visitor(sqlite_store)
    rater.join()
    big = {"csrf": rater.csrf, "feedback": "x" * 10_000_000}
    assert rater.client.post(rater.path, data=big).status_code == 413

    def drip() -> object:
        yield b"csrf=x&feedback="
        for _ in range(160):
            yield b"x" * 65536

    kind = {"content-type": "application/x-www-form-urlencoded"}
    for path in (rater.path, "/admin/login", f"/join/{sqlite_store.study.secrets.join}"):
        assert rater.client.post(path, content=drip(), headers=kind).status_code == 413  # no length announced
    assert rater.client.post(rater.path, content=b"x", headers={**kind, "content-length": "-1"}).status_code in (
        400,
        413,
    )


def test_odd_forms_are_answered_not_crashed_on(sqlite_store: Store) -> None:
    rater = Visitor(sqlite_store)
    rater.join()
    good = {"csrf": rater.csrf}
    path = rater.path
    for wrong in ("1000", "-5", "<b>", "NaN", "1e3", "5; DROP TABLE ratings"):
        assert rater.client.post(path, data={**good, "c-relevancy": wrong}).status_code == 422
    assert rater.client.post(path, files={"c-relevancy": b"50"}, data=good).status_code in (400, 422)
    assert rater.client.post(path, data={f"f{k}": "x" for k in range(100)}).status_code in (400, 403)
    assert rater.client.post(path, content=b"\xff\xfe", headers={"content-type": "application/json"}).status_code == 403
    for place in ("0", "21", "999999999999999999999", "-1", "x"):
        assert rater.get(f"{path.rsplit('/', 1)[0]}/{place}").status_code == 404
    assert rater.get("/join/nowhere").status_code == 404
    assert rater.get(f"/join/{sqlite_store.study.secrets.join}?workerId=" + "x" * 5000).status_code == 400


def test_a_link_cannot_send_raters_to_a_strangers_server(sqlite_store: Store) -> None:
    rater = Visitor(sqlite_store)
    for back in ("https://evil.example", "https://www.mturk.com.evil.example", "http://www.mturk.com", "javascript:x"):
        query = {"assignmentId": "A", "workerId": "W", "turkSubmitTo": back}
        assert rater.get(f"/join/{sqlite_store.study.secrets.join}", params=query).status_code == 400


def flood(app: Any, path: str, count: int) -> list[int]:
    """Requests in a burst, straight into the application, all from one address."""
    statuses: list[int] = []
    scope = {
        "type": "http", "http_version": "1.1", "method": "GET", "scheme": "http", "path": path, "query_string": b"",
        "root_path": "", "headers": [(b"host", b"study.test")], "client": ("testclient", 5), "server": ("study.test", 80),
    }  # fmt: skip

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])
            assert message["status"] != 429 or (b"retry-after", b"5") in message["headers"]

    async def burst() -> None:
        for _ in range(count):
            await app(dict(scope), receive, send)

    asyncio.run(burst())
    return statuses


def test_a_burst_of_a_thousand_requests_is_cut_off(sqlite_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(security, "time", SimpleNamespace(monotonic=lambda: 0.0))  # a burst: no time passes
    eve = Visitor(sqlite_store)
    ann = Visitor(sqlite_store, eve.app)
    task = ann.join()
    answers = flood(eve.app, "/admin", 1000)
    assert answers.count(401) < 510 and answers.count(429) > 490 and answers[-1] == 429
    assert ann.get(f"{task}/1").status_code == 200  # a rater behind the same address goes on
    own = flood(eve.app, f"{task}/1", 1000)
    assert own.count(200) < 150 and own[-1] == 429  # but not with a flood of their own


def test_a_bucket_refills() -> None:
    bucket = Limiter(burst=3, rate=2)
    assert [bucket.allows("a", now=0) for _ in range(5)] == [True, True, True, False, False]
    assert bucket.allows("b", now=0)
    assert [bucket.allows("a", now=1) for _ in range(3)] == [True, True, False]
    small = Limiter(1, 1, names=10)
    assert all(small.allows(str(k), now=0) for k in range(1000))
    assert len(small._buckets) == 10  # strangers cannot fill the memory


def test_pseudonyms_hide_worker_ids(sqlite_store: Store) -> None:
    rater = Visitor(sqlite_store)
    rater.join("?PROLIFIC_PID=5f0c1a2b3c4d5e6f7a8b9c0d&STUDY_ID=S&SESSION_ID=X")
    rater.rate_all()
    rater.submit()
    export = rater.enter() and rater.get("/admin/export.jsonl").text
    for plain in ("5f0c1a2b3c4d5e6f7a8b9c0d", hashlib.sha256(b"5f0c1a2b3c4d5e6f7a8b9c0d").hexdigest()[:16]):
        assert plain not in export
    database = (sqlite_store.study.folder / "study.db").read_bytes()
    database += (sqlite_store.study.folder / "study.db-wal").read_bytes()
    assert b"5f0c1a2b3c4d5e6f7a8b9c0d" not in database
    other = Signer("ab" * 32)
    assert Signer(sqlite_store.study.secrets.key).pseudonym("x", "w") != other.pseudonym("x", "w")


def test_formulas_in_a_csv_export_areharmless(hostile: Store) -> None:
    study: Study = hostile.study
    assert study.systems[0].startswith("human<")
    from elench.study.analyse.export import harmless

    assert harmless("=cmd()") == "'=cmd()" and harmless("plain") == "plain" and harmless(-3.0) == -3.0


def test_nothing_about_an_item_leaks_into_the_raters_page(sqlite_store: Store) -> None:
    rater = Visitor(sqlite_store)
    task = rater.join()
    for place in range(1, 21):
        page = rater.get(f"{task}/{place}").text.casefold()
        for word in ("ordinary", "repeat", "bad reference", '"bad"', "system0", "p1-s", "human", "t000"):
            assert word not in page, word
