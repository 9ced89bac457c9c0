"""A measurement in a real JupyterLab: followed, cancelled and resumed."""

import re

import pytest
from lab_page import PATIENCE_MS, healthy, picture, whole_notebook

pytestmark = pytest.mark.browser


def test_the_live_panel_starts_cancels_and_resumes_while_the_kernel_is_free(run_notebook):
    page = run_notebook("live")
    follow(page, "Start")
    picture(page, "live_panel", page.locator(".jp-Notebook"))


@pytest.mark.spark
@pytest.mark.alone
@pytest.mark.rare
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
    page.get_by_text(re.compile(r"What rate does .+ sustain\?")).first.wait_for(timeout=PATIENCE_MS)
    page.locator(".jp-RenderedPlotly .main-svg").first.wait_for(timeout=PATIENCE_MS)
    assert page.locator(".workbench-log").get_by_text("resuming:").count() == 1
    healthy(page)
