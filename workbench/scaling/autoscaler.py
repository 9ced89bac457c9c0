"""When an autoscaler may act, and how far: settings of papers and of production for a scaling policy.

All functions are pure: the caller owns the clock and remembers what they return. Settings have the names of the Flink
autoscaler's options if it has them.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeAlias

from workbench.checks import SLACK, not_negative, require, whole


@dataclass(frozen=True)
class AutoscalerSettings:
    """Settings of an autoscaler; the defaults are those of DS2 in CAPSys (section 6.4), without limits."""

    activation_s: float = 90.0  # seconds without a decision after a (re)deployment (Flink: stabilization.interval)
    policy_interval_s: float = 5.0  # seconds from one decision to the next
    metrics_window_s: float = 5.0  # seconds of metrics that a decision averages over (Flink: metrics.window)
    utilization_target: float = 1.0  # planned busyness: rates are divided by it (Flink: utilization.target)
    # utilization_min, utilization_max: while the utilization of every operator is within these bounds, nothing changes
    # (Flink: utilization.min, utilization.max). None for no bound; without both, every decision is carried out.
    utilization_min: float | None = None
    utilization_max: float | None = None
    min_parallelism: int = 1  # least tasks of every operator (Flink: vertex.min-parallelism)
    max_parallelism: int | None = None  # most tasks of every operator (Flink: vertex.max-parallelism)
    # one decision adds or removes at most these shares of an operator's tasks
    scale_up_max_factor: float = math.inf  # (Flink: scale-up.max-factor)
    scale_down_max_factor: float = 1.0  # (Flink: scale-down.max-factor)
    # fewer tasks only after fewer were enough for this long; then the most that were proposed in this time (Flink:
    # scale-down.interval)
    scale_down_interval_s: float = 0.0
    restart_s: float = 0.0  # downtime of a redeployment that the plan compensates for (Flink: restart.time)
    # time to process the backlog and the records that arrive during the restart; inf to plan for neither (Flink:
    # catch-up.duration, where 0 has this meaning)
    catch_up_s: float = math.inf
    # whether an operator is as busy as its busiest task (Flink: metrics.busy-time.aggregator, MAX by default), which
    # leaves room where records spread unevenly; otherwise as its mean task, as in DS2
    busiest: bool = False
    # key groups of a stateful operator, which has at most as many tasks (Flink: pipeline.max-parallelism). Its tasks
    # are raised to the next divisor up to half of them, as Flink does, so that all tasks have the same number.
    key_groups: int | None = None
    # backlog, in seconds of the source rate; with more, no task is given back, because its records need them (Flink:
    # backlog-processing.lag-threshold)
    lag_threshold_s: float = math.inf

    def __post_init__(self) -> None:
        for name in (
            "activation_s", "policy_interval_s", "metrics_window_s", "scale_down_interval_s", "restart_s"
        ):  # fmt: skip
            not_negative(name, getattr(self, name))
        for name in ("utilization_target", "utilization_min", "utilization_max", "scale_down_max_factor"):
            value = getattr(self, name)
            require(value is None or 0 <= value <= 1, f"{name} is {value!r}; it must be a share from 0 to 1.")
        if self.utilization_min is not None and self.utilization_max is not None:
            require(
                self.utilization_min <= self.utilization_max,
                f"utilization_min is {self.utilization_min!r}, above utilization_max, {self.utilization_max!r}; "
                "no value is between them. Exchange them.",
            )
        require(self.utilization_target > 0, "utilization_target is 0; it must be a share above 0.")
        for name in ("scale_up_max_factor", "catch_up_s"):
            value = getattr(self, name)
            require(value > 0, f"{name} is {value!r}; it must be above 0 (inf for no limit).")
        whole("min_parallelism", self.min_parallelism, 1)
        if self.max_parallelism is not None:
            whole("max_parallelism", self.max_parallelism, self.min_parallelism)
        if self.key_groups is not None:
            whole("key_groups", self.key_groups, 1)


FLINK = AutoscalerSettings(
    activation_s=300.0,
    policy_interval_s=60.0,
    metrics_window_s=900.0,
    utilization_target=0.7,
    utilization_min=0.4,
    utilization_max=1.0,
    scale_down_max_factor=0.6,
    scale_down_interval_s=3600.0,
    restart_s=300.0,
    catch_up_s=1800.0,
    busiest=True,
    max_parallelism=200,
    lag_threshold_s=300.0,
)
"""Defaults of the autoscaler of Flink's Kubernetes operator, as of 2026. They do not detect ineffective scaling."""
JUSTIN = replace(
    FLINK,
    activation_s=60.0,
    policy_interval_s=120.0,
    metrics_window_s=120.0,
    utilization_target=0.5,
    utilization_min=0.2,
    utilization_max=0.8,
    max_parallelism=None,
    lag_threshold_s=math.inf,
)
"""Justin and its DS2, section 5: 2 min windows, 1 min stabilisation, busyness kept between 20 and 80 %.

Both extend the autoscaler of Flink's operator, where that band is a target of 0.5 with a boundary of 0.3, and the rest
stays at the operator's defaults; the job files of Justin's released operator say the same. Its evaluation reaches
neither the operator's bound of the tasks nor its lag threshold, so they are left out.
"""


Pending: TypeAlias = Mapping[str, tuple[float, int]]
"""Pending scale-downs by operator: when each was first proposed, and the most tasks proposed since then."""


def is_due(settings: AutoscalerSettings, now_s: float, deployed_s: float, decided_s: float | None = None) -> bool:
    """Return whether a decision may be taken at `now_s`, after the last deployment and the last decision (if any)."""
    active = now_s >= deployed_s + settings.activation_s - SLACK
    return active and (decided_s is None or now_s >= decided_s + settings.policy_interval_s - SLACK)


def needs_scaling(
    settings: AutoscalerSettings, utilization: Mapping[str, float], after_restart: Mapping[str, float] | None = None
) -> bool:
    """Return whether the utilization of an operator is below ``utilization_min`` or above ``utilization_max``.

    `after_restart` is the utilization that makes up for a restart, too. As in Flink it decides whether fewer tasks are
    enough: giving tasks back takes a restart, keeping them takes none.
    """
    low = -math.inf if settings.utilization_min is None else settings.utilization_min
    high = math.inf if settings.utilization_max is None else settings.utilization_max
    least = utilization if after_restart is None else after_restart
    return any(least[name] < low - SLACK or busy > high + SLACK for name, busy in utilization.items())


def planned_rates(
    settings: AutoscalerSettings, source_rates: Mapping[str, float], backlog: Mapping[str, float]
) -> dict[str, float]:
    """Return the rates to plan for, records/s per source: with head-room, the backlog, and a restart's addition to it.

    ``rate / utilization_target + (backlog + rate x restart_s) / catch_up_s``. The Flink autoscaler calculates this per
    vertex. At the sources the result is the same, because DS2's needs are linear in the source rates.
    """
    return {
        source: rate / settings.utilization_target
        + (backlog.get(source, 0.0) + rate * settings.restart_s) / settings.catch_up_s
        for source, rate in source_rates.items()
    }


def evenly_spread(settings: AutoscalerSettings, tasks: int) -> int:
    """Return how many tasks a stateful operator gets when `tasks` are wanted, see ``AutoscalerSettings.key_groups``."""
    if settings.key_groups is None:
        return tasks
    even = (count for count in range(tasks, settings.key_groups // 2 + 1) if settings.key_groups % count == 0)
    return next(even, min(tasks, settings.key_groups))


def limit_parallelism(
    settings: AutoscalerSettings,
    current: Mapping[str, int],
    proposal: Mapping[str, int],
    now_s: float,
    pending: Pending = MappingProxyType({}),
) -> tuple[dict[str, int], Pending]:
    """Keep a proposal within the factors and bounds, and delay scale-downs; `pending` are those of the last decision.

    A pending scale-down is dropped as soon as the present number of tasks, or more, is proposed again. Returned are the
    tasks, and what is pending now.
    """
    parallelism: dict[str, int] = {}
    waiting: dict[str, tuple[float, int]] = {}
    for name, wanted in proposal.items():
        tasks = current[name]
        least = math.ceil(tasks * (1 - settings.scale_down_max_factor) - SLACK)
        highest = tasks * (1 + settings.scale_up_max_factor)
        allowed = max(least, wanted if wanted <= highest else math.ceil(highest - SLACK), settings.min_parallelism)
        if settings.max_parallelism is not None:
            allowed = min(allowed, settings.max_parallelism)
        allowed = int(allowed)  # a bound may be given as a float
        if allowed < tasks and settings.scale_down_interval_s > 0:
            since_s, most = pending.get(name, (now_s, allowed))
            most = max(most, allowed)
            if now_s - since_s < settings.scale_down_interval_s - SLACK:
                waiting[name], allowed = (since_s, most), tasks
            else:
                allowed = min(tasks, most)
        parallelism[name] = allowed
    return parallelism, waiting
