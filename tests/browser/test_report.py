"""The report in a real browser: no console error, no outside request, light and dark, desktop and phone."""

import shutil

import pytest

from quaestor.report import build, load_run
from tests.report.test_report import make_run

CHROMIUM = "/usr/bin/chromium"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync",
         "--disable-component-update", "--no-first-run"]  # fmt: skip
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        not shutil.which(CHROMIUM), reason="Debian's chromium is not installed: apt-get install chromium"
    ),
]


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (390, "dark")])
def test_the_report_opens_cleanly(tmp_path, width, scheme):
    from playwright.sync_api import sync_playwright

    (tmp_path / "report.html").write_text(build(load_run(make_run(tmp_path)), draws=100))
    problems = []
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page.on("console", lambda m: problems.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda e: problems.append(str(e)))
        page.on("request", lambda r: problems.append(r.url) if not r.url.startswith(("file:", "data:")) else None)
        page.goto((tmp_path / "report.html").as_uri())
        assert page.locator("h2").count() >= 7
        assert page.locator("svg").count() >= 3
        overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        page.screenshot(path=str(tmp_path / "report.png"), full_page=True)
        browser.close()
    assert problems == []
    assert overflow <= 1, "the page scrolls sideways"


def test_the_printed_report_holds_the_evidence(tmp_path):
    from playwright.sync_api import sync_playwright

    (tmp_path / "report.html").write_text(build(load_run(make_run(tmp_path, n=4)), draws=100))
    shown = "[...document.querySelectorAll('details:not([open]) table')].filter(x => x.checkVisibility()).length"
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page()
        page.goto((tmp_path / "report.html").as_uri())
        closed = page.locator("details:not([open]) table").count()
        on_screen = page.evaluate(shown)
        page.emulate_media(media="print")
        printed = page.evaluate(shown)
        height = page.locator("details:not([open]) table").last.bounding_box()["height"]
        browser.close()
    assert on_screen == 0
    assert printed == closed > 0 and height > 0
