"""The CAPS explorer: thresholds prune the search live, plans are chosen by a click, and the search can be replayed."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import ipywidgets
import numpy as np
import plotly.graph_objects as go

from workbench import units
from workbench.placement import CostVector, PlacementProblem, Plan, SearchNode, trace_search, tune_thresholds
from workbench.views import figures, theme
from workbench.views.parts import part
from workbench.views.widgets import panel
from workbench.views.widgets.panel import LiveChart

_FRAME_MS = 500
_PAGE, _HALF, _HEIGHT, _TABS = 700, 340, 285, 30  # pixels: of a narrow page, half of it, a chart there, tabs above one
_ROUNDING = 100  # rounding of a tuned threshold: up, so that its plan stays

MOST_NODES = 2000
OFF = 1.0  # a cost is never above 1, so a threshold of 1 prunes nothing


@dataclass(frozen=True)
class Traced:
    """A search within thresholds, the highest costs allowed."""

    thresholds: CostVector
    root: SearchNode
    order: tuple[SearchNode, ...]  # all choices, in the order tried
    plans: tuple[Plan, ...]  # complete plans, in the order found

    @property
    def best(self) -> int | None:
        """Number of the plan whose highest cost is lowest, ties to the first; None without plans."""
        return min(range(len(self.plans)), key=lambda number: self.plans[number].cost.worst, default=None)

    def number_of(self, plan: Plan | None) -> int | None:
        """Find the number of the plan with the same counts; None if it was not found."""
        counts = () if plan is None else plan.counts
        return next((number for number, one in enumerate(self.plans) if np.array_equal(one.counts, counts)), None)

    def sentence(self) -> str:
        """Describe what the thresholds leave."""
        left = units.some(len(self.plans), "plan") if self.plans else "no plan"
        pruned = sum(node.pruned is not None for node in self.order)
        return f"{len(self.order):,} choices were tried, {pruned:,} of them ended a branch, and {left} remained."

    def step_sentence(self, step: int) -> str:
        """Describe what the search did in `step`, from 1 on, and how many plans it had then."""
        if step <= 0 or not self.order:
            return "The search has not begun."
        step = min(step, len(self.order))
        node = self.order[step - 1]
        found = sum(one.plan is not None for one in self.order[:step])
        so_far = f" {units.some(found, 'plan')} so far."
        what = f"Step {step}: {figures.choice_words(node)}"
        if node.pruned is not None:
            return f"{what} is pruned: {node.pruned}.{so_far}"
        if node.plan is not None:
            return f"{what} completes a plan: {figures.cost_words(node.plan.cost)}.{so_far}"
        return f"{what}; the search goes on below it.{so_far}"


def traced(problem: PlacementProblem, thresholds: CostVector, most_nodes: int = MOST_NODES) -> Traced:
    """Search `problem` within `thresholds` and keep the tree; refuse more than `most_nodes`.

    Its layers stay in topological order. CAPS begins with the operators of high load in limited dimensions (CAPSys,
    section 4.4.2), which prunes earlier, but layers would move with a threshold.
    """
    root = trace_search(problem, thresholds, reorder=False, most_nodes=most_nodes)
    order = tuple(root.walk())[1:]
    return Traced(thresholds, root, order, tuple(node.plan for node in order if node.plan is not None))


class CapsExplorer(panel.Panel):
    """The plan's map, its costs and the search's tree, of at most `most_nodes`; sliders begin at `thresholds`."""

    def __init__(
        self, problem: PlacementProblem, thresholds: CostVector | None = None, most_nodes: int = MOST_NODES
    ) -> None:
        self.problem, self._most_nodes = problem, most_nodes
        self.alarm = panel.ErrorArea()
        self._opened: frozenset[int] = frozenset()
        self._quiet = False
        begin = [OFF if math.isinf(value) else min(OFF, value) for value in thresholds or CostVector()]
        words = ("CPU cost at most (1: off)", "State access cost at most (1: off)", "Network cost at most (1: off)")
        self.sliders = tuple(
            panel.slider(word, value, 0.0, OFF, 0.01) for word, value in zip(words, begin, strict=True)
        )
        relaxed = "Relaxed from perfect balance until a plan meets all three (section 5.2)"
        self.tune = panel.button("Thresholds tuned by CAPS", relaxed, "magic")
        self.off = panel.button("All off", "No thresholds: the whole search", "eraser")
        self.search = traced(problem, self.thresholds(), most_nodes)
        self._axes = figures.cost_vectors(self.search.plans).axes  # they stay, so that only plans move
        last = len(self.search.order)
        self.plan = panel.whole_slider("Plan (in the order found)", self.search.best or 0, 0, self._last_plan())
        self.step = panel.whole_slider("Search shown until step", last, 0, last)
        self.play = ipywidgets.Play(value=last, min=0, max=last, interval=_FRAME_MS, show_repeat=False)
        self.back = panel.button("One step back", "Undo one choice of the search", "step-backward")
        self.ahead = panel.button("One step on", "One more choice of the search", "step-forward")
        self.folded = panel.choice("Folded branch", [], None)
        self.unfold = panel.button(
            "Unfold it", "Show what is behind the triangle, as a click on it does", "plus-square"
        )
        self.fold = panel.button("Fold all again", "Hide what was unfolded", "minus-square")
        self.text = ipywidgets.HTML()
        self.tree = LiveChart(self._tree_figure(), self.alarm.guard(self._click_tree))
        drawn, vectors, scatter = self._plan_figures()
        self.map = LiveChart(drawn)
        self.vectors, self.scatter = (LiveChart(one, self._click_vector) for one in (vectors, scatter))
        ipywidgets.link((self.play, "value"), (self.step, "value"))
        self.alarm.on(self._prune, *self.sliders)
        self.alarm.on(self._show, self.plan)
        self.alarm.on(self._show_step, self.step)
        self.alarm.on(self._tune, self.tune)
        self.alarm.on(lambda: self._set((OFF, OFF, OFF)), self.off)
        self.alarm.on(lambda: self._move(-1), self.back)
        self.alarm.on(lambda: self._move(1), self.ahead)
        self.alarm.on(lambda: self._open(self._opened | {self.folded.value}), self.unfold)
        self.alarm.on(lambda: self._open(frozenset()), self.fold)
        pages = [ipywidgets.VBox(chart.parts) for chart in (self.vectors, self.scatter)]
        self.costs = ipywidgets.Tab(pages, titles=("All costs", "Two costs"))
        buttons = [self.tune, self.off, self.play, self.back, self.ahead, self.unfold, self.fold]
        super().__init__(
            panel.grid(panel.ROW, *self.sliders, self.plan, self.step, self.folded).add_class(panel.CONTROLS),
            ipywidgets.HBox(buttons, layout={"flex_flow": "row wrap"}),
            self.alarm.widget,
            self.text,
            panel.grid(panel.PAIR, ipywidgets.VBox(self.map.parts), self.costs),
            *self.tree.parts,
            dragged=[*self.sliders, self.plan, self.step],
        )
        self._tell()

    @property
    def chosen(self) -> Plan | None:
        """The plan that is shown; None if the thresholds leave none."""
        return self.search.plans[self.plan.value] if self.search.plans else None

    def thresholds(self) -> CostVector:
        """Return the thresholds of the sliders."""
        return CostVector(*(math.inf if one.value >= OFF else one.value for one in self.sliders))

    def choose(self, plan: Plan | None) -> None:
        """Show `plan` if it is within the thresholds."""
        number = self.search.number_of(plan)
        if number is not None:
            self.plan.value = number

    def _prune(self) -> None:
        """Search again within the present thresholds; keep the chosen plan if possible."""
        if self._quiet:
            return
        before = self.chosen
        self.search = traced(self.problem, self.thresholds(), self._most_nodes)
        self._opened = frozenset()
        kept = self.search.number_of(before)
        number = kept if kept is not None else self.search.best or 0
        last = len(self.search.order)
        with self._unshown():
            self.plan.max = self._last_plan()
            self.plan.value = number
            self.step.max = self.play.max = last
            self.step.value = last
        self._show()

    @contextmanager
    def _unshown(self) -> Iterator[None]:
        """Move controls without reacting to each move."""
        self._quiet = True
        try:
            yield
        finally:
            self._quiet = False

    def _show(self) -> None:
        if not self._quiet:
            self._show_step()
            for chart, drawn in zip((self.map, self.vectors, self.scatter), self._plan_figures(), strict=True):
                chart.show(drawn)

    def _show_step(self) -> None:
        if not self._quiet:
            self._tell()
            self.tree.show(self._tree_figure())

    def _tell(self) -> None:
        said = self.search.sentence()
        if self.step.value < len(self.search.order):
            said += " " + self.search.step_sentence(self.step.value)
        if self.chosen is not None:
            said += f" Plan {self.plan.value} costs {figures.cost_words(self.chosen.cost)}."
        self.text.value = part("status", said)

    def _tune(self) -> None:
        tuned = tune_thresholds(self.problem)
        self._set(tuple(min(OFF, math.ceil(value * _ROUNDING - 1e-9) / _ROUNDING) for value in tuned))

    def _set(self, values: tuple[float, ...]) -> None:
        with self._unshown():
            for control, value in zip(self.sliders, values, strict=True):
                control.value = value
        self._prune()

    def _move(self, steps: int) -> None:
        self.step.value = min(self.step.max, max(0, self.step.value + steps))

    def _click_tree(self, step: Any) -> None:  # noqa: ANN401 - a number of plotly's
        """Choose the plan, or open or fold the node, that was clicked."""
        plan = self.search.order[step - 1].plan if step else None
        if plan is not None:
            self.choose(plan)
        else:
            self._open(self._opened ^ {step})

    def _open(self, opened: frozenset[int]) -> None:
        self._opened = opened
        self.tree.show(self._tree_figure())

    def _click_vector(self, number: object) -> None:
        if isinstance(number, int) or (isinstance(number, float) and number == number):  # noqa: PLR0124 - no gap
            self.plan.value = int(number)

    def _last_plan(self) -> int:
        return max(0, len(self.search.plans) - 1)

    def _tree_figure(self) -> go.Figure:
        """Draw the tree, and list what is folded in it from top to bottom."""
        tree = figures.search_tree(self.search.root, self.chosen, opened=self._opened)
        behind = [node for node in tree.nodes if node.kind == "folded"]
        texts = [node.text.replace("\nfolded", "") for node in behind]
        branches = tuple((f"{n + 1}. {text}", behind[n].step) for n, text in enumerate(texts))
        if branches != self.folded.options:
            self.folded.options = branches
            self.folded.index = 0 if branches else None
        self.unfold.disabled, self.fold.disabled = not behind, not self._opened
        step = self.step.value if self.step.value < len(self.search.order) else None
        drawn = figures.draw_search_tree(tree, step)
        return theme.fit(drawn, _PAGE, drawn.layout.height)

    def _plan_figures(self) -> tuple[go.Figure, go.Figure, go.Figure]:
        """Draw the map of the plan, all costs, and two costs."""
        counts = None if self.chosen is None else self.chosen.counts
        placed = figures.placement_map(self.problem, counts, f"Plan {self.plan.value}")
        found, number = self.search, self.plan.value
        data = figures.cost_vectors(found.plans, chosen=number, thresholds=found.thresholds, axes=self._axes)
        scatter = figures.draw_pareto(data).update_traces(showlegend=False)  # its signs are those of all costs
        return (
            theme.fit(figures.draw_placement_map(placed), _HALF, _HEIGHT),
            theme.fit(figures.draw_cost_vectors(data), _HALF, _HEIGHT - _TABS),
            theme.fit(scatter, _HALF, _HEIGHT - _TABS),
        )
