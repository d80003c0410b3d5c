"""axe-core finds nothing on any page of a rater or of the researcher, in four languages, on a screen and on a phone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from elench.study.design.compose import compose
from elench.study.design.protocol_file import parse_protocol
from elench.study.folder import Study, write_study
from tests.browser.conftest import Serve
from tests.browser.test_study import shot, visit
from tests.study.conftest import STEPS, THREE_SCALES, outputs

pytestmark = pytest.mark.browser
HEAD = """
name = "everything"
title = "Rating questions"
language = "LANGUAGE"
judge = "question"
show = ["context", "question"]
instructions = ["Read the passage.", "Rate the question."]
[pay]
per_task = 1.5
[task]
takes = 5
"""
ONE_BY_ONE = f"""
compose = "passage"
[filter]
kind = "none"
{THREE_SCALES}
[[criteria]]
name = "wrong"
statement = "Which words are wrong?"
scale = "spans"
[[criteria]]
name = "why"
statement = "Why?"
scale = "text"
[[training]]
context = "The Danube flows through Vienna."
question = "What flows through Vienna?"
answer = "The Danube"
expected = {{ clear = "high", answerable = "yes" }}
explanation = "It is clear, and the passage answers it."
{STEPS}
"""
SIDE_BY_SIDE = """
compose = "pool"
items = 2
outputs = 3
[filter]
kind = "none"
[[criteria]]
name = "order"
statement = "Rank the questions."
scale = "ranking"
[[criteria]]
name = "ends"
statement = "Which is best, which is worst?"
scale = "best-worst"
"""
SIZES = {
    "screen": {"viewport": {"width": 1280, "height": 900}},
    "phone": {"viewport": {"width": 375, "height": 667}, "has_touch": True, "is_mobile": True},
}


def make(folder: Path, language: str, rest: str) -> Study:
    rules = parse_protocol(HEAD.replace("LANGUAGE", language) + rest, "everything.toml")
    records = outputs(3, 3)
    return write_study(folder, rules, compose(records, rules, None, None, 1), records, human=None, seed=1)


class Inspector:
    """Looks at each page that a visitor reaches."""

    def __init__(self, page: Any, name: str) -> None:
        axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install axe-playwright-python")
        self.page, self.name, self.axe = page, name, axe.Axe()

    def look(self, where: str) -> None:
        shot(self.page, f"{self.name}-{where}")
        found = self.axe.run(self.page).response["violations"]
        assert [(rule["id"], [node["html"] for node in rule["nodes"]]) for rule in found] == [], where
        assert self.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), where

    def press(self) -> None:
        self.page.locator("button.primary, a.primary").first.click()


@contextmanager
def inspecting(browser: Any, size: str, name: str) -> Iterator[Inspector]:
    page, problems = visit(browser, **SIZES[size])
    yield Inspector(page, f"{name}-{size}")
    assert problems == []
    page.context.close()


def rate_item(page: Any) -> None:
    page.get_by_role("slider").focus()
    page.keyboard.press("End")
    for group in page.locator("fieldset").all():
        if group.locator("input[type=radio]").count():
            group.locator("label.choice").first.click()
        elif group.locator(".word").count():
            group.locator(".word").nth(1).click()


@pytest.mark.parametrize(
    ("language", "size"),
    [("en", "screen"), ("en", "phone"), ("de", "phone"), ("zh", "phone"), ("ar", "screen"), ("ar", "phone")],
)
def test_no_page_has_a_violation(browser: Any, serve: Serve, tmp_path: Path, language: str, size: str) -> None:
    server = serve(make(tmp_path / "study", language, ONE_BY_ONE).folder)
    with inspecting(browser, size, language) as rater:
        page = rater.page
        page.goto(server.join)
        assert page.locator("html").get_attribute("dir") == ("rtl" if language == "ar" else "ltr")
        rater.look("consent")
        rater.press()
        page.locator("ol.instructions").wait_for()
        rater.look("instructions")
        rater.press()
        page.wait_for_url("**step=check")
        rater.look("check")
        for choice in (0, 1):
            page.locator("label.choice").nth(choice).click()
            rater.press()
            page.wait_for_load_state()
        page.wait_for_url("**step=before")
        rater.look("before")
        rater.press()
        page.wait_for_url("**/t/*/1")
        rate_item(page)
        rater.look("training")
        rater.press()
        page.wait_for_url("**feedback=1")
        rater.look("lesson")
        rater.press()
        page.wait_for_url("**/review")
        rater.press()
        page.wait_for_url("**/t/*/1")
        rater.press()  # nothing is rated yet: the study's own language names what is missing, on every kind of scale
        page.locator("fieldset.lacking").first.wait_for()
        assert page.locator("fieldset.lacking").count() == 4
        rater.look("lacking")
        for place in (1, 2, 3):
            page.wait_for_url(f"**/t/*/{place}")
            rate_item(page)
            rater.press()
        page.wait_for_url("**/review")
        rater.look("review")
        page.locator("textarea").fill("fine")
        rater.press()
        page.wait_for_url("**/after")
        rater.look("after")
        rater.press()
        page.wait_for_url("**/done")
        rater.look("done")
        page.goto(page.url.replace("/done", "/instructions"))
        page.locator("summary").click()
        rater.look("withdraw")
        page.goto(server.admin)
        rater.look("desk")
        page.locator("a[href*='/admin/raters/']").first.click()
        page.wait_for_load_state()
        rater.look("rater")
        for where in ("events", "preview/t0001/1"):
            page.goto(server.admin.split("?")[0] + f"/{where}")
            rater.look(where.replace("/", "-"))


@pytest.mark.parametrize("size", SIZES)
def test_outputs_are_compared_side_by_side_without_a_violation(
    browser: Any, serve: Serve, tmp_path: Path, size: str
) -> None:
    server = serve(make(tmp_path / "study", "en", SIDE_BY_SIDE).folder)
    with inspecting(browser, size, "compare") as rater:
        page = rater.page
        page.goto(server.join)
        rater.press()
        page.wait_for_url("**/t/*/1")
        rater.look("item")
        tops = {round(box.bounding_box()["y"]) for box in page.locator(".judged.several > div:not(.given)").all()}
        assert len(tops) <= (2 if size == "screen" else 3)
        for place, choice in enumerate(page.locator("select").all(), 1):
            choice.select_option(str(place))
        for place, group in enumerate(page.get_by_role("radiogroup").all()):
            group.locator("label.choice").nth(place).click()
        rater.press()
        page.wait_for_url(lambda url: not url.endswith("/1"))  # the next screen, or the end of a short task
