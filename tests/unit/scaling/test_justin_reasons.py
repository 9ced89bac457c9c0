import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.scaling import JustinVariant, MemoryState, StateMetrics, justin, justin_decisions
from workbench.scaling._justin import _improved

FINE = StateMetrics(0.95, 1e-5)
SLOW = StateMetrics(0.3, 1e-5)


def explained(previous, proposed, now, before=None, **options):
    """Decide for one operator."""
    earlier = {} if now is None or before is None else {"x": before}
    return justin_decisions({"x": previous}, {"x": proposed}, {} if now is None else {"x": now}, earlier, **options)[
        "x"
    ]


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
    found = explained(previous, proposed, now, before)
    assert found.case == case
    assert found.reason


def test_cases_of_the_variants():
    shrinking = JustinVariant("exceeds", give_back_hit_rate=0.9)
    assert explained(MemoryState(9, 1), 3, SLOW, variant=shrinking).case == "shrinks"
    assert explained(MemoryState(9, 1), 3, FINE, variant=shrinking).case == "gives back"


def test_memory_given_back_after_it_helped_is_no_roll_back():
    giving = JustinVariant("differs", give_back_hit_rate=0.9)
    after = StateMetrics(None, None)  # no look-ups: all hits, 10 % before
    found = explained(MemoryState(4, 2, scaled_up=True), 3, after, StateMetrics(0.1, 5e-4), variant=giving)
    assert found.state == MemoryState(3, 1)
    assert found.case == "gives back"
    worse = explained(MemoryState(4, 2, scaled_up=True), 3, StateMetrics(0.1, 5e-4), after, variant=giving)
    assert (worse.state, worse.case) == (MemoryState(3, 1), "roll back")


def test_numbers_are_in_the_tests():
    found = explained(MemoryState(4, 1), 7, StateMetrics(0.72, 3e-4))
    assert found.tests == (
        "DS2 proposes 7 tasks, it has 4",
        "hit rate 72.0 % against at least 80 %, latency 0.3 ms against at most 1 ms",
        "level 2 of at most 2",
    )
    again = explained(MemoryState(4, 1, scaled_up=True), 7, FINE, SLOW)
    assert again.tests[1] == "hit rate 30.0 % to 95.0 %, latency 0.01 to 0.01 ms, since the last decision"


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
    found = explained(previous, proposed, now, before, variant=variant)
    before_all = {} if before is None else {"x": before}
    assert found.state == justin({"x": previous}, {"x": proposed}, {"x": now}, before_all, variant=variant)["x"]
    more = found.state.level is not None and previous.level is not None and found.state.level > previous.level
    assert more == (found.case in {"scale up", "grow again"})
    assert (found.case == "unchanged") <= (found.state.tasks == previous.tasks)
    if found.case == "roll back":
        assert not _improved(now, before, variant.min_gain)
