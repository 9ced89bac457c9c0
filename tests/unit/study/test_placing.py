from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from workbench.placement import DRAWN, Comparison, MethodRow, count_plans, read_placement_input, search
from workbench.study import study_placement
from workbench.study.placing import neighbouring_shapes

SHIPPED = Path(__file__).parents[3] / "data" / "placement.yaml"


@pytest.fixture(scope="module")
def study():
    return study_placement(read_placement_input(SHIPPED), samples=5)


def methods_of(study):
    return {row.placed.method: row.plans for row in study.compared.rows}


def test_what_is_found_for_the_shipped_file(study):
    problem, methods = study.given.problem, methods_of(study)
    everything = search(problem)
    assert everything.exhausted
    assert max(methods["least-cost"][0].cost) == pytest.approx(max(everything.best.cost), rel=1e-3)
    rates = [plan.rate.rate for name, plans in methods.items() if name != "odrp" for plan in plans]
    assert study.best.method == "optimal"
    assert study.best.rate.rate >= max(rates) * (1 - 1e-9)
    assert study.front.exhausted
    assert [plan.cost for plan in study.front.pareto] == [plan.cost for plan in everything.pareto]
    assert methods["caps-all"][0].rate.rate == max(rates)
    counts = [result.count for _, result in study.searches]
    assert counts == sorted(counts)
    assert counts[0] >= 1
    assert counts[-1] <= count_plans(problem.parallelism, problem.workers, problem.slots)
    assert {name: len(plans) for name, plans in methods.items() if len(plans) > 1} == dict.fromkeys(DRAWN, 5)
    own = [p for name, plans in methods.items() if name != "odrp" for p in plans]
    assert all(max(plan.cost) >= max(everything.best.cost) - 1e-9 for plan in own)
    assert {(one.workers, one.slots) for one in study.shapes} == {(8, 4), (4, 8), (2, 16)}
    assert neighbouring_shapes(3, 3) == ((3, 3),)


def test_the_best_is_of_the_method_that_sustains_most_in_the_median_of_its_draws(study):
    methods = methods_of(study)
    optimum, drawn = methods["optimal"][0], methods["random"]
    rated = tuple(replace(plan, rate=replace(plan.rate, rate=float(index))) for index, plan in enumerate(drawn))
    middle = np.median([plan.rate.rate for plan in rated])

    def best(*rows):
        return Comparison(tuple(map(MethodRow, rows)), {}).best.placed

    def against(rate):
        return best((replace(optimum, rate=replace(optimum.rate, rate=rate)),), rated).method

    assert rated[-1].rate.rate > 1.1 * middle  # a lucky draw is not a scheduler
    assert (against(1.1 * middle), against(0.9 * middle)) == ("optimal", "random")
    unrated = tuple(replace(plan, rate=None) for plan in drawn)
    assert best(unrated, (replace(optimum, rate=None),)).method == "optimal"
    assert best((rated[1],), (rated[1],)) is rated[1]
    even = replace(optimum, rate=replace(optimum.rate, rate=999.5))
    uneven = replace(optimum, rate=replace(optimum.rate, rate=1000.0), cost=replace(optimum.cost, net=0.99))
    assert best((uneven,), (even,)) is uneven  # of those that sustain as much, the first
    assert best((even,), (uneven,)) is even
    other = replace(optimum, method="odrp", rate=replace(optimum.rate, rate=1e12))
    assert best((other,), (optimum,)) is optimum  # for another number of tasks


def test_the_plan_of_the_method_asked_for_is_shown(study):
    assert (study.asked, study.shown) == (None, study.best)
    found = study_placement(read_placement_input(SHIPPED), method="round-robin", samples=2, timeout_s=1.0)
    assert (found.asked.method, found.shown) == ("round-robin", found.asked)
