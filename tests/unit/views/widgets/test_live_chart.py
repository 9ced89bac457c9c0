"""Redrawing a live figure in place, and clicks on it."""

import json

import numpy as np
import plotly.graph_objects as go

from workbench.views import theme
from workbench.views.widgets.panel import LiveChart


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


def test_it_becomes_the_new_figure_whatever_was_shown():
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


def test_a_reloaded_page_starts_from_what_is_shown():
    chart = LiveChart(figure([1, 2]))
    chart.show(figure([3, 4]))
    assert chart.widget._widget_layout["title"]["text"] == "[3, 4]"


def test_it_offers_no_upload():
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
