"""Measure one query on one budget: deploy it, estimate its MST, fit its costs, and record every step.

Every probe is in the journal before it is used. A measurement that was killed resumes when you ask for the same one
again. A finished one is measured again, unless you ask for it to be reused.
"""

import hashlib
import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from workbench.dataflow import Budget
from workbench.errors import TooFewBatchesError, WorkbenchError
from workbench.journal import Journal
from workbench.measuring.costs import expected_deviation, fit_costs, mst_interval
from workbench.measuring.estimator import CapacityEstimator
from workbench.measuring.events import (
    Abandoned,
    Deployed,
    Deployment,
    Estimated,
    Event,
    Finished,
    LoadProbed,
    Probed,
    Reused,
    last_finished,
    record,
    replay,
)
from workbench.measuring.fingerprint import PROTOCOL, code_of, data_of, definition_of, observing_code
from workbench.records import FailedRun, Measurement, OperatorCost, Probe
from workbench.testbed import Run, SharedRun, Simulated, Testbed
from workbench.workload import Query

# Shares of the MST at which costs are also measured: with the probes, three clearly different sizes of batches.
LOAD_CURVE = (0.2, 0.5)
_SETTLE_S = 8.0  # by then, most of the previous rate's state has left windows of 10 s
_WINDOW_BATCHES = 4
_MANY_TASKS_RATE = 0.5  # of the MST: with several times the partitions a batch has several times the fixed seconds


@dataclass(frozen=True)
class Configuration:
    """What is deployed: a query (on a simulated testbed anything with a name) on a budget."""

    query: Query
    budget: Budget
    tasks: Mapping[str, int] | None = None  # by operator; None leaves them to the testbed
    partitions: Mapping[str, int] | None = None  # of source and state, instead where stages share the slots in time
    repeat: int = 0  # number of earlier measurements of the same configuration
    predicted_rate: float | None = None  # records/s that an optimizer predicted, if one did
    guess: float | None = None  # records/s to begin with; the measurement does not depend on it
    shared: bool = False  # whether it takes turns with other budgets in a warm deployment

    @property
    def layout(self) -> Mapping[str, int] | None:
        """What a testbed must set."""
        return self.tasks if self.partitions is None else self.partitions


def measurement_key(configuration: Configuration, testbed: Testbed, estimator: CapacityEstimator) -> str:
    """Name a measurement: equal for the same configuration, query code, data, testbed and estimator settings."""
    query = configuration.query
    definition = definition_of(query)
    asked: dict[str, Any] = {
        "query": query.name,
        "protocol": PROTOCOL,
        "observed by": observing_code(),
        "code": code_of(query),
        "data": data_of(query),
        "event_time": definition.event_time,
        "output_mode": definition.output_mode,
        "budget": asdict(configuration.budget),
        "tasks": None if configuration.tasks is None else dict(configuration.tasks),
        "repeat": configuration.repeat,
        "testbed": testbed.identity,
        "estimator": estimator.settings(),
    }
    if configuration.shared:
        asked |= {"shared": True, "partitions": dict(configuration.partitions or {})}
    digest = hashlib.sha256(json.dumps(asked, sort_keys=True, default=str).encode()).hexdigest()
    return f"{query.name}/{digest[:16]}"


def measure(
    configuration: Configuration,
    testbed: Testbed,
    estimator: CapacityEstimator,
    journal: Journal,
    *,
    costs: bool = True,
    many_tasks: Sequence[int] = (),
    reuse: bool = False,
    output: Path | None = None,
) -> Generator[Event, None, Measurement]:
    """Measure the MST of a configuration and what each operator does at that rate.

    It yields events as they happen and returns the measurement: ``result_of(measure(...))`` is the measurement alone.
    A `WorkbenchError` says why the query or the budget cannot be deployed, or that the query failed.

    Parameters
    ----------
    costs
        Whether to add short runs at lower rates, which separate fixed from per-record costs.
    many_tasks
        Times the slots: with the costs, a warm run is also observed with these numbers of partitions, which shows what
        a task costs.
    reuse
        Whether to return the journal's measurement of this configuration if it has a finished one. If you ask for costs
        and it has none, only they are measured.
    output
        Where to write the measurement, before the journal calls it finished.
    """
    query, budget = configuration.query, configuration.budget
    key = measurement_key(configuration, testbed, estimator)
    finished = reusable(configuration, testbed, estimator, journal, costs=costs) if reuse else None
    if finished is not None:
        yield Reused(key, finished)
        return finished
    known = replay(journal, key)
    recorded = known.finished[-1] if reuse and known.finished else None
    if isinstance(testbed, Simulated):
        estimator = replace(estimator, clock=testbed.clock)
    if recorded is not None:  # only its costs are measured
        known = replace(known, deployments=(Deployment(recorded.estimate.probes), *known.deployments))
    dead_end = None
    try:
        estimator.steps.next_step(known.history, budget.interval_s)
    except WorkbenchError as error:  # it would fail in the same way every time
        dead_end, known = str(error), replace(known, deployments=())
    history, curve, deployments = list(known.history), list(known.load_curve), list(known.deployments)
    started = datetime.now(UTC).isoformat(timespec="seconds")
    with testbed.deploy(query, budget, configuration.layout, repeat=configuration.repeat) as live:
        if dead_end is not None:
            yield record(journal, Abandoned(key, dead_end))
        yield record(journal, Deployed(key, live.machine, budget, tuple(history), tuple(curve)))
        probes: list[Probe] = []
        for made in estimator.probes(live, history, configuration.guess):
            probe = _laid_out(made, configuration)
            probes.append(probe)
            so_far = estimator.steps.conclude([*history, *probes], budget.interval_s)
            yield record(journal, Probed(key, probe, so_far.low, so_far.high))
        estimate = estimator.steps.conclude([*history, *probes], budget.interval_s)
        # One that was completed with costs is finished twice, with the same probes, and measured the maximum once.
        earlier = {one.estimate.probes: one.estimate for one in known.finished if one is not recorded}
        measurement = Measurement(
            query=query.name,
            budget=budget,
            estimate=estimate,
            costs=costs_of([*deployments, Deployment(tuple(probes))]),
            source=live.source,
            testbed=testbed.identity,
            started_at=started,
            testbed_kind=testbed.kind,
            machine=live.machine,
            settings=estimator.settings(),
            load_curve=tuple(curve),
            tasks=configuration.tasks,
            predicted_rate=configuration.predicted_rate,
            interval=mst_interval(estimate, list(earlier.values()), expected=expected_deviation(live.machine)),
            unbounded_state=definition_of(query).unbounded_state,
        )
        yield Estimated(key, measurement)
        loads, many = tuple[Probe, ...](), tuple[Probe, ...]()
        if costs and estimate.rate:
            for number in range(len(curve), len(LOAD_CURVE)):
                load = _load_at(live, LOAD_CURVE[number] * estimate.rate, number)
                loads = (*loads, _laid_out(load, configuration))
                yield record(journal, LoadProbed(key, loads[-1]))
            many = _with_many_tasks(live, many_tasks, estimate.rate)
    deployments.append(Deployment(tuple(probes), (*loads, *many)))
    measurement = replace(
        measurement, costs=costs_of(deployments), load_curve=(*curve, *loads), divided=many, source=live.source
    )
    if output is not None:
        measurement.to_json(output)
    yield record(journal, Finished(key, measurement))
    return measurement


def _laid_out(probe: Probe, configuration: Configuration) -> Probe:
    """Return `probe` with the partitions that it was made with."""
    if configuration.partitions is None:
        return probe
    source, state = configuration.partitions["source"], configuration.partitions["state"]
    return replace(probe, partitions=state, source_partitions=None if source == state else source)


def _with_many_tasks(live: Run, many: Sequence[int], rate: float) -> tuple[Probe, ...]:
    """Observe a warm run with several times as many partitions as slots; stop where too few batches complete."""
    found: list[Probe] = []
    if not isinstance(live, SharedRun):
        return ()
    for times in many:
        partitions = times * live.budget.slots
        live.turn(live.budget, {"source": partitions, "state": partitions})
        try:
            seen = _load_at(live, _MANY_TASKS_RATE * rate, 0)
        except TooFewBatchesError:  # that many tasks take too long here; the model is fitted without them
            break
        found.append(replace(seen, partitions=partitions))
    return tuple(found)


def reusable(
    configuration: Configuration, testbed: Testbed, estimator: CapacityEstimator, journal: Journal, *, costs: bool
) -> Measurement | None:
    """Return the measurement that `measure` would reuse, with costs if requested; None if it would deploy."""
    finished = last_finished(journal, measurement_key(configuration, testbed, estimator))
    return finished if finished and (not costs or finished.load_curve or not finished.estimate.rate) else None


def failed(configuration: Configuration, testbed: Testbed, error: WorkbenchError) -> FailedRun:
    """Return the record that a configuration could not be measured, with the reason."""
    return FailedRun(
        query=configuration.query.name,
        budget=configuration.budget,
        testbed=testbed.identity,
        started_at=datetime.now(UTC).isoformat(timespec="seconds"),
        failure=str(error),
        tasks=configuration.tasks,
        predicted_rate=configuration.predicted_rate,
    )


def verify(
    query: Query,
    budget: Budget,
    testbed: Testbed,
    estimator: CapacityEstimator,
    rates: Sequence[float],
    *,
    layout: Mapping[str, int] | None = None,
) -> Generator[Event, None, tuple[Probe, ...]]:
    """Run `query` at each of `rates` (records/s) and judge whether it was sustained; `layout` as a testbed takes it.

    It yields a `Probed` for every probe and returns the last probe at each rate, in order. Nothing is recorded.
    """
    answers: dict[int, Probe] = {}
    with testbed.deploy(query, budget, layout) as live:
        for probe in estimator.probes_at(live, rates):
            yield Probed(query.name, probe)
            answers[probe.number] = probe
    return tuple(answers.values())


def load_curve_s(interval_s: float) -> float:
    """Seconds that the runs for the costs take at a trigger interval of `interval_s`."""
    return len(LOAD_CURVE) * sum(_load_times(interval_s))


def _load_times(interval_s: float) -> tuple[float, float]:
    """Seconds to discard and seconds to observe."""
    return max(_SETTLE_S, 2 * interval_s), _WINDOW_BATCHES * interval_s


def _load_at(run: Run, rate: float, number: int) -> Probe:
    """Observe `run` at `rate`, records/s, for its costs."""
    settle_s, window_s = _load_times(run.budget.interval_s)
    run.set_rate(rate)
    run.settle(settle_s)
    seen = run.observe(window_s)
    return Probe(number, "probe", rate, 1, seen, seconds=settle_s + seen.elapsed_s)


def costs_of(deployments: Sequence[Deployment]) -> tuple[OperatorCost, ...]:
    """Fit the costs within one deployment, as each JVM has its own: the one that saw the most levels."""
    fits = []
    for deployment in deployments:
        answered = [probe for probe in deployment.probes if probe.judgement and probe.judgement.answered]
        probes = (*answered, *deployment.load_curve)
        fits.append(fit_costs(sample for probe in probes for sample in probe.observation.samples))
    return max(reversed(fits), key=lambda costs: sum(cost.levels for cost in costs), default=())
