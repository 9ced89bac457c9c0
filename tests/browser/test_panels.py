"""What a machine can see of the panels: they fit, nothing covers anything, and what a click changes is in sight."""

import pytest
from lab_page import (
    PATIENCE_MS,
    changes,
    click_mark,
    crowded,
    faint,
    healthy,
    in_sight,
    in_theme,
    panel_with,
    picture,
    press,
    resized,
    row_of,
    to_the_top,
)
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.long]

WIDTHS = (1440, 900)
ONE_SCREEN = 700  # pixels


def opened(run_notebook, name, control):
    page = run_notebook(name, quick=False)
    panel = panel_with(page, control)
    panel.locator(".main-svg").first.wait_for(timeout=PATIENCE_MS)
    return page, panel


def looked_at(page, panel, name):
    """See that no text covers another at both widths, and keep pictures in both themes."""
    for width in WIDTHS:
        resized(page, panel, width)
        assert crowded(panel) == [], width
        for theme in ("Light", "Dark"):
            in_theme(page, theme)
            picture(page, f"{name}_{width}_{theme.lower()}", panel)
    in_theme(page, "Light")


def test_what_if_is_one_screen(run_notebook):
    page, panel = opened(run_notebook, "panel_what_if", "Target rate (records/s)")
    resized(page, panel, 1440)
    assert panel.bounding_box()["height"] <= ONE_SCREEN
    looked_at(page, panel, "what_if")
    resized(page, panel, 1440)
    to_the_top(panel)
    chart, red = panel.locator(".js-plotly-plot"), panel.locator(".workbench-tile.short")
    for _ in ("20 %", "10 %", "5 %"):
        changes(page, chart, lambda: press(panel, "Risk of falling short", "ArrowRight"))
    assert red.count() == 0
    panel.get_by_role("button", name="Pin this scenario").click()
    panel.get_by_text("Pinned: 1 M records/s").wait_for(timeout=PATIENCE_MS)
    typed = row_of(panel, "Target rate, typed (e.g. 1.5 M)").locator("input")
    typed.fill("0.9 M")
    changes(page, chart, lambda: typed.press("Enter"))
    expect(typed).to_have_value("900,000", timeout=PATIENCE_MS)
    changes(page, chart, lambda: press(panel, "Target rate (records/s)", "End"))
    changes(page, chart, lambda: press(panel, "Risk of falling short", "Home"))
    red.wait_for(timeout=PATIENCE_MS)
    assert "is under the rate" in red.text_content()
    assert panel.get_by_text("against pinned").count() >= 2
    assert in_sight(chart)
    assert in_sight(red)
    panel.get_by_text("The answer in words and rows").click()
    panel.locator(".workbench-table td").first.wait_for(timeout=PATIENCE_MS)
    for theme in ("Dark", "Light"):
        in_theme(page, theme)
        assert faint(panel, ".workbench-tile > *, .workbench-table td, .workbench-card p, .workbench-card h2") == []
        picture(page, f"what_if_red_{theme.lower()}", panel)
    assert crowded(panel) == []
    healthy(page)


def test_figures_follow_the_dark_theme(run_notebook):
    page, panel = opened(run_notebook, "panel_caps", "CPU cost at most (1: off)")
    worn = "it => getComputedStyle(it.querySelector('.svg-container')).filter"
    chart = panel.locator(".js-plotly-plot").first
    assert chart.evaluate(worn) == "none"
    in_theme(page, "Dark")
    assert chart.evaluate(worn).startswith("invert(")
    in_theme(page, "Light")


@pytest.mark.parametrize("width", WIDTHS)
def test_what_a_click_in_the_caps_explorer_changes_is_in_sight(run_notebook, width):
    page, panel = opened(run_notebook, "panel_caps", "CPU cost at most (1: off)")
    if width == WIDTHS[0]:
        looked_at(page, panel, "caps")
    resized(page, panel, width)
    plan_map, vectors, scatter, tree = (panel.locator(".js-plotly-plot").nth(number) for number in range(4))
    left, right = plan_map.bounding_box(), vectors.bounding_box()
    assert left["x"] + left["width"] <= right["x"]
    assert abs(left["y"] - right["y"]) < 60
    to_the_top(plan_map)
    changes(page, plan_map, lambda: click_mark(page, tree, "complete plan"))
    assert in_sight(plan_map)
    assert in_sight(vectors)
    panel.get_by_role("tab", name="Two costs").click()
    changes(page, plan_map, lambda: click_mark(page, scatter, "on the Pareto front", 1))
    assert in_sight(plan_map)
    assert crowded(panel) == []
    healthy(page)


def test_the_loop_of_a_study_is_two_by_two_in_both_themes(run_notebook):
    page, panel = opened(run_notebook, "panel_loop", "Cancel")
    panel.get_by_text("the explorer asks for").first.wait_for(timeout=PATIENCE_MS)
    looked_at(page, panel, "loop")
    resized(page, panel, WIDTHS[0])
    explorer, optimizer, estimator, model = (panel.locator(".js-plotly-plot").nth(n).bounding_box() for n in range(4))
    assert explorer["x"] + explorer["width"] <= optimizer["x"]
    assert explorer["y"] + explorer["height"] <= estimator["y"]
    assert abs(estimator["y"] - model["y"]) < 60
    for theme in ("Dark", "Light"):
        in_theme(page, theme)
        assert faint(panel, ".workbench-state dt, .workbench-state dd, .workbench-state h3, .workbench-log div") == []
    healthy(page)


@pytest.mark.parametrize("width", WIDTHS)
def test_what_a_click_in_the_replay_player_changes_is_in_sight(run_notebook, width):
    page, panel = opened(run_notebook, "panel_replay", "Policy")
    if width == WIDTHS[0]:
        looked_at(page, panel, "replay")
    resized(page, panel, width)
    to_the_top(panel)
    timeline, said = panel.locator(".js-plotly-plot").first, panel.get_by_role("status")
    assert "Reconfiguration 1 of" in said.text_content()
    assert "trigger interval of 5 s included" in said.text_content()
    changes(page, timeline, panel.get_by_role("button", name="To the next reconfiguration").click)
    assert "Reconfiguration 2 of" in said.text_content()
    assert in_sight(said)
    assert in_sight(timeline)
    changes(page, timeline, lambda: row_of(panel, "Policy").locator("select").select_option("static"))
    assert crowded(panel) == []
    healthy(page)
