import math
from dataclasses import replace

import pytest
from query_truths import true_capacity
from refusals import refusals

from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.measuring import CapacityEstimator
from workbench.simulation import PRESETS, Deployment, preset, steady_state
from workbench.testbed import FluidTestbed

PROFILE = SlotProfile(1.0, 2048)


def layout_of(query, extra):
    """One task per operator, and `extra` more for the operator with the most work."""
    model = preset(query)
    work = steady_state(Deployment(model, model.minimal_layout, 2048)).work_s
    busiest = max(work, key=work.get)
    return {name: 1 + extra * (name == busiest) for name in model.modelled}


def estimate(testbed, query, layout, repeat=None, **settings):
    budget = Budget(sum(layout.values()), PROFILE)
    with testbed.deploy(query, budget, layout, repeat=repeat) as run:
        return CapacityEstimator(clock=testbed.clock, **settings).estimate(run)


@pytest.mark.parametrize("query", PRESETS)
@pytest.mark.parametrize("extra", [0, 7, 300])
def test_the_adaptive_estimator_brackets_the_truth(query, extra):
    layout = layout_of(query, extra)
    truth = true_capacity(preset(query), 2048, layout)
    found = estimate(FluidTestbed(noise=0.0, jitter=0.0), query, layout)
    # The verdict lets pass what lags by up to 0.1 % of the rate, and a rate lies on a grid of 1 %.
    assert found.low <= truth * 1.002
    assert found.high >= truth * 0.999
    assert found.high <= found.low * 1.0101
    assert found.steady
    assert len(found.probes) <= 5


@pytest.mark.parametrize("query", PRESETS)
def test_it_does_so_within_the_noise_for_any_seed(query):
    layout = layout_of(query, 7)
    truth = true_capacity(preset(query), 2048, layout)
    ratios = [estimate(FluidTestbed(seed), query, layout).rate / truth for seed in range(12)]
    noise = preset(query).noise
    assert max(ratios) <= math.exp(3.3 * noise) * 1.01
    assert min(ratios) >= math.exp(-3.3 * noise) * 0.97
    spread = max(ratios) - min(ratios)
    assert 1.5 * noise < spread < 6 * noise  # twelve draws span 3.3 standard deviations on average


def test_simulated_seconds_are_counted():
    testbed = FluidTestbed()
    first = estimate(testbed, "q1", layout_of("q1", 0)).seconds
    second = estimate(testbed, "q1", layout_of("q1", 3)).seconds
    assert testbed.clock() == pytest.approx(first + second)
    assert 50 < first < 200
    refused = pytest.raises(WorkbenchError, match=r"The rate is -1\.0 records/s; it must be at least 0")
    with testbed.deploy("q1", Budget(2, PROFILE)) as run, refused:
        run.set_rate(-1.0)


def test_noise_depends_on_what_is_measured_and_not_on_the_order():
    layouts = [layout_of("q11", extra) for extra in (0, 3, 6)]
    forward = FluidTestbed(seed=5)
    seen = {(index, turn): estimate(forward, "q11", layouts[index]).rate for turn in (0, 1) for index in (0, 1, 2)}
    assert all(seen[index, 0] != seen[index, 1] for index in (1, 2))
    backward = FluidTestbed(seed=5)
    for index in (2, 1, 0):
        for turn in (0, 1):
            assert estimate(backward, "q11", layouts[index]).rate == seen[index, turn]
    # A new process that knows what was finished before continues with the right number.
    assert estimate(FluidTestbed(seed=5), "q11", layouts[1], repeat=1).rate == seen[1, 1]
    assert estimate(FluidTestbed(seed=6), "q11", layouts[1]).rate != seen[1, 0]


def test_a_deployment_that_failed_is_not_counted():
    class BrokenError(Exception):
        pass

    testbed, layout = FluidTestbed(), layout_of("q1", 0)

    def stop(_probe):
        raise BrokenError

    expected = estimate(FluidTestbed(), "q1", layout).rate
    budget = Budget(2, PROFILE)
    with pytest.raises(BrokenError), testbed.deploy("q1", budget, layout) as run:
        CapacityEstimator(clock=testbed.clock).estimate(run, on_probe=stop)
    assert estimate(testbed, "q1", layout).rate == expected


@pytest.mark.parametrize("query", ["q2", "q5", "q8"])
def test_an_interrupted_estimate_ends_as_an_undisturbed_one(query):
    layout = layout_of(query, 5)
    budget = Budget(sum(layout.values()), PROFILE)
    whole = estimate(FluidTestbed(seed=2), query, layout)
    for kept in range(len(whole.probes)):
        testbed = FluidTestbed(seed=2)
        with testbed.deploy(query, budget, layout) as run:
            found = CapacityEstimator(clock=testbed.clock).estimate(run, whole.probes[:kept])
        assert (found.low, found.high, found.rate) == (whole.low, whole.high, whole.rate)


def test_an_observation_counts_what_the_operators_did():
    layout = {"filter": 1, "sessions": 6, "project": 1, "sink": 1}
    testbed = FluidTestbed(noise=0.0, jitter=0.0)
    model = preset("q11")
    truth = steady_state(Deployment(model, layout, 2048))
    with testbed.deploy(model, Budget(9, PROFILE), layout) as run:
        run.settle(60.0)
        rate = 0.8 * truth.rate
        run.set_rate(rate)
        seen = run.observe(60.0)
    assert len(seen.batches) == 31
    metrics = {one.operator: one for one in seen.operators}
    assert list(metrics) == ["filter", "sessions", "project", "sink"]
    assert {name: one.busyness for name, one in metrics.items()} == pytest.approx(truth.busyness(rate), rel=1e-6)
    filtered, sessions = metrics["filter"], metrics["sessions"]
    assert filtered.records_in == pytest.approx(60.0 * rate, abs=1)
    assert sessions.records_in == filtered.records_out == pytest.approx(0.92 * 60.0 * rate, abs=1)
    assert (filtered.kind, filtered.tasks, sessions.tasks) == ("filter", 1, 6)
    assert 0 < sessions.cache_hit_rate < 1
    assert sessions.state_latency_s == pytest.approx(8.1e-6 * (1 - sessions.cache_hit_rate))
    assert sessions.cpu_s < sessions.useful_s  # the rest is waiting for state
    assert filtered.cpu_s == pytest.approx(filtered.useful_s)
    assert sessions.state_bytes == pytest.approx(150 * sessions.records_in, rel=1e-6)
    assert (filtered.cache_hit_rate, filtered.state_bytes, filtered.key_skew) == (None, None, None)
    assert sessions.key_skew > 1.2
    assert len(seen.samples) == 4 * 30
    assert sum(one.records for one in seen.samples if one.operator == "sessions") * 6 == pytest.approx(
        sessions.records_in, abs=1
    )


def test_batches_are_whole_windows_and_slots_are_dealt_out_evenly_by_default():
    testbed = FluidTestbed()
    with testbed.deploy("q8", Budget(9, SlotProfile(1.0, 4096))) as run:
        run.set_rate(1e5)
        assert testbed.clock() == 10.0  # one window, so that all results are of this rate
        seen = run.observe(12.0)
    assert [batch.start_s for batch in seen.batches] == [10.0, 20.0, 30.0, 40.0]
    assert seen.consumed_records == pytest.approx(3e6, rel=1e-3)
    for slots, expected in ((4, [1, 1, 1, 1]), (6, [2, 2, 1, 1])):
        with testbed.deploy("q11", Budget(slots, PROFILE)) as run:
            run.set_rate(100.0)
            assert [one.tasks for one in run.observe(8.0).operators] == expected


def test_memory_and_cores_of_the_slots_matter():
    layout = layout_of("q11", 3)
    rates = {}
    for cpus, memory in ((1.0, 1024), (1.0, 4096), (0.5, 4096)):
        testbed = FluidTestbed(noise=0.0)
        with testbed.deploy("q11", Budget(7, SlotProfile(cpus, memory)), layout) as run:
            rates[cpus, memory] = CapacityEstimator(clock=testbed.clock).estimate(run).rate
    assert rates[0.5, 4096] < rates[1.0, 1024] < rates[1.0, 4096]


def test_a_model_of_the_user_is_found_by_name_and_the_identity_tells_apart_what_sees_other_numbers():
    mine = replace(preset("q1"), noise=0.0)
    testbed = FluidTestbed(models=(mine,))
    assert testbed.model("q1") is mine
    assert testbed.model("nexmark:q2") is preset("q2")
    assert testbed.model(preset("q5")) is preset("q5")
    assert testbed.operators("nexmark:q11") == ("filter", "sessions", "project", "sink")
    fluid = FluidTestbed()
    slow = replace(preset("q1"), live_mb=200.0)
    others = [
        replace(fluid, **change)
        for change in ({"seed": 1}, {"noise": 0.2}, {"step_s": 0.25}, {"models": (preset("q1"),)}, {"models": (slow,)})
    ]
    assert len({fluid.identity, *(other.identity for other in others)}) == 6
    assert FluidTestbed().identity == fluid.identity


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda bed: bed.deploy("q7", Budget(2, PROFILE)), "no model of query 'q7'; it has q1, q2, q5, q8, q11"),
        (lambda bed: bed.deploy("q1", Budget(3, PROFILE), {"convert": 1, "sink": 1}), "has 2 tasks for 3 slots; give"),
        (lambda bed: bed.deploy("q1", Budget(3, PROFILE), {"convert": 2, "snik": 1}), "for convert, snik; .* needs"),
        (lambda bed: bed.deploy("q1", Budget(1, PROFILE)), "1 slot cannot hold query 'q1': its 2 operators"),
        (lambda bed: bed.deploy("q1", Budget(2, SlotProfile(1.0, 16))), "Slots of 16 MB cannot hold the 18 MB"),
        (lambda bed: bed.deploy("q1", Budget(2, PROFILE), repeat=-1), "The repeat is -1; the first measurement"),
    ],
)
def test_what_cannot_be_deployed_is_refused(make, message):
    with pytest.raises(WorkbenchError, match=message), make(FluidTestbed()):
        pass


test_settings_are_checked = refusals(
    lambda settings: FluidTestbed(**settings),
    ({"noise": -0.1}, "noise is -0.1; it must be at least 0 and at most 1"),
    ({"jitter": 0.5}, "jitter is 0.5; it must be at least 0 and at most 0.3"),
    ({"step_s": 0.0}, r"step_s is 0.0; it must be a finite number above 0 \(seconds\)"),
)
