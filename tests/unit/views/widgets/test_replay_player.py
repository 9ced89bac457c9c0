from dataclasses import replace

import numpy as np
import pytest

from workbench.errors import WorkbenchError
from workbench.scaling import Reconfiguration, Timeline, replay
from workbench.simulation import RateTrace, preset
from workbench.study import POLICIES
from workbench.study.scenario import initial_tasks
from workbench.views.widgets.panel import WhileDragged
from workbench.views.widgets.replay_player import ReplayPlayer, frame_times, moment, most_interesting, next_change


def replays(**settings):
    model = preset("q11")
    trace = RateTrace.steps([(1200, 300_000), (1200, 900_000), (1200, 300_000)])
    tasks = initial_tasks(model, 12, 2048)
    return {n: replay(trace, model, POLICIES[n], tasks, memory_mb=2048, **settings) for n in ("static", "ds2")}


@pytest.fixture(scope="module")
def lines():
    return replays()


def test_a_moment_in_words_includes_the_trigger_interval_in_the_latency(lines):
    line = lines["ds2"]
    assert line.reconfigurations
    first = line.reconfigurations[0]
    assert "Nothing has been reconfigured yet." in moment(line, first.at_s)
    assert f"Reconfiguration 1 of {len(line.reconfigurations)}" in moment(line, first.at_s + 1)
    assert "The query is still down." in moment(line, first.at_s + 1)
    assert "still down" not in moment(line, first.at_s + first.downtime_s + 1) or len(line.reconfigurations) > 1
    assert "300 k records/s offered" in moment(line, 100)
    assert "900 k records/s offered" in moment(line, 1300)
    batches = replace(lines["static"], batch_s=7.0)
    assert "included" not in moment(lines["static"], 100.0)
    assert "the trigger interval of 7 s included." in moment(batches, 100.0)
    plain, more = (one.summary()["latency_p99_s"] for one in (lines["static"], batches))
    assert more > plain + 0.9 * 7.0


def test_frames_are_whole_steps_and_end_at_the_end(lines):
    line = lines["ds2"]
    times = frame_times(line, 50)
    assert len(times) <= 51
    assert times[-1] == len(line.offered) * line.step_s
    assert all(time % line.step_s == pytest.approx(0) for time in times)
    first = next_change(line, times, 0)
    assert times[first] > line.reconfigurations[0].at_s >= times[first - 1]
    assert next_change(line, times, len(times) - 1) == len(times) - 1


def test_playing_and_stepping_cut_the_figure(lines):
    player = ReplayPlayer(lines)
    player.frame.value = player.frame.max
    whole, axes = len(player.chart.widget.data[0].x), player.chart.widget.layout.yaxis.range
    player.play.value = 10
    assert player.frame.value == 10
    assert 0 < len(player.chart.widget.data[0].x) < whole
    assert player.chart.widget.layout.yaxis.range == axes
    text = player.text.value
    player.frame.value = 20
    assert player.play.value == 20
    assert player.text.value != text
    player.start.click()
    assert player.frame.value == 0
    player.policy.value = "ds2"
    assert player.frame.value == 0
    player.jump.click()
    assert "Reconfiguration 1 of" in player.text.value
    assert player.alarm.widget.value == ""


def test_what_a_jump_leads_to_is_told_and_drawn_where_a_frame_ends_with_it_too():
    full, none, tasks = np.full(240, 100.0), np.zeros(240), np.full(240, 3)
    changes = tuple(Reconfiguration(at_s, 30.0, 0.0, {"map": 3}) for at_s in (500.0, 1200.0))
    line = Timeline(5.0, full, full, none, none, tasks, changes, 512.0, full, full, tasks)
    player = ReplayPlayer({"two": line})
    assert {500.0, 1200.0} < set(player.times)
    assert player.times[-1] == 1200.0  # a change at the very end comes in no step

    def marked():
        return len(next(one.x for one in player.chart.widget.data if one.name == "reconfiguration") or ())

    player.start.click()
    player.jump.click()
    assert marked() == 1
    assert "Reconfiguration 1 of 2 came" in player.text.value
    jumped = player.frame.value
    player.frame.value = jumped - 1
    assert marked() == 0
    assert "Nothing has been reconfigured yet." in player.text.value
    player.jump.click()
    assert player.frame.value == jumped
    player.jump.click()
    assert player.frame.value == len(player.times) - 1
    assert player.alarm.widget.value == ""


def test_a_longer_restart_shows_more_waiting_and_replays_that_do_not_match_are_refused(lines):
    slow = replays(restart_s=300.0)
    player = ReplayPlayer(lines, restarts={10.0: lines, 300.0: slow})
    assert player.restart.value == 10.0
    before, compared = player.text.value, player.comparison.finding
    player.restart.value = 300.0
    assert player.line is slow[player.policy.value]
    assert (player.text.value, player.comparison.finding) != (before, compared)
    assert not player.alarm.widget.value
    with pytest.raises(WorkbenchError, match=r"There is no replay to play\. Give at least one timeline"):
        ReplayPlayer({})
    with pytest.raises(WorkbenchError, match="replays by restart time do not match the timelines"):
        ReplayPlayer(lines, restarts={10.0: {"static": lines["static"]}})


def test_it_opens_on_the_first_reconfiguration_of_the_most_interesting_policy(lines):
    player = ReplayPlayer(lines)
    assert [one.sliders for one in player.children if isinstance(one, WhileDragged)] == [[player.frame]]
    assert most_interesting(lines) == player.policy.value == "ds2"  # static keeps up better, but never reconfigures
    assert f"Reconfiguration 1 of {len(lines['ds2'].reconfigurations)} came at 00:" in player.text.value
    still = ReplayPlayer({"static": lines["static"]})
    assert still.policy.value == "static"
    assert still.frame.value == len(still.times) - 1


def test_the_other_policies_are_drawn_over_the_one_that_is_played(lines):
    player = ReplayPlayer(lines)
    over = [one for one in player.chart.widget.data if one.name == "static"]
    assert len(over) == 3  # tasks, backlog, latency
    assert {len(one.x) for one in over} == {len(player.chart.widget.data[0].x)}  # they too end where the frame does
    assert player.chart.widget.layout.xaxis4.title.text == "Clock"
    assert player.chart.widget.layout.xaxis4.ticktext[0] == "00:00"
    tops, finding = player.chart.widget.layout.yaxis.range, player.chart.finding
    player.policy.value = "static"
    assert player.chart.widget.layout.yaxis.range == tops
    assert player.chart.finding != finding
    assert len(player.chart.widget.data[0].x) > 0


def test_the_comparison_has_the_driver_as_in_the_report(lines):
    priced = {name: replace(line, price_per_hour=0.5) for name, line in lines.items()}
    shown = ReplayPlayer(priced, "USD for 1 h").comparison.widget
    costs = next(one for one in shown.data if one.name == "USD for 1 h, with driver")
    assert dict(zip(costs.y, costs.x, strict=True)) == {
        name: line.with_driver()["cost"] for name, line in priced.items()
    }
    assert list(costs.x) > [line.summary()["cost"] for line in priced.values()]
