"""Chromium, driven without a network: every name but our own address is unknown to it."""

import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request

import nbformat
import pytest
from lab_page import PATIENCE_MS, ROOT, picture

FLAGS = (
    "--no-sandbox",  # only needed when running as root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


@pytest.fixture(scope="session")
def browser():
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("needs chromium: apt install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def page(browser):
    """A page that keeps what it requested and complained about."""
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    page.requested, page.problems = [], []
    page.on("request", lambda request: page.requested.append(request.url))
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("console", lambda message: page.problems.append(message.text))
    yield page
    page.close()


FOLDERS = {
    "JUPYTER_CONFIG_DIR": "config",
    "JUPYTER_DATA_DIR": "data",
    "JUPYTER_RUNTIME_DIR": "runtime",
    "JUPYTERLAB_SETTINGS_DIR": "settings",
    "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
}
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
from workbench.views import measurement_cards
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


@pytest.fixture(scope="session")
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
