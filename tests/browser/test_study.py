"""A careful rater and a researcher in a real browser, on SQLite and on PostgreSQL."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from elench.records.record import write_records
from elench.study.analyse.sittings import collect
from elench.study.collect.store import Store
from elench.study.design.compose import compose
from elench.study.design.protocol_file import load_protocol
from elench.study.folder import Study, write_study
from tests.browser.conftest import Serve
from tests.study.conftest import outputs

pytestmark = pytest.mark.browser
SHOTS = os.environ.get("ELENCH_SCREENSHOTS")
"""A folder for screenshots, to be looked at."""


def shot(page: Any, name: str) -> None:
    if SHOTS:
        page.screenshot(path=str(Path(SHOTS) / f"{name}.png"), full_page=True)


def make(folder: Path, protocol: str = "qg-crowd", systems: int = 11, passages: int = 3, **more: Any) -> Study:
    records = outputs(systems, passages)
    rules = load_protocol(protocol)
    human = "human" if protocol == "qg-crowd" else None
    return write_study(folder, rules, compose(records, rules, None, human, 1), records, human=human, seed=1, **more)


def visit(browser: Any, **more: Any) -> tuple[Any, list[str]]:
    """A page of a fresh visitor, and what the browser complains about."""
    page = browser.new_context(**more).new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
    page.set_default_timeout(60_000)
    return page, problems


def rate(page: Any, good: bool) -> None:
    """As a careful person: look at the question, press somewhere on each slider."""
    for slider in page.get_by_role("slider").all():
        box = slider.bounding_box()
        slider.click(position={"x": box["width"] * (0.8 if good else 0.15), "y": box["height"] / 2})


def until(holds: Callable[[], bool], seconds: float = 20) -> None:
    """Wait from outside: the page's content policy forbids what Playwright's wait_for_function does in it."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def reads_well(page: Any) -> bool:
    """The bad references of these questions break their fixed wording."""
    text = page.locator(".subject").inner_text()
    return all(part in text for part in ("Which ", " does the old town of ", " have near its own "))


def test_a_careful_rater_and_the_researcher(browser: Any, serve: Serve, tmp_path: Path, database: str | None) -> None:
    study = make(tmp_path / "study")
    server = serve(study.folder, database)
    page, problems = visit(browser, viewport={"width": 1280, "height": 900})
    page.goto(server.join)
    shot(page, "instructions")
    page.get_by_role("button", name="I understand").click()
    page.wait_for_url("**/t/*/1")
    task = page.url.rsplit("/", 1)[0]
    assert page.locator("mark").count() == 1
    assert page.locator("input.untouched").count() == 4  # nothing is pre-selected
    page.get_by_role("button", name="Next").click()
    page.get_by_text("Please rate every statement").wait_for()  # and nothing can be skipped
    shot(page, "item")
    for place in range(1, 21):
        page.wait_for_url(f"**/t/*/{place}")
        rate(page, reads_well(page))
        if place == 7:  # a reload in the middle: the ratings stand as they were left
            page.locator("#state", has_text="Saved").wait_for()
            before = [field.input_value() for field in page.get_by_role("slider").all()]
            page.reload()
            assert [field.input_value() for field in page.get_by_role("slider").all()] == before
            assert page.locator("input.untouched").count() == 0
        if place == 9:  # the server dies and comes back; the rater only waits
            page.locator("#state", has_text="Saved").wait_for()
            server.kill()
            page.get_by_role("button", name="Next").click()
            page.get_by_text("No connection").wait_for()
            server.start()
            continue
        page.get_by_role("button", name="Next" if place < 20 else "To the end").click()
    page.wait_for_url("**/review")
    page.goto(f"{task}/3")  # an answer can be changed until the end
    first = page.get_by_role("slider").first
    first.focus()
    page.keyboard.press("End")
    page.locator("#state", has_text="Saved").wait_for()
    page.goto(f"{task}/review")
    page.get_by_label("Feedback").fill("Item 3 was hard <b>to judge</b>.")
    shot(page, "review")
    page.get_by_role("button", name="Submit the task").click()
    page.wait_for_url("**/done")
    code = page.locator("#code").inner_text()
    shot(page, "done")
    page.goto(f"{task}/1")
    page.wait_for_url("**/done")
    assert page.locator("#code").inner_text() == code
    expected = ("net::ERR_", "422")  # the server was killed on the way, perhaps in the middle of an answer
    assert [p for p in problems if not any(e in p for e in expected)] == []

    researcher, complaints = visit(browser)
    researcher.goto(server.admin)
    researcher.get_by_text("1 / 3").first.wait_for()
    assert "token" not in researcher.url
    assert researcher.locator(".badge", has_text="kept").count() == 1
    assert researcher.get_by_text("Item 3 was hard <b>to judge</b>.").count() == 1
    shot(researcher, "admin")
    with researcher.expect_download() as download:
        researcher.get_by_role("link", name="Export CSV").click()
    assert code in Path(download.value.path()).read_text()
    researcher.get_by_role("button", name="Pause").click()
    researcher.locator(".badge", has_text="paused").wait_for()
    researcher.get_by_role("link", name="Preview as a rater").click()
    researcher.get_by_role("button", name="I understand").click()
    researcher.get_by_text("Preview, not seen by raters").wait_for()
    shot(researcher, "preview")
    assert complaints == []

    server.kill()
    store = Store(study, database)
    (sitting,) = collect(store)
    items = study.by_id[sitting.task].items
    assert sitting.code == code and len(sitting.values) == 20 and sitting.changes >= 1
    low = Counter(items[place].kind for place, given in sitting.values.items() if given["relevancy"] < 50)
    assert low == {"bad": 6}
    store.close()


def test_with_the_keyboard_alone(browser: Any, serve: Serve, tmp_path: Path) -> None:
    server = serve(make(tmp_path / "study", systems=2).folder)
    page, problems = visit(browser)
    page.goto(server.join)
    page.get_by_role("button", name="I understand").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/t/*/1")
    page.get_by_role("slider").first.focus()
    for step in range(4):
        page.keyboard.press(("Space", "ArrowRight", "Home", "PageUp")[step])
        if step < 3:
            page.keyboard.press("Tab")
    page.locator("#state", has_text="Saved").wait_for()
    values = [field.input_value() for field in page.get_by_role("slider").all()]
    assert values[0] == "50" and values[1] == "51" and values[2] == "0" and int(values[3]) > 51
    page.keyboard.press("Enter")
    page.wait_for_url("**/t/*/2")
    assert problems == []


def test_on_a_phone_with_choices_and_a_lost_connection(browser: Any, serve: Serve, tmp_path: Path) -> None:
    study = make(tmp_path / "study", "qg-expert", 4, 5, invite=("anna",))
    server = serve(study.folder)
    page, _ = visit(browser, viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
    (secret,) = study.invitations
    page.goto(f"{server.join}?invite={secret}")
    page.get_by_role("button", name="I understand").tap()
    page.wait_for_url("**/t/*/1")
    assert page.locator("input:checked").count() == 0
    page.context.set_offline(True)
    for group in page.locator("fieldset").all():
        group.locator("label.choice").nth(1).tap()
    page.get_by_text("No connection").wait_for()
    width = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert width[0] <= width[1]  # nothing to scroll sideways
    shot(page, "phone")
    for box in page.locator("button, label.choice").all():
        assert box.bounding_box()["height"] >= 40  # large enough for a thumb
    page.context.set_offline(False)
    page.locator("#state", has_text="Saved").wait_for()
    page.reload()
    assert page.locator("input:checked").count() == 3


def test_a_swipe_over_a_slider_never_rates_and_a_tap_does(browser: Any, serve: Serve, tmp_path: Path) -> None:
    server = serve(make(tmp_path / "study", systems=2).folder)
    page, _ = visit(browser, viewport={"width": 375, "height": 667}, has_touch=True, is_mobile=True)
    page.goto(server.join)
    page.get_by_role("button", name="I understand").tap()
    page.wait_for_url("**/t/*/1")
    shot(page, "phone-sliders")
    slider = page.get_by_role("slider").nth(1)
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    x, y = box["x"] + box["width"] * 0.7, box["y"] + box["height"] / 2
    touch = page.context.new_cdp_session(page)
    before = page.evaluate("scrollY")
    touch.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
    for step in range(1, 11):
        touch.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [{"x": x, "y": y - 15 * step}]})
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    until(lambda: page.evaluate("scrollY") != before)  # it was a scroll
    assert page.locator("input.untouched").count() == 4
    slider.tap()
    page.locator("#state", has_text="Saved").wait_for()
    assert page.locator("input.untouched").count() == 3


def test_an_offline_change_survives_the_end_of_its_tab_and_a_stale_tab_gives_way(
    browser: Any, serve: Serve, tmp_path: Path
) -> None:
    study = make(tmp_path / "study", systems=2)
    server = serve(study.folder)
    page, _ = visit(browser)
    page.goto(server.join)
    page.get_by_role("button", name="I understand").click()
    page.wait_for_url("**/t/*/1")
    first = page.url
    rate(page, True)
    page.get_by_role("button", name="Next").click()
    page.wait_for_url("**/t/*/2")
    page.goto(first)
    page.context.set_offline(True)
    page.get_by_role("slider").first.focus()
    page.keyboard.press("End")
    page.get_by_text("No connection").wait_for()
    context = page.context
    page.close()  # the tab is gone with an unsent change
    context.set_offline(False)
    other = context.new_page()
    other.goto(first.rsplit("/", 1)[0] + "/2")  # another page of the task sends it
    until(lambda: other.evaluate("localStorage.length") == 0)
    other.goto(first)
    assert other.get_by_role("slider").first.input_value() == "100"
    stale = context.new_page()
    stale.goto(first)
    other.get_by_role("slider").first.focus()
    with other.expect_response(lambda response: response.request.method == "POST"):
        other.keyboard.press("Home")
    stale.get_by_role("slider").first.focus()
    stale.keyboard.press("ArrowLeft")
    expect(stale.get_by_role("slider").first).to_have_value("0")  # reloaded: the newer one


def test_without_javascript(browser: Any, serve: Serve, tmp_path: Path) -> None:
    study = make(tmp_path / "study", systems=2)
    server = serve(study.folder)
    page, _ = visit(browser, java_script_enabled=False)
    page.goto(server.join)
    page.get_by_role("button", name="I understand").click()
    items = len(study.tasks[0].items)
    for place in range(1, items + 1):
        page.wait_for_url(f"**/t/*/{place}")
        for field in page.locator("input[type=number]").all():
            field.fill("70")
        page.locator("button.primary").click()
    page.wait_for_url("**/review")
    page.get_by_role("button", name="Submit the task").click()
    expect(page.locator("#code")).to_be_visible()


ROLES = """() => [...document.querySelectorAll('button, a[href], input:not([type=hidden]), textarea')].filter(e =>
  e.offsetParent && !(e.textContent.trim() || e.getAttribute('aria-label') || e.labels?.length)).map(e => e.outerHTML)"""
CONTRAST = """() => { const lum = c => { const [r, g, b] = c.match(/[\\d.]+/g).map(Number).map(v => { v /= 255;
  return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4 }); return .2126 * r + .7152 * g + .0722 * b };
  const ground = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
    if (!c.endsWith(', 0)')) return c } return 'rgb(255, 255, 255)' };
  return [...document.querySelectorAll('body *')].filter(e => e.offsetParent && !e.closest('.hidden') &&
    [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())).map(e => {
      const [a, b] = [lum(getComputedStyle(e).color), lum(ground(e))].sort((x, y) => y - x);
      return [(a + .05) / (b + .05), e.outerHTML.slice(0, 120)] }).filter(([ratio]) => ratio < 4.5) }"""


def test_labels_contrast_and_language(browser: Any, serve: Serve, tmp_path: Path) -> None:
    """Everything that can be used has a name, and every text has at least the 4.5 : 1 contrast of WCAG AA."""
    server = serve(make(tmp_path / "study").folder)
    page, _ = visit(browser)
    page.goto(server.join)
    addresses = [server.join]
    page.get_by_role("button", name="I understand").click()
    page.wait_for_url("**/t/*/1")
    addresses += [
        page.url,
        page.url.rsplit("/", 1)[0] + "/review",
        server.admin,
        server.admin.split("?")[0] + "/preview/t0001/1",
    ]
    for address in addresses:
        page.goto(address)
        assert page.evaluate(ROLES) == [], address
        assert page.evaluate(CONTRAST) == [], address
        assert page.locator("html[lang=en]").count() == page.locator("h1").count() == page.locator("main").count() == 1


def test_a_script_in_a_passage_does_not_run(browser: Any, serve: Serve, tmp_path: Path) -> None:
    from dataclasses import replace

    attack = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
    records = [replace(r, context=f"{attack} {r.context}", question=f"{attack} {r.question}") for r in outputs(8, 2)]
    write_records(records, tmp_path / "records.jsonl")
    rules = load_protocol("qg-crowd")
    study = write_study(tmp_path / "s", rules, compose(records, rules, None, None, 0), records, human=None, seed=0)
    server = serve(study.folder)
    page, problems = visit(browser)
    page.goto(server.join)
    page.get_by_role("button", name="I understand").click()
    page.wait_for_url("**/t/*/1")
    page.wait_for_timeout(200)
    assert "owned" not in page.title() and page.locator("img").count() == 0
    # the first item may be a bad reference, which keeps only the beginning of the question
    assert "<img" in page.locator(".subject").inner_text() and problems == []
