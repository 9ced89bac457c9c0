"""Options of ``workbench keys``."""

import argparse

from workbench.cli.options.numbers import rate, whole


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the parser."""
    keys = commands.add_parser(
        "keys",
        epilog="example: workbench keys data/orders.csv shop",
        description="Count the keys of a column: the hottest of them, how unevenly they fill shuffle partitions, and "
        "how many tasks are of use. Files of at most 1 GiB take about a second; Spark counts what is larger, nested or "
        "has more than a million keys.",
    )
    keys.add_argument("data", metavar="DATA", help="Parquet, CSV or JSON: a file or a folder; or a study")
    keys.add_argument("column", metavar="COLUMN", help="the key")
    keys.add_argument(
        "--method", default="auto", choices=("auto", "exact", "sketch"), help="how to count (%(default)s)"
    )
    keys.add_argument("--tracked", type=whole, default=10_000, help="items of the sketch (%(default)s)")
    keys.add_argument("--top", type=whole, default=1000, help="keys listed by --json (%(default)s)")
    keys.add_argument(
        "--partitions",
        type=whole,
        nargs="+",
        default=[8, 32, 200],
        metavar="N",
        help="shuffle partitions to spread over",
    )
    keys.add_argument(
        "--plan",
        metavar="FILE",
        help="a study that was planned, its plans, or a measurement of the query: what the hottest key takes in it",
    )
    keys.add_argument("--rate", type=rate, metavar="R", help="records/s to say that for (the plan's)")
    keys.add_argument("--json", action="store_true", help="print JSON")
