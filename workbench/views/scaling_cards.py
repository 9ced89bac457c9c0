"""The card of a replay over the time that a restart takes."""

from collections.abc import Mapping

from workbench import units
from workbench.study import Replayed
from workbench.views.cards import Card, Column, Table


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
            row["latency_p99_s"],
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
