"""Chromium, driven without a network: every name but our own address is unknown to it."""

import os
import shutil
from contextlib import contextmanager

import pytest
from lab_page import PATIENCE_MS, picture
from lab_server import FLAGS, open_notebook, run_all, serve, until_run
from panel_notebooks import PANELS


@pytest.fixture(scope="session")
def browser():
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        pytest.skip("needs chromium: apt install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def new_page(browser):
    """Makes pages that keep what they requested and complained about."""

    @contextmanager
    def make():
        page = browser.new_page(viewport={"width": 1200, "height": 900})
        page.requested, page.problems = [], []
        page.on("request", lambda request: page.requested.append(request.url))
        page.on("pageerror", lambda error: page.problems.append(error.stack or str(error)))
        page.on("console", lambda message: page.problems.append(message.text))
        yield page
        page.close()

    return make


@pytest.fixture
def page(new_page):
    with new_page() as page:
        yield page


# A measurement on the simulated engine that, as one on Spark, is not over before a reader clicks: after its first
# probe it waits to be cancelled, once.
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
from workbench.answers import measured
from workbench.views.widgets import LivePanel


class Slow:
    def __init__(self):
        self.fluid = FluidTestbed()
        self.clock, self.identity, self.operators = self.fluid.clock, "slow", self.fluid.operators
        self.kind, self.waits = self.fluid.kind, True

    @contextmanager
    def deploy(self, *what, **how):
        with self.fluid.deploy(*what, **how) as run:
            observe = run.observe
            run.observe = lambda seconds: (self.wait(), observe(seconds))[1]
            yield run

    def wait(self):
        while self.waits and runner.snapshot().probes:
            self.waits = runner.snapshot().state != "stopping"
            time.sleep(0.05)


journal = Journal(Path(mkdtemp()) / "journal.jsonl")
budget = Budget(8, SlotProfile(1.0, 1024), 5.0)
runner = measuring(preset("q1"), budget, Slow(), journal, CapacityEstimator(tolerance=0.01), costs=False)
panel = LivePanel(runner)
panel
""",
    'panel.then("Which rate does it sustain?", measured.cards)',
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


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    """A private JupyterLab on loopback: address, token."""
    with serve(tmp_path_factory.mktemp("lab"), {"live": LIVE, "levels_off": LEVELS_OFF, **PANELS}) as served:
        yield served


@pytest.fixture
def run_notebook(browser, lab):
    """Open a notebook, run all of its cells, and wait until they have run, or until one is refused after a `change`."""
    address, _ = lab
    pages = []

    def run(name, quick=True, change=None, script=""):
        page = browser.new_page(viewport={"width": 1300, "height": 2400})
        page.add_init_script(script)
        pages.append(page)
        page.outside, page.problems = [], []
        page.on("pageerror", lambda error: page.problems.append(error.stack or str(error)))
        page.on("dialog", lambda dialog: dialog.accept())
        page.on(
            "request",
            lambda request: (
                None if request.url.startswith((address, "data:", "blob:")) else page.outside.append(request.url)
            ),
        )
        open_notebook(page, lab, name)
        quicker = [("quick: bool = False", "quick = True")] if quick else []
        for old, new in [*quicker, *([change] if change else [])]:
            page.evaluate(
                """([from, to]) => {
                    for (const {sharedModel} of window.jupyterapp.shell.currentWidget.content.model.cells)
                        sharedModel.setSource(sharedModel.getSource().replace(from, to));
                }""",
                [old, new],
            )
        run_all(page)
        if change:
            page.locator(".workbench-card.error").wait_for(timeout=PATIENCE_MS)
            return page
        until_run(page)
        return page

    yield run
    for page in pages:
        picture(page, "last_page")
        page.close()
