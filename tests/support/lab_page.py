"""What tests do with a page of JupyterLab: look for panels, move sliders, click marks, keep pictures."""

import os
from pathlib import Path

from playwright.sync_api import TimeoutError as NotInTime

ROOT = Path(__file__).parents[2]
ARTIFACTS = ROOT / "artifacts"
MOST_PIXELS = 14_000  # of a screenshot's height
PATIENCE_MS = int(os.environ.get("PATIENCE_MS", "60000"))
HOVER_MS = 2000
TRIES = 2


def healthy(page):
    """No cell failed, no card shows an error, nothing was fetched from elsewhere, no script complained."""
    assert page.locator("[data-mime-type='application/vnd.jupyter.error']").count() == 0
    assert page.get_by_role("alert").count() == 0
    assert page.locator(".workbench-card.error").count() == 0
    assert page.outside == [], page.outside
    assert page.problems == [], page.problems


def shown(chart):
    """What a chart draws, as text."""
    return chart.evaluate("it => JSON.stringify([it.data, it.layout.title, it.layout.shapes])")


def changes(page, chart, action):
    """Do `action` and wait until `chart` draws something else; do it again where a busy page has lost it."""
    before, handle = shown(chart), chart.element_handle()
    for left in reversed(range(TRIES)):
        action()
        try:
            page.wait_for_function(
                "([it, before]) => JSON.stringify([it.data, it.layout.title, it.layout.shapes]) !== before",
                arg=[handle, before],
                timeout=PATIENCE_MS / TRIES,
            )
        except NotInTime:
            if not left:
                raise
        else:
            return


def in_words(page, panel, chart):
    """Wait until what `chart` draws is also there in words, which travel in a message of their own."""
    unseen = panel.locator(".workbench-unseen").element_handle()
    page.wait_for_function(
        "([words, it]) => words.textContent.includes(it.layout.meta.alternative)",
        arg=[unseen, chart.element_handle()],
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
    """See that all its charts are drawn, below the window's end too; ``make gallery`` keeps pictures of its cells."""
    shown = page.viewport_size
    for _ in range(2):  # cells that come into sight may grow
        height = page.locator(".jp-WindowedPanel-outer").first.evaluate("panel => panel.scrollHeight")
        page.set_viewport_size({**shown, "height": max(shown["height"], min(MOST_PIXELS, height + 200))})
        page.wait_for_load_state("networkidle")
    page.wait_for_function(
        "() => [...document.querySelectorAll('.jp-RenderedPlotly')].every(chart => chart.querySelector('.main-svg'))",
        timeout=PATIENCE_MS,
    )
    if os.environ.get("GALLERY"):
        picture(page, name, page.locator(".jp-Notebook"))
        for_gallery(page, name)
    page.set_viewport_size(shown)


def for_gallery(page, name):
    """Keep pictures of the cells alone, as many as their height takes: NAME.jpg, NAME-2.jpg."""
    scrolled = page.locator(".jp-WindowedPanel-outer").first
    frame = page.locator(".jp-Notebook").bounding_box()
    bottom = scrolled.evaluate("""panel => {
        const cells = [...panel.querySelectorAll('.jp-Cell')].map(cell => cell.getBoundingClientRect().bottom);
        return Math.max(...cells) - panel.getBoundingClientRect().top + panel.scrollTop + 16;
    }""")
    seen, part = 0, 1
    while seen < bottom:
        reached = scrolled.evaluate("(panel, at) => { panel.scrollTop = at; return panel.scrollTop; }", seen)
        page.wait_for_load_state("networkidle")
        above = seen - reached  # of the window, at the end of the scroll
        height = min(frame["height"] - above, bottom - seen)
        file = ARTIFACTS / (f"{name}.jpg" if part == 1 else f"{name}-{part}.jpg")
        clip = frame | {"y": frame["y"] + above, "height": height}
        page.screenshot(path=file, type="jpeg", quality=35, clip=clip)
        seen, part = seen + height, part + 1


def panel_with(page, text):
    """The panel that has a control called so."""
    return page.locator(".jp-OutputArea-output .widget-vbox", has=page.get_by_text(text, exact=True)).first


def resized(page, panel, width, height=900):
    """Give the window a size, and wait until the panel's charts are as wide as it leaves them."""
    page.set_viewport_size({"width": width, "height": height})
    page.wait_for_function(
        """panel => [...panel.querySelectorAll('.js-plotly-plot')].filter(chart => chart.offsetParent).every(chart => {
            const drawn = chart.querySelector('.main-svg').getBoundingClientRect().width;
            return Math.abs(drawn - chart.parentElement.getBoundingClientRect().width) < 2;
        })""",
        arg=panel.element_handle(),
        timeout=PATIENCE_MS,
    )


def crowded(panel):
    """Texts of the panel's charts that cover one another or leave their chart."""
    return panel.evaluate("""panel => [...panel.querySelectorAll('.js-plotly-plot')].flatMap(chart => {
        const frame = chart.getBoundingClientRect(), found = [];
        const texts = [...chart.querySelectorAll('.main-svg text')].filter(text => !text.closest('.hoverlayer'))
            .map(text => [text.textContent, text.getBoundingClientRect()])
            .filter(([said, box]) => said.trim() && box.width && box.height);
        texts.forEach(([said, box], place) => {
            if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.bottom > frame.bottom + 1)
                found.push(`${said} leaves its chart`);
            for (const [other, its] of texts.slice(place + 1)) {
                const across = Math.min(box.right, its.right) - Math.max(box.left, its.left);
                const down = Math.min(box.bottom, its.bottom) - Math.max(box.top, its.top);
                if (across > 2 && down > 2) found.push(`${said} covers ${other}`);
            }
        });
        return found;
    })""")


def in_sight(element):
    """Whether all of an element is inside the part of the notebook that the window shows."""
    return element.evaluate("""it => {
        const box = it.getBoundingClientRect();
        const shown = it.closest('.jp-WindowedPanel-outer').getBoundingClientRect();
        return box.height > 0 && box.top >= shown.top - 1 && box.bottom <= shown.bottom + 1
            && box.left >= shown.left - 1 && box.right <= shown.right + 1;
    }""")


def to_the_top(element):
    """Scroll the notebook until the element begins where its window does."""
    element.evaluate("it => it.scrollIntoView({block: 'start', behavior: 'instant'})")


def in_theme(page, theme):
    """Choose JupyterLab's theme, Light or Dark, and let its splash go: of two at once, JupyterLab removes one twice."""
    page.evaluate(
        "theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme})", f"JupyterLab {theme}"
    )
    page.wait_for_function(
        "light => document.body.dataset.jpThemeLight === light && !document.getElementById('jupyterlab-splash')",
        arg=str(theme == "Light").lower(),
        timeout=PATIENCE_MS,
    )


def faint(panel, texts):
    """Texts of less contrast with what is behind them than WCAG's 4.5."""
    return panel.locator(texts).evaluate_all("""all => {
        const parts = colour => (colour.match(/[\\d.]+/g) || []).map(Number);
        const light = colour => parts(colour).slice(0, 3).map(value => value / 255)
            .map(value => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4)
            .reduce((sum, value, place) => sum + value * [0.2126, 0.7152, 0.0722][place], 0);
        const behind = it => {
            for (; it; it = it.parentElement) {
                const colour = getComputedStyle(it).backgroundColor, rgba = parts(colour);
                if (rgba.length === 3 || rgba[3] === 1) return colour;
            }
            return 'rgb(255, 255, 255)';
        };
        return all.filter(it => it.textContent.trim() && it.offsetParent).filter(it => {
            const pair = [light(getComputedStyle(it).color), light(behind(it))];
            return (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05) < 4.5;
        }).map(it => it.textContent);
    }""")
