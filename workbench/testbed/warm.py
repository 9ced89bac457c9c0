"""One warm deployment for each memory profile, in which every budget that is deployed takes a turn.

Cold JVMs differ more than budgets do, and their code takes a minute to warm up. So a profile is deployed once, on the
most slots, and a smaller budget is fewer partitions, cores and quota in the same executor. Deployments of other
profiles are idle meanwhile.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Self

import psutil

from workbench.dataflow import Budget, SlotProfile
from workbench.testbed.base import Run, SharedRun, Sharing, Testbed
from workbench.workload import Query

_OWN_MB = 2048  # of a deployment, beyond its slots: the driver and the Python workers


@dataclass
class _Deployment:
    """A warm deployment, its context, and the budget and layout of its present turn."""

    run: SharedRun
    held: ExitStack
    present: tuple[Budget, Mapping[str, int] | None]


@dataclass
class WarmTestbed:
    """A testbed whose deployments last until it is closed, on a `testbed` where budgets can share them (`Sharing`).

    `budgets` are all that may be deployed; the most slots of a profile are those of its deployment.
    """

    testbed: Testbed
    budgets: Sequence[Budget]
    _open: dict[SlotProfile, _Deployment] = field(default_factory=dict, init=False)
    _apart: set[SlotProfile] = field(default_factory=set, init=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for profile in list(self._open):
            self._close(profile)

    @property
    def kind(self) -> str:
        """The kind of the wrapped testbed."""
        return self.testbed.kind

    @property
    def identity(self) -> str:
        """The identity of the wrapped testbed."""
        return self.testbed.identity

    def operators(self, query: Query) -> tuple[str, ...]:
        """Operators that slots are distributed to."""
        return self.testbed.operators(query)

    def shares(self, profile: SlotProfile) -> bool:
        """Whether the budgets of `profile` take turns in one deployment."""
        return profile not in self._apart

    def part(self, profile: SlotProfile) -> None:
        """Deploy each budget of `profile` separately from now on, because fewer slots would have more memory each."""
        self._apart.add(profile)
        self._close(profile)

    def deploy(
        self, query: Query, budget: Budget, layout: Mapping[str, int] | None = None, *, repeat: int | None = None
    ) -> AbstractContextManager[Run]:
        """Start a turn of `budget` in the deployment of its profile, which is made at first use."""
        if self.shares(budget.profile):
            return self._turn(query, budget, layout)
        return self.testbed.deploy(query, budget, layout, repeat=repeat)

    @contextmanager
    def _turn(self, query: Query, budget: Budget, layout: Mapping[str, int] | None) -> Iterator[Run]:
        profile = budget.profile
        try:
            found = self._open.get(profile) or self._deploy(query, budget)
            if found.present != (budget, layout):
                found.run.turn(budget, layout)
            found.present = (budget, layout)
            yield found.run
            found.run.set_rate(0.0)
            found.present = (budget, {"": 0})  # its state has the age of this turn: the next one begins again
        except BaseException:
            self._close(profile)
            raise

    def _deploy(self, query: Query, budget: Budget) -> _Deployment:
        assert isinstance(self.testbed, Sharing)  # noqa: S101 - a study asks before it makes one
        own = [one for one in (*self.budgets, budget) if one.profile == budget.profile]
        most = max(own, key=lambda one: one.slots)
        needed_mb = most.slots * most.profile.memory_mb + _OWN_MB
        for other in list(self._open):
            if psutil.virtual_memory().available < needed_mb << 20:
                self._close(other)
        with ExitStack() as made:
            run = made.enter_context(self.testbed.deploy_shared(query, own))
            self._open[budget.profile] = _Deployment(run, made.pop_all(), (most, None))
        return self._open[budget.profile]

    def _close(self, profile: SlotProfile) -> None:
        if profile in self._open:
            self._open.pop(profile).held.close()
