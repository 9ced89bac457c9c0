"""Measure one query on one budget: deploy, estimate its MST, fit its costs, and journal every step.

Every probe is in the journal before it is used. A measurement that was killed goes on from there when the same one is
asked for again; a finished one is measured anew.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any

from workbench.capacity import CapacityEstimator, Measurement, Probe, fit_costs, probe_from_dict, probe_to_dict
from workbench.dataflow import Budget
from workbench.journal import Journal
from workbench.metrics import Observation
from workbench.testbed.spark import SparkRun, SparkTestbed
from workbench.testbed.spark.machine import describe
from workbench.workload.query import Query

# Rates, as shares of the MST, at which the costs are measured besides: batches of clearly different sizes.
LOAD_CURVE = (0.15, 0.3, 0.5)
# State of the rate before has left the windows by then (10 s windows, 4 s of watermark delay).
_SETTLE_S = 15.0
_WINDOW_BATCHES = 7

Progress = Callable[[str], None]


def _quiet(_: str) -> None:
    """Say nothing."""


def measurement_key(query: Query, budget: Budget, testbed: SparkTestbed, estimator: CapacityEstimator) -> str:
    """Name a measurement: equal for the same query, data, budget, testbed and estimator settings."""
    asked = {
        "query": query.name,
        "dataset": repr(query.dataset),
        "output_mode": query.output_mode,
        "budget": asdict(budget),
        "master": testbed.master,
        "slot_cpus": testbed.slot_cpus,
        "estimator": _settings(estimator),
    }
    digest = hashlib.sha256(json.dumps(asked, sort_keys=True, default=str).encode()).hexdigest()
    return f"{query.name}/{digest[:16]}"


def measure(
    query: Query,
    budget: Budget,
    testbed: SparkTestbed,
    estimator: CapacityEstimator,
    journal: Journal,
    *,
    costs: bool = True,
    progress: Progress = _quiet,
) -> Measurement:
    """Measure the MST of `query` on `budget` and what each operator does at that rate.

    Parameters
    ----------
    costs
        Whether to add short runs at lower rates, which tell fixed from per-record costs.
    progress
        Called with one line of text at each step.

    Raises
    ------
    WorkbenchError
        When the query or the budget cannot be deployed, or the query fails.
    """
    key = measurement_key(query, budget, testbed, estimator)
    history, curve = _unfinished(journal, key)
    if history:
        progress(f"resuming: {len(history) + len(curve)} finished probes are not repeated")
    started = datetime.now(UTC).isoformat(timespec="seconds")

    def record(probe: Probe) -> None:
        journal.append("probe", key, probe_to_dict(probe))
        progress(describe_probe(probe))

    with testbed.deploy(query, budget) as run:
        estimate = estimator.estimate(run, history, record)
        if costs and estimate.rate:
            for number, share in enumerate(LOAD_CURVE[len(curve) :], len(curve)):
                probe = _observe_at(run, share * estimate.rate, number)
                journal.append("load", key, probe_to_dict(probe))
                progress(f"costs at {share:.0%} of it: {probe.observation.consumed_rate:,.0f} records/s")
                curve.append(probe)
        facts, source = run.facts, run.source
    samples = [sample for probe in (*estimate.probes, *curve) for sample in probe.observation.samples]
    measurement = Measurement(
        query=query.name,
        budget=budget,
        estimate=estimate,
        costs=fit_costs(samples),
        source=source,
        testbed=f"Spark ({testbed.master})",
        started_at=started,
        machine={**describe(), **facts},
        settings={**_settings(estimator), "output mode": query.output_mode, "event time": "due time and own lateness"},
        load_curve=tuple(curve),
    )
    journal.append("finished", key, {"low": estimate.low, "at": started})
    return measurement


def verify(
    query: Query,
    budget: Budget,
    testbed: SparkTestbed,
    estimator: CapacityEstimator,
    rates: Sequence[float],
    *,
    progress: Progress = _quiet,
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


def _observe_at(run: SparkRun, rate: float, number: int) -> Probe:
    run.set_rate(rate)
    settle_s = max(_SETTLE_S, 2 * run.budget.interval_s)
    run.settle(settle_s)
    observation: Observation = run.observe(_WINDOW_BATCHES * run.budget.interval_s)
    return Probe(number, "probe", rate, 1, observation, seconds=settle_s + observation.elapsed_s)


def _unfinished(journal: Journal, key: str) -> tuple[list[Probe], list[Probe]]:
    history: list[Probe] = []
    curve: list[Probe] = []
    for entry in journal.entries(key=key):
        if entry.kind == "finished":
            history, curve = [], []
        elif entry.kind == "probe":
            history.append(probe_from_dict(entry.data))
        elif entry.kind == "load":
            curve.append(probe_from_dict(entry.data))
    return history, curve


def _settings(estimator: CapacityEstimator) -> dict[str, Any]:
    settings = asdict(replace(estimator, clock=_clockless))
    del settings["clock"]
    published = settings.pop("published")
    if estimator.schedule == "streambed":
        settings.update({f"streambed {name}": value for name, value in published.items()})
    return settings


def _clockless() -> float:
    return 0.0
