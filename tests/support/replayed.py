"""Replays for tests: queries in a row, tasks that change at given times, and summaries of several policies."""

from dataclasses import dataclass
from itertools import pairwise

from workbench.dataflow import Dataflow, Edge, Operator
from workbench.scaling import replay
from workbench.simulation import QueryModel


def chain(name="chain", *, stateful=(), window_s=None, **operators):
    """A query whose source feeds these operators (an `OperatorModel` each) in a row."""
    nodes = (Operator("source", "source"), *(Operator(one, "map", stateful=one in stateful) for one in operators))
    edges = tuple(Edge(one, after) for one, after in pairwise(("source", *operators)))
    return QueryModel(Dataflow(name, nodes, edges), operators, window_s=window_s)


@dataclass(frozen=True)
class Scheduled:
    """A policy that changes tasks at given times: pairs of (seconds, tasks)."""

    changes: tuple
    interval_s: float = 1.0

    def decide(self, window, memory):
        done = memory or 0
        come = sum(at <= window.now_s for at, _ in self.changes)
        return (self.changes[come - 1][1] if come > done else None), come


def compare(trace, dataflow, policies, tasks, **options):
    """Replay the same trace under several policies: one row of `Timeline.summary` by name."""
    return {name: replay(trace, dataflow, policy, tasks, **options).summary() for name, policy in policies.items()}
