"""What a replay on the command line starts from, and its steps as a table."""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from workbench.capacity import bids2
from workbench.errors import WorkbenchError
from workbench.scaling import Ds2Policy, Policy, Static, Timeline, replay
from workbench.scaling.autoscaler import FLINK, AutoscalerSettings
from workbench.simulation import Deployment, QueryModel, RateTrace, preset, steady_state

POLICIES: Mapping[str, Policy] = MappingProxyType(
    {
        "static": Static(),
        "ds2": Ds2Policy(AutoscalerSettings(policy_interval_s=60.0, utilization_target=0.8)),
        "flink": Ds2Policy(FLINK),
    }
)
"""Policies by name: leave everything, DS2 every minute with a fifth of head-room, Flink's autoscaler as shipped."""

COLUMNS = ("policy", "time_s", "offered_per_s", "consumed_per_s", "backlog", "latency_s", "tasks")


@dataclass(frozen=True, eq=False)
class Replayed:
    """A load replayed under policies: the simulated query, the load, the tasks at the beginning, what happened."""

    query: str
    trace: RateTrace
    tasks: Mapping[str, int]
    timelines: Mapping[str, Timeline]


def replay_policies(
    query: str,
    trace: RateTrace,
    *,
    slots: int,
    memory_mb: float = 2048.0,
    policies: Sequence[str] = tuple(POLICIES),
    restart_s: float = 10.0,
) -> Replayed:
    """Replay `trace` on the simulated `query` under each of `policies`, from the same deployment.

    Raises
    ------
    WorkbenchError
        When there is no such query or policy, or there are fewer slots than operators.
    """
    model = preset(query.removeprefix("nexmark:"))
    unknown = [name for name in policies if name not in POLICIES]
    if unknown or not policies:
        missing = f"There is no policy {unknown[0]!r}" if unknown else "There are no policies"
        raise WorkbenchError(f"{missing}; use one of {', '.join(POLICIES)}.")
    tasks = initial_tasks(model, slots, memory_mb)
    lines = {
        name: replay(trace, model, POLICIES[name], tasks, memory_mb=memory_mb, restart_s=restart_s) for name in policies
    }
    return Replayed(model.name, trace, tasks, lines)


def initial_tasks(model: QueryModel, slots: int, memory_mb: float) -> dict[str, int]:
    """Deal `slots` out to the operators by BIDS2, with the model's own costs of one task each.

    Raises
    ------
    WorkbenchError
        When there are fewer slots than operators.
    """
    work = steady_state(Deployment(model, model.minimal_layout, memory_mb)).work_s
    rates = {name: 1 / seconds if seconds > 0 else math.inf for name, seconds in work.items()}
    return dict(bids2(rates, dict.fromkeys(rates, 1.0), slots).tasks)


def timelines_csv(lines: Mapping[str, Timeline]) -> str:
    """Write every step of every timeline as comma-separated text."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for name, line in lines.items():
        steps = zip(
            line.times_s.tolist(),
            line.offered.tolist(),
            line.consumed.tolist(),
            line.backlog.tolist(),
            line.latency_s.tolist(),
            line.tasks.tolist(),
            strict=True,
        )
        writer.writerows([(name, *step) for step in steps])
    return text.getvalue()
