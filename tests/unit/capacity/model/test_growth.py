"""What is assumed about growth before any run, and how well it holds for published systems that it has not seen."""

import re
from typing import get_args

import numpy as np
import published_runs
import pytest
from benchmark_script import load
from capacity_runs import raises

from workbench.capacity import ScalingModel
from workbench.capacity.model.growth import WEIGHTS, Growth, shapes_of
from workbench.errors import WorkbenchError

RUNS = np.array([(1024.0, slots) for slots in (1, 2, 4, 4)])


@pytest.mark.parametrize("growth", get_args(Growth))
def test_the_weights_of_the_shapes_add_up_to_one(growth):
    assert sum(shape.weight for shape in shapes_of(growth, 2.0, 0.3)) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("growth", ["workers", "cores"])
@pytest.mark.parametrize("sharing", [0.0, 2.0, 2.5, 40.0])
def test_they_do_where_slots_share_a_core(growth, sharing):
    shapes = shapes_of(growth, 2.0, 0.0, in_proportion=0.6, sharing=sharing)
    assert sum(shape.weight for shape in shapes) == pytest.approx(1.0, abs=1e-6)
    assert any(shape.start > 0 for shape in shapes) == (sharing > 2)


def test_an_unknown_growth_is_refused():
    with raises("The growth is 'nodes'; use one of tasks, workers, cores."):
        ScalingModel(growth="nodes").fit(RUNS, [1e5, 2e5, 4e5, 4e5])


def test_cores_of_one_machine_are_no_workers():
    rates = 1e5 * RUNS[:, 1] * [1, 1.02, 0.98, 1.01]
    far = [[1024, 32]]
    fits = [ScalingModel(growth=growth).fit(RUNS, rates) for growth in ("cores", "workers", "tasks")]
    middles = [model.predict(far)[0] for model in fits]
    assert middles == sorted(middles)
    assert middles[0] < 0.8 * middles[2]
    widths = [high[0] / low[0] for low, high in (model.interval(far) for model in fits)]
    assert widths[2] < min(widths[:2])


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
    said = re.search(r"sustain the most, ([\d.]+) M records", str(error.value))[1]
    assert 1e6 * float(said) == pytest.approx(capacity.max(), rel=0.01)


@published_runs.needed("scaling_curves.csv")
def test_intervals_hold_in_families_that_were_left_out():
    table = load("families")
    curves = table.everything()
    found, rows = table.weigh(curves), table.left_out(curves)
    for name, weights in WEIGHTS.items():
        for part in ("exponents", "contentions", "bends"):
            assert getattr(weights, part) == pytest.approx(getattr(found[name], part), abs=0.002)
    names = sorted({name for name, _ in rows})
    held = [np.mean([hit for one, (_, hit, _) in rows if one == name]) for name in names]
    assert 0.85 <= np.mean(held) <= 0.95
    assert min(held) >= 0.6
