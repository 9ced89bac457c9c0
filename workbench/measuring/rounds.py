"""Measure several budgets of one query in one warm deployment, in turns.

Each budget takes a turn in every round: the query starts again, its state empty, and one reading is taken at all
that fits once the state has its working size; in the first round, soon. Odd rounds go from the fewest slots to the
most, even ones back, so that what drifts steadily cancels; and where few slots run, most of the machine is left to a
driver that is still cold.
Every reading is in the journal before it is used; a round that a kill cut short is made again, because its readings met
two machines.
"""

import math
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from workbench.dataflow import Budget
from workbench.errors import TooFewBatchesError, WorkbenchError
from workbench.journal import Journal, JournalError
from workbench.measuring._measure import (
    Configuration,
    costs_of,
    measurement_key,
    observe_at,
    recorded_now,
    reusable,
)
from workbench.measuring.estimator import CapacityEstimator
from workbench.measuring.events import CutShort, Deployed, Event, Finished, LoadProbed, Probed, Reused, Rounded, Turned
from workbench.measuring.fingerprint import definition_of
from workbench.measuring.readings import Levels, Rounds, enough, estimate, levels, steady
from workbench.measuring.repeatability import EXPECTED_DEVIATION, expected_deviation, mst_interval
from workbench.measuring.state import Deployment, replay
from workbench.metrics import SourceProfile
from workbench.records import Machine, Measurement, Probe
from workbench.testbed import SharedRun, Sharing, Simulated, Testbed
from workbench.workload import Query

_SETTLE_S, _SETTLE_INTERVALS = 8.0, 3  # until the batch size has been adapted several times
_FILL_S, _FILL_INTERVALS = 45.0, 6  # most for a state to fill; q5's begins to lose rows after 12 s
# Of the rate that is known, for the state to fill: q5 with an empty state is up to 1.4 times as fast as later.
_FILL_AFTER_LOOK, _FILL_AGAIN = 0.75, 0.95
# What q5 does in 8 s scatters by 11 % from its mean over minutes, because compactions take turns with calm; in 30 s by
# half of that. A first look is shorter.
_WINDOW_S, _LOOK_S = 30.0, 14.0
_WINDOW_INTERVALS = 4
_TURNOVER_S = 14.0  # until q5's state is that of another rate
_AS_SLOTS: int | None = None
_LOADS = (0.2, 0.5)  # of the rate: with the readings, three clearly different batch sizes
_LOAD_INTERVALS = 3, 5  # to settle at least, to observe


@dataclass(frozen=True)
class Together:
    """Budgets of one memory profile that share a deployment, the fewest slots first.

    Parameters
    ----------
    query, budgets
        What runs, and on what.
    rounds
        How the budgets take turns.
    divided
        Readings to take after the rounds with more partitions than slots, each a budget and its partitions.
    """

    query: Query
    budgets: tuple[Budget, ...]
    rounds: Rounds = field(default_factory=Rounds)
    divided: tuple[tuple[Budget, int], ...] = ()

    def configuration(self, budget: Budget) -> Configuration:
        """Give the configuration of one of them."""
        return Configuration(self.query, budget, together=(self.budgets, self.rounds, self.divided))


def look_s(interval_s: float) -> float:
    """Seconds of a first look."""
    return _settle_s(interval_s) + _window_s(interval_s, _LOOK_S)


def reading_s(interval_s: float) -> tuple[float, float]:
    """Seconds that a reading takes at least, where there is no state to fill, and at most on a quiet machine."""
    least = interval_s + _settle_s(interval_s) + _window_s(interval_s, _WINDOW_S)
    return least, least + _fill_s(interval_s) + _window_s(interval_s, _WINDOW_S)


def loads_s(interval_s: float) -> tuple[float, float]:
    """Seconds at least and at most for the lower rates of the largest budget."""
    settle, window = (n * interval_s for n in _LOAD_INTERVALS)
    least = len(_LOADS) * (max(settle, _TURNOVER_S) + window)
    return least, least + _fill_s(interval_s)


def recorded_together(
    together: Together, testbed: Testbed, estimator: CapacityEstimator, journal: Journal, *, costs: bool
) -> tuple[Measurement, ...] | None:
    """Give the measurements that `measure_together` would reuse; None if it would deploy."""
    found = []
    for budget in together.budgets:
        configuration = together.configuration(budget)
        finished = reusable(configuration, testbed, estimator, journal, costs=costs and budget == together.budgets[-1])
        if finished is None:
            return None
        found.append(finished)
    return tuple(found)


def measure_together(
    together: Together,
    testbed: Testbed,
    estimator: CapacityEstimator,
    journal: Journal,
    *,
    costs: bool = True,
) -> Generator[Event, None, tuple[Measurement, ...]]:
    """Measure the budgets in one deployment; yield what happens and return their measurements, in order.

    Parameters
    ----------
    testbed
        One on which budgets can share a deployment (`Sharing`).
    costs
        Whether to add short runs of the largest budget at lower rates, which separate fixed from per-record costs.

    Raises
    ------
    WorkbenchError
        When the query or a budget cannot be deployed, or the query fails.
    """
    shared = _Shared(together, testbed, estimator, journal)
    known = recorded_together(together, testbed, estimator, journal, costs=costs)
    if known is not None:
        for budget, measurement in zip(together.budgets, known, strict=True):
            yield Reused(shared.keys[budget], measurement)
        return known
    assert isinstance(testbed, Sharing)  # noqa: S101 - a study asks before it calls
    with testbed.deploy_shared(together.query, together.budgets) as live:
        yield from shared.take_turns(live)
        try:
            if costs:
                yield from shared.observe_costs(live)
            yield from shared.divide(live)
        except JournalError:
            raise
        except WorkbenchError as error:  # the rates are known without
            yield CutShort(str(error))
    measured = shared.measurements()
    for budget, measurement in zip(together.budgets, measured, strict=True):
        yield recorded_now(journal, Finished(shared.keys[budget], measurement))
    return measured


class _Shared:
    """One measurement of several budgets at work: the readings so far, and the budget whose turn it is."""

    def __init__(self, together: Together, testbed: Testbed, estimator: CapacityEstimator, journal: Journal) -> None:
        self.together, self.testbed, self.journal = together, testbed, journal
        self.keys = {b: measurement_key(together.configuration(b), testbed, estimator) for b in together.budgets}
        self.settings = estimator.settings()
        self.estimator = replace(estimator, clock=testbed.clock) if isinstance(testbed, Simulated) else estimator
        self.readings = {budget: _recorded_readings(journal, key) for budget, key in self.keys.items()}
        whole = set.intersection(*({probe.number for probe in found} for found in self.readings.values()))
        for found in self.readings.values():  # a round that was cut short is made again
            found[:] = [probe for probe in found if probe.number in whole]
        self.before = {budget: tuple(found) for budget, found in self.readings.items()}
        self.loads: list[Probe] = []
        self.divided: dict[Budget, list[Probe]] = {budget: [] for budget in together.budgets}
        self.sources: dict[Budget, SourceProfile | None] = {}
        self.present, self.partitions, self.turned = together.budgets[-1], _AS_SLOTS, False
        self.machine, self.waited_s = Machine(), 0.0
        self.started = datetime.now(UTC).isoformat(timespec="seconds")

    @property
    def found(self) -> Levels | None:
        """What the complete rounds say."""
        return levels(list(self.readings.values()), EXPECTED_DEVIATION)

    def take_turns(self, live: SharedRun) -> Generator[Event, None, None]:
        """Make rounds until the rates are known well enough."""
        rounds, begun = self.together.rounds, self.estimator.clock()
        self.machine = live.machine
        while not enough(self.found, rounds):
            number = max((probe.number for found in self.readings.values() for probe in found), default=0) + 1
            for budget in self.together.budgets[:: -1 if number % 2 == 0 else 1]:
                yield from self._turn(live, budget, number)
                probe = self._read(live, number, begun)
                yield recorded_now(self.journal, Probed(self.keys[budget], probe))
                self.readings[budget].append(probe)
            if self.found is None:
                raise WorkbenchError(
                    f"Query {self.together.query.name!r} consumed no rows on some of "
                    f"{', '.join(str(budget.slots) for budget in self.together.budgets)} slots within "
                    f"{look_s(self.present.interval_s):.0f} s. Measure each in a deployment of its "
                    "own, or give them more slots or a longer interval.",
                    settings=("slots", "interval_s"),
                )
            yield Rounded(number, self.measurements())

    def observe_costs(self, live: SharedRun) -> Generator[Event, None, None]:
        """Run the largest budget at lower rates."""
        largest, found = self.together.budgets[-1], self.found
        assert found is not None  # noqa: S101 - the rounds are complete
        settle_s, window_s = (n * largest.interval_s for n in _LOAD_INTERVALS)
        if not self.turned or self.present != largest:  # else its state has its working size from the reading before
            yield from self._turn(live, largest, found.rounds)
            live.set_rate(_LOADS[0] * found.rates[-1])
            live.fill(0.0, _fill_s(largest.interval_s))
        for number, share in enumerate(_LOADS):
            load = observe_at(live, share * found.rates[-1], number, max(settle_s, _TURNOVER_S), window_s)
            yield recorded_now(self.journal, LoadProbed(self.keys[largest], load))
            self.loads.append(load)

    def divide(self, live: SharedRun) -> Generator[Event, None, None]:
        """Read budgets with more partitions than slots, as far as these complete batches."""
        found, begun = self.found, self.estimator.clock()
        assert found is not None  # noqa: S101 - the rounds are complete
        for budget, partitions in self.together.divided:
            yield from self._turn(live, budget, found.rounds, partitions)
            try:
                probe = self._read(live, found.rounds, begun, partitions)
            except TooFewBatchesError:  # that many tasks take too long here; the model does without
                return
            yield recorded_now(self.journal, LoadProbed(self.keys[budget], probe))
            self.divided[budget].append(probe)

    def measurements(self) -> tuple[Measurement, ...]:
        """Make the measurement of every budget from what was observed so far."""
        found, deviation = self.found, expected_deviation(self.machine)
        assert found is not None  # noqa: S101 - asked after a complete round
        made = []
        for place, budget in enumerate(self.together.budgets):
            known = estimate(self.readings[budget], found, place, self.together.rounds)
            own = tuple(self.loads) if budget == self.together.budgets[-1] else ()
            before, divided = self.before[budget], tuple(self.divided[budget])
            now = tuple(probe for probe in known.probes if probe not in before)
            made.append(
                Measurement(
                    query=self.together.query.name,
                    budget=budget,
                    estimate=known,
                    costs=costs_of([Deployment(before), Deployment(now, (*own, *divided))]),
                    source=self.sources.get(budget),
                    testbed=self.testbed.identity,
                    started_at=self.started,
                    testbed_kind=self.testbed.kind,
                    machine=self.machine,
                    settings=self.settings,
                    load_curve=own,
                    divided=divided,
                    interval=mst_interval(known, expected=deviation),
                    unbounded_state=definition_of(self.together.query).unbounded_state,
                )
            )
        return tuple(made)

    def _turn(
        self, live: SharedRun, budget: Budget, number: int, partitions: int | None = None
    ) -> Generator[Event, None, None]:
        if budget not in self.sources:
            yield recorded_now(
                self.journal, Deployed(self.keys[budget], live.machine, budget, tuple(self.readings[budget]))
            )
        yield Turned(self.keys[budget], budget, number, tuple(self.readings[budget]))
        if self.turned or (budget, partitions) != (self.present, self.partitions):
            live.turn(budget, None if partitions is None else {"source": partitions, "state": partitions})
            self.present, self.partitions = budget, partitions
        self.turned = True
        self.sources[budget] = live.source

    def _read(self, live: SharedRun, number: int, begun: float, partitions: int | None = None) -> Probe:
        """Take one reading: windows until one is steady from half to half, and undisturbed while patience lasts.

        The state is filled before, at a rate near the one that lasts: a reading from before compares with no other. But
        in the first of several rounds an answer soon counts more, and the later ones correct it.
        """
        rounds, interval_s, clock = self.together.rounds, self.present.interval_s, self.estimator.clock
        started = clock()
        look = number == 1 and rounds.least > 1
        if not look:
            live.set_rate(self._lasting_rate(live, partitions))
            live.fill(0.0, _fill_s(interval_s))
        live.set_rate(math.inf)
        filled = live.fill(_settle_s(interval_s), _settle_s(interval_s))
        window_s = _window_s(interval_s, _LOOK_S if look else _WINDOW_S)
        most_windows = 1 if look else rounds.most_windows
        for window in range(1, most_windows + 1):
            last = live.observe(window_s)
            settled = steady(last, rounds.change)
            patience_s = self.estimator.patience_s - self.waited_s
            disturbed = last.disturbance.worst > self.estimator.max_disturbance and patience_s > 0
            if (settled and not disturbed) or window == most_windows:
                break
            if disturbed:
                asked = clock()
                live.await_quiet(patience_s)
                self.waited_s += clock() - asked
        took = started - begun, clock() - started
        return Probe(number, "reading", math.inf, 1, last, None, *took, settled, partitions, filled)

    def _lasting_rate(self, live: SharedRun, partitions: int | None) -> float:
        """Give a rate near the one that lasts, records/s: of the reading before, or of a look that is not recorded."""
        if self.readings[self.present]:
            last = self.readings[self.present][-1]
            share = _FILL_AGAIN if last.filled and partitions is None else _FILL_AFTER_LOOK
            return share * last.observation.consumed_rate
        live.set_rate(math.inf)
        live.settle(_settle_s(self.present.interval_s))
        return _FILL_AFTER_LOOK * live.observe(_window_s(self.present.interval_s, _LOOK_S)).consumed_rate


def _recorded_readings(journal: Journal, key: str) -> list[Probe]:
    """Read the readings that the journal has of a measurement, finished or not: the last one of each round."""
    known = replay(journal, key)
    probes = known.history or (known.finished[-1].estimate.probes if known.finished else ())
    last = {probe.number: probe for probe in probes if probe.phase == "reading"}
    return [last[number] for number in sorted(last)]


def _window_s(interval_s: float, seconds: float) -> float:
    return max(_WINDOW_INTERVALS * interval_s, seconds)


def _fill_s(interval_s: float) -> float:
    return max(_FILL_S, _FILL_INTERVALS * interval_s)


def _settle_s(interval_s: float) -> float:
    return max(_SETTLE_S, _SETTLE_INTERVALS * interval_s)
