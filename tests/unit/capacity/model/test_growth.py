"""What is assumed about growth before any run, and how well it holds for published systems that it has not seen."""

import re
from typing import get_args

import numpy as np
import published_runs
import pytest
from benchmark_script import load
from capacity_runs import raises

from workbench import units
from workbench.capacity import ScalingModel, bids2
from workbench.capacity.model.growth import WEIGHTS, Growth, shapes_of
from workbench.errors import WorkbenchError

RUNS = np.array([(1024.0, slots) for slots in (1, 2, 4, 4)])


@pytest.mark.parametrize("growth", get_args(Growth))
@pytest.mark.parametrize("sharing", [0.0, 2.0, 2.5, 40.0])
def test_the_weights_of_the_shapes_add_up_to_one(growth, sharing):
    for every in (1, 2):
        shapes = shapes_of(growth, 2.0, in_proportion=0.3, key=0.3, sharing=sharing, every=every)
        assert sum(shape.weight for shape in shapes) == pytest.approx(1.0, abs=1e-6)
        assert any(shape.start > 0 for shape in shapes) == (sharing > 2)


def test_an_unknown_growth_and_objectives_of_other_runs_are_refused():
    with raises("The growth is 'nodes'; use one of 'tasks', 'workers', 'cores'."):
        ScalingModel(growth="nodes").fit(RUNS, [1e5, 2e5, 4e5, 4e5])
    with raises("The objectives have the shape (2,); X has 4 rows, so give 4 objectives, nan where there is none."):
        ScalingModel().fit(RUNS, [1e5, 2e5, 4e5, 4e5], objectives=[1e5, 2e5])


def test_cores_of_one_machine_are_no_workers():
    rates = 1e5 * RUNS[:, 1] * [1, 1.02, 0.98, 1.01]
    far = [[1024, 32]]
    fits = [ScalingModel(growth=growth).fit(RUNS, rates) for growth in ("cores", "workers", "tasks")]
    middles = [model.predict(far)[0] for model in fits]
    assert middles == sorted(middles)
    assert middles[0] < 0.8 * middles[2]


STEPPED = {"a": 1e5, "b": 1.6e5, "c": 2.7e5, "d": 7e5}
"""True rates of four operators."""


def stepped(slots):
    """BIDS2's objectives; nan for one task per operator, which it has nothing to say of."""
    ratios = dict.fromkeys(STEPPED, 1.0)
    return np.array([bids2(STEPPED, ratios, n).source_rate if n > len(STEPPED) else np.nan for n in slots.astype(int)])


@pytest.mark.parametrize("memory_effect", [0.0, 0.2])
def test_the_steps_of_whole_tasks_cancel_in_measured_over_objective(memory_effect):
    slots = np.array([4, 5, 6, 7, 8, 10, 12.0])
    points = np.column_stack([[512, 1024, 4096, 512, 1024, 4096, 512], slots])
    objectives = stepped(slots) * (points[:, 0] / 1024) ** memory_effect
    rates = 0.8 * np.where(np.isnan(objectives), 1e5, objectives)
    far = [[1024, 200]]
    truth = 0.8 * stepped(np.array([200.0]))
    known = ScalingModel(stateful=False).fit(points, rates, objectives=objectives)
    assert known.predict(far) == pytest.approx(truth, rel=0.1)
    assert known.interval(far)[0] < truth < known.interval(far)[1]
    between = 0.8 * stepped(np.array([8.0]))
    assert known.predict([[1024, 8]]) == pytest.approx(between, rel=0.05)  # between 6 and 12 it is not a straight line


def test_objectives_say_that_slots_are_tasks_and_a_stated_growth_goes_before_them():
    slots = RUNS[:, 1] + 4
    points = np.column_stack([RUNS[:, 0], slots])
    rates, far = 1e5 * slots, [[1024, 400]]
    unknown, pipelined, workers = (
        ScalingModel(stateful=False).fit(points, rates),
        ScalingModel(stateful=False).fit(points, rates, objectives=1.2 * rates),
        ScalingModel(stateful=False, growth="workers").fit(points, rates),
    )
    lows = [model.interval(far)[0][0] for model in (workers, unknown, pipelined)]
    assert max(lows[:2]) < 0.7 * lows[2]
    assert pipelined.law_.steps is not None
    assert unknown.law_.steps is None
    stated, alone = (ScalingModel(growth="workers").fit(points, rates, objectives=given) for given in (rates, None))
    assert stated.interval(far) == alone.interval(far)


@pytest.mark.parametrize("growth", ["workers", "cores"])
def test_runs_correct_the_prior(growth):
    slots = np.array([1, 2, 4, 8, 16, 32.0])
    points = np.column_stack([np.full(6, 1024.0), slots])
    steady = ScalingModel(growth=growth).fit(points, 1e5 * slots)
    bent = ScalingModel(growth=growth).fit(points, 1e5 * np.minimum(slots, 8))
    assert steady.predict([[1024, 64]])[0] == pytest.approx(6.4e6, rel=0.12)
    assert bent.predict([[1024, 64]])[0] == pytest.approx(8e5, rel=0.12)
    assert bent.law_.levelling > 0.99
    assert steady.law_.levelling < 0.15


def test_the_rate_of_the_highest_capacity_is_planned_and_more_is_refused_with_that_number():
    model = ScalingModel(growth="cores", stateful=False).fit([[512, 2], [512, 3], [512, 4]], [2e5, 2.9e5, 3.8e5])
    counts = np.unique(np.geomspace(2, 1e9, 2000).astype(int))
    capacity = model.predict(np.column_stack([np.full(len(counts), 512.0), counts]))
    assert capacity.argmax() < len(counts) - 1  # it falls again
    slots = model.slots_for(0.99 * capacity.max(), 512, margin=1.0)
    assert model.predict([[512, slots]])[0] >= 0.99 * capacity.max() * (1 - 1e-9)
    assert slots < counts[capacity.argmax()]
    with pytest.raises(WorkbenchError, match=r"by the scaling form [\d,]+ slots sustain the most") as error:
        model.slots_for(1.2 * capacity.max(), 512, margin=1.0)
    said = re.search(r"sustain the most, ([\d.]+ M) records/s \(90 %: (\S+ .) to (\S+ .)\)", str(error.value))
    low, highest, high = (units.read_rate(said[place]) for place in (2, 1, 3))
    assert highest == pytest.approx(capacity.max(), rel=0.01)
    assert low < highest < high
    assert "trigger interval" not in str(error.value)  # no batches are known


@published_runs.needed("scaling_curves.csv")
def test_intervals_hold_in_families_that_were_left_out():
    table = load("families")
    curves = table.everything()
    found = table.weigh(curves)
    for name, weights in WEIGHTS.items():
        for part in ("exponents", "contentions", "bends"):
            assert getattr(weights, part) == pytest.approx(getattr(found[name], part), abs=0.002)
    for told in (True, False):
        rows = table.left_out(curves, told=told)
        names = sorted({name for name, _ in rows})
        held = [np.mean([hit for one, (_, hit, _) in rows if one == name]) for name in names]
        assert 0.85 <= np.mean(held) <= 0.95
        assert min(held) >= 0.6
