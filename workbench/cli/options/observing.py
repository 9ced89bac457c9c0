"""Options of ``workbench observe``."""

import argparse

from workbench.cli.options.numbers import number, port, rate, whole


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the parser."""
    observe = commands.add_parser(
        "observe",
        description="Read the log of a running query, and say what it sustains, what limits it, what it has left at "
        "its peak, what an outage costs, and how it changes. Nothing is started and nothing is measured. With "
        "--target, it is also planned for other rates.",
        epilog="example: workbench observe eventlog_v2_app-20260131 --target 500000 --report head-room.html",
    )
    observe.add_argument(
        "log",
        metavar="LOG",
        help="event log, log of the driver, or progress events as JSON: a file or a folder; zstd, lz4, snappy, gz",
    )
    observe.add_argument("--query", metavar="NAME", help="name or id of the query, if the log has several")
    observe.add_argument("--progress", metavar="FILE", help="progress events, if an event log has none")
    observe.add_argument(
        "--interval", type=number, metavar="S", help="trigger interval in seconds (default: read from the log)"
    )
    observe.add_argument(
        "--slots", type=whole, metavar="N", help="tasks that can run at once, which progress events do not show"
    )
    observe.add_argument(
        "--slot-cpus", type=number, metavar="C", help="cores of a slot (default: as the cluster counts them)"
    )
    observe.add_argument("--target", type=rate, nargs="+", default=[], metavar="R", help="rates to plan for, records/s")
    observe.add_argument("--rows", type=rate, metavar="N", help="rows of a run that takes what there is and ends")
    observe.add_argument("--deadline", type=number, metavar="S", help="seconds from its start in which it must be done")
    observe.add_argument(
        "--start", type=number, metavar="S", help="seconds until its first batch (default: as the log shows, or 60)"
    )
    observe.add_argument("--prices", metavar="FILE", help="CSV file of worker types, for plans with costs")
    observe.add_argument("--risk", type=number, metavar="P", help="probability of falling short that plans may have")
    observe.add_argument(
        "--outage", type=number, default=10.0, metavar="MIN", help="outage in minutes to catch up after (%(default)g)"
    )
    observe.add_argument(
        "--measured", metavar="PLANS", help="compare with the plans of a study that was measured (workbench plan)"
    )
    observe.add_argument("--output", metavar="FILE", help="where to write the plans (default: in .workbench)")
    observe.add_argument("--report", metavar="FILE", help="write an HTML report")
    observe.add_argument("--json", action="store_true", help="print JSON")
    observe.add_argument(
        "--watch",
        action="store_true",
        help="follow the log as it is written, and serve what it shows for Prometheus on 127.0.0.1",
    )
    observe.add_argument(
        "--port", type=port, default=9464, metavar="N", help="of --watch; 0: any that is free (%(default)s)"
    )
