"""The reports in a real browser, opened from disk without a network."""

import re
import shutil
from pathlib import Path

import html5lib
import pytest
from axe_playwright_python.sync_playwright import Axe

from workbench.journal import Journal
from workbench.report import render
from workbench.study import read_study, run_study, write_planned

pytestmark = [pytest.mark.browser, pytest.mark.long]

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
    asked = read_study(folder / "study.yaml")
    write_planned(run_study(asked, Journal(folder / "journal.jsonl")), folder / "planned.json")
    capacity = {"study": str(folder / "study.yaml"), "history": str(folder / "history")}
    render("capacity", capacity, folder / "capacity.html")
    (folder / "study.yaml").write_text((folder / "study.yaml").read_text() + "seed: 1\n")
    made = {
        "plan": render("plan", {"planned": str(folder / "planned.json")}, folder / "plan.html"),
        "capacity": render("capacity", capacity, folder / "capacity.html"),
        "placement": render(
            "placement", {"placement": str(ROOT / "data" / "placement.yaml")}, folder / "placement.html"
        ),
        "scaling": render("scaling", {"rates": str(ROOT / "data" / "day.csv")}, folder / "scaling.html"),
        "observe": render(
            "observe",
            {"log": str(ROOT / "data" / "q5-eventlog.zstd"), "targets": [50_000.0, 200_000.0]},
            folder / "observe.html",
        ),
    }
    assert [name for name, report in made.items() if not report.complete] == []
    return {name: report.path for name, report in made.items()}


def open_drawn(page, path):
    """Open a report and wait until its charts are drawn."""
    page.goto(path.as_uri())
    page.wait_for_function(DRAWN, timeout=30_000)


NAMES = pytest.mark.parametrize("name", ["plan", "capacity", "placement", "scaling", "observe"])


@NAMES
def test_it_draws_offline_and_prints(page, reports, name):
    path = reports[name]
    assert path.stat().st_size < LARGEST
    open_drawn(page, path)
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
    open_drawn(page, reports[name])
    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    serious = {
        rule["id"]: [node["html"][:200] for node in rule["nodes"]][:3]
        for rule in found
        if rule["impact"] in {"serious", "critical"}
    }
    assert serious == {}


# What a colour of a chart becomes on the screen, by the page's filter, against the page behind it.
DIM = """() => {
    const pen = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
    const shown = (colour, filter) => {
        pen.filter = filter;
        pen.fillStyle = colour;
        pen.fillRect(0, 0, 1, 1);
        return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    const light = parts => parts.map(value => value / 255)
        .map(value => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4)
        .reduce((sum, value, place) => sum + value * [0.2126, 0.7152, 0.0722][place], 0);
    const contrast = (one, other) => (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    const dim = [];
    for (const drawn of document.querySelectorAll(".report-chart .svg-container")) {
        const filter = getComputedStyle(drawn).filter;
        const page = light(shown(getComputedStyle(document.body).backgroundColor, "none"));
        const check = (colour, least, what) => {
            if (contrast(light(shown(colour, filter)), page) < least) dim.push(`${what}: ${colour}`);
        };
        for (const text of drawn.querySelectorAll(".infolayer text, .xaxislayer-above text, .yaxislayer-above text"))
            if (text.textContent.trim()) check(getComputedStyle(text).fill, 4.5, text.textContent);
        for (const line of drawn.querySelectorAll(".shapelayer path")) {
            const {stroke, strokeWidth} = getComputedStyle(line);
            if (stroke !== "none" && parseFloat(strokeWidth)) check(stroke, 3, "line");
        }
    }
    return dim;
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
@NAMES
def test_every_text_and_line_can_be_seen_in_both_themes(page, reports, name, theme):
    page.emulate_media(color_scheme=theme)
    open_drawn(page, reports[name])
    assert page.evaluate(DIM) == []
    worn = page.locator(".report-chart .svg-container").first.evaluate("it => getComputedStyle(it).filter")
    assert worn.startswith("invert(") == (theme == "dark")
    page.evaluate("() => document.querySelectorAll('details').forEach(details => { details.open = true })")
    only = {"runOnly": {"type": "rule", "values": ["color-contrast"]}, "resultTypes": ["violations", "passes"]}
    found = Axe().run(page, options=only).response
    assert [node["html"][:200] for rule in found["violations"] for node in rule["nodes"]] == []
    assert sum(len(rule["nodes"]) for rule in found["passes"]) > 20


def test_where_figures_come_from_is_said_once(page, reports):
    for path in reports.values():
        page.goto(path.as_uri())
        assert page.locator(".origin").count() == 1, path


@pytest.mark.parametrize("width", [1440, 900])
def test_no_line_to_copy_is_cut_at_its_end(page, reports, width):
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(reports["plan"].as_uri())
    panes = page.locator("pre.workbench-copy:visible")
    assert panes.count() == 2
    for pane in panes.all():
        assert pane.evaluate("it => it.scrollWidth <= it.clientWidth && getComputedStyle(it).wordBreak === 'normal'")


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (900, 700)])
@NAMES
def test_the_answer_is_in_sight_without_scrolling(page, reports, name, width, height):
    page.set_viewport_size({"width": width, "height": height})
    page.goto(reports[name].as_uri())
    for wanted in (".origin", ".verdict, .workbench-front tr.chosen"):
        box = page.locator(wanted).first.bounding_box()
        assert box["y"] + box["height"] <= height, wanted
        assert box["x"] + box["width"] <= width, wanted


CUT = """() => {
    document.querySelectorAll("details").forEach(details => { details.open = true });
    const cut = [];
    for (const area of document.querySelectorAll(".jp-OutputArea-child")) {
        const edge = area.getBoundingClientRect().right + 0.5;
        const scrolls = one => ["auto", "scroll"].includes(getComputedStyle(one).overflowX)
            && one.getBoundingClientRect().right <= edge;
        for (const one of area.querySelectorAll(".jp-OutputArea-output, .jp-OutputArea-output *")) {
            if (!one.checkVisibility() || one.getBoundingClientRect().right <= edge) continue;
            let box = one.parentElement;
            while (box !== area && !scrolls(box)) box = box.parentElement;
            if (box === area) cut.push(`${one.tagName} ${one.className} ${one.textContent.slice(0, 40)}`);
        }
    }
    return cut;
}"""


@pytest.mark.parametrize("width", [390, 900])
@NAMES
def test_nothing_is_cut_that_cannot_be_scrolled_to(page, reports, name, width):
    page.set_viewport_size({"width": width, "height": 800})
    open_drawn(page, reports[name])
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(CUT) == []


@NAMES
def test_all_that_is_no_evidence_fits_a_page(page, reports, name):
    forms = 800 if name == "plan" else 0  # a plan's page also compares the forms of its model
    for width, longest in ((1440, 1400), (900, 1500)):
        page.set_viewport_size({"width": width, "height": 900})
        open_drawn(page, reports[name])
        assert page.locator(".report-evidence").last.bounding_box()["y"] <= longest + forms, width
    assert page.locator(".workbench-card:not(.folded)").count() <= 4
    assert page.locator(".workbench-cares").first.locator("li").count() <= 4


@pytest.mark.parametrize("name", ["plan", "capacity"])
def test_the_evidence_of_a_run_has_one_title_and_draws_when_it_is_opened(page, reports, name):
    open_drawn(page, reports[name])
    (group,) = page.locator(".report-fold:has(> .report-fold)").all()
    assert re.fullmatch(r"Run \d+, on \d+ slots", group.locator("> summary").text_content())
    assert page.locator("[id^=card-run-]").count() == group.locator("[id^=card-run-]").count() > 1
    group.locator("> summary").click()
    group.locator("> .report-fold:has(.report-chart) > summary").first.click()
    chart = group.locator(".report-chart .main-svg").first
    assert chart.bounding_box()["width"] > 500


@pytest.mark.parametrize("name", ["capacity", "placement", "scaling"])
def test_reasons_for_care_stand_beside_the_chart_where_there_is_room(page, reports, name):
    beside = []
    for width in (1440, 900):
        page.set_viewport_size({"width": width, "height": 900})
        open_drawn(page, reports[name])
        chart = page.locator(".report-pair .report-chart").bounding_box()
        cares = page.locator(".report-pair .workbench-cares").bounding_box()
        beside.append(cares["x"] >= chart["x"] + chart["width"] and cares["y"] < chart["y"] + chart["height"])
    assert beside == [True, False]


def test_tabs_show_one_target_without_a_script(browser, reports):
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto(reports["plan"].as_uri())
    first, second = page.locator(".workbench-tabs .pane").all()
    assert (first.is_visible(), second.is_visible()) == (True, False)
    page.locator(".workbench-tabs label").nth(1).click()
    assert (first.is_visible(), second.is_visible()) == (False, True)
    page.emulate_media(media="print")
    assert first.is_visible()
    assert second.is_visible()
    page.context.close()


def test_every_place_that_the_documentation_names_is_there(reports):
    guide = (ROOT / "docs" / "reading-a-report.md").read_text()
    sections = re.split(r"^## (\w+):.*$", guide, flags=re.MULTILINE)[1:]
    places = {
        name.lower(): re.findall(r"`(card-[\w-]+)` \|$", text, re.MULTILINE)
        for name, text in zip(sections[::2], sections[1::2], strict=True)
    }
    assert set(places) == set(reports)
    assert sum(map(len, places.values())) == 28
    for name, named in places.items():
        page = reports[name].read_text()
        assert [one for one in named if f'id="{one}"' not in page] == []


@NAMES
def test_our_markup_parses_strictly(reports, name):
    html5lib.HTMLParser(strict=True).parse(reports[name].read_text())
