"""Tables of a measurement, in plain rows with units."""

import math
from collections.abc import Mapping

from workbench.metrics import METRICS, OperatorMetrics
from workbench.records import Measurement, OperatorCost, Probe
from workbench.views.cards import Cell, Column, Table


def probes_table(measurement: Measurement) -> Table:
    """One row per probe, in order."""
    columns = (
        Column("Probe"),
        Column("Verdict"),
        Column("Began", "s"),
        Column("Commanded", "records/s"),
        Column("Offered", "records/s"),
        Column("Consumed", "records/s"),
        Column("Consumed share", "%"),
        Column("Backlog slope", "records/s"),
        Column("Mean batch time", "s"),
        Column("Whole batches"),
        Column("Reason"),
    )
    return Table("Probes of the estimate", columns, tuple(_probe(probe) for probe in measurement.estimate.probes))


def batches_table(measurement: Measurement) -> Table:
    """One row per whole micro-batch of the probes."""
    columns = (Column("Probe"), Column("Records"), Column("Batch time", "s"), Column("Backlog", "records"))
    rows = tuple(
        (probe.number, batch.records, batch.duration_s, batch.backlog)
        for probe in measurement.estimate.probes
        if probe.judgement is not None
        for batch in probe.observation.batches[1:]
    ) + tuple(
        ("lower load", batch.records, batch.duration_s, batch.backlog)
        for probe in measurement.load_curve
        for batch in probe.observation.batches[1:]
    )
    return Table("Whole micro-batches of the probes and of the runs at lower rates", columns, rows)


def operators_table(metrics: tuple[OperatorMetrics, ...], costs: tuple[OperatorCost, ...]) -> Table:
    """One row per operator: every metric at the maximum, and the fitted costs."""
    columns = (
        Column("Operator"),
        Column("Tasks"),
        Column("Busyness", "%"),
        Column("True rate", METRICS["true_processing_rate"].unit),
        Column("In", METRICS["records_in"].unit),
        Column("Out", METRICS["records_out"].unit),
        Column("CPU", METRICS["cpu_s"].unit),
        Column("Shuffle", METRICS["shuffle_bytes"].unit),
        Column("State", METRICS["state_bytes"].unit),
        Column("Cache hits", "%"),
        Column("State read", "µs"),
        Column("Key skew", METRICS["key_skew"].unit),
        Column("Fixed cost a", "ms per task"),
        Column("Cost b", "µs per record"),
    )
    fitted = {cost.operator: cost for cost in costs}
    rows = tuple(_operator(metric, fitted.get(metric.operator)) for metric in metrics)
    return Table("Operators at the maximum sustained rate", columns, rows, opened=True)


def facts_table(caption: str, facts: Mapping[str, Cell | bool]) -> Table:
    """Name and value, as text; values keep all digits."""
    rows = tuple((name, _fact(value)) for name, value in facts.items())
    return Table(caption, (Column("What"), Column("Value")), rows, opened=True)


def _probe(probe: Probe) -> tuple[Cell, ...]:
    observation, judgement = probe.observation, probe.judgement
    whole = observation.batches[1:]
    finite = math.isfinite(probe.rate)
    return (
        probe.number,
        judgement.verdict if judgement else probe.phase,
        probe.started_s,
        probe.rate if finite else None,
        observation.offered_rate if finite else None,
        observation.consumed_rate,
        100 * judgement.consumed_share if judgement else None,
        judgement.backlog_slope if judgement else None,
        math.fsum(batch.duration_s for batch in whole) / len(whole) if whole else None,
        len(whole),
        judgement.reason if judgement else "The source offered all that fits.",
    )


def _operator(metric: OperatorMetrics, cost: OperatorCost | None) -> tuple[Cell, ...]:
    return (
        metric.operator,
        metric.tasks,
        100 * metric.busyness,
        metric.true_processing_rate,
        metric.records_in,
        metric.records_out,
        metric.cpu_s,
        metric.shuffle_bytes,
        metric.state_bytes,
        _times(100, metric.cache_hit_rate),
        _times(1e6, metric.state_latency_s),
        metric.key_skew,
        _times(1e3, cost.fixed_s if cost else None),
        _times(1e6, cost.per_record_s if cost else None),
    )


def _times(factor: float, value: float | None) -> float | None:
    return None if value is None else factor * value


def _fact(value: Cell | bool) -> str:
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int | float) else str(value)
