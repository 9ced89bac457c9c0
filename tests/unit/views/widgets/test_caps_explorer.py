import numpy as np

from workbench.placement import CostVector, PlacementProblem, count_plans, search
from workbench.views.figures.search_tree import draw_search_tree, search_tree
from workbench.views.widgets.caps_explorer import OFF, CapsExplorer, traced
from workbench.views.widgets.panel import WhileDragged

PROBLEM = PlacementProblem(
    {"source": 1, "map": 2, "window": 3},
    [("source", "map"), ("map", "window")],
    workers=3,
    slots=3,
    cpu={"source": 0.1, "map": 0.3, "window": 0.8},
    io={"source": 0.0, "map": 0.0, "window": 40.0},
    net={"source": 30.0, "map": 10.0, "window": 1.0},
)
LIMITS = CostVector(0.5, 0.5, 0.9)
LARGE = PlacementProblem([2, 3, 3], [(0, 1), (1, 2)], 3, 4, [0.1, 0.3, 0.8], [0, 0, 40.0], [30.0, 10.0, 1.0])


def marks(explorer):
    return sum(len(trace.x or ()) for trace in explorer.tree.widget.data)


def test_the_traced_search_is_the_search():
    everything = traced(PROBLEM, CostVector())
    assert len(everything.plans) == count_plans(PROBLEM.parallelism, 3, 3)
    some = traced(PROBLEM, LIMITS)
    assert len(some.plans) == search(PROBLEM, LIMITS).count
    assert 0 < len(some.plans) < len(everything.plans)
    assert some.plans[some.best].cost.worst == min(plan.cost.worst for plan in everything.plans)
    assert some.sentence().endswith(f"and {len(some.plans)} plans remained.")
    assert some.number_of(some.plans[1]) == 1
    assert some.number_of(None) is None


def test_moving_a_threshold_prunes_tree_and_plans_and_what_leaves_no_plan_is_said_and_undone():
    explorer = CapsExplorer(PROBLEM)
    before, text, finding = len(explorer.search.order), explorer.text.value, explorer.tree.finding
    for number, value in enumerate((0.5, 0.5, 0.9)):
        explorer.sliders[number].value = value
    assert explorer.alarm.widget.value == ""
    assert len(explorer.search.order) < before
    assert len(explorer.search.plans) == search(PROBLEM, LIMITS).count
    assert explorer.text.value != text
    assert explorer.tree.finding != finding
    assert explorer.step.max == explorer.step.value == explorer.play.max == len(explorer.search.order)
    assert explorer.plan.max == len(explorer.search.plans) - 1
    explorer.off.click()
    assert len(explorer.search.order) == before
    assert [control.value for control in explorer.sliders] == [OFF] * 3
    for control in explorer.sliders:
        control.value = 0.0
    assert (explorer.chosen, explorer.alarm.widget.value) == (None, "")
    assert "no plan remained" in explorer.text.value
    explorer.off.click()
    assert (explorer.chosen is None, explorer.alarm.widget.value) == (False, "")


def test_the_chosen_plan_stays_sliders_answer_while_dragged_and_no_label_is_clipped():
    explorer = CapsExplorer(PROBLEM)
    best = explorer.chosen
    assert best.cost.worst == min(plan.cost.worst for plan in explorer.search.plans)
    explorer.sliders[0].value = 0.5
    assert np.array_equal(explorer.chosen.counts, best.counts)
    (live,) = (one for one in explorer.children if isinstance(one, WhileDragged))
    assert live.sliders == [*explorer.sliders, explorer.plan, explorer.step]
    for one in (*explorer.sliders, explorer.plan, explorer.step):
        assert len(one.description) * 7.5 < 17 * 16


def test_a_click_on_the_tree_or_on_a_cost_figure_selects_the_plan():
    explorer = CapsExplorer(PROBLEM)

    def named(chart, name):
        return next((n, one) for n, one in enumerate(chart.widget.data) if one.name == name and one.x)

    before = explorer.map.widget.to_json(), explorer.text.value, explorer.plan.value
    explorer.tree.click(named(explorer.tree, "complete plan")[0], 0)
    after = explorer.map.widget.to_json(), explorer.text.value, explorer.plan.value
    assert all(one != other for one, other in zip(before, after, strict=True))
    counts = [[count or 0 for count in row] for row in explorer.map.widget.data[0].z]
    assert counts == explorer.chosen.counts.tolist()
    place, line = named(explorer.vectors, "other plans")
    wanted = line.customdata[0]
    explorer.vectors.click(place, 0)
    assert explorer.plan.value == wanted
    explorer.vectors.click(place, 3)  # the gap between two lines
    assert explorer.plan.value == wanted
    place, points = named(explorer.scatter, "other plans")
    number = points.customdata[1]
    assert number != wanted
    explorer.scatter.click(place, 1)
    assert explorer.plan.value == number
    assert list(named(explorer.scatter, f"chosen: plan {number}")[1].customdata) == [number]
    assert explorer.alarm.widget.value == ""


def test_thresholds_move_neither_the_layers_nor_the_axes():
    explorer = CapsExplorer(PROBLEM)

    def fixed():
        layers, axes = explorer.tree.widget.layout.annotations, explorer.scatter.widget.layout
        return [one.text for one in layers], axes.xaxis.title.text, axes.yaxis.title.text

    before = fixed()
    assert before[0] == ["source", "map", "window"]
    for control, limit in zip(explorer.sliders, LIMITS, strict=True):
        control.value = limit
        assert fixed() == before
    explorer.tune.click()
    assert fixed() == before
    assert explorer.alarm.widget.value == ""
    assert explorer.search.plans  # tuned thresholds are the tightest that leave one
    assert any(control.value < OFF for control in explorer.sliders)


def test_a_folded_node_opens_and_folds_at_a_click_and_without_a_mouse():
    explorer = CapsExplorer(LARGE)
    place = next(n for n, one in enumerate(explorer.tree.widget.data) if one.name and one.name.startswith("folded"))
    key, rows = explorer.tree.widget.data[place].customdata[0], marks(explorer)
    explorer.tree.click(place, 0)
    assert explorer.alarm.widget.value == ""
    assert marks(explorer) > rows
    explorer._click_tree(key)
    assert marks(explorer) == rows
    before, branches = marks(explorer), [key for _, key in explorer.folded.options]
    folded = next(trace for trace in explorer.tree.widget.data if trace.name.startswith("folded"))
    assert branches == list(folded.customdata)
    assert explorer.folded.options[0][0].startswith("1. ")
    assert explorer.folded.value == branches[0]
    assert explorer.fold.disabled
    explorer.folded.value = branches[1]
    explorer.unfold.click()
    assert explorer.alarm.widget.value == ""
    assert marks(explorer) > before
    assert branches[1] not in [key for _, key in explorer.folded.options]
    explorer.fold.click()
    assert marks(explorer) == before
    assert [key for _, key in explorer.folded.options] == branches
    small = CapsExplorer(PlacementProblem([1, 1], [(0, 1)], 2, 2, [0.1, 0.3], [0, 0], [3.0, 0]))
    assert small.unfold.disabled


def test_the_title_of_every_step_says_what_the_text_says_in_folded_branches_too():
    found = traced(PROBLEM, CostVector(0.8, 1.0, 1.0))
    tree = search_tree(found.root, rows=20)
    assert any(node.kind == "folded" for node in tree.nodes)
    assert any(node.label.startswith("x") for node in tree.nodes)  # siblings pruned together
    assert sum("completes a plan: CPU" in found.step_sentence(n + 1) for n in range(len(found.order))) == len(
        found.plans
    )
    for step in range(1, len(found.order) + 1):
        figure = draw_search_tree(tree, step)
        said = figure.layout.meta["finding"].removeprefix(f"Step {step} of {len(found.order)}: ")
        assert found.step_sentence(step).startswith(f"Step {step}: {said}"), step
        (ring,) = [trace for trace in figure.data if trace.uid == "tree-present"]
        (key,) = ring.customdata
        assert tree.nodes[tree.trail[step][1]].step == key


def test_stepping_replays_the_search():
    explorer = CapsExplorer(PROBLEM)
    last = explorer.step.value
    explorer.back.click()
    assert explorer.step.value == explorer.play.value == last - 1
    assert f"Step {last - 1}:" in explorer.text.value
    explorer.ahead.click()
    explorer.ahead.click()
    assert explorer.step.value == last
    assert "Step" not in explorer.text.value
    explorer.play.value = 3
    assert "Step 3:" in explorer.text.value
    assert explorer.alarm.widget.value == ""
    later = next(trace for trace in explorer.tree.widget.data if trace.name == "not reached yet")
    assert len(later.x) > 0


def test_a_tree_that_is_too_large_shows_as_a_card():
    explorer = CapsExplorer(PROBLEM, CostVector(0.3, 0.4, 0.8), most_nodes=70)
    explorer.off.click()
    assert "has more than 70 nodes" in explorer.alarm.widget.value
    explorer.sliders[0].value = 0.3
    explorer.sliders[2].value = 0.8
    assert explorer.alarm.widget.value == ""
