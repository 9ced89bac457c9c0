"""The what-if panel in a real JupyterLab."""

import pytest
from lab_page import (
    PATIENCE_MS,
    changes,
    drag,
    healthy,
    in_words,
    panel_with,
    picture,
    press,
    readout,
    row_of,
    whole_notebook,
)

pytestmark = [pytest.mark.browser, pytest.mark.long]
# As on a machine so busy that every time limit in the page is over before anything has loaded.
GIVES_UP_AT_ONCE = "const timeout = AbortSignal.timeout; AbortSignal.timeout = () => timeout.call(AbortSignal, 1);"


def test_every_what_if_slider_changes_the_figure(run_notebook):
    page = run_notebook("02_plan")
    panel = panel_with(page, "Target rate (records/s)")
    chart = panel.locator(".js-plotly-plot")
    chart.locator(".main-svg").first.wait_for(timeout=PATIENCE_MS)
    whole_notebook(page, "02_plan")
    typed = row_of(panel, "Target rate, typed (e.g. 1.5 M)").locator("input")
    assert typed.input_value() == "1,000,000"  # as planned, between two steps
    panel.get_by_text("Margin, price, skew, outage, interval, wait").click()
    for description, key in (
        ("Target rate (records/s)", "PageUp"),
        ("Memory per slot", "End"),
        ("Margin (capacity / rate)", "ArrowRight"),
        ("Slots per worker", "ArrowRight"),
        ("Price per worker and hour", "ArrowRight"),
        ("Extra load on the fullest task (%)", "ArrowRight"),
        ("Risk of falling short", "ArrowRight"),
    ):
        changes(page, chart, lambda description=description, key=key: press(panel, description, key))
    changes(page, chart, panel.get_by_role("checkbox").check)
    drag(panel, "Target rate (records/s)", chart, -60)
    changes(page, chart, lambda: row_of(panel, "Worker type").locator("select").select_option("m6i.large"))
    assert readout(panel, "Price per worker and hour").text_content() == "0.096"  # not 0.095, the nearest step
    in_words(page, panel, chart)
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
