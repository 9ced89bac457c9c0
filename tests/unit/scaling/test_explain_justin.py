import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.scaling import JustinVariant, MemoryState, StateMetrics, explain_justin, justin
from workbench.scaling._justin import _improved
from workbench.views.justin_card import MemoryWindow, justin_card

FINE = StateMetrics(0.95, 1e-5)
SLOW = StateMetrics(0.3, 1e-5)


@pytest.mark.parametrize(
    ("previous", "proposed", "now", "before", "case"),
    [
        (MemoryState(4, 0), 7, None, None, "stateless"),
        (MemoryState(4, 1), 4, SLOW, None, "unchanged"),
        (MemoryState(4, 1), 7, StateMetrics(0.72, 3e-4), None, "scale up"),
        (MemoryState(4, 1, scaled_up=True), 7, StateMetrics(0.72, 9e-4), StateMetrics(0.72, 1.1e-3), "grow again"),
        (MemoryState(4, 1, scaled_up=True), 7, StateMetrics(0.72, 1.1e-3), StateMetrics(0.72, 1.1e-3), "roll back"),
        (MemoryState(4, 2, scaled_up=True), 7, FINE, SLOW, "top level"),
        (MemoryState(4, 2), 7, SLOW, None, "pressure at the top"),
        (MemoryState(4, 1), 7, FINE, None, "scale out"),
        (MemoryState(9, 0), 3, StateMetrics(0.6, 1e-5), None, "scale up"),
    ],
)
def test_cases_of_algorithm_1(previous, proposed, now, before, case):
    found = explain_justin(previous, proposed, now, before)
    assert found.case == case
    assert found.reason


def test_cases_of_the_variants():
    shrinking = JustinVariant("exceeds", give_back_hit_rate=0.9)
    assert explain_justin(MemoryState(9, 1), 3, SLOW, variant=shrinking).case == "shrinks"
    assert explain_justin(MemoryState(9, 1), 3, FINE, variant=shrinking).case == "gives back"


def test_memory_given_back_after_it_helped_is_no_roll_back():
    giving = JustinVariant("differs", give_back_hit_rate=0.9)
    after = StateMetrics(None, None)  # no look-ups: all hits, 10 % before
    found = explain_justin(MemoryState(4, 2, scaled_up=True), 3, after, StateMetrics(0.1, 5e-4), variant=giving)
    assert found.decision == MemoryState(3, 1)
    assert found.case == "gives back"
    worse = explain_justin(MemoryState(4, 2, scaled_up=True), 3, StateMetrics(0.1, 5e-4), after, variant=giving)
    assert (worse.decision, worse.case) == (MemoryState(3, 1), "roll back")


def test_numbers_are_in_the_tests():
    found = explain_justin(MemoryState(4, 1), 7, StateMetrics(0.72, 3e-4))
    assert found.tests == (
        "DS2 proposes 7 tasks, it has 4",
        "hit rate 72.0% against at least 80%, latency 0.3 ms against at most 1 ms",
        "level 2 of at most 2",
    )
    again = explain_justin(MemoryState(4, 1, scaled_up=True), 7, FINE, SLOW)
    assert again.tests[1] == "hit rate 30.0% to 95.0%, latency 0.01 to 0.01 ms, since the last decision"


METRICS = st.builds(
    StateMetrics, st.one_of(st.none(), st.floats(0, 1)), st.one_of(st.none(), st.sampled_from([1e-5, 1e-3, 2e-3]))
)


@given(
    previous=st.builds(MemoryState, st.integers(1, 5), st.integers(0, 2), st.booleans()),
    proposed=st.integers(1, 6),
    now=METRICS,
    before=st.one_of(st.none(), METRICS),
    variant=st.sampled_from([JustinVariant(), JustinVariant("exceeds", 0.05, 0.9), JustinVariant("differs", 0.0, 0.9)]),
)
def test_the_explained_decision_is_justins(previous, proposed, now, before, variant):
    found = explain_justin(previous, proposed, now, before, variant=variant)
    before_all = {} if before is None else {"x": before}
    assert found.decision == justin({"x": previous}, {"x": proposed}, {"x": now}, before_all, variant=variant)["x"]
    more = found.decision.level is not None and previous.level is not None and found.decision.level > previous.level
    assert more == (found.case in {"scale up", "grow again"})
    assert (found.case == "unchanged") <= (found.decision.tasks == previous.tasks)
    if found.case == "roll back":
        assert not _improved(now, before, variant.min_gain)


def test_the_card_tells_what_more_memory_did():
    low, high = MemoryState(1, 0), MemoryState(1, 1, scaled_up=True)
    windows = [
        MemoryWindow(16, SLOW, 20_000.0, explain_justin(low, 2, SLOW)),
        MemoryWindow(32, FINE, 30_000.0, explain_justin(high, 2, FINE, SLOW, max_level=2)),
    ]
    card = justin_card("q11's sessions", windows)
    assert card.finding == (
        "q11's sessions: 2 tasks with the same memory each, for the memory of the last decision helped, but there is "
        "no higher level, so it scales out. From 16 to 32 MB per task the true rate changed by +50%."
    )
    assert card.table.rows[0][:7] == (1, 16, 30.0, 0.01, 20_000.0, 2, "1 task with twice the memory each")
    assert "hit rate 30.0% against at least 80%" in card.table.rows[0][7]
