"""One plan has one capacity: in its placement, its replay and its what-if, within the plan's interval."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from batch_truths import Engine
from staged_runs import seeing, staged_exploration

from workbench import units
from workbench.answers.replayed import held_back
from workbench.capacity import plan
from workbench.capacity.explore import conclude
from workbench.errors import WorkbenchError
from workbench.placement import BATCH, place, read_placement_input
from workbench.records import PlannedStudy, nearest_run
from workbench.simulation import RateTrace
from workbench.study import planned_start, replay_start, simulated_start

DATA = Path(__file__).parents[3] / "data"


@pytest.fixture(scope="module", params=[20_000.0, 60_000.0])
def planned(request, tmp_path_factory):
    """A plan of measured micro-batches, within the runs and beyond them, and its file."""
    found = staged_exploration()
    chosen = plan(found, request.param, memory_mb=[600])
    return found, chosen, written(tmp_path_factory.mktemp("planned"), chosen, found.runs)


def written(folder, chosen, runs):
    PlannedStudy(study={}, reason="three runs", plans=(chosen,), runs=runs).to_json(folder / "plan.json")
    return folder / "plan.json"


def static(start, rate, seconds=1800.0):
    """Replay a constant rate without any changes."""
    return replay_start(start, RateTrace.constant(rate, seconds), ["static"]).timelines["static"]


def test_its_own_executors_and_the_model_sustain_the_plans_capacity_and_no_cluster_more(planned):
    found, chosen, path = planned
    point = [[chosen.budget.profile.memory_mb, chosen.budget.slots]]
    assert found.model.predict(point)[0] == pytest.approx(chosen.expected_rate)  # which what-if asks
    given = read_placement_input(path)
    assert given.problem.parallelism == (chosen.budget.slots,)
    placed = place(given)
    assert placed.rate.rate <= chosen.expected_rate * (1 + 1e-9)
    assert chosen.low <= placed.rate.rate <= chosen.high
    assert f"{units.rate(chosen.expected_rate)}" in given.basis
    _, chosen, path = planned
    for workers, slots in ((chosen.budget.slots, 1), (chosen.budget.slots, 4), (1, chosen.budget.slots)):
        placed = place(read_placement_input(path, workers=workers, slots=slots))
        assert placed.rate.rate >= chosen.rate
    for wrong in ({"workers": 0}, {"slots": 0}, {"slots": 0, "room": 8}):
        with pytest.raises(WorkbenchError):
            read_placement_input(path, **wrong)


@pytest.mark.parametrize(("share", "sustained"), [(0.97, True), (1.05, False)])
def test_the_replay_sustains_just_the_plans_capacity(planned, share, sustained):
    _, chosen, path = planned
    start = planned_start(path)
    assert dict(start.tasks) == {BATCH: chosen.budget.slots}
    line = static(start, share * chosen.expected_rate)
    assert (line.backlog[-1] < 60 * chosen.expected_rate) == sustained
    if not sustained:
        assert line.consumed[-1] == pytest.approx(chosen.expected_rate, rel=0.01)


def test_a_record_of_a_micro_batch_waits_for_its_trigger_and_for_its_batch(planned):
    _, chosen, path = planned
    interval_s = chosen.budget.interval_s
    line = static(planned_start(path), 0.5 * chosen.expected_rate)
    found = line.summary()
    fixed = planned_start(path).batch_fixed[-1]
    batch = fixed + (1 - fixed) * 0.5  # half of what the rows of a full batch take, and all that they do not add to
    assert found["latency_p50_s"] == pytest.approx((0.5 + batch) * interval_s, rel=0.1)
    assert found["latency_p99_s"] == pytest.approx((0.99 + batch) * interval_s, rel=0.1)
    assert line.latency_s[-1] == pytest.approx((1 + batch) * interval_s, rel=0.1)
    assert static(simulated_start("q1", 8, 2048.0), 1000.0).summary()["latency_p99_s"] < 0.1


def test_frozen_partitions_end_the_growth(planned):
    _, chosen, path = planned
    frozen = chosen.layout.stateful_partitions
    assert frozen is not None
    start = planned_start(path)
    much = 10 * frozen * chosen.expected_rate
    few, many = (static(replace(start, tasks={BATCH: slots}), much) for slots in (frozen, 2 * frozen))
    assert many.consumed[-1] == pytest.approx(few.consumed[-1], rel=1e-6)
    growing = replay_start(start, RateTrace.constant(much, 7200.0), ["ds2", "flink"])
    for line in growing.timelines.values():
        assert max(line.tasks) <= max(frozen, chosen.budget.slots) + 1  # the source's
    ((reason, advice),) = held_back(growing).items()
    assert reason.startswith(f"The state has {frozen} partitions, fixed by its checkpoint, so more slots carry no more")
    assert advice.words.startswith("Plan for the peak of")

    fits = RateTrace.constant(0.9 * chosen.expected_rate, 1800.0)
    assert not held_back(replay_start(planned_start(path), fits, ["static", "ds2"]))
    assert not held_back(replay_start(simulated_start("q11", 12, 2048.0), RateTrace.constant(1e9, 600.0), ["static"]))


def test_a_new_deployment_loads_the_state_that_was_seen(tmp_path):
    found = staged_exploration()
    runs = tuple(with_kept(run, 200 << 20) for run in found.runs)
    chosen = plan(found, 60_000.0, memory_mb=[600])
    nearest = nearest_run(runs, chosen.budget).estimate.observation
    start = planned_start(written(tmp_path, chosen, runs))
    state = start.model.operators[BATCH].state
    assert state.working_set_mb == pytest.approx(200 * chosen.rate / nearest.consumed_rate)
    frozen = chosen.layout.stateful_partitions
    rising = RateTrace.steps([(600.0, 0.1 * chosen.expected_rate), (1800.0, chosen.expected_rate)])
    few = replace(start, tasks={BATCH: frozen // 4})
    line = replay_start(few, rising, ["ds2"], restart_s=10.0).timelines["ds2"]
    assert line.reconfigurations
    for change in line.reconfigurations:
        assert change.moved_bytes == pytest.approx(state.working_set_mb * 2**20)
        assert change.downtime_s == pytest.approx(10.0 + change.moved_bytes / change.tasks[BATCH] / 100e6)
    assert not static(few, 0.5 * chosen.expected_rate, 600.0).reconfigurations


def with_kept(run, kept):
    first, second, *others = run.estimate.observation.operators
    return seeing(run, operators=(first, replace(second, state_kept_bytes=kept), *others))


def test_the_command_says_what_its_rates_rest_on_and_places_no_slots_with_loads_in_cores(planned, run, prints, refuses):
    _, chosen, path = planned
    said = f"The plan's capacity on these {chosen.budget.slots} slots is {units.rate(chosen.expected_rate)}"
    assert said in prints("place", str(path))
    code, output = run("place", path, "--json")
    assert (code, "no placement sustains more" in output.err) == (0, True)
    assert json.loads(output.out)["rate"] <= chosen.expected_rate * (1 + 1e-9)
    call = ["place", str(path), str(DATA / "placement.yaml"), "--rate", f"{chosen.rate:g}", "--cpus", "4"]
    said = refuses(*call, "--workers", "8", "--slots", "4")
    assert "can only be placed with others of slots as large. Place the files apart." in said


@pytest.mark.parametrize("cpus", [0.2, 2.0])
@pytest.mark.parametrize("slots", [2, 3, 4, 5, 7, 8])
def test_fewer_slots_take_the_frozen_partitions_in_turns(tmp_path, slots, cpus):
    engine = Engine()
    runs = [engine.run(n, divided=(4 * n,) * (n == 4), loads=(0.2, 0.5) * (n == 4), cpus=cpus) for n in (1, 2, 4)]
    found = conclude(runs, "measured", choice="edge")
    chosen = plan(found, 260_000.0, memory_mb=[1024])
    frozen = chosen.layout.stateful_partitions
    assert frozen == chosen.budget.slots == 8
    deployed = replace(planned_start(written(tmp_path, chosen, found.runs)), tasks={BATCH: slots})
    carried = engine.carried(slots, frozen, 2.0)
    assert static(deployed, 1e7, 600.0).consumed[-1] == pytest.approx(carried, rel=0.02)
    for share in (0.1, 0.5):  # of few rows partial aggregation sends on a larger part, which is not modelled
        calm = static(deployed, share * carried, 600.0).summary()
        batch_s = engine.restarted_s(2.0 * share * carried, slots, frozen)
        assert calm["latency_p50_s"] == pytest.approx(0.5 * 2.0 + batch_s, rel=0.08)
