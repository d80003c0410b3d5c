"""The report in a real browser, from file://: it lists, sorts, filters, searches, links, plots, prints and fits a phone."""

import os
import shutil
from pathlib import Path

import pytest

from elench.show.report import build, load_view
from tests.show.test_report import make_run

CHROMIUM = "/usr/bin/chromium"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync",
         "--disable-component-update", "--no-first-run"]  # fmt: skip
SHOTS = os.environ.get("ELENCH_SCREENSHOTS")
"""A folder for screenshots, to be looked at."""
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        not shutil.which(CHROMIUM), reason="Debian's chromium is not installed: apt-get install chromium"
    ),
]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    path = folder / "report.html"
    path.write_text(build(load_view([make_run(folder)]), draws=200))
    return path


@pytest.fixture(scope="module")
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium, report):
    """Opens the report and fails on any complaint of the browser or request to elsewhere."""
    problems, pages = [], []

    def visit(address="", width=1280, scheme="light", script=True):
        page = chromium.new_page(
            viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=script
        )
        page.on("console", lambda m: problems.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda e: problems.append(str(e)))
        page.on(
            "request", lambda r: problems.append(r.url) if not r.url.startswith(("file:", "data:", "blob:")) else None
        )
        page.goto(report.as_uri() + address)
        if script:
            page.wait_for_selector("#list tr.row")
        pages.append(page)
        return page

    yield visit
    for page in pages:
        page.close()
    assert problems == []


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (375, "dark")])
def test_it_opens_cleanly_and_does_not_scroll_sideways(opened, width, scheme):
    page = opened(width=width, scheme=scheme)
    assert page.locator("h2").count() >= 6 and page.locator("svg").count() >= 8
    page.locator("#list tr.row").first.click()
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    box = page.locator("td.detail > div").bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= width  # the evidence is as wide as the screen, not the table
    if SHOTS:
        page.screenshot(path=str(Path(SHOTS) / f"report-{width}.png"), full_page=True)


def ids(page):
    return [row.locator("td").first.inner_text() for row in page.locator("#list tr.row").all()]


def column(page, name):
    heads = page.locator("#list thead th").all_inner_texts()
    return [float(row.locator("td").nth(heads.index(name)).inner_text()) for row in page.locator("#list tr.row").all()]


def test_sort_filter_search_and_more(opened):
    page = opened()
    assert "50 of 80 records" in page.locator("#count").inner_text()
    page.get_by_role("button", name="Show more").click()
    assert len(ids(page)) == 80
    page.get_by_label("worst first by").select_option("f1")
    assert column(page, "f1") == sorted(column(page, "f1"))
    page.locator("#list th", has_text="bleu").click()
    assert column(page, "bleu") == sorted(column(page, "bleu"))
    page.locator("#list th", has_text="bleu").click()
    assert column(page, "bleu") == sorted(column(page, "bleu"), reverse=True)
    page.locator("#system").select_option("good")
    assert "of 40 records" in page.locator("#count").inner_text()
    page.get_by_label("search").fill("no such words at all")
    assert "0 of 0 records" in page.locator("#count").inner_text()


def test_a_record_has_an_address(opened):
    page = opened()
    page.get_by_label("search").fill("17")
    row = page.locator("#list tr.row", has_text="bold").first
    row.click()
    assert "matched" in page.locator("td.detail").inner_text()
    assert page.locator("td.detail b", has_text="bold").count() == 0  # what users wrote stays text
    address = page.get_by_role("link", name="link to this record").get_attribute("href")
    other = opened(address)
    assert other.locator("td.detail").count() == 1
    assert other.locator("tr.open").evaluate("e => e.previousSibling.id") == address.lstrip("#")


def test_two_metrics_against_each_other(opened):
    page = opened()
    assert page.locator("#scatter circle").count() == 80
    page.get_by_label("across").select_option("bleu")
    page.get_by_label("up").select_option("rouge-l")
    assert "rouge-l against bleu, 80 records" in page.locator("#scatter svg").get_attribute("aria-label")
    far = page.locator("#scatter circle.far").count()
    assert far == page.locator("#differ li").count() > 0
    page.locator("#differ a").first.click()
    page.wait_for_selector("td.detail")
    page.locator("#system").select_option("good")
    assert page.locator("#scatter circle").count() == 40


def test_without_javascript_all_but_the_list_is_there(opened):
    page = opened(script=False)
    assert "significantly better" in page.locator("p.lead").first.inner_text()
    assert page.locator("noscript p").is_visible()


def test_the_printed_report_holds_the_evidence(opened):
    shown = "[...document.querySelectorAll('details:not([open]) table')].filter(x => x.checkVisibility()).length"
    page = opened()
    closed = page.locator("details:not([open]) table").count()
    assert page.evaluate(shown) == 0
    page.emulate_media(media="print")
    assert page.evaluate(shown) == closed > 0
    assert page.locator("details:not([open]) table").last.bounding_box()["height"] > 0
