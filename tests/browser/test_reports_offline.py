"""The three reports in a real browser, opened from disk without a network."""

import shutil
from pathlib import Path

import html5lib
import pytest
from axe_playwright_python.sync_playwright import Axe

from workbench.report import render

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
ARTIFACTS = ROOT / "artifacts"
LARGEST = 3_000_000
DRAWN = "[...document.querySelectorAll('.report-chart')].every(chart => chart.querySelector('.main-svg'))"

STUDY = """query: nexmark:q1
targets: [2000000, 20000000]
slots: [2, 4, 8, 16]
memory_mb: [512, 1024]
testbed: fluid
slot_cpus: 1
prices: prices.csv
"""


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Every report once, the capacity report after a run before it, so that it has a comparison."""
    folder = tmp_path_factory.mktemp("reports")
    (folder / "study.yaml").write_text(STUDY.replace("prices.csv", str(ROOT / "data" / "instances.csv")))
    capacity = {"study": str(folder / "study.yaml"), "history": str(folder / "history")}
    render("capacity", capacity, folder / "capacity.html")
    (folder / "study.yaml").write_text((folder / "study.yaml").read_text() + "seed: 1\n")
    made = {
        "capacity": render("capacity", capacity, folder / "capacity.html"),
        "placement": render(
            "placement", {"placement": str(ROOT / "data" / "placement.yaml")}, folder / "placement.html"
        ),
        "scaling": render("scaling", {"rates": str(ROOT / "data" / "day.csv")}, folder / "scaling.html"),
    }
    assert [name for name, report in made.items() if not report.complete] == []
    return {name: report.path for name, report in made.items()}


NAMES = pytest.mark.parametrize("name", ["capacity", "placement", "scaling"])


@NAMES
def test_it_draws_offline_and_prints(page, reports, name):
    path = reports[name]
    assert path.stat().st_size < LARGEST
    page.goto(path.as_uri())
    page.wait_for_function(DRAWN, timeout=30_000)
    assert page.locator(".report-chart").count() >= 2
    assert page.requested == [path.as_uri()]
    assert page.problems == []
    assert page.locator(".workbench-card.error").count() == 0
    for width in (1200, 800):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function("innerWidth === " + str(width))
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.set_viewport_size({"width": 1200, "height": 900})
    ARTIFACTS.mkdir(exist_ok=True)
    shutil.copy(path, ARTIFACTS / f"{name}.html")
    page.screenshot(path=ARTIFACTS / f"{name}.png", full_page=True)
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.screenshot(path=ARTIFACTS / f"{name}-print.png", full_page=True)
    page.emulate_media(media="screen")
    page.pdf(path=ARTIFACTS / f"{name}.pdf", prefer_css_page_size=True, print_background=True)
    assert page.problems == []


@NAMES
def test_every_table_downloads_as_csv(page, reports, name):
    page.goto(reports[name].as_uri())
    links = page.locator("a[download]")
    assert links.count() == page.locator(".workbench-table table").count() >= 3
    page.evaluate("() => document.querySelectorAll('details').forEach(details => { details.open = true })")
    with page.expect_download() as download:
        links.first.click()
    text = Path(download.value.path()).read_text(encoding="utf-8-sig")
    assert text.count("\n") > 1
    assert len({link.get_attribute("download") for link in links.all()}) == links.count()


@NAMES
def test_nothing_serious_is_found_for_people_who_use_other_means_than_eyes(page, reports, name):
    page.goto(reports[name].as_uri())
    page.wait_for_function(DRAWN, timeout=30_000)
    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    serious = {
        rule["id"]: [node["html"][:200] for node in rule["nodes"]][:3]
        for rule in found
        if rule["impact"] in {"serious", "critical"}
    }
    assert serious == {}


@NAMES
def test_our_markup_parses_strictly(reports, name):
    html5lib.HTMLParser(strict=True).parse(reports[name].read_text())
