"""What is found about a placement."""

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from figure_checks import trace
from placement_file import PROBLEM, written

from workbench import units
from workbench.advice import Advice
from workbench.errors import WorkbenchError
from workbench.placement import (
    BLIND,
    DRAWN,
    PlacedRate,
    PlacementProblem,
    count_plans,
    placed_together,
    read_placement_input,
    search,
)
from workbench.study import study_placement
from workbench.study.placing import neighbouring_shapes
from workbench.views.placement_cards import cards
from workbench.views.placement_front import cares, front_html, more_tasks, sentence

SHIPPED = Path(__file__).parents[3] / "data" / "placement.yaml"


@pytest.fixture(scope="module")
def study():
    return study_placement(read_placement_input(SHIPPED), samples=5)


def test_what_is_found_for_the_shipped_file(study):
    problem = study.given.problem
    everything = search(problem)
    assert everything.exhausted
    assert max(study.methods["least-cost"][0].cost) == pytest.approx(max(everything.best.cost), rel=1e-3)
    rates = [plan.rate.rate for name, plans in study.methods.items() if name != "odrp" for plan in plans]
    assert study.best.method == "optimal"
    assert study.best.rate.rate >= max(rates) * (1 - 1e-9)
    assert study.front.exhausted
    assert [plan.cost for plan in study.front.pareto] == [plan.cost for plan in everything.pareto]
    assert study.methods["caps-all"][0].rate.rate == max(rates)
    counts = [result.count for _, result in study.searches]
    assert counts == sorted(counts)
    assert counts[0] >= 1
    assert counts[-1] <= count_plans(problem.parallelism, problem.workers, problem.slots)
    assert {name: len(plans) for name, plans in study.methods.items() if len(plans) > 1} == dict.fromkeys(DRAWN, 5)
    own = [p for name, plans in study.methods.items() if name != "odrp" for p in plans]
    assert all(max(plan.cost) >= max(everything.best.cost) - 1e-9 for plan in own)
    assert {(one.workers, one.slots) for one in study.shapes} == {(8, 4), (4, 8), (2, 16)}


def test_the_cards_answer_in_order(study):
    made = cards(study)
    assert [card.kind for card in made] == ["result"] * len(made)
    assert [card.name for card in made if not card.folded] == ["best"]
    assert [card.name for card in made][:3] == ["best", "methods", "shapes"]
    assert np.array([row[1:] for row in made[0].table.rows]).sum() == study.given.problem.tasks
    assert all(card.finding.endswith(".") for card in made)
    assert study.best.method in [row[0] for row in made[1].table.rows]


def test_without_rate_and_worker_nothing_is_said_about_rates(tmp_path):
    bare = {key: value for key, value in PROBLEM.items() if key not in {"rate", "worker"}}
    found = study_placement(read_placement_input(written(tmp_path, bare)), samples=1)
    card = next(card for card in cards(found) if card.name == "shapes")
    assert card.kind == "no-data"
    assert "add 'rate' and 'worker'" in card.finding
    front = front_html(found)
    assert "CPU cost, median" in front
    assert "0 is perfectly even" not in front  # the sentence above says so
    assert "0 is perfectly even" in sentence(found)
    assert not re.search("records/s|against the most|rates by", front, re.IGNORECASE)


def test_the_plan_of_the_method_asked_for_is_shown():
    found = study_placement(read_placement_input(SHIPPED), method="round-robin", samples=2, timeout_s=1.0)
    assert (found.asked.method, found.shown) == ("round-robin", found.asked)
    card = cards(found)[0]
    assert card.finding.startswith("Placed by round-robin, the query sustains")
    assert [list(row[1:]) for row in card.table.rows] == found.asked.counts.tolist()
    assert "round-robin ◀\N{NO-BREAK SPACE}shown" in card.html
    assert f"{found.best.method} ◀\N{NO-BREAK SPACE}most" in card.html
    less = replace(found, given=replace(found.given, rate=found.best.rate.rate))
    asked = {"placement": "my.yaml", "method": "round-robin", "samples": 2}
    advised = cares(less, asked)[f"The plan of round-robin does not carry the {units.rate(less.given.rate)} asked for."]
    assert advised == Advice(
        f"That of {found.best.method} does. Run",
        "workbench report placement placement.html -p placement my.yaml -p samples 2",
    )


def test_workers_alone_are_not_advised_where_a_task_needs_more_than_a_core(tmp_path):
    given = {"workers": 2, "slots": 4, "operators": {"window": {"tasks": 4, "cpu": 1.4}}, "rate": 14000}
    path = written(tmp_path, given | {"worker": {"cpus": 2, "io": 1e9, "net": 1e9}})
    advised = " ".join(map(str, cares(study_placement(read_placement_input(path), samples=1)).values()))
    assert "more tasks: at least 6 of window, which has 4. Add a worker. Run: workbench report placement" in advised
    assert "-p workers 3 -p slots 4" in advised


def test_a_method_that_there_is_not_is_refused():
    with pytest.raises(WorkbenchError, match="There is no placement method 'magic'; use one of optimal, caps"):
        study_placement(read_placement_input(SHIPPED), method="magic")


def test_the_best_is_shown_unless_a_method_is_asked_for(study):
    assert (study.asked, study.shown) == (None, study.best)


def test_rates_of_methods_stand_side_by_side(study):
    front = front_html(study)
    assert "rates by the loads given, not by running a placement" in front
    for column in ("Records/s, median", "Against the most", "Records/s, worst draw"):
        assert column in front
    costs = re.findall(r"<td>(0\.\d+)</td>", front)
    assert len(costs) > 1
    assert {len(cost) for cost in costs} == {len("0.790")}  # as many digits in every row


def test_the_best_is_of_the_method_that_sustains_most_in_the_median_of_its_draws(study):
    optimum, drawn = study.methods["optimal"][0], study.methods["random"]
    rated = [replace(plan, rate=replace(plan.rate, rate=float(index))) for index, plan in enumerate(drawn)]
    middle = np.median([plan.rate.rate for plan in rated])

    def against(rate):
        certain = replace(optimum, rate=replace(optimum.rate, rate=rate))
        return replace(study, methods={"optimal": (certain,), "random": tuple(rated)}).best.method

    assert rated[-1].rate.rate > 1.1 * middle  # a lucky draw is no scheduler
    assert (against(1.1 * middle), against(0.9 * middle)) == ("optimal", "random")
    unrated = [replace(plan, rate=None) for plan in drawn]
    cheaper = replace(study, methods={"random": tuple(unrated), "optimal": (replace(optimum, rate=None),)})
    assert cheaper.best.method == "optimal"
    assert replace(study, methods={"optimal": (rated[1],), "random": (rated[1],)}).best is rated[1]


def test_plans_for_other_numbers_of_tasks_do_not_compete(study):
    tasks = dict(zip(study.given.problem.operators, study.given.problem.parallelism, strict=True))
    fewer = study.given.problem.with_parallelism({name: max(1, count - 1) for name, count in tasks.items()})
    optimum = study.methods["optimal"][0]
    other = replace(optimum, problem=fewer, rate=replace(optimum.rate, rate=1e12))
    assert replace(study, methods={"odrp": (other,), "optimal": (optimum,)}).best is optimum


def test_the_page_says_which_of_several_plans_is_placed(study):
    several = replace(study, given=replace(study.given, chosen="for 800 k records/s; others: 100 k"))
    assert "the plan for 800 k records/s; others: 100 k" in front_html(several)
    assert "the plan for" not in front_html(study)


def test_shapes_have_as_many_slots():
    assert neighbouring_shapes(4, 8) == ((8, 4), (4, 8), (2, 16))
    assert neighbouring_shapes(3, 3) == ((3, 3),)


def test_at_least_one_plan_is_drawn():
    with pytest.raises(WorkbenchError, match="The number of draws is 0; it must be a whole number of at least 1"):
        study_placement(read_placement_input(SHIPPED), samples=0)


def test_methods_are_compared_by_rates_where_these_are_known(study):
    card = next(card for card in cards(study) if card.name == "methods")
    rates = {name: np.median([plan.rate.rate for plan in study.methods[name]]) for name in BLIND}
    nearest = max(rates, key=rates.get)
    assert f"knows no loads, {nearest}, sustains {units.rate(rates[nearest])}" in card.finding
    assert f"; {study.best.method} sustains {units.rate(study.best.rate.rate)}." in card.finding
    assert "cost" not in card.finding.split(".")[0]


def test_methods_are_compared_by_costs_where_no_rates_are_known(study):
    unrated = {name: tuple(replace(plan, rate=None) for plan in plans) for name, plans in study.methods.items()}
    (even,) = unrated["round-robin"]
    best = unrated["optimal"]
    card = next(
        c for c in cards(replace(study, methods={"optimal": best, "round-robin": (even,)})) if c.name == "methods"
    )
    cpu = units.number(even.cost.cpu)
    assert f"knows no loads, round-robin, has the costs cpu {cpu}, io " in card.finding
    assert f"; optimal has cpu {units.number(best[0].cost.cpu)}, io " in card.finding


def front_of(study):
    """The two cards of the plans to choose between, and the number of the plan that both mark."""
    front, pareto = (next(card for card in cards(study) if card.name == name) for name in ("front", "pareto"))
    (number,) = trace(pareto.figure, "pareto-chosen").customdata
    lines = trace(front.figure, "vectors-chosen")
    assert list(lines.customdata[:3]) == [number] * 3
    assert tuple(lines.y[:3]) == pytest.approx(tuple(study.best.cost))
    assert front.table.rows[number][1:] == pytest.approx(tuple(study.best.cost))
    return front, number


def test_the_plan_chosen_among_those_worth_choosing_is_the_best_one(study):
    front, number = front_of(study)
    said = f"The chosen one, plan {number}, has the costs of the plan above, by {study.best.method}; plan 0 has "
    assert said in front.finding
    assert number != 0  # the fastest is not the most even
    least = units.number(study.front.best.cost.worst)
    assert front.finding.endswith(f" has the least worst cost, {least}.")


def test_a_best_plan_that_others_dominate_is_shown_beside_them(study):
    worst = max(study.methods["random"], key=lambda plan: plan.cost.worst)
    front, number = front_of(replace(study, methods={"random": (worst,)}))
    assert number == len(study.front.pareto) == len(front.table.rows) - 1
    assert front.table.caption == "Plans that no other dominates, and the plan above"


def test_a_best_plan_of_the_least_worst_cost_is_called_so(study):
    plan = study.front.pareto[0]
    best = replace(study.methods["optimal"][0], counts=plan.counts, cost=plan.cost, rate=None)
    front, number = front_of(replace(study, methods={"optimal": (best,)}))
    assert number == 0
    assert f"by optimal, and the least worst cost, {units.number(plan.cost.worst)}." in front.finding
    assert len(front.table.rows) == len(study.front.pareto)


def test_of_methods_that_sustain_as_much_the_first_is_best(study):
    optimum = study.methods["optimal"][0]
    rate = optimum.rate
    even = replace(optimum, method="even", rate=replace(rate, rate=999.5))
    uneven = replace(optimum, method="uneven", rate=replace(rate, rate=1000.0), cost=replace(optimum.cost, net=0.99))
    slow = replace(optimum, method="slow", rate=replace(rate, rate=990.0), cost=replace(optimum.cost, net=0.0))
    assert replace(study, methods={"uneven": (uneven,), "even": (even,), "slow": (slow,)}).best is uneven
    assert replace(study, methods={"even": (even,), "uneven": (uneven,), "slow": (slow,)}).best is even


def test_the_report_leads_with_the_gain_over_the_default_scheduler(study):
    usual = np.median([plan.rate.rate for plan in study.methods["flink-default"]])
    gain = units.percent(study.best.rate.rate / usual - 1)
    best = cards(study)[0]
    assert f"{gain} more than by the default scheduler" in best.finding.split(".  ")[0]
    assert re.search(r"The (cores|state access|network) of worker w\d fills? up first\.( No plan .+)?$", best.finding)
    assert "its costs are cpu " in best.table.caption
    more = replace(study, given=replace(study.given, rate=10 * study.best.rate.rate))
    (asked, remedy), *_ = cares(more, {"placement": "a b.yaml"}).items()
    assert re.fullmatch(r"No placement carries the .+ records/s asked for; optimal sustains most, \S+ k\.", asked)
    problem = study.given.problem
    assert str(remedy) == (
        "Add a worker. Run: workbench report placement placement.html -p placement 'a b.yaml' "
        f"-p workers {problem.workers + 1} -p slots {problem.slots}"
    )
    assert best.html.count('<tr class="chosen">') == 1


def test_a_rate_that_is_carried_but_for_rounding_is_carried(study):
    rate = study.best.rate.rate * (1 + 1e-12)
    close = replace(study, given=replace(study.given, rate=rate))
    assert "misses" not in sentence(close)
    assert [reason for reason in cares(close) if "carr" in reason] == []
    more = replace(study, given=replace(study.given, rate=2 * rate))
    assert "misses" in sentence(more)
    assert any("carr" in reason for reason in cares(more))


def test_no_worker_is_advised_where_a_task_is_the_limit(study):
    cpu = (2.5, *[0.1] * (len(study.given.problem.cpu) - 1))
    problem = replace(study.given.problem, cpu=cpu)
    busy = replace(study.best, rate=PlacedRate(study.best.rate.rate, None, "task"))
    given = replace(study.given, queries={"query": problem}, rate=10 * study.best.rate.rate)
    (_, remedy), *_ = cares(replace(study, methods={"caps": (busy,)}, given=given)).items()
    has = problem.parallelism[0]
    needed = math.ceil(2.5 * has)
    assert str(remedy) == f"Give the query more tasks: at least {needed} of {problem.operators[0]}, which has {has}."
    said = more_tasks(replace(given, unit_cpus=0.4))
    assert said.endswith(f"which has {has}; or larger slots, which have 0.4 core now")


def test_a_worker_more_has_a_size_where_sizes_differ(study):
    problem = study.given.problem
    sizes = [2.0, *[1.0] * (problem.workers - 1)]
    sized = PlacementProblem(
        problem.parallelism, problem.edges, problem.workers, problem.slots, problem.cpu, problem.io, problem.net, sizes
    )
    given = replace(study.given, queries={"query": sized}, rate=10 * study.best.rate.rate, sized=True)
    remedy = next(iter(cares(replace(study, given=given, methods={"optimal": (study.best,)})).values()))
    assert f"-p speeds '[2.0, {', '.join(['1.0'] * problem.workers)}]'" in remedy.command


def test_a_worker_more_has_a_size_where_sizes_were_asked_for(study):
    workers = study.given.problem.workers
    given = placed_together([SHIPPED], speeds=[1.0] * workers)
    more = replace(study, given=replace(given, rate=10 * study.best.rate.rate))
    remedy = next(iter(cares(more, {"placement": "p.yaml", "speeds": [1.0] * workers}).values()))
    assert f"-p speeds '[{', '.join(['1.0'] * (workers + 1))}]'" in remedy.command


def test_a_search_that_ran_out_of_time_is_given_more(study):
    late = replace(study, front=replace(study.front, exhausted=False))
    of_search = "The search for plans to choose between ran out of time."
    assert cares(late)[of_search].command.endswith("-p placement PLACEMENT.yaml -p timeout_s 30")
    asked = {"placement": "p.yaml", "timeout_s": 20}
    assert cares(late, asked)[of_search].command.endswith("-p placement p.yaml -p timeout_s 120")


def test_the_tables_of_a_placement_say_what_their_numbers_are(study):
    tables = {card.name: card.table for card in cards(study) if card.table is not None}
    assert [column.name for column in tables["front"].columns[1:]] == ["CPU cost", "State access cost", "Network cost"]
    assert tables["methods"].columns[-1] == ("Decided in", "ms")
    assert all(column.unit for column in tables["methods"].columns[3:])
