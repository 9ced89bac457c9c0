"""What is said of a placement, beyond what the goldens hold."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
from figure_checks import trace

from workbench.answers import page, placed
from workbench.placement import (
    Comparison,
    MethodRow,
    PlacedRate,
    PlacementProblem,
    placed_together,
    read_placement_input,
)
from workbench.study import study_placement

SHIPPED = Path(__file__).parents[3] / "data" / "placement.yaml"


@pytest.fixture(scope="module")
def study():
    return study_placement(read_placement_input(SHIPPED), samples=5)


def only(study, plan):
    return replace(study, compared=Comparison((MethodRow((plan,)),), {}))


def asking(study, rate, **changes):
    return replace(study, given=replace(study.given, rate=rate, **changes))


def cautions(study, **asked):
    return placed.studied(study, placed.of_a_report(**asked)).cautions


def chosen(study):
    """The two cards of the plans to choose between, and the number of the plan that both mark."""
    made = page.cards(placed.studied(study))
    front, pareto = (next(card for card in made if card.name == name) for name in ("front", "pareto"))
    (number,) = trace(pareto.figure, "pareto-chosen").customdata
    lines = trace(front.figure, "vectors-chosen")
    assert list(lines.customdata[:3]) == [number] * 3
    assert tuple(lines.y[:3]) == pytest.approx(tuple(study.best.cost))
    assert front.table.rows[number][1:] == pytest.approx(tuple(study.best.cost))
    return front, number


def test_the_plan_chosen_among_those_worth_choosing_is_the_best_one(study):
    front, number = chosen(study)
    assert f"The chosen one, plan {number}, has the costs of the best plan, by optimal; plan 0 has " in front.finding
    assert number != 0  # the fastest is not the most even
    worst = max(
        next(row for row in study.compared.rows if row.placed.method == "random").plans, key=lambda p: p.cost.worst
    )
    front, number = chosen(only(study, worst))  # a best plan that others dominate is shown with them
    assert number == len(study.front.pareto) == len(front.table.rows) - 1
    plan = study.front.pareto[0]
    front, number = chosen(only(study, replace(study.best, counts=plan.counts, cost=plan.cost, rate=None)))
    assert (number, len(front.table.rows)) == (0, len(study.front.pareto))


def test_a_rate_that_is_carried_but_for_rounding_is_carried_and_one_that_another_plan_carries_is_told(study):
    rate = study.best.rate.rate * (1 + 1e-12)
    assert not [reason for reason in cautions(asking(study, rate)) if "carr" in reason]
    more = asking(study, 2 * rate)
    assert "misses" in placed.studied(more).headline
    problem = study.given.problem
    (reason, remedy), *_ = cautions(more, placement="a b.yaml").items()
    assert reason.startswith("No placement carries the ")
    assert str(remedy).endswith(f"-p placement 'a b.yaml' -p workers {problem.workers + 1} -p slots {problem.slots}")
    even = next(row.placed for row in study.compared.rows if row.placed.method == "round-robin")
    found = replace(asking(study, study.best.rate.rate), asked=even)
    remedy = next(advice for reason, advice in cautions(found, method="round-robin").items() if "carry" in reason)
    assert remedy.command.endswith("-p placement PLACEMENT.yaml")


def test_no_worker_is_advised_where_a_task_is_the_limit(study):
    problem = study.given.problem
    busy = replace(study.best, rate=PlacedRate(study.best.rate.rate, None, "task"))
    queries = {"query": replace(problem, cpu=(2.5, *[0.1] * (len(problem.cpu) - 1)))}
    found = asking(only(study, busy), 10 * study.best.rate.rate, queries=queries)
    (_, remedy), *_ = cautions(found).items()
    has = problem.parallelism[0]
    needed = f"at least {math.ceil(2.5 * has)} of {problem.operators[0]}, which has {has}"
    assert (remedy.command, needed in remedy.words) == ("", True)
    said = placed.more_tasks(replace(found.given, unit_cpus=0.4))
    assert said == f"{needed}; or larger slots, which have 0.4 core now"


def test_a_worker_more_has_a_size_where_sizes_differ_or_were_asked_for(study):
    problem = study.given.problem
    sizes = [2.0, *[1.0] * (problem.workers - 1)]
    sized = PlacementProblem(
        problem.parallelism, problem.edges, problem.workers, problem.slots, problem.cpu, problem.io, problem.net, sizes
    )
    rate = 10 * study.best.rate.rate
    differ = asking(only(study, study.best), rate, queries={"query": sized}, sized=True)
    ones = [1.0] * problem.workers
    asked = replace(study, given=replace(placed_together([SHIPPED], speeds=ones), rate=rate))
    for found, speeds in ((differ, [2.0, *ones]), (asked, [*ones, 1.0])):
        assert f"-p speeds '{speeds}'" in next(iter(cautions(found).values())).command


def test_a_search_that_ran_out_of_time_is_given_more(study):
    late = replace(study, front=replace(study.front, exhausted=False))
    of_search = "The search for plans to choose between ran out of time."
    assert cautions(late)[of_search].command.endswith("-p placement PLACEMENT.yaml -p timeout_s 30")
