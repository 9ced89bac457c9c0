"""A figure as a small PNG file, drawn by Chromium."""

import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from lab_server import FLAGS
from playwright.sync_api import sync_playwright


def save(figure, path):
    """Write `figure`, a plotly figure with a width and a height, to `path`."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_file = Path(folder) / "page.html"
        figure.write_html(page_file, config={"staticPlot": True})
        chromium = os.environ.get("CHROMIUM", "/usr/bin/chromium")
        page = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS)).new_page()
        page.set_viewport_size({"width": figure.layout.width, "height": figure.layout.height})
        page.goto(page_file.as_uri())
        page.locator(".main-svg").first.wait_for()
        page.locator(".plot-container").first.screenshot(path=path)
