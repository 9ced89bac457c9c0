"""The log of a live panel in a real browser, given lines as the kernel sends them."""

import pytest

from workbench.views.widgets.panel import LiveLog

pytestmark = pytest.mark.browser

SHOW = """async ([esm, css]) => {
    document.head.appendChild(document.createElement("style")).textContent = css;
    const { default: widget } = await import(URL.createObjectURL(new Blob([esm], { type: "text/javascript" })));
    let lines = [], changed;
    widget.render({ model: { get: () => lines, on: (_, show) => { changed = show; } }, el: document.body });
    window.say = said => { lines = said; changed(); };
    window.added = [];
    new MutationObserver(changes => changes.forEach(change => added.push(
        ...[...change.addedNodes].map(node => node.textContent)
    ))).observe(document.querySelector("[role=log]"), { childList: true, subtree: true });
}"""
TOP = "text => [...document.querySelectorAll('[role=log] div div')].find(line => line.textContent === text)\
    .getBoundingClientRect().top"


@pytest.fixture
def log(page):
    """An empty log."""
    page.goto("about:blank")
    page.evaluate(SHOW, [LiveLog._esm, LiveLog._css])
    return page.get_by_role("log", name="Log of the work")


def lines(first, last):
    return [f"line {number}" for number in range(first, last)]


def say(page, said):
    """Show lines, and give the place of the log a frame to settle."""
    page.evaluate("said => { say(said); return new Promise(requestAnimationFrame); }", said)


def test_only_new_lines_are_added_as_text(page, log):
    say(page, ["The log is empty."])
    say(page, ["<b>bold</b>"])
    say(page, ["<b>bold</b>", "next"])
    assert log.locator(":scope > div > div").all_text_contents() == ["<b>bold</b>", "next"]
    assert page.evaluate("added") == ["The log is empty.", "<b>bold</b>", "next"]
    assert page.problems == []


def test_it_stays_at_its_end(page, log):
    say(page, lines(0, 100))
    for said in (lines(0, 101), lines(20, 120)):
        say(page, said)
        end = page.evaluate(TOP, said[-1])
        box = log.bounding_box()
        assert box["y"] <= end <= box["y"] + box["height"]


def test_who_has_scrolled_up_stays_where_he_is(page, log):
    say(page, lines(0, 100))
    log.evaluate("log => { log.scrollTop = -500; }")
    before = page.evaluate(TOP, "line 70")
    for said in (lines(0, 101), lines(0, 130), lines(20, 150)):  # the oldest are forgotten in the end
        say(page, said)
        assert page.evaluate(TOP, "line 70") == pytest.approx(before, abs=1)
