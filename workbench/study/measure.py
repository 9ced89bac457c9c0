"""Measure one query on one budget: deploy, estimate its MST, fit its costs, and journal every step.

Every probe is in the journal before it is used. A measurement that was killed goes on from there when the same one is
asked for again; a finished one is measured anew.
"""

import hashlib
import inspect
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, is_dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from workbench import __version__
from workbench.capacity import CapacityEstimator, Measurement, Probe, fit_costs, probe_from_dict, probe_to_dict
from workbench.dataflow import Budget
from workbench.journal import Journal
from workbench.metrics import Observation
from workbench.testbed.spark import SparkRun, SparkTestbed
from workbench.testbed.spark.machine import describe
from workbench.workload.query import Dataset, Query

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
        "workbench": __version__,
        "code": _code(query),
        "data": _data(query),
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
    output: Path | None = None,
) -> Measurement:
    """Measure the MST of `query` on `budget` and what each operator does at that rate.

    Parameters
    ----------
    costs
        Whether to add short runs at lower rates, which tell fixed from per-record costs.
    progress
        Called with one line of text at each step.
    output
        Where the measurement is written, before the journal calls it finished.

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
    counted = [probe for probe in estimate.probes if probe.judgement and probe.judgement.answered]
    samples = [sample for probe in (*counted, *curve) for sample in probe.observation.samples]
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
    if output is not None:
        measurement.to_json(output)
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


def _code(query: Query) -> str:
    """Digest of the module the query stands in: probes of code that has changed since are not reused."""
    module = inspect.getmodule(query.build)
    try:
        source = inspect.getsource(module or query.build)
    except (OSError, TypeError):  # typed into a notebook or a shell
        source = repr(getattr(getattr(query.build, "__code__", None), "co_code", query.name))
    return hashlib.sha256(source.encode()).hexdigest()[:16]


def _data(query: Query) -> str:
    """Name the data: the settings of a generator, or the files of a data set with their sizes and times."""
    if not isinstance(query.dataset, Dataset):
        return repr(query.dataset) if is_dataclass(query.dataset) else type(query.dataset).__qualname__
    place = Path(query.dataset.path)
    files = sorted(path for path in place.rglob("*") if path.is_file()) if place.is_dir() else [place]
    return repr([(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files])


def _settings(estimator: CapacityEstimator) -> dict[str, Any]:
    settings = asdict(replace(estimator, clock=_clockless))
    del settings["clock"]
    published = settings.pop("published")
    if estimator.schedule == "streambed":
        settings.update({f"streambed {name}": value for name, value in published.items()})
    return settings


def _clockless() -> float:
    return 0.0
