"""Measure one query on one budget: deploy, estimate its MST, fit its costs, and journal every step.

Every probe is in the journal before it is used. A measurement that was killed goes on from there when the same one is
asked for again; a finished one is measured anew, unless its journal is asked to be believed (`reuse`).
"""

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from workbench import __version__
from workbench.dataflow import Budget
from workbench.errors import WorkbenchError, in_keys
from workbench.journal import Journal
from workbench.measuring.costs import fit_costs
from workbench.measuring.estimator import CapacityEstimator
from workbench.measuring.fingerprint import code_of, data_of, own_code
from workbench.measuring.repeatability import expected_deviation, mst_interval
from workbench.metrics import Observation
from workbench.records import (
    Measurement,
    MstEstimate,
    OperatorCost,
    Probe,
    measurement_from_dict,
    measurement_to_dict,
    probe_from_dict,
    probe_to_dict,
)
from workbench.testbed import Run, Simulated, Testbed
from workbench.workload import Query

# Rates, as shares of the MST, at which the costs are measured besides: batches of clearly different sizes.
LOAD_CURVE = (0.15, 0.3, 0.5)
# State of the rate before has left the windows by then (10 s windows, 4 s of watermark delay).
_SETTLE_S = 15.0
_WINDOW_BATCHES = 7

Progress = Callable[[str], None]


def say_nothing(_: str) -> None:
    """Say nothing."""


@dataclass(frozen=True)
class Configuration:
    """What is deployed: a query on a budget, with the tasks of each operator and how often it was measured before.

    Parameters
    ----------
    query
        A query, or for simulated testbeds anything with a name.
    budget
        Slots, their profile and the trigger interval.
    tasks
        Tasks by operator; None leaves them to the testbed.
    repeat
        How many measurements of the same configuration came before.
    predicted_rate
        Records/s that the tasks should carry, if an optimizer said so.
    """

    query: Query
    budget: Budget
    tasks: Mapping[str, int] | None = None
    repeat: int = 0
    predicted_rate: float | None = None


def measurement_key(configuration: Configuration, testbed: Testbed, estimator: CapacityEstimator) -> str:
    """Name a measurement: equal for the same configuration, query code, data, testbed and estimator settings."""
    query = configuration.query
    asked = {
        "query": query.name,
        "workbench": __version__,
        "measured by": own_code(),
        "code": code_of(query),
        "data": data_of(query),
        "event_time": getattr(query, "event_time", None),
        "output_mode": getattr(query, "output_mode", None),
        "budget": asdict(configuration.budget),
        "tasks": None if configuration.tasks is None else dict(configuration.tasks),
        "repeat": configuration.repeat,
        "testbed": testbed.identity,
        "estimator": _settings(estimator),
    }
    digest = hashlib.sha256(json.dumps(asked, sort_keys=True, default=str).encode()).hexdigest()
    return f"{query.name}/{digest[:16]}"


def measure(
    configuration: Configuration,
    testbed: Testbed,
    estimator: CapacityEstimator,
    journal: Journal,
    *,
    costs: bool = True,
    reuse: bool = False,
    progress: Progress = say_nothing,
    output: Path | None = None,
) -> Measurement:
    """Measure the MST of a configuration and what each operator does at that rate.

    Parameters
    ----------
    costs
        Whether to add short runs at lower rates, which tell fixed from per-record costs.
    reuse
        Whether to return the journal's measurement of this configuration if it has a finished one; if that lacks the
        costs that are asked for, only they are measured.
    progress
        Called with one line of text at each step.
    output
        Where the measurement is written, before the journal calls it finished.

    Raises
    ------
    WorkbenchError
        When the query or the budget cannot be deployed, or the query fails.
    """
    query, budget = configuration.query, configuration.budget
    key = measurement_key(configuration, testbed, estimator)
    recorded = None
    if reuse and (finished := journal.entries("finished", key)):
        recorded = measurement_from_dict(finished[-1].data, "The recorded measurement")
        if not costs or recorded.load_curve or not recorded.estimate.rate:
            return recorded
    if isinstance(testbed, Simulated):
        estimator = replace(estimator, clock=testbed.clock)
    deployments = _unfinished(journal, key, recorded)
    history = [probe for deployment in deployments for probe in deployment.probes]
    curve = [probe for deployment in deployments for probe in deployment.load_curve]
    given_up = _dead_end(history, estimator, budget.interval_s)
    if given_up is not None:
        deployments, history, curve = [], [], []
    if history:
        progress(f"resuming: {len(history) + len(curve)} finished probes are not repeated")
    started = datetime.now(UTC).isoformat(timespec="seconds")

    def record(probe: Probe) -> None:
        journal.append("probe", key, probe_to_dict(probe))
        progress(describe_probe(probe))
        present.probes.append(probe)

    with testbed.deploy(query, budget, configuration.tasks, repeat=configuration.repeat) as run:
        _give_up(journal, key, given_up)
        journal.append("deployed", key, {**run.facts, "budget": asdict(budget)})
        present = _Deployment()
        deployments.append(present)
        estimate = estimator.estimate(run, history, record)
        if costs and estimate.rate:
            for number, share in enumerate(LOAD_CURVE[len(curve) :], len(curve)):
                probe = _observe_at(run, share * estimate.rate, number)
                journal.append("load", key, probe_to_dict(probe))
                progress(f"costs at {share:.0%} of it: {probe.observation.consumed_rate:,.0f} records/s")
                curve.append(probe)
                present.load_curve.append(probe)
        facts, source = run.facts, run.source
    measurement = Measurement(
        query=query.name,
        budget=budget,
        estimate=estimate,
        costs=_costs(deployments),
        source=source,
        testbed=testbed.identity,
        started_at=started,
        machine=dict(facts),
        settings=_settings(estimator),
        load_curve=tuple(curve),
        tasks=configuration.tasks,
        predicted_rate=configuration.predicted_rate,
        interval=mst_interval(estimate, _earlier(journal, key, recorded), expected=expected_deviation(facts)),
        unbounded_state=getattr(query, "unbounded_state", False),
    )
    if output is not None:
        measurement.to_json(output)
    journal.append("finished", key, measurement_to_dict(measurement))
    return measurement


def failed(configuration: Configuration, testbed: Testbed, error: WorkbenchError) -> Measurement:
    """Make the measurement of a configuration that could not be measured: it says why."""
    return Measurement(
        query=configuration.query.name,
        budget=configuration.budget,
        estimate=MstEstimate(None, 0.0, math.inf, (), None, "none", 0.0),
        costs=(),
        source=None,
        testbed=testbed.identity,
        started_at=datetime.now(UTC).isoformat(timespec="seconds"),
        tasks=configuration.tasks,
        predicted_rate=configuration.predicted_rate,
        failure=in_keys(str(error)),
    )


def verify(
    query: Query,
    budget: Budget,
    testbed: Testbed,
    estimator: CapacityEstimator,
    rates: Sequence[float],
    *,
    progress: Progress = say_nothing,
) -> tuple[Probe, ...]:
    """Run `query` at each of `rates` (records/s) and judge whether it was sustained."""
    with testbed.deploy(query, budget) as run:
        return estimator.verify(run, rates, lambda probe: progress(describe_probe(probe)))


def describe_probe(probe: Probe) -> str:
    """One line on a finished probe."""
    if probe.judgement is None:
        steady = "steady" if probe.steady else "not steady yet, but at its cap"
        return f"warm-up: {probe.observation.consumed_rate:,.0f} records/s, {steady} after {probe.seconds:.0f} s"
    return f"probe {probe.number} at {probe.rate:,.0f} records/s: {probe.judgement.verdict}. {probe.judgement.reason}"


def load_curve_s(interval_s: float) -> float:
    """Seconds that the runs for the costs take at a trigger interval of `interval_s`."""
    return len(LOAD_CURVE) * sum(_load_times(interval_s))


def _load_times(interval_s: float) -> tuple[float, float]:
    """Seconds discarded and seconds observed."""
    return max(_SETTLE_S, 2 * interval_s), _WINDOW_BATCHES * interval_s


def _observe_at(run: Run, rate: float, number: int) -> Probe:
    run.set_rate(rate)
    settle_s, window_s = _load_times(run.budget.interval_s)
    run.settle(settle_s)
    observation: Observation = run.observe(window_s)
    return Probe(number, "probe", rate, 1, observation, seconds=settle_s + observation.elapsed_s)


@dataclass
class _Deployment:
    """What one deployment contributed to a measurement; code warms up anew in each."""

    probes: list[Probe] = field(default_factory=list)
    load_curve: list[Probe] = field(default_factory=list)


def _costs(deployments: Sequence[_Deployment]) -> tuple[OperatorCost, ...]:
    """Fit the costs within one deployment, since another JVM has other costs: the one that saw the most levels."""
    fits = []
    for deployment in deployments:
        answered = [probe for probe in deployment.probes if probe.judgement and probe.judgement.answered]
        probes = (*answered, *deployment.load_curve)
        fits.append(fit_costs(sample for probe in probes for sample in probe.observation.samples))
    return max(reversed(fits), key=lambda costs: sum(cost.levels for cost in costs), default=())


def _earlier(journal: Journal, key: str, recorded: Measurement | None) -> list[MstEstimate]:
    """Estimates of the finished measurements `key`, but for the one that costs are added to, `recorded`."""
    entries = [entry for entry in journal.entries(key=key) if entry.kind == "finished"]
    estimates = [measurement_from_dict(entry.data).estimate for entry in entries]
    return estimates if recorded is None else estimates[:-1]


def _unfinished(journal: Journal, key: str, recorded: Measurement | None) -> list[_Deployment]:
    """Deployments of the measurement `key` since it was last finished, after what `recorded` has."""
    deployments: list[_Deployment] = []
    for entry in journal.entries(key=key):
        if entry.kind in {"finished", "given up"}:
            deployments = []
        elif entry.kind == "deployed":
            deployments.append(_Deployment())
        elif not deployments:
            continue  # of another process, which measured the same while this one finished it
        elif entry.kind == "probe":
            deployments[-1].probes.append(probe_from_dict(entry.data))
        elif entry.kind == "load":
            deployments[-1].load_curve.append(probe_from_dict(entry.data))
    return deployments if recorded is None else [_Deployment(list(recorded.estimate.probes)), *deployments]


def _dead_end(history: Sequence[Probe], estimator: CapacityEstimator, interval_s: float) -> str | None:
    """Say why an estimate cannot go on from `history`: it is to be made anew, or it would fail alike for ever."""
    try:
        estimator.next_step(history, estimator.settings(interval_s))
    except WorkbenchError as error:
        return str(error)
    return None


def _give_up(journal: Journal, key: str, reason: str | None) -> None:
    """Note that what was recorded so far is not gone on from, if there is a `reason`."""
    if reason is not None:
        journal.append("given up", key, {"reason": reason})


def _settings(estimator: CapacityEstimator) -> dict[str, Any]:
    settings = asdict(replace(estimator, clock=_clockless))
    del settings["clock"]
    published = settings.pop("published")
    if estimator.schedule == "streambed":
        settings.update({f"streambed {name}": value for name, value in published.items()})
    return settings


def _clockless() -> float:
    return 0.0
