"""Options of ``workbench cluster``."""

import argparse


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the parser."""
    clusters = commands.add_parser(
        "cluster",
        description="Find the cheapest workers of one type that hold the executors and drivers of several plans.",
        epilog="For example: workbench cluster .workbench/data-q5-plan.json@60000 .workbench/q8-plan.json --prices "
        "data/instances.csv",
    )
    clusters.add_argument(
        "plans",
        metavar="PLANS[@RATE]",
        nargs="+",
        help="what workbench plan wrote, and the target meant (records/s); default: the highest",
    )
    clusters.add_argument("--prices", metavar="FILE", help="CSV file of instance types; default: the first study's")
    clusters.add_argument("--json", action="store_true", help="print JSON")
