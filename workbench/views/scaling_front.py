"""The first screen of a replay: which policy to choose, every policy with its money, and what to mind."""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from workbench import units
from workbench.advice import Advice
from workbench.spelling import spelled_report
from workbench.study import Replayed
from workbench.views.figures import KEEPS_UP, Policies
from workbench.views.first_screen import Chip, cares_html, header_html, table_html

_MOSTLY = 0.95  # share of the time at the target
_AS_IT_IS = ("static", "flink")  # no setting changes these
_SLOWLY = {"scale_down_interval_s": 3600.0}
_PRICES = Path(__file__).resolve().parents[2] / "data" / "instances.csv"  # of this package
_NOTHING: Mapping[str, Advice] = MappingProxyType({})
UNKNOWN: Mapping[str, object] = MappingProxyType({})
"""How a report was asked for, where that is not known: commands of advice then have a placeholder for its load."""


def again(asked: Mapping[str, object], **changes: object) -> str:
    """Give the command of this report with `changes` of its parameters."""
    return spelled_report("scaling", {"rates": "LOAD.csv", **asked, **changes})


def front_html(replayed: Replayed, data: Policies, asked: Mapping[str, object] = UNKNOWN) -> str:
    """Write the first screen; every text of the user's is escaped."""
    trace = replayed.trace
    load = f"mean load {units.rate(trace.mean_per_s)}, peak {units.rate(trace.peak_per_s)}"
    facts = (
        replayed.query,
        f"{load} over {units.seconds(trace.duration_s)}",
        f"from {units.some(sum(replayed.tasks.values()), 'slot')}",
    )
    return (
        header_html("SIMULATED", facts)
        + _table(data)
        + cares_html(cares(data, held_back(replayed), {"query": replayed.query, **asked}, sum(replayed.tasks.values())))
    )


def held_back(replayed: Replayed) -> dict[str, Advice]:
    """Say that the state's partitions hold every policy below the peak, with what to do; empty where they do not."""
    if not replayed.held:
        return {}
    partitions = units.some(replayed.partitions or 0, "partition")
    reason = f"The state has {partitions}, fixed by its checkpoint, so more slots carry no more and no policy adds any."
    peak = units.rate(replayed.trace.peak_per_s)
    return {reason: Advice(f"Plan for the peak of {peak}, then replay that plan.")}


def cares(
    data: Policies, held: Mapping[str, Advice] = _NOTHING, asked: Mapping[str, object] = UNKNOWN, slots: int = 1
) -> dict[str, Advice]:
    """Give what to mind, with what to do.

    Parameters
    ----------
    data
        The policies that are compared.
    held
        What holds all of them back, with what to do. It comes first, and then more slots are not advised.
    asked
        Parameters of the report that are not its own, which the commands of advice repeat.
    slots
        Slots at the beginning.
    """
    reasons = dict(held)
    rows = dict(zip(data.names, data.rows, strict=True))
    if data.leading is not None and data.best is None and not held:
        kept = units.share(rows[data.leading]["at_target"])
        reasons[f"No policy keeps up all the time; {data.leading} does {kept} of it."] = _keep_up(data, asked, slots)
    dearest = math.inf if data.leading is None else rows[data.leading][data.money]
    falling = [name for name, row in rows.items() if row["at_target"] < _MOSTLY and row[data.money] < dearest]
    if falling:
        verb = "falls" if len(falling) == 1 else "fall"
        listed = " and ".join(", ".join(falling).rsplit(", ", 1))
        reasons[f"{listed} {verb} behind more than 5 % of the time."] = Advice(
            "See what each does, below, before you choose it for its price."
        )
    if not data.price_unit:
        priced = {"prices": str(_PRICES), "instance": "c6i.xlarge"}
        reasons["No worker is priced, so cost is in core-hours."] = Advice(
            "Choose a type from a price list. Run", again(asked, **(priced | _own_prices(asked)))
        )
    reasons["The load was replayed in a simulation; nothing was measured on a cluster."] = Advice(
        "Try the policy on the real job before you rely on it."
    )
    return reasons


def _own_prices(asked: Mapping[str, object]) -> dict[str, object]:
    """Keep a price list of the user's, whose types we do not know; empty without one."""
    return {"prices": asked["prices"], "instance": "TYPE"} if "prices" in asked else {}


def _keep_up(data: Policies, asked: Mapping[str, object], slots: int) -> Advice:
    """Say what helps: more slots at the beginning stay only with static, the others soon have as many as they want."""
    if "static" in data.names:
        if str(asked.get("query", "")).endswith(".json"):
            return Advice("Plan for a higher rate, then replay that plan; or compare other policies.")
        return Advice("Begin with more slots, or compare other policies. Run", again(asked, slots=2 * slots))
    static = Advice("Compare with static, which keeps all slots. Run", again(asked, policies=[*data.names, "static"]))
    if all(name in _AS_IT_IS or ":" in name for name in data.names):
        return static
    settings = asked.get("settings", {})
    slowed = {**settings, **_SLOWLY} if isinstance(settings, Mapping) else _SLOWLY
    return replace(static, otherwise=Advice("Or slow the scale-down. Run", again(asked, settings=slowed)))


def _table(data: Policies) -> str:
    rows = dict(zip(data.names, data.rows, strict=True))
    unit = data.price_unit or "Core-hours"
    columns = ("Policy", "Keeps up", f"{unit}, driver included", "Latency, median", "Latency, 99 %", "Changes")
    shown = [
        (
            f"{name}\N{NO-BREAK SPACE}◀\N{NO-BREAK SPACE}best" if name == data.best else name,
            _kept(rows[name]["at_target"]),
            units.number(rows[name][data.money]),
            units.seconds(rows[name]["latency_p50_s"]),
            units.seconds(rows[name]["latency_p99_s"]),
            units.count(rows[name]["reconfigurations"]),
        )
        for name in data.names
    ]
    return table_html(columns, shown, chosen=0 if data.best is not None else None)


def _kept(share: float) -> Chip:
    style = "safe" if share >= KEEPS_UP else "risky" if share >= _MOSTLY else "unsure"
    return Chip(units.share(round(share, 3)), style)
