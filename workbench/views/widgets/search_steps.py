"""What a search within thresholds left, and what it did step by step: the words of the CAPS explorer."""

import math
from dataclasses import dataclass

import numpy as np

from workbench import units
from workbench.placement import CostVector, PlacementProblem, Plan, SearchNode, trace_search
from workbench.views.figures import choice_words, cost_words

MOST_NODES = 2000
OFF = 1.0
"""A cost is never above 1, so a threshold of 1 prunes nothing."""


@dataclass(frozen=True)
class Traced:
    """A search within thresholds, the highest costs allowed."""

    thresholds: CostVector
    root: SearchNode
    order: tuple[SearchNode, ...]  # all choices as they were tried
    plans: tuple[Plan, ...]  # complete ones, as they were found

    @property
    def pruned(self) -> int:
        """How many choices ended a branch."""
        return sum(node.pruned is not None for node in self.order)

    @property
    def best(self) -> int | None:
        """Number of the plan whose highest cost is lowest, ties to the first; None without plans."""
        return min(range(len(self.plans)), key=lambda number: self.plans[number].cost.worst, default=None)

    def number_of(self, plan: Plan | None) -> int | None:
        """Find the number of the plan with the same counts; None if it was not found."""
        if plan is None:
            return None
        same = (number for number, one in enumerate(self.plans) if np.array_equal(one.counts, plan.counts))
        return next(same, None)

    def sentence(self) -> str:
        """Say what the thresholds leave."""
        left = units.some(len(self.plans), "plan") if self.plans else "no plan"
        return f"{len(self.order):,} choices were tried, {self.pruned:,} of them ended a branch, and {left} remained."

    def step_sentence(self, step: int) -> str:
        """Say what the search did in `step`, from 1 on, and how many plans it had then."""
        if step <= 0 or not self.order:
            return "The search has not begun."
        step = min(step, len(self.order))
        node = self.order[step - 1]
        found = sum(one.plan is not None for one in self.order[:step])
        so_far = f" {units.some(found, 'plan')} so far."
        what = f"Step {step}: {choice_words(node)}"
        if node.pruned is not None:
            return f"{what} is pruned: {node.pruned}.{so_far}"
        if node.plan is not None:
            return f"{what} completes a plan: {cost_words(node.plan.cost)}.{so_far}"
        return f"{what}; the search goes on below it.{so_far}"


def traced(problem: PlacementProblem, thresholds: CostVector, most_nodes: int = MOST_NODES) -> Traced:
    """Search `problem` within `thresholds` and keep the tree, whose layers stay in topological order.

    CAPS itself begins with the operators of high load in the dimensions that are limited (CAPSys, section 4.4.2), which
    prunes earlier: a threshold moved would also move the layers. More than `most_nodes` are refused.
    """
    root = trace_search(problem, thresholds, reorder=False, most_nodes=most_nodes)
    order = tuple(root.walk())[1:]
    return Traced(thresholds, root, order, tuple(node.plan for node in order if node.plan is not None))


def threshold(value: float) -> float:
    """Give the threshold that a slider at `value` sets: inf where it is off."""
    return math.inf if value >= OFF else value
