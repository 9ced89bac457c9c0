"""Options of ``workbench measure`` and ``workbench verify``."""

import argparse

from workbench import defaults
from workbench.cli.console import JOURNAL, KEPT
from workbench.cli.options.masters import add_master
from workbench.cli.options.numbers import number, rate, whole


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the commands to the parser."""
    own = "nexmark:q5, module:function of your own, or a study, for its query and data"
    deployed = _deployment_options(own)
    measured = commands.add_parser(
        "measure",
        parents=[deployed],
        epilog="example: workbench measure nexmark:q5 --slots 2 --report q5.html",
        description="Deploy a query on this machine or a cluster and try rates until the highest that it sustains is "
        "bracketed. Every probe is recorded in the journal: a measurement that was interrupted goes on from its last.",
    )
    measured.add_argument(
        "--tolerance", type=number, help="relative width of the bracket (0.04; StreamBed's schedules: 0.01)"
    )
    measured.add_argument(
        "--schedule",
        choices=["adaptive", "streambed", "streambed-stateful"],
        default="adaptive",
        help="how rates are tried: adaptive, or StreamBed's published times for simple or stateful queries",
    )
    measured.add_argument(
        "--minutes",
        type=number,
        help="no further rate is tried after these, if one is sustained (the time of 7 undisturbed probes)",
    )
    measured.add_argument("--max-rate", type=rate, metavar="R", help="highest rate to try, records/s")
    measured.add_argument(
        "--no-costs", dest="costs", action="store_false", help="leave out the runs for fixed and per-record costs"
    )
    measured.add_argument("--journal", default=JOURNAL, help="where every probe is recorded (%(default)s)")
    measured.add_argument("--output", metavar="FILE", help="the measurement as JSON (.workbench/QUERY.json)")
    measured.add_argument("--report", metavar="FILE", help="also write one offline HTML file")
    measured.set_defaults(kept=KEPT)

    verified = commands.add_parser(
        "verify",
        parents=[_deployment_options(f"{own}, or a plan file such as .workbench/q5-plan.json")],
        epilog="example: workbench verify .workbench/q5-plan.json",
        description="Deploy a query on this machine or a cluster and run it at a rate, or at shares of it. The exit "
        "code says whether the lowest was sustained. Of a file that workbench plan wrote, the deployment of a target "
        "is run as planned: at its rate, which must be sustained, and just above its interval, which must not.",
    )
    verified.add_argument("--rate", type=rate, help="records/s; of a plan, the target (the highest that fits)")
    verified.add_argument(
        "--percent",
        type=number,
        nargs="+",
        default=[100, 120, 150],
        help="percentages of the rate to run at (100 120 150)",
    )


def _deployment_options(query: str) -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(add_help=False)
    options.add_argument("query", metavar="QUERY", help=query)
    options.add_argument("--slots", type=whole, help="tasks that run at once (2; whole cores: all but one)")
    options.add_argument("--slot-cpus", type=number, metavar="CORES", help="cores of one slot (0.4; without quotas 1)")
    options.add_argument("--memory-mb", type=whole, default=defaults.MEMORY_MB, help="memory of one slot, MB (1024)")
    options.add_argument("--interval", type=number, default=defaults.INTERVAL_S, help="trigger interval, seconds (2)")
    options.add_argument(
        "--dataset",
        metavar="PATH",
        help="Parquet, CSV or JSON file or folder that feeds the query, or kafka://HOST:PORT/TOPIC",
    )
    options.add_argument("--event-time", metavar="COLUMN", help="its event-time column, replaced on replay")
    options.add_argument(
        "--source",
        choices=["replay", "kafka"],
        default="replay",
        help="how the query gets its rows: replayed, or by Spark's Kafka source from the topic that --dataset names",
    )
    options.add_argument("--output-mode", choices=["append", "update", "complete"], help="Spark's output mode")
    options.add_argument("--json", action="store_true", help="print JSON")
    add_master(options)
    return options
