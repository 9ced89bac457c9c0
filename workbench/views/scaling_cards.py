"""The cards of a replay: policies compared, and what each did over time."""

from workbench.study import Replayed
from workbench.views import units
from workbench.views.cards import Card, Column, Table, gather
from workbench.views.figures.policies import draw_policies, policies
from workbench.views.figures.timeline import POINTS, draw_timeline, timeline

_DECIMALS = 6  # a microsecond is below what a simulation tells
_ALL_POINTS = 3 * POINTS  # of all timelines of a page together: it is to stay small enough to send round


def cards(replayed: Replayed) -> list[Card]:
    """Make all cards; one that cannot be made becomes an error card and never hides the others."""
    return gather((_compared, _timelines, _load), replayed)


def _compared(replayed: Replayed) -> list[Card]:
    data = policies(replayed.timelines)
    columns = (
        Column("Policy"),
        Column("Time at target", "%"),
        Column("Latency, mean", "s"),
        Column("Latency, median", "s"),
        Column("Latency, p99", "s"),
        Column("Cores", "core-hours"),
        Column("Memory", "GB-hours"),
        Column("Reconfigurations"),
        Column("State moved", "bytes"),
    )
    rows = tuple(
        (
            name,
            100 * row["at_target"],
            round(row["latency_mean_s"], _DECIMALS),
            round(row["latency_p50_s"], _DECIMALS),
            round(row["latency_p99_s"], _DECIMALS),
            row["core_hours"],
            row["gb_hours"],
            row["reconfigurations"],
            row["moved_bytes"],
        )
        for name, row in zip(data.names, data.rows, strict=True)
    )
    table = Table("Policies on the same load", columns, rows, opened=True)
    return [
        Card("policies", "Which policy keeps up, and at what cost?", f"{data.finding}.", draw_policies(data), table)
    ]


def _timelines(replayed: Replayed) -> list[Card]:
    made = []
    for name, line in replayed.timelines.items():
        data = timeline(line, name, points=min(POINTS, _ALL_POINTS // len(replayed.timelines)))
        columns = (Column("At", "s"), Column("Downtime", "s"), Column("State moved", "bytes"), Column("Tasks after it"))
        rows = tuple(
            (change.at_s, change.downtime_s, change.moved_bytes, ", ".join(f"{n} {c}" for n, c in change.tasks.items()))
            for change in line.reconfigurations
        )
        table = Table(f"Reconfigurations by {name}", columns, rows) if rows else None
        made.append(Card(f"timeline-{name}", f"What does {name} do?", f"{data.finding}.", draw_timeline(data), table))
    return made


def _load(replayed: Replayed) -> list[Card]:
    trace = replayed.trace
    finding = (
        f"The load has {units.rate(trace.mean_per_s)} in the mean and {units.rate(trace.peak_per_s)} at its peak over "
        f"{units.seconds(trace.duration_s)}. {replayed.query} was simulated, beginning with "
        f"{sum(replayed.tasks.values())} slots; nothing here was measured on a cluster."
    )
    rows = tuple(replayed.tasks.items())
    table = Table("Tasks at the beginning", (Column("Operator"), Column("Tasks")), rows, opened=True)
    return [Card("load", "What was replayed?", finding, table=table)]
