"""The gauges that Prometheus reads of a running query, and the alerts that a plan sets on them.

`Gauge` names are fixed: rules and dashboards of users rest on them.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Self

import yaml

from workbench import units
from workbench.records.plan import CapacityPlan
from workbench.records.skeleton import script_of

NEAR = 0.8  # share of the trigger interval; longer batches are too long


class Gauge(StrEnum):
    """Names of the gauges, each with the label ``query``, and `what` it means."""

    what: str

    def __new__(cls, name: str, what: str) -> Self:
        """Make a name with its meaning."""
        made = str.__new__(cls, name)
        made._value_, made.what = name, what
        return made

    HEADROOM = (
        "workbench_headroom_ratio",
        "What the query carries over the peak of its load, less 1; 0: nothing is left.",
    )
    CAPACITY = "workbench_capacity_records_per_second", "Rate at which a batch lasts as long as the trigger interval."
    CAPACITY_LOW = "workbench_capacity_low_records_per_second", "Low end of the 90 % interval of the capacity."
    CAPACITY_HIGH = "workbench_capacity_high_records_per_second", "High end of the 90 % interval of the capacity."
    CAPACITY_AT_LEAST = (
        "workbench_capacity_at_least_records_per_second",
        "What is carried at least, also where the capacity is not known.",
    )
    RATE = "workbench_input_records_per_second", "Rows that arrive, over the last minute of batches."
    PEAK = "workbench_peak_records_per_second", "What the load asked for at its peak."
    BATCH_S = "workbench_batch_seconds", "Mean time of a batch, over the last minute of batches."
    INTERVAL_S = "workbench_trigger_interval_seconds", "The trigger interval."
    DRIFT = (
        "workbench_drift_seconds_per_day",
        "What a day adds to the time of a batch at the log's end, whatever it holds.",
    )
    STATE_ROWS = "workbench_state_rows", "Rows of the state."
    STATE_BYTES = "workbench_state_bytes", "Memory of the state, as Spark counts it."
    STATE_GROWTH = (
        "workbench_state_growth_bytes_per_day",
        "What a day adds to the memory of the state; 0 where it comes and goes.",
    )
    CATCH_UP_S = (
        "workbench_catch_up_seconds",
        "Time to work off an outage at the peak of the load; +Inf: it is never worked off.",
    )
    LAST_BATCH = "workbench_last_batch_timestamp_seconds", "When the last batch ended, since 1970."


def exposition(queries: Mapping[str, Mapping[Gauge, float | None]]) -> str:
    """Write gauges by query as Prometheus reads them (text format 0.0.4); None is unknown and left out."""
    lines = []
    for gauge in Gauge:
        values = {query: value for query, told in queries.items() if (value := told.get(gauge)) is not None}
        if values:
            lines += [f"# HELP {gauge} {gauge.what}", f"# TYPE {gauge} gauge"]
            lines += [f"{gauge}{_labels(query)} {_number(value)}" for query, value in values.items()]
    return "".join(f"{line}\n" for line in lines)


def alert_rules(plans: Sequence[CapacityPlan]) -> str:
    """Write Prometheus' alerting rules of plans, a group for each: its query must then be watched by its name.

    A batch takes more than `NEAR` of the interval; more rows arrive than the low end of the plan's capacity; the state
    takes more memory than the plan gives RocksDB.
    """
    groups = [{"name": f"{plan.query} at {plan.rate:,.6g} records/s", "rules": [*_rules(plan)]} for plan in plans]
    groups = [group for group in groups if group["rules"]]
    doubt = "".join(f"# {one}\n" for one in unnamed(plans))
    return (
        f"# Keep the group of the plan that you deploy.\n{doubt}{yaml.safe_dump({'groups': groups}, sort_keys=False)}"
    )


def unnamed(plans: Sequence[CapacityPlan]) -> tuple[str, ...]:
    """Name the plans for which no rule may fire, because their script may not name its query."""
    names = dict.fromkeys(plan.query for plan in plans if script_of(plan.query) and plan.watched == plan.query)
    return tuple(
        "The study has no name of the script's query (query_name), so have the script call "
        f".queryName({json.dumps(name)}), which the rules select."
        for name in names
    )


def _rules(plan: CapacityPlan) -> Iterable[dict[str, Any]]:
    of, interval = _labels(plan.watched), plan.budget.interval_s
    if plan.run is None and plan.has_interval:
        yield _rule(
            "BatchNearInterval",
            f"{Gauge.BATCH_S}{of} > {NEAR * interval:g}",
            f"Batches take {{{{ $value | humanizeDuration }}}} of a trigger interval of {interval:g} s",
            "See what grows with: workbench observe LOG. Plan for a higher rate, or restart with a longer interval.",
        )
    if plan.run is None:
        yield _rule(
            "RateOverCapacity",
            f"{Gauge.RATE}{of} > {plan.low:.6g}",
            f"{{{{ $value | humanize }}}} records/s arrive, and the plan is sure of {units.rate(plan.low)}",
            "Deploy a plan for a higher rate.",
        )
    if plan.stateful:
        memory = plan.executors * plan.executor.rocksdb_mb << 20
        yield _rule(
            "StateOverMemory",
            f"{Gauge.STATE_BYTES}{of} > {memory}",
            f"The state takes {{{{ $value | humanize1024 }}}}B, and the plan gives it {units.size(memory)}",
            "Look at its growth with: workbench observe LOG. Plan with more memory for a slot, or expire its keys.",
        )


def _rule(name: str, expression: str, summary: str, advice: str) -> dict[str, Any]:
    return {
        "alert": f"Workbench{name}",
        "expr": expression,
        "for": "2m",
        "labels": {"severity": "warning"},
        "annotations": {"summary": f"{{{{ $labels.query }}}}: {summary}.", "description": advice},
    }


def _labels(query: str) -> str:
    """Write the label of a query; the escapes are valid in both the text format and the rules' language."""
    return f"{{query={json.dumps(query, ensure_ascii=False)}}}"


def _number(value: float) -> str:
    return {"inf": "+Inf", "-inf": "-Inf"}.get(text := f"{float(value)!r}", text)
