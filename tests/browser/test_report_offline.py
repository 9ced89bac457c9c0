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


def opened(page, report):
    """Open the report, and wait until its charts are drawn."""
    page.goto(report.as_uri())
    page.wait_for_function(
        f"document.querySelectorAll('.report-chart:has(.main-svg)').length === {CHARTS}", timeout=20_000
    )


@pytest.fixture(scope="module")
def drawn(new_page, report):
    """A page of the report for the tests that change nothing of it but its width and what is folded."""
    with new_page() as page:
        opened(page, report)
        yield page


def test_report_draws_offline(drawn, report):
    page = drawn
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


def test_report_is_readable_without_seeing(drawn):
    page = drawn
    assert page.locator("html").get_attribute("lang") == "en"
    assert page.title() == "What rate does q5 sustain?"
    names = page.locator("[role=figure]").evaluate_all("charts => charts.map(c => c.ariaLabel)")
    assert names[0].startswith("q5 sustains 12.9 k records/s on 4 slots of 0.2 core at a 2 s interval")
    assert names[0].endswith(". Three panels over time: rates of the probes, batch times, backlog.")
    assert page.locator("details table caption").count() >= CHARTS
    assert page.locator("h1").count() == 1


def test_nothing_overflows_sideways(drawn):
    for width in (800, 1200):
        drawn.set_viewport_size({"width": width, "height": 900})
        drawn.wait_for_function(f"innerWidth === {width} && document.documentElement.scrollWidth <= {width}")


def test_printing_opens_the_tables(drawn):
    closed = drawn.locator("details:not([open])").count()
    drawn.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert drawn.locator("details:not([open])").count() <= 1  # raw batches stay closed
    drawn.evaluate("dispatchEvent(new Event('afterprint'))")
    assert drawn.locator("details:not([open])").count() == closed > 1
    assert drawn.problems == []


def test_csv_downloads(drawn):
    folds = drawn.locator("details:has(a[download='operators.csv'])")
    for fold in folds.all():  # a card, and the table within it
        if not fold.evaluate("it => it.open"):
            fold.locator("> summary").click()
    with drawn.expect_download() as download:
        drawn.locator("a[download='operators.csv']").click()
    text = Path(download.value.path()).read_text(encoding="utf-8-sig")
    assert text.startswith("Operator,Tasks,Busyness (%),True rate (records/s per task),")


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
    opened(page, report)
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    page.wait_for_function("[...document.querySelectorAll('.legend')].every(one => one.getBoundingClientRect().width)")
    found = page.evaluate(_OVERLAPS)
    assert len(found) > 1
    assert not any(found)
