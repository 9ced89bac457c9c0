import numpy as np
import pytest
from figure_checks import axis_titles, check_empty, check_figure, trace

from workbench.placement import CostVector, PlacementProblem, Plan, Spread, search, trace_search
from workbench.views.figures import draw_placement_map, draw_pruning, draw_spreads, placement_map, pruning, spreads
from workbench.views.figures.cost_vectors import cost_vectors, draw_cost_vectors, draw_pareto
from workbench.views.figures.search_tree import draw_search_tree, search_tree


@pytest.fixture(scope="module")
def problem():
    return PlacementProblem(
        {"source": 2, "map <x>": 3, "window": 4},
        [("source", "map <x>"), ("map <x>", "window")],
        3,
        3,
        {"source": 0.1, "map <x>": 0.4, "window": 0.7},
        {"source": 0, "map <x>": 0, "window": 100},
        {"source": 10, "map <x>": 5, "window": 1},
    )


@pytest.fixture(scope="module")
def tree(problem):
    return trace_search(problem)


def plan(cpu, io, net):
    return Plan(np.zeros((1, 1), dtype=np.int64), CostVector(cpu, io, net))


def test_the_front_is_what_no_plan_dominates_and_stays_where_many_plans_are_thinned():
    data = cost_vectors([plan(0.5, 0.5, 0.5), plan(0.6, 0.6, 0.6), plan(0.9, 0.1, 0.4), plan(0.5, 0.5, 0.5)], chosen=2)
    assert (data.front, data.chosen) == ({0, 2}, 2)
    assert data.finding == "2 of 4 plans are on the Pareto front; the chosen one is furthest from ideal in CPU, by 90 %"
    plans = [plan(0.9, 0.9, 0.9 + n * 1e-5) for n in range(2000)] + [plan(0.1, 0.1, 0.1), plan(0.95, 0.95, 0.95)]
    data = cost_vectors(plans, chosen=2001)
    assert len(data.points) < 500
    assert {2000, 2001} <= {number for number, _ in data.points}


def test_the_scatter_says_what_less_of_one_cost_takes_of_the_other():
    plans = [plan(0.2, 0.5, 0.4), plan(0.1, 0.5, 0.6), plan(0.15, 0.5, 0.5)]
    data = cost_vectors(plans)
    assert data.axes == ("cpu", "net")
    assert data.finding.startswith("None of 3 plans is better than another in every cost; the chosen one ")
    check_figure(draw_pareto(data), "Lowering the CPU cost from 0.2 to 0.1 raises the network cost from 0.4 to 0.6")
    one = cost_vectors([plan(0.1, 0.1, 0.1), plan(0.3, 0.2, 0.3)], axes=("cpu", "io"))
    assert one.trade == "One plan has the least CPU cost, 0.1, and the least state access cost"


def test_vectors_link_every_mark_to_its_plan(problem):
    found = search(problem)
    data = cost_vectors(found.pareto, thresholds=CostVector(cpu=0.4))
    lines, scatter = check_figure(draw_cost_vectors(data), data.finding), check_figure(draw_pareto(data), data.trade)
    assert set(trace(scatter, "pareto-front").customdata) == set(range(len(found.pareto)))
    assert [n for n in trace(lines, "vectors-chosen").customdata if n is not None] == [0, 0, 0]
    best = found.pareto[0].cost
    (said,) = trace(scatter, "pareto-chosen").hovertext
    assert said == f"plan 0<br>CPU {best.cpu:.3f}, state access {best.io:.3f}, network {best.net:.3f}"
    assert list(trace(lines, "vectors-thresholds").y) == [0.4, None, None]
    assert any("worst" in title for title in axis_titles(lines) | axis_titles(scatter))


@pytest.mark.parametrize(("limit", "side"), [(0.12, "right"), (0.02, "left")])
def test_the_words_of_a_threshold_are_on_the_side_where_there_is_room(limit, side):
    plans = [plan(0.1, 0.2, 0.4), plan(0.2, 0.1, 0.4)]
    data = cost_vectors(plans, thresholds=CostVector(cpu=limit), axes=("cpu", "net"))
    (words,) = draw_pareto(data).layout.annotations
    assert (words.text, words.xanchor) == (f"threshold {limit}", side)


def test_no_plans_are_an_answer():
    data = cost_vectors([], thresholds=CostVector(0, 0, 0))
    assert data.finding == "No plan meets the thresholds"
    assert check_empty(draw_pareto(data)) == check_empty(draw_cost_vectors(data))
    assert cost_vectors([plan(0, 0, 0), plan(0, 0, 0)]).finding.endswith("is ideally balanced in every dimension")


def test_the_map_names_the_fullest_worker(problem):
    data = placement_map(problem, [[2, 0, 0], [1, 1, 1], [0, 2, 2]], "The plan")
    assert data.counts[2] == (0, 2, 2)
    assert data.loads[1] == pytest.approx((0, 1.5, 1.5))
    loads = problem.worker_loads(data.counts)
    assert data.loads[0] == pytest.approx(tuple(loads[0] / loads[0].mean()))
    assert data.finding.startswith("The plan puts ")
    assert data.finding.endswith("network load on worker w0")
    figure = check_figure(draw_placement_map(data))
    assert trace(figure, "map-counts").y[1] == "map &lt;x&gt;"
    assert {"Worker", "Tasks", "Load (x mean)"} <= axis_titles(figure)
    check_empty(draw_placement_map(placement_map(problem, None)))


def test_pruning_shows_where_no_plan_is_left(problem):
    limits = (0.0, 0.3, 0.6, 1.0)
    searches = [(CostVector(cpu=limit), search(problem, CostVector(cpu=limit))) for limit in limits]
    plans = [found.count for _, found in searches]
    assert plans == sorted(plans)
    tightest = next(limit for limit, count in zip(limits, plans, strict=True) if count)
    assert pruning(searches).startswith(f"A threshold of {tightest:g} on the CPU cost leaves ")
    figure = check_figure(draw_pruning(searches), pruning(searches))
    assert tuple(trace(figure, "pruning-plans").x) == limits
    assert list(trace(figure, "pruning-plans").y) == [count or None for count in plans]
    assert "Threshold of the CPU cost (0 ideal, 1 worst)" in axis_titles(figure)
    assert pruning(searches[:1]) == "No plan meets a threshold of the CPU cost up to 0"


def test_spreads_prefer_the_shape_that_most_placements_do_well_on():
    found = (Spread(4, 4, 100.0, np.linspace(50.0, 100.0, 11)), Spread(8, 2, 90.0, np.linspace(80.0, 90.0, 11)))
    expected = "On 8 x 2 slots nine of ten random placements sustain 81 records/s or more, 10 % below the best plan"
    figure = check_figure(draw_spreads(found), expected)
    ends = [list(trace(figure, f"spread-{one}").x)[:2] for one in ("range", "middle", "median")]
    assert ends == [pytest.approx(one) for one in ([50, 100], [55, 95], [75, 85])]
    assert list(trace(figure, "spread-best").x) == [100, 90]
    assert "Sustained rate (records/s)" in axis_titles(figure)
    few = Spread(2, 2, 100.0, np.array([10.0, 20.0, 30.0]))
    assert "sustain 10 records/s or more" in spreads([few])
    assert few.quantile(0.1) == 10.0  # the table's own
    check_empty(draw_spreads([Spread(1, 1, float("inf"), np.array([np.inf]))]))


def test_the_tree_keeps_the_way_to_the_best_plan_and_parents_lie_among_their_children(problem, tree):
    found = search(problem)
    data = search_tree(tree, found.best, rows=20)
    assert len(data.trail) == sum(1 for _ in tree.walk())
    (chosen,) = [node for node in data.nodes if node.kind == "chosen"]
    assert list(tree.walk())[chosen.step].plan.cost.worst == pytest.approx(found.best.cost.worst)
    assert [node.level for node in data.nodes if node.path] == list(range(len(data.workers) + 1))
    assert data.layers[0] == ("source", 1, 3)
    assert f"meets {found.count} plans in {found.nodes} nodes" in data.finding
    for data in (search_tree(tree, found.best, rows=25), search_tree(tree, rows=10_000)):
        assert len({(node.level, node.row) for node in data.nodes}) == len(data.nodes)
        for number, node in enumerate(data.nodes):
            rows = [child.row for child in data.nodes if child.parent == number]
            assert not rows or min(rows) <= node.row <= max(rows)
    assert search_tree(tree, found.best, rows=25).rows <= 40  # the marked way may need more than is asked


def test_other_plans_are_shown_beside_the_marked_one():
    names = ("source", "map", "window", "sink")
    large = PlacementProblem(
        dict(zip(names, (2, 3, 4, 1), strict=True)),
        [("source", "map"), ("map", "window"), ("window", "sink")],
        workers=3,
        slots=4,
        cpu=dict(zip(names, (0.1, 0.3, 0.8, 0.05), strict=True)),
        io=dict(zip(names, (0, 0, 40e6, 0), strict=True)),
        net=dict(zip(names, (30e6, 10e6, 1e6, 0), strict=True)),
    )
    data = search_tree(trace_search(large), search(large).best)
    kinds = [node.kind for node in data.nodes]
    assert "meets 116 plans" in data.finding
    assert kinds.count("folded") > 0
    assert kinds.count("plan") >= 4
    assert data.rows <= 56


def test_a_folded_part_says_what_it_hides_and_opens(tree):
    data = search_tree(tree, rows=10)
    folded = next(node for node in data.nodes if node.kind == "folded")
    assert "folded: " in folded.text
    opened = search_tree(tree, rows=10, opened=[folded.step]).nodes
    (place,) = (number for number, node in enumerate(opened) if node.step == folded.step)
    assert opened[place].kind == "choice"
    assert place in [node.parent for node in opened]


def test_pruned_branches_give_the_reason(problem):
    tree = trace_search(problem, CostVector(cpu=0.5, net=0.6))
    data = search_tree(tree)
    pruned = [node for node in data.nodes if node.kind == "cpu"]
    assert pruned
    assert all("cpu cost" in node.text and "exceeds its threshold 0.5" in node.text for node in pruned)
    cut = sum((one.pruned or "").startswith(("cpu", "io", "net")) for one in tree.walk())
    assert f"thresholds prune {cut} branches" in data.finding
    figure = check_figure(draw_search_tree(data))
    assert trace(figure, "tree-cpu").marker.symbol != trace(figure, "tree-net").marker.symbol
    assert {note.text for note in figure.layout.annotations} == {"source", "map &lt;x&gt;", "window"}


def test_a_step_shows_how_far_the_search_is(tree):
    data = search_tree(tree, rows=20)
    last = len(data.trail) - 1
    whole, half = draw_search_tree(data), check_figure(draw_search_tree(data, last // 2))
    assert [one.uid for one in whole.data] == [one.uid for one in half.data]
    assert len(trace(half, "tree-later").x) > 0 == len(trace(whole, "tree-later").x)
    assert len(trace(half, "tree-present").x) == 1
    assert half.layout.meta["finding"].startswith(f"Step {last // 2} of {last}: ")


def test_a_tree_without_plans_is_an_answer(problem):
    none = search_tree(trace_search(problem, CostVector(0, 0, 0)))
    assert none.finding.startswith("No plan meets the thresholds: the search ends after ")
    check_figure(draw_search_tree(none))
