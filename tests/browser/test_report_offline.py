"""The measurement report in a real browser, opened from disk without a network."""

from pathlib import Path

import pytest
from example_measurement import example_measurement

from workbench.report import render

pytestmark = pytest.mark.browser

ARTIFACTS = Path(__file__).parents[2] / "artifacts"
CHARTS = 4


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    example_measurement().to_json(folder / "q5.json")
    made = render("measure", {"measurement": str(folder / "q5.json")}, folder / "q5.html")
    assert made.complete
    return made.path


def test_report_draws_offline(page, report):
    page.goto(report.as_uri())
    page.wait_for_function(
        f"document.querySelectorAll('.report-chart:has(.main-svg)').length === {CHARTS}", timeout=20_000
    )
    assert page.locator(".report-chart").count() == CHARTS
    assert page.requested == [report.as_uri()]
    assert page.problems == []
    assert page.locator(".scatterlayer .points path").count() > 50
    assert page.locator(".bars .point").count() == 9
    titles = page.locator(".modebar-btn").evaluate_all("buttons => buttons.map(b => b.dataset.title)")
    assert any("PNG" in title for title in titles)
    assert not any("share" in title.lower() or "cloud" in title.lower() for title in titles)
    ARTIFACTS.mkdir(exist_ok=True)
    page.screenshot(path=ARTIFACTS / "report.png", full_page=True)


def test_report_is_readable_without_seeing(page, report):
    page.goto(report.as_uri())
    assert page.locator("html").get_attribute("lang") == "en"
    assert page.title() == "What rate does q5 sustain?"
    names = page.locator("[role=figure]").evaluate_all("charts => charts.map(c => c.ariaLabel)")
    assert names[0].startswith("q5 sustains 12.9 k records/s on 4 slots of 0.2 core at a 2 s interval")
    assert names[0].endswith(". Three panels over time: rates of the probes, batch times, backlog.")
    assert page.locator("details table caption").count() >= CHARTS
    assert page.locator("h1").count() == 1


_OVERLAPS = """() => {
  const box = one => one.getBoundingClientRect();
  const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  return [...document.querySelectorAll(".report-chart")].flatMap(chart =>
    [...chart.querySelectorAll(".legend")].map(legend =>
      [...chart.querySelectorAll(".modebar-group")].some(bar => meet(box(bar), box(legend)))));
}"""


@pytest.mark.parametrize("width", [1440, 900])
def test_the_toolbar_of_a_chart_covers_no_legend(page, report, width):
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(report.as_uri())
    page.wait_for_function(
        f"document.querySelectorAll('.report-chart:has(.main-svg)').length === {CHARTS}", timeout=20_000
    )
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    page.wait_for_function("[...document.querySelectorAll('.legend')].every(one => one.getBoundingClientRect().width)")
    found = page.evaluate(_OVERLAPS)
    assert len(found) > 1
    assert not any(found)


def test_nothing_overflows_sideways(page, report):
    for width in (1200, 800):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(report.as_uri())
        page.locator(".main-svg").first.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_csv_downloads(page, report):
    page.goto(report.as_uri())
    folds = page.locator("details:has(a[download='operators.csv'])")
    for fold in folds.all():  # a card, and the table within it
        if not fold.evaluate("it => it.open"):
            fold.locator("> summary").click()
    with page.expect_download() as download:
        page.locator("a[download='operators.csv']").click()
    text = Path(download.value.path()).read_text(encoding="utf-8-sig")
    assert text.startswith("Operator,Tasks,Busyness (%),True rate (records/s per task),")


def test_printing_opens_the_tables(page, report):
    page.goto(report.as_uri())
    page.wait_for_function(f"document.querySelectorAll('.report-chart:has(.main-svg)').length === {CHARTS}")
    closed = page.locator("details:not([open])").count()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() <= 1  # raw batches stay closed
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details:not([open])").count() == closed > 1
    assert page.problems == []
