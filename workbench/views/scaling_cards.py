"""The cards of a replay: policies compared, and the timeline and the reasons of each."""

from collections.abc import Mapping
from functools import partial

from workbench import units
from workbench.study import Replayed
from workbench.views.cards import Card, Column, Table, fold, gather
from workbench.views.figures import POINTS, draw_policies, draw_timeline, policies, timeline
from workbench.views.justin_card import justin_card
from workbench.views.scaling_front import UNKNOWN, front_html

_MIB = 2.0**20
_DECIMALS = 6  # a simulation is less precise than a microsecond
_ALL_POINTS = 3 * POINTS  # of all timelines of a page together, so that the page is small enough to send


def cards(replayed: Replayed, asked: Mapping[str, object] = UNKNOWN) -> list[Card]:
    """Make all cards; a card that cannot be made becomes an error card and does not hide the others.

    Parameters
    ----------
    replayed
        What was replayed.
    asked
        Parameters of the report that are not its own, which the commands of advice repeat.
    """
    answer = gather((partial(_compared, asked=asked),), replayed)
    return [*answer, *map(fold, gather((_timelines, _load), replayed))]


def _compared(replayed: Replayed, asked: Mapping[str, object]) -> list[Card]:
    data = policies(replayed.timelines, replayed.price_unit)
    columns = (
        Column("Policy"),
        Column("Keeps up", "% of time"),
        Column("Latency, mean", "s"),
        Column("Latency, median", "s"),
        Column("Latency, 99 %", "s"),
        Column("Cores, driver included", "core-hours"),
        Column("Memory, driver included", "GB-hours"),
        Column("Changes"),
        Column("State moved", "MiB"),
        *((Column("Cost, driver included", data.price_unit),) if data.price_unit else ()),
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
            row["moved_bytes"] / _MIB,
            *((row["cost"],) if data.price_unit else ()),
        )
        for name, row in zip(data.names, data.rows, strict=True)
    )
    table = Table("Policies on the same load", columns, rows)
    title = f"Which policy keeps up with the load of {replayed.query}, and at what cost?"
    front = front_html(replayed, data, asked)
    return [Card("policies", title, f"{data.finding}.", draw_policies(data), table, html=front)]


def restart_card(restarts: Mapping[float, Replayed]) -> Card:
    """Compare the policies over the time that a restart takes.

    Parameters
    ----------
    restarts
        The same replay by restart time, seconds; see ``study.replay_restarts``.
    """
    columns = (
        Column("Restart", "s"),
        Column("Policy"),
        Column("Keeps up", "% of time"),
        Column("Latency, 99 %", "s"),
        Column("Cores, driver included", "core-hours"),
        Column("Changes"),
        Column("Downtime", "s"),
    )
    summaries = {
        (restart_s, name): line.with_driver()
        for restart_s, replayed in restarts.items()
        for name, line in replayed.timelines.items()
    }
    rows = tuple(
        (
            restart_s,
            name,
            100 * row["at_target"],
            round(row["latency_p99_s"], _DECIMALS),
            row["core_hours"],
            row["reconfigurations"],
            row["downtime_s"],
        )
        for (restart_s, name), row in summaries.items()
    )
    first, last = min(restarts), max(restarts)
    changing = [name for name, line in restarts[last].timelines.items() if line.reconfigurations]
    kept = "; ".join(
        f"{name} keeps up {units.share(summaries[first, name]['at_target'])} of the time with restarts of "
        f"{units.seconds(first)} and {units.share(summaries[last, name]['at_target'])} with {units.seconds(last)}"
        for name in changing
    )
    finding = f"{kept or 'No policy changes anything, so restarts take no time'}."
    return Card("restarts", "What does a longer restart cost?", finding, table=Table("By restart time", columns, rows))


def _timelines(replayed: Replayed) -> list[Card]:
    made = []
    for name in policies(replayed.timelines, replayed.price_unit).names:
        line = replayed.timelines[name]
        data = timeline(line, name, points=min(POINTS, _ALL_POINTS // len(replayed.timelines)))
        columns = (Column("At", "s"), Column("Downtime", "s"), Column("State moved", "MiB"), Column("Tasks after it"))
        rows = tuple(
            (
                change.at_s,
                change.downtime_s,
                change.moved_bytes / _MIB,
                ", ".join(f"{n} {c}" for n, c in change.tasks.items()),
            )
            for change in line.reconfigurations
        )
        table = Table(f"Reconfigurations by {name}", columns, rows) if rows else None
        made.append(Card(f"timeline-{name}", f"What does {name} do?", f"{data.finding}.", draw_timeline(data), table))
        reasons = justin_card(name, line)
        made += [] if reasons is None else [reasons]
    return made


def _load(replayed: Replayed) -> list[Card]:
    trace = replayed.trace
    finding = (
        f"The load has a mean of {units.rate(trace.mean_per_s)} and a peak of {units.rate(trace.peak_per_s)} over "
        f"{units.seconds(trace.duration_s)}. {replayed.query} was simulated, beginning with "
        f"{units.some(sum(replayed.tasks.values()), 'slot')}; nothing was measured on a cluster."
    )
    rows = tuple(replayed.tasks.items())
    table = Table("Tasks at the beginning", (Column("Operator"), Column("Tasks")), rows, opened=True)
    return [Card("load", "What was replayed?", finding, table=table)]
