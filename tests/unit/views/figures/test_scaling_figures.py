from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from figure_checks import axis_titles, check_empty, check_figure, trace

from workbench.advice import Advice
from workbench.answers import page
from workbench.answers.replayed import answer, cautions
from workbench.scaling import Reconfiguration, Timeline, jackson_latency, rebalance_shards
from workbench.simulation import RateTrace
from workbench.spelling import spelled
from workbench.study import Replayed, compare_policies
from workbench.views.figures.elastic import draw_latency_cores, draw_shard_balance, latency_cores, shard_balance
from workbench.views.figures.timeline import draw_policies, draw_timeline, timeline

PRICES = Path(__file__).parents[4] / "data" / "instances.csv"
REPORT = "workbench report scaling scaling.html -p rates day.csv"
RATES = ([1e4, 3e4, 5e3], [1000, 4000, 300], 1e4)


def line(steps=4000, tasks=3, memory=512.0, price=None):
    full, flat = np.full(steps, 100.0), np.zeros(steps)
    latency = flat.copy()
    latency[1234:1235] = 77.0
    changes = (Reconfiguration(2000.0, 30.0, 2.0**20, {"a": 1, "b": tasks - 1}),)
    counts = np.full(steps, tasks)
    return Timeline(
        5.0, full, full, flat, latency, counts, changes, memory, counts * 1.0, counts * memory, counts, price
    )


def test_a_timeline_is_thinned_without_losing_a_peak():
    data = timeline(line(), "ds2")
    seen = data.columns
    assert len(seen["times_s"]) <= 1200
    assert max(seen["latency_s"]) == 77.0
    assert seen["offered"] == pytest.approx(np.full(len(seen["times_s"]), 100.0))
    assert data.duration_s == 20_000
    assert data.finding.endswith("99 of 100 records do not wait, and it takes 22.2 core-hours, driver included")


def replayed(lines, price_unit=""):
    return Replayed("q11", RateTrace.steps([(20_000, 100.0)]), {"a": 3}, lines, price_unit)


def drawn(count):
    """Bytes of the figures of `count` policies, whose lines have all digits."""
    chance, steps = np.random.default_rng(1), 8640
    lines = {}
    for number in range(count):
        offered, consumed, backlog, latency = chance.uniform(0, 1e6, (4, steps))
        lines[f"policy-{number}"] = replace(
            line(steps), offered=offered, consumed=consumed, backlog=backlog, latency_s=latency
        )
    made = page.cards(answer(replayed(lines), {}))
    assert [card.kind for card in made] == ["result"] * (count + 2)
    return sum(len(card.figure.to_json()) for card in made if card.figure is not None)


def test_more_policies_make_a_page_hardly_larger():
    few, nine = drawn(3), drawn(9)
    assert nine < 1.2 * few
    assert nine < 740_000  # a page without them has 2.25 MB, and is to stay below 3 MB


def test_a_timeline_is_drawn_with_units_and_half_a_record_is_no_five_hundred_millions():
    figure = check_figure(draw_timeline(timeline(line(), "ds2")))
    assert list(trace(figure, "timeline-reconfigurations").x) == pytest.approx([2000 / 3600])
    assert (figure.layout.shapes[0].x1 - figure.layout.shapes[0].x0) * 3600 == pytest.approx(30)
    bare = check_figure(draw_timeline(timeline(line(memory=0.0))))
    assert not trace(bare, "timeline-memory").y
    small = replace(line(), backlog=np.full(4000, 0.5))
    axis = draw_timeline(timeline(small)).layout.yaxis4
    assert axis.title.text == "Backlog (records)"
    assert axis.tickformat == "~g"  # "~s" writes 0.5 as 500m
    assert axis.range[1] >= 10
    assert draw_timeline(timeline(replace(line(), backlog=np.full(4000, 2e6)))).layout.yaxis4.tickformat == "~s"


def test_a_timeline_can_be_played_while_axes_and_their_units_stay():
    data = timeline(line())
    early = data.until(1000.0)
    times = early.columns["times_s"]
    assert max(times) < 1000 <= data.columns["times_s"][len(times)]
    assert early.reconfigurations == ()
    whole, part = draw_timeline(data), check_figure(draw_timeline(early))
    assert [one.uid for one in whole.data] == [one.uid for one in part.data]
    check_figure(draw_timeline(data.until(0.0)))
    whole = timeline(replace(line(), latency_s=np.linspace(0, 7000, 4000), backlog=np.linspace(0, 5e6, 4000)))
    early, late = draw_timeline(whole.until(500.0)).layout, draw_timeline(whole).layout
    for axis in ("xaxis", "yaxis", "yaxis2", "yaxis3", "yaxis4", "yaxis5"):
        assert early[axis].range == late[axis].range
        assert early[axis].title.text == late[axis].title.text


def test_the_cheapest_policy_that_keeps_up_is_named():
    rows = {"static": row(1.0, 1.0, 10.0), "lazy": row(0.0782, 900.0, 1.0), "ds2": row(0.995, 9.0, 4.0, 7)}
    data = compare_policies(rows)
    assert data.best == "ds2"
    assert data.finding.endswith("for 4 core-hours, driver included, 60 % fewer than static")
    figure = check_figure(draw_policies(data))
    assert list(trace(figure, "policies-latency_p99_s").text) == ["9 s", "1 s", "15 min"]  # as in the table
    assert list(trace(figure, "policies-at_target").text) == ["99.5", "100", "7.8"]  # as well
    assert {"Core-hours, with driver", "Latency, 99 % (s)"} <= axis_titles(figure)
    assert compare_policies({"one": line()}).rows["one"]["core_hours"] == pytest.approx((3 + 1) * 20_000 / 3600)


def row(at_target, p99_s, core_hours, changes=0):
    costs = {"core_hours": core_hours, "reconfigurations": changes}
    return {"at_target": at_target, "latency_p99_s": p99_s, **costs}


def failing(*names):
    return {name: row(0.711, 288.0, 306.0, 17) for name in names}


def test_a_policy_that_does_not_keep_up_is_not_the_best_and_table_and_chart_have_one_order():
    data = compare_policies(failing("ds2"))
    assert (data.best, data.leading) == (None, "ds2")
    finding = "No policy keeps up; ds2 does so 71.1 % of the time for 306 core-hours, driver included"
    assert trace(check_figure(draw_policies(data), finding), "policies-at_target").marker.pattern.shape == ("",)
    assert answer(replayed({"ds2": replace(line(), backlog=np.full(4000, 1e6))}), {}).chosen is None
    nearly = {"good": failing("good")["good"] | {"at_target": 0.992, "core_hours": 400.0}}
    assert compare_policies(nearly | {"ds2": failing("ds2")["ds2"] | {"at_target": 0.985}}).best == "good"
    rows = failing("ds2", "flink", "static")
    rows["static"] |= {"at_target": 1.0, "core_hours": 744.0}
    rows["flink"] |= {"at_target": 0.9}
    data = compare_policies(rows)
    kept = [(name, row["at_target"]) for name, row in data.rows.items()]
    assert kept == [("static", 1.0), ("flink", 0.9), ("ds2", 0.711)]
    assert list(trace(draw_policies(data), "policies-at_target").y) == list(data.rows)


@pytest.mark.parametrize(
    ("names", "remedy"),
    [
        (
            ("ds2",),
            (
                f"Compare with static, which keeps all slots. Run: {REPORT} -p settings "
                "'{max_parallelism: 40}' -p policies '[ds2, static]'\nOr slow the scale-down. "
                f"Run: {REPORT} -p settings '{{max_parallelism: 40, scale_down_interval_s: 3600.0}}'"
            ),
        ),
        (("flink",), f"Compare with static, which keeps all slots. Run: {REPORT} -p policies '[flink, static]'"),
        (("static", "ds2"), f"Begin with more slots, or compare other policies. Run: {REPORT} -p slots 24"),
        (("static",), "Plan for a higher rate, then replay that plan; or compare other policies."),
    ],
)
def test_what_helps_depends_on_the_policies_that_do_not_keep_up(names, remedy):
    more = {("ds2",): {"settings": {"max_parallelism": 40}}, ("static",): {"query": "plans.json"}}
    asked = {"rates": "day.csv"} | more.get(names, {})
    found = cautions(compare_policies(failing(*names)), {}, asked, 12)
    assert str(found[f"No policy keeps up all the time; {names[0]} does 71.1 % of it."]) == remedy


def test_where_the_dearest_keeps_up_best_the_cheaper_ones_are_named_too():
    rows = {"static": row(1.0, 0.0, 744.0), "ds2": row(0.71, 829.0, 282.0, 17), "flink": row(0.88, 217.0, 375.0, 6)}
    assert compare_policies(rows | {"useless": row(0.0, 9e9, 9.0)}).finding == compare_policies(rows).finding
    data = compare_policies(rows)
    assert data.finding.endswith("; flink needs 50 % fewer, but keeps up only 88 % of the time")
    figure = draw_policies(data)
    longest = max(trace(figure, "policies-latency_p99_s").text, key=len)
    assert longest == "13 min 49 s"
    assert figure.layout.xaxis2.range[1] > 829 * 1.5  # room for it at the end of the longest bar


def test_latency_follows_the_best_allocation_of_every_number_of_cores():
    data = latency_cores(*RATES, 0.0054, 60, names=["parse", "count", "sink"])
    assert [sum(one.cores) for one in data.followed] == list(range(36, 61))
    assert all(earlier.latency > later.latency for earlier, later in pairwise(data.followed))
    for one in data.followed:
        assert one.latency == pytest.approx(jackson_latency(*RATES, one.cores))
    assert data.chosen.status == "ok"
    figure = check_figure(draw_latency_cores(data), "38 cores keep the mean latency at 5.19 ms, under 5.4 ms")
    assert list(trace(figure, "latency-chosen").x) == [38]
    assert {"Cores", "Mean latency (ms)"} <= axis_titles(figure)
    for target, cores in ((0.001, 60), (0.0036, 40), (0.0054, 20)):  # which no cores meet, or too few are there
        assert not trace(check_figure(draw_latency_cores(latency_cores(*RATES, target, cores))), "latency-chosen").x
    check_empty(draw_latency_cores(latency_cores([], [], 1.0, 0.0054, 60)))


def test_shards_are_added_up_per_task():
    loads, owners = [4.0, 1.0, 1.0, 2.0], [0, 0, 0, 1]
    data = shard_balance(loads, owners, rebalance_shards(loads, owners, 2), 2)
    assert data.before == pytest.approx((1.5, 0.5))
    assert data.after == pytest.approx((1.0, 1.0))
    assert (data.shards_before, data.shards_after) == ((3, 1), (1, 3))
    figure = check_figure(draw_shard_balance(data))
    assert {"Task", "Load (x mean)"} <= axis_titles(figure)
    still = shard_balance([1, 1], [0, 1], rebalance_shards([1, 1], [0, 1], 2), 2)
    assert still.finding == "No shard needs to move: the fullest task has 1 times the mean load"
    check_empty(draw_shard_balance(shard_balance([], [], replace(rebalance_shards([1], [0], 1), moves=()), 1)))


def test_prices_are_advised_for_a_replay_without():
    for asked, prices, kind in (({}, spelled(PRICES), "c6i.xlarge"), ({"prices": "ours.csv"}, "ours.csv", "TYPE")):
        card = page.cards(answer(replayed({"static": line()}), {"rates": "day.csv"} | asked))[0]
        assert f"{REPORT} -p query q11 -p prices {prices} -p instance {kind}" in card.html


def test_a_priced_replay_answers_in_money_driver_included_and_all_of_its_page_is_in_one_unit():
    rows = {"many small": row(1.0, 1.0, 9.0) | {"cost": 2.0}, "few large": row(1.0, 1.0, 8.0) | {"cost": 4.0}}
    data = compare_policies(rows, "USD for 24 h")
    assert (data.best, compare_policies(rows).best) == ("many small", "few large")
    assert data.finding.endswith("at 2 USD for 24 h, driver included, 50 % less than few large")
    figure = check_figure(draw_policies(data))
    assert "USD for 24 h, with driver" in axis_titles(figure)
    assert not any("ore-hours" in title for title in axis_titles(figure))
    cheap = compare_policies(
        {"all": rows["few large"], "lazy": rows["many small"] | {"at_target": 0.5}}, "USD for 24 h"
    )
    assert cheap.finding.endswith("; lazy costs 50 % less, but keeps up only 50 % of the time")
    lines = {"static": line(17_280, price=0.5)}
    card = page.cards(answer(Replayed("q11", RateTrace.steps([(86_400, 100.0)]), {"a": 3}, lines, "USD"), {}))[0]
    assert "Core-hours" not in card.html
    assert card.table.rows[0][2] == pytest.approx(48.0)
    priced = compare_policies({"one": line(price=0.5)}).rows["one"]
    assert priced["cost"] == pytest.approx(line(price=0.5).summary()["cost"] * 4 / 3)


def test_policies_that_fall_behind_are_listed_and_no_more_slots_advised_where_partitions_hold_all_back():
    rows = {name: {"at_target": 0.5, "core_hours": 1.0} for name in ("ds2", "flink", "justin")}
    best = {"static": {"at_target": 1.0, "core_hours": 9.0}}
    all_fall, one_falls = compare_policies(best | rows), compare_policies(best | {"ds2": rows["ds2"]})
    assert "ds2, flink and justin fall behind more than 5 % of the time." in cautions(all_fall, {}, None, 12)
    assert "ds2 falls behind more than 5 % of the time." in cautions(one_falls, {}, None, 12)
    alike = compare_policies({name: {"at_target": 0.271, "core_hours": 62.4} for name in ("static", "ds2")})
    assert not [reason for reason in cautions(alike, {}, None, 12) if "fall" in reason]  # neither is cheaper
    found = cautions(
        compare_policies(failing("static", "ds2")),
        {"The state has 4 partitions.": Advice("Plan for the peak.")},
        {},
        12,
    )
    assert next(iter(found.values())) == Advice("Plan for the peak.")
    assert "more slots" not in str(found)
