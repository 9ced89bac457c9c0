"""Budgets that take turns: what is measured, what drift does to it, and what a kill leaves."""

import math
import re

import pytest
from warm_machine import WarmMachine

from workbench.dataflow import Budget, SlotProfile
from workbench.errors import TooFewBatchesError, WorkbenchError
from workbench.journal import Journal
from workbench.measuring import (
    CapacityEstimator,
    CutShort,
    Deployed,
    Finished,
    LoadProbed,
    Probed,
    Reused,
    Rounded,
    Rounds,
    Together,
    Turned,
    describe,
    measure_together,
    measurement_key,
    recorded_together,
    result_of,
)
from workbench.workload import Query

QUERY = Query("mine:counts", len, None)
BUDGETS = tuple(Budget(slots, SlotProfile(0.2, 1024)) for slots in (1, 2, 4))
ESTIMATOR = CapacityEstimator(patience_s=0)


def measured(machine, journal, *, rounds=Rounds(), costs=False, listen=lambda _: None):  # noqa: B008 - frozen
    together = Together(QUERY, BUDGETS, rounds)
    return result_of(measure_together(together, machine, ESTIMATOR, journal, costs=costs), listen)


@pytest.fixture
def journal(tmp_path):
    return Journal(tmp_path / "journal.jsonl")


def test_every_budget_is_measured_in_one_deployment(journal):
    machine, seen = WarmMachine(), []
    runs = measured(machine, journal, listen=seen.append)
    assert machine.deployments == 1
    assert [run.budget for run in runs] == list(BUDGETS)
    for run in runs:
        assert run.estimate.middle == pytest.approx(1000 * run.budget.slots, rel=0.05)
        assert run.estimate.low < 1000 * run.budget.slots < run.estimate.high
        assert (run.estimate.limit, run.estimate.steady) == ("query", True)
    assert machine.turns == [1, 2, 4, 4, 2, 1]  # there and back; every reading begins with an empty state
    kinds = [type(event) for event in seen]
    assert kinds[:3] == [Deployed, Turned, Probed]
    assert kinds[-3:] == [Finished] * 3
    assert [event.number for event in seen if isinstance(event, Rounded)] == [1, 2]
    told = [text for event in seen if (text := describe(event))]
    turn = r"round 2: 4 slots of 1,024 MB at a trigger interval of 2 s, [34][.0-9]* k records/s last time"
    assert any(re.fullmatch(turn, text) for text in told)
    assert any("after round 2: records/s by slots: " in text for text in told)


def test_rounds_go_there_and_back_where_budgets_differ_in_their_interval_only(journal):
    budgets = tuple(Budget(2, SlotProfile(0.2, 1024), interval_s) for interval_s in (1.0, 2.0))
    seen = []
    steps = measure_together(Together(QUERY, budgets), WarmMachine(), ESTIMATOR, journal, costs=False)
    result_of(steps, seen.append)
    assert [event.budget.interval_s for event in seen if isinstance(event, Turned)] == [1.0, 2.0, 2.0, 1.0]


def test_a_machine_that_gets_faster_leaves_the_ratios_alone(journal):
    machine = WarmMachine(drift=lambda second: 1 + second / 200, noise=0.01)
    one, two, four = (run.estimate.middle for run in measured(machine, journal))
    assert two / one == pytest.approx(2, rel=0.06)
    assert four / two == pytest.approx(2, rel=0.06)


def test_a_large_fixed_part_does_not_bias_the_rate(journal):
    for run in measured(WarmMachine(fixed_s=0.8), journal):
        assert run.estimate.middle == pytest.approx(1000 * run.budget.slots, rel=0.06)


def test_a_state_that_fills_is_waited_for_and_the_first_look_hardly_counts(journal):
    """While its state is empty, the query is a quarter faster than later."""
    machine = WarmMachine(fills_s=30, light=1.25, noise=0.03)
    for run in measured(machine, journal):
        look, later = run.estimate.probes
        assert (look.filled, later.filled) == (False, True)
        assert look.observation.consumed_rate > 1.15 * later.observation.consumed_rate
        assert run.estimate.middle == pytest.approx(1000 * run.budget.slots, rel=0.04)
        assert run.estimate.steady


def test_one_round_alone_is_no_look(journal):
    machine = WarmMachine(fills_s=30, light=1.25)
    for run in measured(machine, journal, rounds=Rounds(least=1, most=1)):
        (probe,) = run.estimate.probes
        assert probe.filled
        assert run.estimate.middle == pytest.approx(1000 * run.budget.slots, rel=0.05)


def test_a_state_that_never_fills_is_read_all_the_same_and_reported(journal):
    for run in measured(WarmMachine(fills_s=3600, light=1.25), journal):
        assert run.estimate.middle == pytest.approx(1250 * run.budget.slots, rel=0.05)
        assert run.estimate.steady
        assert run.estimate.filled is False
        assert run.estimate.high / run.estimate.low < 1.3  # no wider than others: it is reported, and no noise
        assert max(probe.seconds for probe in run.estimate.probes) < 90


def test_costs_are_observed_with_the_state_of_the_reading_before(journal):
    machine = WarmMachine(fills_s=30)
    measured(machine, journal, costs=True)
    assert machine.turns == [1, 2, 4, 4, 2, 1, 4]
    machine = WarmMachine(fills_s=30)
    measured(machine, Journal(journal.path.with_name("odd.jsonl")), costs=True, rounds=Rounds(least=3))
    assert machine.turns == [1, 2, 4, 4, 2, 1, 1, 2, 4]


def test_costs_are_observed_on_the_most_slots(journal):
    seen = []
    runs = measured(WarmMachine(), journal, costs=True, listen=seen.append)
    assert [len(run.load_curve) for run in runs] == [0, 0, 2]
    assert len({event.key for event in seen if isinstance(event, LoadProbed)}) == 1
    rates = [probe.rate for probe in runs[-1].load_curve]
    assert rates == pytest.approx([0.2 * runs[-1].estimate.middle, 0.5 * runs[-1].estimate.middle])


def test_noise_asks_for_another_round_and_ends_at_the_most(journal):
    runs = measured(WarmMachine(noise=0.5, seed=3), journal, rounds=Rounds(most=4, precision=0.02))
    assert [len(run.estimate.probes) for run in runs] == [4, 4, 4]
    assert all(run.estimate.exhausted for run in runs)


def test_what_is_finished_is_reused(journal):
    first = measured(WarmMachine(), journal)
    seen, machine = [], WarmMachine()
    again = measured(machine, journal, listen=seen.append)
    assert machine.deployments == 0
    assert [type(event) for event in seen] == [Reused] * 3
    assert again == first
    together = Together(QUERY, BUDGETS)
    assert recorded_together(together, machine, ESTIMATOR, journal, costs=False) == first
    assert recorded_together(together, machine, ESTIMATOR, journal, costs=True) is None


@pytest.mark.parametrize("turn", [1, 2, 3, 4])
def test_a_kill_keeps_complete_rounds_and_makes_the_cut_one_again(journal, turn):
    with pytest.raises(KeyboardInterrupt):
        measured(WarmMachine(fails_at=turn), journal)
    machine, seen = WarmMachine(seed=1), []
    runs = measured(machine, journal, listen=seen.append)
    numbers = [probe.number for probe in runs[0].estimate.probes]
    assert numbers == [1, 2]
    assert all([probe.number for probe in run.estimate.probes] == numbers for run in runs)
    kept = turn > 3
    assert sum(isinstance(event, Probed) for event in seen) == (3 if kept else 6)
    resumed = [event for event in seen if isinstance(event, Deployed)]
    assert all(len(event.resumed) == kept for event in resumed)


def test_what_shares_a_deployment_is_another_measurement_than_what_has_its_own():
    machine, together = WarmMachine(), Together(QUERY, BUDGETS)
    own = together.configuration(BUDGETS[0])
    keys = {
        measurement_key(configuration, machine, ESTIMATOR)
        for configuration in (
            own,
            Together(QUERY, BUDGETS[:2]).configuration(BUDGETS[0]),
            Together(QUERY, BUDGETS, Rounds(most=4)).configuration(BUDGETS[0]),
        )
    }
    assert len(keys) == 3


def test_a_disturbed_window_is_made_again_within_the_patience(journal):
    machine = WarmMachine()
    machine.disturbance = {5: 0.3}  # two slots in the second round
    patient = CapacityEstimator(patience_s=30)
    begun = machine.clock.now_s
    runs = result_of(measure_together(Together(QUERY, BUDGETS), machine, patient, journal, costs=False))
    assert runs[1].estimate.probes[1].seconds > 3 * 14
    assert runs[1].estimate.probes[0].seconds < 2 * 14  # the first round takes one window, for an answer soon
    assert machine.clock.now_s > begun
    assert not math.isnan(runs[-1].estimate.rate)


def test_a_query_that_consumes_nothing_is_named(journal):
    machine = WarmMachine(per_slot=0.0)
    with pytest.raises(WorkbenchError, match=r"'mine:counts' consumed no rows on some of 1, 2, 4 slots") as error:
        measured(machine, journal)
    assert error.value.settings == ("slots", "interval_s")


def test_a_machine_that_is_never_quiet_is_waited_for_within_the_patience_only(journal):
    machine = WarmMachine()
    machine.disturbance = dict.fromkeys(range(20), 0.3)
    patient = CapacityEstimator(patience_s=30)
    runs = result_of(measure_together(Together(QUERY, BUDGETS), machine, patient, journal, costs=False))
    assert machine.waited_s == pytest.approx(30)
    probes = [probe for run in runs for probe in run.estimate.probes]
    assert sum(probe.seconds > 80 for probe in probes) == 1, [
        probe.seconds for probe in probes
    ]  # once patience is spent, one window each
    assert all(probe.observation.disturbance.worst == pytest.approx(0.3) for probe in probes)


def test_nothing_waits_after_the_last_window(journal):
    machine = WarmMachine()
    machine.disturbance = dict.fromkeys(range(20), 0.3)
    patient, once = CapacityEstimator(patience_s=30), Rounds(most_windows=1)
    result_of(measure_together(Together(QUERY, BUDGETS, once), machine, patient, journal, costs=False))
    assert machine.waited_s == 0


def test_a_round_that_two_kills_left_twice_counts_once(journal):
    for turn in (2, 2, 4):  # two in the first round, one in the second: the first is read three times, used once
        with pytest.raises(KeyboardInterrupt):
            measured(WarmMachine(fails_at=turn), journal)
    runs = measured(WarmMachine(), journal)
    finished = measured(WarmMachine(), journal)
    assert finished == runs
    for run in runs:
        assert [probe.number for probe in run.estimate.probes] == [1, 2]


def test_more_partitions_than_slots_are_read_once_after_the_rounds(tmp_path):
    machine, journal = WarmMachine(fixed_s=0.2), Journal(tmp_path / "j.jsonl")
    together = Together(QUERY, BUDGETS, divided=((BUDGETS[-1], 4 * BUDGETS[-1].slots),))
    runs = result_of(measure_together(together, machine, ESTIMATOR, journal, costs=False))
    (probe,) = runs[-1].divided
    assert probe.partitions == 4 * BUDGETS[-1].slots
    assert probe.phase == "reading"
    assert probe.observation.consumed_rate < 0.8 * runs[-1].estimate.middle  # four waves of 0.2 s
    assert all(run.divided == () for run in runs[:-1])
    again = result_of(measure_together(together, machine, ESTIMATOR, journal, costs=False))
    assert again == runs
    assert machine.deployments == 1


def test_partitions_too_many_to_complete_batches_do_not_cost_the_rates(tmp_path):
    class Choking(WarmMachine):
        def observe(self, seconds):
            if self.partitions:
                raise TooFewBatchesError("completed 2 batches in 60 s")
            return super().observe(seconds)

    together = Together(QUERY, BUDGETS, divided=((BUDGETS[-1], 400),))
    runs = result_of(measure_together(together, Choking(), ESTIMATOR, Journal(tmp_path / "j.jsonl"), costs=False))
    assert runs[-1].divided == ()
    assert all(run.estimate.rate for run in runs)


@pytest.mark.parametrize("breaks", ["in a load", "with more partitions"])
def test_an_executor_that_is_lost_after_the_rounds_does_not_cost_the_rates(tmp_path, breaks):
    class Breaking(WarmMachine):
        def observe(self, seconds):
            if self.partitions if breaks == "with more partitions" else math.isfinite(self.rate):
                raise WorkbenchError("Spark's executor was lost")
            return super().observe(seconds)

    journal, seen = Journal(tmp_path / "j.jsonl"), []
    together = Together(QUERY, BUDGETS, divided=((BUDGETS[-1], 8),))
    runs = result_of(measure_together(together, Breaking(), ESTIMATOR, journal, costs=True), seen.append)
    assert [run.estimate.middle for run in runs] == pytest.approx([1000, 2000, 4000], rel=0.05)
    assert len(runs[-1].load_curve) == (2 if breaks == "with more partitions" else 0)
    assert [describe(event) for event in seen if isinstance(event, CutShort)] == [
        "the rates are known, the costs are not: Spark's executor was lost"
    ]
    machine = WarmMachine()
    again = result_of(measure_together(together, machine, ESTIMATOR, journal, costs=True))
    assert len(again[-1].load_curve) == 2
    assert machine.turns == ([4] if breaks == "in a load" else [])  # from an empty state, and only where asked for
    assert sum(probe.phase == "reading" for probe in again[0].estimate.probes) == 2
