"""Testbeds that wrap the fluid one, and work for a runner that yields no events."""

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from workbench.testbed import FluidTestbed


class WrappedFluid:
    """For a class with a `fluid` testbed, which it answers like but for `deploy`."""

    @property
    def kind(self):
        return self.fluid.kind

    @property
    def identity(self):
        return self.fluid.identity

    @property
    def clock(self):
        return self.fluid.clock

    def operators(self, query):
        return self.fluid.operators(query)


@dataclass
class Interrupted(WrappedFluid):
    """A fluid testbed that calls `at` before each observation, with its number."""

    at: Any
    fluid: FluidTestbed = field(default_factory=FluidTestbed)
    observed: int = 0

    @contextmanager
    def deploy(self, query, budget, layout=None, *, repeat=None):
        with self.fluid.deploy(query, budget, layout, repeat=repeat) as run:
            observe = run.observe

            def told(seconds):
                self.observed += 1
                self.at(self.observed)
                return observe(seconds)

            run.observe = told
            yield run


def eventless(work):
    def steps(report):
        yield from ()
        return work(report)

    return steps
