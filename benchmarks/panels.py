"""How quickly the what-if panel follows its reader, in a real browser on a real JupyterLab.

    python benchmarks/panels.py

Prints milliseconds, asserts nothing: from a key press on the slider of the rate until the tiles and until the chart say
something else (medians), and while the slider is dragged at 20 moves a second for three seconds: answers a second, and
from the last move until the chart shows its answer.
"""

import os
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from lab_page import PATIENCE_MS, ROOT, panel_with, row_of
from lab_server import FLAGS, open_notebook, run_all, serve, until_run
from panel_notebooks import PANELS
from playwright.sync_api import sync_playwright

RATE = "Target rate (records/s)"
PRESSES, MOVES, PAUSE_MS, PIXELS = 15, 60, 50, 3
QUIET_MS = 1500
# Notes when the tiles and the chart say something else; plotly draws with its data, so its event is the last to come.
WATCH = """panel => {
    const noted = window.noted = {text: [], chart: [], moved: []};
    const tiles = panel.querySelector('.workbench-tiles').parentElement;
    new MutationObserver(() => noted.text.push(performance.now())).observe(tiles, {childList: true, subtree: true});
    panel.querySelector('.js-plotly-plot').on('plotly_afterplot', () => noted.chart.push(performance.now()));
    for (const kind of ['keydown', 'pointermove'])
        panel.addEventListener(kind, event => noted.moved.push(performance.now()), true);
}"""
# The page moves the pointer by its own clock: a move that a driver sends waits until the page has answered the last.
MOVE = """([x, y, moves, pause, pixels]) => new Promise(done => {
    let move = 0;
    const timer = setInterval(() => {
        const at = {bubbles: true, clientX: x + pixels * Math.abs(move % 20 - 10), clientY: y, buttons: 1};
        const under = document.elementFromPoint(x, y);
        under.dispatchEvent(new PointerEvent('pointermove', at));
        under.dispatchEvent(new MouseEvent('mousemove', at));
        if (++move === moves) { clearInterval(timer); done(); }
    }, pause);
})"""


def noted(page):
    """What happened since the last call, in milliseconds of the page's clock."""
    return page.evaluate("""() => {
        const seen = structuredClone(window.noted);
        for (const list of Object.values(window.noted)) list.length = 0;
        return seen;
    }""")


def keys(page, handle):
    waits = {"text": [], "chart": []}
    for press in range(PRESSES):
        handle.press("ArrowRight" if press % 2 else "ArrowLeft")
        page.wait_for_function("() => window.noted.chart.length", timeout=PATIENCE_MS)
        page.wait_for_timeout(QUIET_MS)
        seen = noted(page)
        for what, times in waits.items():
            times.append((seen[what] or seen["chart"])[0] - seen["moved"][0])
    for what, times in waits.items():
        print(f"key press to {what:38} {statistics.median(times):8.0f} ms  at most {max(times):.0f}", flush=True)


def drag(page, handle):
    box = handle.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    noted(page)
    page.evaluate(MOVE, [x, y, MOVES, PAUSE_MS, PIXELS])
    page.wait_for_timeout(2 * QUIET_MS)
    seen = noted(page)
    page.mouse.up()
    moves = seen["moved"]
    seconds = (moves[-1] - moves[0]) / 1000
    during = {what: sum(time <= moves[-1] for time in seen[what]) / seconds for what in ("text", "chart")}
    print(
        f"dragged at {len(moves) / seconds:.1f} moves/s: {during['text']:.1f} texts/s, {during['chart']:.1f} charts/s"
    )
    print(f"last move to its text {max(seen['text']) - moves[-1]:23.0f} ms, to its chart "
          f"{max(seen['chart']) - moves[-1]:.0f} ms", flush=True)  # fmt: skip


def main():
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    with (
        tempfile.TemporaryDirectory() as folder,
        serve(Path(folder) / "lab", PANELS) as lab,
        sync_playwright() as playwright,
    ):
        chromium = os.environ.get("CHROMIUM", "/usr/bin/chromium")
        page = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS)).new_page()
        page.set_viewport_size({"width": 1440, "height": 900})
        open_notebook(page, lab, "panel_what_if")
        run_all(page)
        until_run(page)
        panel = panel_with(page, RATE)
        panel.locator(".main-svg").first.wait_for(timeout=PATIENCE_MS)
        page.wait_for_timeout(QUIET_MS)
        panel.evaluate(WATCH)
        handle = row_of(panel, RATE).locator(".noUi-handle").first
        handle.press("ArrowRight")
        page.wait_for_timeout(QUIET_MS)
        noted(page)
        keys(page, handle)
        drag(page, handle)


if __name__ == "__main__":
    main()
