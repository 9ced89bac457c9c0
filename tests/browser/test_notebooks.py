"""The notebooks in a real JupyterLab, driven by Chromium."""

import re

import pytest
from lab_page import (
    PATIENCE_MS,
    changes,
    click_mark,
    drag,
    enter,
    healthy,
    panel_with,
    picture,
    press,
    row_of,
    whole_notebook,
)

pytestmark = [pytest.mark.browser, pytest.mark.long]


def test_the_tour_leads_from_a_query_to_a_page(run_notebook):
    page = run_notebook("00_tour")
    page.get_by_text("reports/tour.html, next to this notebook").wait_for(timeout=3 * PATIENCE_MS)
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


def test_the_caps_tree_prunes_and_a_click_selects_a_plan(run_notebook):
    page = run_notebook("03_place")
    panel = panel_with(page, "CPU cost at most (1: off)")
    plan_map, vectors, scatter, tree = (panel.locator(".js-plotly-plot").nth(number) for number in range(4))
    tree.locator(".main-svg").first.wait_for(timeout=PATIENCE_MS)
    picture(page, "03_caps_whole", panel)
    changes(page, tree, lambda: panel.get_by_role("button", name="Unfold it").press("Enter"))
    changes(page, tree, lambda: panel.get_by_role("button", name="Fold all again").press("Enter"))
    status = panel.get_by_role("status")
    said = status.text_content()
    title = lambda: tree.evaluate("it => it.layout.meta.finding")  # noqa: E731
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
    panel.get_by_role("tab", name="Two costs").click()
    changes(page, plan_map, lambda: click_mark(page, scatter, "on the Pareto front"))
    assert status.text_content() != chosen
    changes(page, tree, lambda: panel.get_by_role("button", name="One step back").click())
    changes(page, tree, lambda: enter(panel, "Search shown until step", "30"))
    assert "Step 30:" in status.text_content()
    step = re.fullmatch(r"Step 30 of \d+: (.*)", title())
    assert f"Step 30: {step[1]}" in status.text_content()
    picture(page, "03_caps_step", panel)
    changes(page, tree, lambda: panel.get_by_role("button", name="Thresholds tuned by CAPS").click())
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


@pytest.mark.rare
def test_elastic_executors(run_notebook):
    page = run_notebook("05_elastic")
    page.wait_for_function("() => document.querySelectorAll('.js-plotly-plot:has(.main-svg)').length >= 2")
    healthy(page)
    whole_notebook(page, "05_elastic")


def test_the_papers_figures_are_made_again_for_another_query(run_notebook):
    page = run_notebook("07_papers")
    panel = panel_with(page, "Figure 7 for")
    panel.locator(".main-svg").first.wait_for(timeout=PATIENCE_MS)
    row_of(panel, "Figure 7 for").locator("select").select_option("Q6-session")
    panel.get_by_role("heading", name="Figure 7 (Q6-session)").wait_for(timeout=PATIENCE_MS)
    assert page.locator(".workbench-card.error").count() == 0
    healthy(page)
    whole_notebook(page, "07_papers")


@pytest.mark.rare
def test_a_running_query_is_observed(run_notebook):
    page = run_notebook("06_observe")
    page.get_by_role("heading", name="How much head-room does").wait_for(timeout=PATIENCE_MS)
    panel = panel_with(page, "Target rate (records/s)")
    panel.locator(".main-svg").first.wait_for(timeout=PATIENCE_MS)
    assert page.locator(".workbench-card.error").count() == 0
    healthy(page)
    whole_notebook(page, "06_observe")
