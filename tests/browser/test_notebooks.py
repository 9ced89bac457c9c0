"""The notebooks in a real JupyterLab, driven by Chromium."""

import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import TimeoutError as NotInTime

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
ARTIFACTS = ROOT / "artifacts"
MOST_PIXELS = 14_000  # of a screenshot's height
PATIENCE_MS = int(os.environ.get("PATIENCE_MS", "60000"))
HOVER_MS = 2000
# As on a machine so busy that every time limit in the page is over before anything has loaded.
GIVES_UP_AT_ONCE = "const timeout = AbortSignal.timeout; AbortSignal.timeout = () => timeout.call(AbortSignal, 1);"
FOLDERS = {
    "JUPYTER_CONFIG_DIR": "config",
    "JUPYTER_DATA_DIR": "data",
    "JUPYTER_RUNTIME_DIR": "runtime",
    "JUPYTERLAB_SETTINGS_DIR": "settings",
    "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
}
# A measurement on the simulated engine that takes a while, as one on Spark does.
LIVE = (
    """
import time
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

from workbench.capacity import CapacityEstimator
from workbench.dataflow import Budget, SlotProfile
from workbench.journal import Journal
from workbench.simulation import preset
from workbench.study.runner import measuring
from workbench.testbed.fluid import FluidTestbed
from workbench.views import measurement_cards
from workbench.views.widgets import LivePanel


class Slow:
    def __init__(self):
        self.fluid = FluidTestbed()
        self.clock, self.identity, self.operators = self.fluid.clock, "slow", self.fluid.operators

    @contextmanager
    def deploy(self, *what, **how):
        with self.fluid.deploy(*what, **how) as run:
            observe = run.observe
            run.observe = lambda seconds: (time.sleep(1.5), observe(seconds))[1]
            yield run


journal = Journal(Path(mkdtemp()) / "journal.jsonl")
budget = Budget(8, SlotProfile(1.0, 1024), 5.0)
runner = measuring(preset("q1"), budget, Slow(), journal, CapacityEstimator(tolerance=0.01), costs=False)
panel = LivePanel(runner)
panel
""",
    'panel.then("Which rate does it sustain?", measurement_cards.cards)',
    "free = 6 * 7",
)

# The log form grows so slowly that the second target is out of reach.
LEVELS_OFF = (
    """
from pathlib import Path
from tempfile import mkdtemp

from workbench.journal import Journal
from workbench.study.carry_out import run_study
from workbench.study.spec import Study
from workbench.views.widgets import WhatIf

study = Study("nexmark:q1", (1e6, 1e9), (2, 4, 8), (512,), testbed="fluid", slot_cpus=1.0, most_runs=4, form="log")
WhatIf(run_study(study, Journal(Path(mkdtemp()) / "journal.jsonl")))
""",
)


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A private JupyterLab on loopback: address, token, folder of the notebooks."""
    home = tmp_path_factory.mktemp("lab")
    notebooks = home / "work" / "notebooks"
    shutil.copytree(ROOT / "notebooks", notebooks, ignore=shutil.ignore_patterns(".*", "__pycache__"))
    shutil.copytree(ROOT / "data", home / "work" / "data")
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}}
    for name, texts in (("live", LIVE), ("levels_off", LEVELS_OFF)):
        cells = [nbformat.v4.new_code_cell(text.strip()) for text in texts]
        nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), notebooks / f"{name}.ipynb")
    quiet = home / "settings/@jupyterlab/apputils-extension/notification.jupyterlab-settings"
    quiet.parent.mkdir(parents=True)
    quiet.write_text('{"fetchNews": "false", "checkForUpdates": false, "doNotDisturbMode": true}')
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    token = secrets.token_hex(16)
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}",
        "--ServerApp.port_retries=0", f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={home / 'work'}",
        "--LabApp.expose_app_in_browser=True", "--LabApp.extension_manager=readonly",
    ]  # fmt: skip
    address = f"http://127.0.0.1:{port}"
    with (home / "server.log").open("w") as log:
        server = subprocess.Popen(
            command,
            stdout=log,
            stderr=log,
            env=os.environ | {name: str(home / folder) for name, folder in FOLDERS.items()},
        )
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(f"{address}/api/status?token={token}", timeout=2).close()  # noqa: S310 - our own
                break
            except OSError:
                assert server.poll() is None, (home / "server.log").read_text()
                assert time.monotonic() < deadline, (home / "server.log").read_text()
                time.sleep(0.25)
        yield address, token
    finally:
        server.terminate()  # once: the server then stops its kernels
        server.wait(30)


@pytest.fixture
def run_notebook(browser, lab):
    """Open a notebook, run all of its cells, and wait until they have run, or until one is refused after a `change`."""
    address, token = lab
    pages = []

    def run(name, quick=True, change=None, script=""):
        page = browser.new_page(viewport={"width": 1300, "height": 2400})
        page.add_init_script(script)
        pages.append(page)
        page.outside, page.problems = [], []
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        page.on("dialog", lambda dialog: dialog.accept())
        page.on(
            "request",
            lambda request: (
                None if request.url.startswith((address, "data:", "blob:")) else page.outside.append(request.url)
            ),
        )
        page.goto(f"{address}/lab/tree/notebooks/{name}.ipynb?reset&token={token}")
        page.locator(".jp-Notebook").wait_for(timeout=PATIENCE_MS)
        page.evaluate("""async () => {
            const panel = window.jupyterapp.shell.currentWidget;
            await panel.context.ready;
            await panel.sessionContext.ready;
            await panel.sessionContext.session.kernel.info;
        }""")
        quicker = [("quick: bool = False", "quick = True")] if quick else []
        for old, new in [*quicker, *([change] if change else [])]:
            page.evaluate(
                """([from, to]) => {
                    for (const {sharedModel} of window.jupyterapp.shell.currentWidget.content.model.cells)
                        sharedModel.setSource(sharedModel.getSource().replace(from, to));
                }""",
                [old, new],
            )
        page.evaluate("() => void window.jupyterapp.commands.execute('application:toggle-left-area')")
        page.evaluate("() => void window.jupyterapp.commands.execute('notebook:run-all-cells')")
        if change:
            page.locator(".workbench-card.error").wait_for(timeout=PATIENCE_MS)
            return page
        page.wait_for_function(
            """() => [...window.jupyterapp.shell.currentWidget.content.model.cells]
                .every(cell => cell.type !== 'code' || cell.executionCount)""",
            timeout=PATIENCE_MS,
        )
        return page

    yield run
    for page in pages:
        picture(page, "last_page")
        page.close()


def healthy(page):
    """No cell failed, no card tells of an error, nothing was fetched from elsewhere, no script complained."""
    assert page.locator("[data-mime-type='application/vnd.jupyter.error']").count() == 0
    assert page.get_by_role("alert").count() == 0
    assert page.locator(".workbench-card.error").count() == 0
    assert page.outside == []
    assert page.problems == []


def shown(chart):
    """What a chart draws, as text."""
    return chart.evaluate("it => JSON.stringify([it.data, it.layout.title, it.layout.shapes])")


def changes(page, chart, action):
    """Do `action` and wait until `chart` draws something else."""
    before = shown(chart)
    action()
    handle = chart.element_handle()
    page.wait_for_function(
        "([it, before]) => JSON.stringify([it.data, it.layout.title, it.layout.shapes]) !== before",
        arg=[handle, before],
        timeout=PATIENCE_MS,
    )


def row_of(panel, description):
    """A control with what stands before it."""
    return panel.locator(".widget-inline-hbox", has=panel.page.get_by_text(description, exact=True))


def press(panel, description, key):
    """Press a key on a slider's handle, as those do who have no mouse."""
    row_of(panel, description).locator(".noUi-handle").first.press(key)


def drag(panel, description, chart, pixels):
    """Drag a slider's handle, and see that the chart follows before it is let go."""
    handle, mouse = row_of(panel, description).locator(".noUi-handle").first, panel.page.mouse
    handle.scroll_into_view_if_needed()
    box = handle.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    mouse.move(x, y)
    mouse.down()
    changes(panel.page, chart, lambda: mouse.move(x + pixels, y))
    mouse.up()


def readout(panel, description):
    """The number behind a slider."""
    return row_of(panel, description).locator(".widget-readout")


def enter(panel, description, value):
    """Type a number into what stands behind a slider."""
    readout(panel, description).fill(value)
    readout(panel, description).press("Enter")


def click_mark(page, chart, trace, mark=0):
    """Click a mark of the trace called so, once the charts stand still and the mark is seen under the pointer."""
    chart.scroll_into_view_if_needed()
    page.wait_for_function(
        "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.status === 'idle'",
        timeout=PATIENCE_MS,
    )
    for _ in range(PATIENCE_MS // HOVER_MS):
        x, y, number = chart.evaluate(
            """(it, [name, mark]) => {
                const trace = it._fullData.find(one => one.name === name);
                const {xaxis, yaxis} = it._fullLayout, box = it.getBoundingClientRect();
                const place = it.data[trace.index], at = values => Array.from(values)[mark];
                return [
                    box.x + xaxis._offset + xaxis.d2p(at(trace.x)),
                    box.y + yaxis._offset + yaxis.d2p(at(trace.y)),
                    trace.index,
                ];
            }""",
            [trace, mark],
        )
        page.mouse.move(x - 3, y - 3)
        page.mouse.move(x, y)
        try:
            page.wait_for_function(
                "([it, number]) => (it._hoverdata || []).some(point => point.curveNumber === number)",
                arg=[chart.element_handle(), number],
                timeout=HOVER_MS,
            )
        except NotInTime:  # a chart drawn late: the mark may stand elsewhere now
            continue
        page.mouse.down()
        page.mouse.up()
        return
    raise AssertionError(f"no mark {mark} of {trace} came under the pointer")


def picture(page, name, element=None):
    """Keep a screenshot for people to look at."""
    ARTIFACTS.mkdir(exist_ok=True)
    page.mouse.move(0, 0)
    (element or page).screenshot(path=ARTIFACTS / f"{name}.png")


def whole_notebook(page, name):
    """Keep a screenshot of all its cells, below the window's end too."""
    shown = page.viewport_size
    for _ in range(2):  # cells that come into sight may grow
        height = page.locator(".jp-WindowedPanel-outer").first.evaluate("panel => panel.scrollHeight")
        page.set_viewport_size({**shown, "height": max(shown["height"], min(MOST_PIXELS, height + 200))})
        page.wait_for_load_state("networkidle")
    picture(page, name, page.locator(".jp-Notebook"))
    page.set_viewport_size(shown)


def panel_with(page, text):
    """The panel that has a control called so."""
    return page.locator(".jp-OutputArea-output .widget-vbox", has=page.get_by_text(text, exact=True)).first


def test_the_tour_leads_from_a_query_to_a_page(run_notebook):
    page = run_notebook("00_tour")
    page.get_by_text("reports/tour.html, beside this notebook").wait_for(timeout=3 * PATIENCE_MS)
    panel = panel_with(page, "Target rate (records/s)")
    panel.locator(".main-svg").first.wait_for(timeout=PATIENCE_MS)
    healthy(page)
    whole_notebook(page, "00_tour")


def test_a_first_cell_that_cannot_be_had_is_answered_with_a_card(run_notebook):
    page = run_notebook("00_tour", change=("jobs:revenue_per_shop", "jobs:revenue_per_shops"))
    card = page.locator(".workbench-card.error")
    assert "Did you mean jobs:revenue_per_shop?" in card.text_content()
    assert "Nothing was measured. Correct the first cell" in page.locator(".jp-Notebook").text_content()
    assert "Traceback" not in page.locator(".jp-Notebook").text_content()
    assert page.locator(".workbench-state").count() == 0
    whole_notebook(page, "00_tour_refused")


def test_every_what_if_slider_changes_the_figure(run_notebook):
    page = run_notebook("02_plan")
    panel = panel_with(page, "Target rate (records/s)")
    chart = panel.locator(".js-plotly-plot")
    chart.locator(".main-svg").first.wait_for(timeout=PATIENCE_MS)
    whole_notebook(page, "02_plan")
    assert readout(panel, "Target rate (records/s)").text_content() == "1,000,000"  # as planned, between two steps
    for description, key in (
        ("Target rate (records/s)", "PageUp"),
        ("Memory per slot", "Home"),
        ("Margin (capacity / rate)", "ArrowRight"),
        ("Slots per worker", "ArrowRight"),
        ("Price per worker and hour", "ArrowRight"),
        ("More skew (% on the fullest task)", "ArrowRight"),
        ("Risk of falling short", "ArrowRight"),
    ):
        changes(page, chart, lambda description=description, key=key: press(panel, description, key))
    changes(page, chart, panel.get_by_role("checkbox").check)
    drag(panel, "Target rate (records/s)", chart, -60)
    changes(page, chart, lambda: row_of(panel, "Worker type").locator("select").select_option("m6i.large"))
    assert readout(panel, "Price per worker and hour").text_content() == "0.096"  # not 0.095, the nearest step
    words = panel.locator(".workbench-unseen").text_content()
    assert chart.evaluate("it => it.layout.meta.alternative") in words
    healthy(page)
    panel.scroll_into_view_if_needed()
    picture(page, "02_what_if", panel)


def test_a_chart_that_took_long_to_load_follows_its_sliders(run_notebook):
    page = run_notebook("levels_off", script=GIVES_UP_AT_ONCE)
    panel = panel_with(page, "Target rate (records/s)")
    chart = panel.locator(".js-plotly-plot")
    chart.locator(".main-svg").first.wait_for(timeout=PATIENCE_MS)
    changes(page, chart, lambda: press(panel, "Target rate (records/s)", "PageUp"))
    healthy(page)


def test_what_cannot_be_answered_shows_as_a_card(run_notebook):
    page = run_notebook("levels_off")
    panel = panel_with(page, "Target rate (records/s)")
    panel.locator(".main-svg").first.wait_for(timeout=PATIENCE_MS)
    press(panel, "Target rate (records/s)", "End")
    panel.get_by_role("alert").wait_for(timeout=PATIENCE_MS)
    panel.get_by_text("The message above says why.").wait_for(timeout=PATIENCE_MS)
    picture(page, "02_error_card", panel)
    press(panel, "Target rate (records/s)", "Home")
    panel.get_by_role("alert").wait_for(state="hidden", timeout=PATIENCE_MS)


def test_the_caps_tree_prunes_and_a_click_selects_a_plan(run_notebook):
    page = run_notebook("03_place")
    panel = panel_with(page, "CPU cost at most (1: off)")
    tree, plan_map, vectors, scatter = (panel.locator(".js-plotly-plot").nth(number) for number in range(4))
    scatter.locator(".main-svg").first.wait_for(timeout=PATIENCE_MS)
    picture(page, "03_caps_whole", panel)
    changes(page, tree, lambda: panel.get_by_role("button", name="Unfold it").press("Enter"))
    changes(page, tree, lambda: panel.get_by_role("button", name="Fold all again").press("Enter"))
    status = panel.get_by_role("status")
    said = status.text_content()
    title = lambda: tree.locator(".gtitle").text_content().replace("\u00a0", " ")  # noqa: E731
    assert "no threshold prunes a branch" in title()
    drag(panel, "CPU cost at most (1: off)", tree, -60)
    changes(page, tree, lambda: enter(panel, "CPU cost at most (1: off)", "0.3"))
    changes(page, tree, lambda: enter(panel, "Network cost at most (1: off)", "0.5"))
    assert status.text_content() != said
    assert re.search(r"; thresholds prune [\d,]+ branches", title())
    picture(page, "03_caps_pruned", panel)
    chosen = status.text_content()
    changes(page, plan_map, lambda: click_mark(page, tree, "complete plan"))
    assert status.text_content() != chosen
    changes(page, plan_map, lambda: click_mark(page, vectors, "other plans", 2))
    chosen = status.text_content()
    changes(page, plan_map, lambda: click_mark(page, scatter, "on the Pareto front"))
    assert status.text_content() != chosen
    changes(page, tree, lambda: panel.get_by_role("button", name="One step back").click())
    changes(page, tree, lambda: enter(panel, "Search shown until step", "30"))
    assert "Step 30:" in status.text_content()
    step = re.fullmatch(r"Step 30 of \d+: (.*)", title())
    assert f"Step 30: {step[1]}" in status.text_content()
    picture(page, "03_caps_step", panel)
    changes(page, tree, lambda: panel.get_by_role("button", name="Tightest thresholds that leave a plan").click())
    picture(page, "03_caps_tuned", panel)
    healthy(page)
    whole_notebook(page, "03_place")


def test_the_replay_plays(run_notebook):
    page = run_notebook("04_scale")
    panel = panel_with(page, "Policy")
    timeline = panel.locator(".js-plotly-plot").first
    timeline.locator(".main-svg").first.wait_for(timeout=PATIENCE_MS)
    whole_notebook(page, "04_scale")
    changes(page, timeline, lambda: row_of(panel, "Policy").locator("select").select_option("ds2"))
    changes(page, timeline, panel.get_by_role("button", name="To the start").click)
    changes(page, timeline, panel.get_by_role("button", name="To the next reconfiguration").click)
    assert re.search(r"Reconfiguration \d+ of \d+ came", panel.get_by_role("status").text_content())
    changes(page, timeline, lambda: press(panel, "Shown until (frame)", "PageUp"))
    changes(page, timeline, panel.locator(".jupyter-widgets.widget-play button").first.click)
    healthy(page)
    picture(page, "04_player", panel)


def test_elastic_executors(run_notebook):
    page = run_notebook("05_elastic")
    page.wait_for_function("() => document.querySelectorAll('.js-plotly-plot:has(.main-svg)').length >= 2")
    healthy(page)
    whole_notebook(page, "05_elastic")


def test_the_live_panel_starts_cancels_and_resumes_while_the_kernel_is_free(run_notebook):
    page = run_notebook("live")
    follow(page, "Start")
    picture(page, "live_panel", page.locator(".jp-Notebook"))


@pytest.mark.spark
@pytest.mark.alone
def test_a_real_spark_estimate_is_cancelled_and_resumed(run_notebook):
    page = run_notebook("01_measure")
    follow(page, None, 6 * PATIENCE_MS)  # Spark starts and warms up before each first probe
    whole_notebook(page, "01_measure")


def follow(page, start, patience_ms=PATIENCE_MS):
    """Start, see probes, cancel, see that it ended, resume, see the result."""
    button = lambda name: page.locator("button.jupyter-button", has_text=name)  # noqa: E731
    state = page.locator(".workbench-state")
    if start:
        button(start).click()
    state.get_by_text("1 of at most").wait_for(timeout=patience_ms)
    page.locator(".js-plotly-plot .main-svg").first.wait_for(timeout=PATIENCE_MS)
    picture(page, f"live_{'panel' if start else 'spark'}_running", page.locator(".jp-Notebook"))
    button("Cancel").click()
    state.get_by_text("cancelled; it can be resumed").wait_for(timeout=PATIENCE_MS)
    picture(page, f"live_{'panel' if start else 'spark'}_cancelled", page.locator(".jp-Notebook"))
    button("Resume").click()
    state.get_by_text("✔ done").wait_for(timeout=3 * patience_ms)
    page.get_by_text("What rate does it sustain?").first.wait_for(timeout=PATIENCE_MS)
    assert page.locator(".workbench-log").get_by_text("resuming:").count() == 1
    healthy(page)
