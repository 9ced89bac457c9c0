"""The next rate to try and the bracket at the end, from answers that are given."""

import math
from dataclasses import replace

import pytest

from workbench.measuring.schedules import AdaptiveSchedule, Grid
from workbench.measuring.verdict import Votes, tally
from workbench.metrics import Batch, Disturbance, Observation, OperatorMetrics
from workbench.records import Judgement, Probe

GRID = Grid(0.01)


def scripted(rate, verdict, number=1, seconds=1.0, **fields):
    """A finished probe with a given answer; every batch takes `seconds`, whatever its rows."""
    rows = round(2 * rate) if math.isfinite(rate) else 2000
    batches = tuple(Batch(2.0 * n, seconds, rows, rows * (n + 1.0), 0.0) for n in range(5))
    judgement = None if verdict is None else Judgement(verdict, 1.0, 0.0, 0.0, "scripted")
    phase = "warm-up" if verdict is None else "probe"
    return Probe(number, phase, rate, 1, Observation(rate, 8.0, batches, **fields), judgement)


def history_of(*answers):
    return [scripted(math.inf, None), *(scripted(GRID.rate(k), verdict) for k, verdict in answers)]


def asked(history, schedule=None):
    step = (schedule or AdaptiveSchedule(max_probes=1000)).next_step(history, 2.0)
    return None if step is None else GRID.index(step.rate)


@pytest.mark.parametrize(
    ("answers", "votes"),
    [
        ([("overloaded", True), ("sustained", False)], Votes(1, 0)),
        ([("sustained", False), ("overloaded", True)], Votes(1, 0)),
        ([("overloaded", True), ("overloaded", True)], Votes(0, 2, disturbed=True)),
        ([("disturbed", False), ("sustained", True)], Votes(1, 0, disturbed=True)),
    ],
)
def test_answers_of_a_quiet_machine_replace_those_of_a_disturbed_one(answers, votes):
    probes = [scripted(GRID.rate(900), verdict) for verdict, _ in answers]
    told = [
        replace(probe, judgement=replace(probe.judgement, disturbed=disturbed))
        for probe, (_, disturbed) in zip(probes, answers, strict=True)
    ]
    assert tally(told, GRID.index) == {900: votes}


@pytest.mark.parametrize(("useful_s", "most"), [(None, 8.0), (0.8, 8.0), (8.0, 2.2), (11.2, 1.094), (14.4, 1.094)])
def test_where_others_crowd_the_slots_out_the_rate_leaps_by_what_the_slots_leave(useful_s, most):
    """A rate of nine tenths of the maximum leapt eightfold, because the slots' even share was all of their quota."""
    work = () if useful_s is None else (OperatorMetrics("1 scan", "map", 2, 1, 1, useful_s, 0.5, None, useful_s, 0),)
    crowd = {"operators": work, "quota_throttled": 0.01, "disturbance": Disturbance(other_load=0.51)}
    sustained = scripted(GRID.rate(900), "sustained", seconds=1.9, **crowd)  # 2 slots for 8 s
    assert GRID.rate(asked([scripted(math.inf, None), sustained]) - 900) == pytest.approx(most, rel=0.02)


def test_a_rate_that_failed_while_code_was_cold_is_asked_again_and_with_warm_code_not():
    """A batch of 1 % fewer rows took 1.5 instead of 2.1 s of 2 s: no code that was warm before gets so much faster."""
    cold, warm = scripted(GRID.rate(701), "overloaded", seconds=2.1), scripted(GRID.rate(700), "sustained", seconds=1.5)
    history = [scripted(math.inf, None), cold, warm]
    assert asked(history) == 701
    found = AdaptiveSchedule().conclude(history, 2.0)
    assert found.high == pytest.approx(GRID.rate(700) * 2.0 / 1.5, rel=0.01)
    later = AdaptiveSchedule().conclude([*history, scripted(GRID.rate(701), "sustained", seconds=1.5)], 2.0)
    assert (later.low, later.high) == (GRID.rate(701), math.inf)
    again = AdaptiveSchedule().conclude([*history, scripted(GRID.rate(701), "overloaded", seconds=2.1)], 2.0)
    assert (again.low, again.high) == (GRID.rate(700), GRID.rate(701))
    failed = scripted(GRID.rate(705), "overloaded", seconds=2.01)
    history = [scripted(math.inf, None), failed, scripted(GRID.rate(700), "sustained", seconds=1.92)]
    assert asked(history) not in {705, None}
    assert AdaptiveSchedule().conclude(history, 2.0).high == GRID.rate(705)


def test_a_bracket_is_searched_where_the_batches_of_its_lower_end_have_room_for():
    """After 134 k had failed with cold code, and 54 k took 1.24 s of 2 s, 66, 74 and 80 k came next; 102 k lasted."""
    failed = scripted(GRID.rate(690), "overloaded", seconds=3.6)
    history = [scripted(math.inf, None), failed, scripted(GRID.rate(600), "sustained", seconds=1.24)]
    assert asked(history) == GRID.below(GRID.rate(600) * 2.0 / 1.24)


def test_contradicting_rates_are_probed_again_the_majority_decides_and_firm_ones_widen_the_bracket():
    history = history_of((700, "overloaded"), (702, "sustained"))
    assert asked(history) == 700
    history.append(scripted(GRID.rate(700), "overloaded"))
    assert asked(history) == 702
    history.append(scripted(GRID.rate(702), "overloaded"))  # a tie: the third decides
    assert asked(history) == 702
    history = history_of((700, "overloaded"), (702, "sustained"), (700, "sustained"), (700, "sustained"))
    found = AdaptiveSchedule().conclude(history, 2.0)
    assert found.low == GRID.rate(702)
    assert found.high == math.inf
    assert found.contradictions == (GRID.rate(700),)
    twice = [(k, v) for k, v in ((699, "sustained"), (700, "overloaded"), (702, "sustained"), (703, "overloaded"))] * 2
    found = AdaptiveSchedule().conclude(history_of(*twice), 2.0)
    assert (found.low, found.high) == (GRID.rate(699), GRID.rate(703))
    assert found.contradictions == (GRID.rate(700), GRID.rate(702))
    assert asked(history_of(*twice)) is None


def test_ends_near_a_contradiction_or_far_from_the_line_are_confirmed():
    answers = [(700, "overloaded"), (700, "sustained"), (700, "sustained"), (701, "overloaded")]
    assert asked(history_of(*answers)) == 701
    history = history_of((700, "sustained"), (701, "overloaded"))  # batches took 1 s of 2 s at either
    assert asked(history) == 700


def test_no_leap_is_higher_than_four_times_or_lower_than_a_quarter():
    # Batch times that are nearly the same at every rate promise an endless capacity.
    history = history_of((700, "sustained"))
    for _ in range(12):
        index = asked(history)
        rates = [probe.rate for probe in history[1:]]
        assert GRID.index(max(rates)) < index <= GRID.index(max(rates)) + GRID.steps(4.0)
        history.append(scripted(GRID.rate(index), "sustained"))
    # Batches that took 120 s of an interval of 2 s promise a sixtieth of the capacity.
    history = history_of((700, "overloaded"))
    history[-1] = scripted(GRID.rate(700), "overloaded", seconds=120.0)
    for _ in range(4):
        index = asked(history)
        rates = [probe.rate for probe in history[1:]]
        assert GRID.index(min(rates)) - GRID.steps(4.0) <= index < GRID.index(min(rates))
        history.append(scripted(GRID.rate(index), "overloaded", seconds=120.0))


def test_misleading_batch_times_do_not_mislead_the_search():
    # Every threshold of grids of 1 to 25 rates, with batch times that say nothing: bisection equals linear scan.
    for size in range(1, 26):
        schedule = AdaptiveSchedule(0.01, GRID.rate(600), GRID.rate(600 + size - 1), max_probes=1000)
        for threshold in range(600, 600 + size + 1):
            for seconds in (0.01, 1.0, 1.999, 30.0):
                history = [scripted(math.inf, None)]
                while (index := asked(history, schedule)) is not None:
                    assert 600 <= index < 600 + size
                    answer = "sustained" if index < threshold else "overloaded"
                    history.append(scripted(GRID.rate(index), answer, seconds=seconds))
                    assert len(history) < 60
                found = schedule.conclude(history, 2.0)
                assert found.low == (0.0 if threshold == 600 else GRID.rate(threshold - 1))
                assert found.high == (math.inf if threshold == 600 + size else GRID.rate(threshold))
