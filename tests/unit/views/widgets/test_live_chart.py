import asyncio
import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import plotly.graph_objects as go
import pytest

from workbench.views import theme
from workbench.views.widgets.panel import LiveChart, Throttled


def figure(y, text=None, note=None, kind=go.Scatter):
    drawn = go.Figure(kind(x=[1, 2], y=y, text=text, customdata=["one", "two"]))
    drawn.update_layout(title_text=str(y), meta={"finding": str(y)})
    if note:
        drawn.add_annotation(text=note)
        drawn.add_hline(y=1)
    return drawn


def plain(drawn):
    found = json.loads(drawn.to_json())
    for part in (*found["data"], found["layout"]):
        for key in [key for key, value in part.items() if key in {"uid", "autosize"} or value == []]:
            del part[key]
    return found


def test_it_becomes_the_new_figure_also_for_a_reloaded_page_and_offers_no_upload():
    chart = LiveChart(figure([1, 2]))
    for other in (
        figure([3, 4], ["a", "b"], "note"),
        figure(np.array([5.0, 6.0])),
        figure([5.0, 7.0], kind=go.Bar),
        figure([1, 2]),
    ):
        chart.show(other)
        assert plain(chart.widget) == plain(other)
        assert chart.finding == other.layout.meta["finding"]
    chart.show(figure([3, 4]))
    assert chart.widget._widget_layout["title"]["text"] == "[3, 4]"
    assert LiveChart(figure([1, 2])).widget._config["showSendToCloud"] is False


def test_a_click_tells_what_the_mark_stands_for_after_a_redraw_too():
    clicked = []
    chart = LiveChart(figure([1, 2]), clicked.append)
    chart.click(0, 1)
    chart.show(figure([1, 2], kind=go.Bar))
    chart.click(0, 0)
    assert clicked == ["two", "one"]


def test_what_it_shows_is_there_in_words_after_a_redraw_too():
    before, after = theme.figure("Before <b>", shows="A line."), theme.figure("After", shows="Bars.")
    chart = LiveChart(before)
    words, drawn = chart.parts
    assert drawn is chart.widget
    assert "Chart: Before &lt;b&gt;. A line." in words.value
    assert "workbench-unseen" in words._dom_classes
    chart.show(after)
    assert "Chart: After. Bars." in words.value


class Loop:
    """An event loop that waits when it is asked to."""

    def __init__(self):
        self.now_s, self.timers = 0.0, []

    def time(self):
        return self.now_s

    def call_later(self, wait_s, job):
        self.timers.append((self.now_s + wait_s, job))
        return object()

    def wait(self, until_s):
        for timer in sorted(self.timers, key=lambda one: one[0]):
            if timer[0] <= until_s:
                self.timers.remove(timer)
                self.now_s = timer[0]
                timer[1]()
        self.now_s = until_s


@pytest.fixture
def loop():
    return Loop()


def moved(loop, every_s, moves, throttled):
    """Moves of a slider; returns when each was drawn."""
    drawn = []
    for move in range(moves):
        loop.wait(move * every_s)
        throttled.do(lambda move=move: drawn.append((loop.now_s, move)))
    loop.wait(loop.now_s + 1)
    return drawn


def test_moves_far_apart_are_drawn_at_once(loop):
    assert moved(loop, 0.25, 3, Throttled(0.2, lambda: loop)) == [(0.0, 0), (0.25, 1), (0.5, 2)]


def test_of_moves_close_together_some_are_drawn_and_the_last_always(loop):
    drawn = moved(loop, 0.0625, 9, Throttled(0.25, lambda: loop))
    assert drawn == [(0.0, 0), (0.25, 3), (0.5, 7), (0.75, 8)]


def test_what_is_dropped_is_not_drawn(loop):
    throttled, drawn = Throttled(0.2, lambda: loop), []
    throttled.do(lambda: drawn.append("first"))
    throttled.do(lambda: drawn.append("late"))
    throttled.drop()
    loop.wait(1.0)
    throttled.do(lambda: drawn.append("next"))
    assert drawn == ["first", "next"]


def test_a_job_that_fails_does_not_stop_the_next(loop):
    throttled, drawn = Throttled(0.2, lambda: loop), []
    with pytest.raises(ZeroDivisionError):
        throttled.do(lambda: 1 / 0)
    throttled.do(lambda: drawn.append("next"))
    loop.wait(1.0)
    assert drawn == ["next"]


def test_without_a_loop_or_with_one_that_is_no_kernels_each_job_is_done():
    throttled, drawn = Throttled(loop=lambda: None), []
    for move in range(3):
        throttled.do(lambda move=move: drawn.append(move))
    assert drawn == [0, 1, 2]
    drawn = []

    async def move():
        throttled = Throttled()
        for number in range(3):
            throttled.do(lambda number=number: drawn.append(number))

    with ThreadPoolExecutor(1) as another:  # a loop may run in this thread already
        another.submit(lambda: asyncio.run(move())).result()
    assert drawn == [0, 1, 2]
