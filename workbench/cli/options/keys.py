"""Options of ``workbench keys``."""

import argparse

from workbench.cli.options.numbers import number, whole


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the parser."""
    keys = commands.add_parser(
        "keys",
        epilog="example: workbench keys data/orders.csv shop",
        description="Count the keys of a column with Spark: the hottest of them, how unevenly they fill shuffle "
        "partitions, how many tasks are of use, and how many elastic executors and shards to have.",
    )
    keys.add_argument("data", metavar="DATA", help="Parquet, CSV or JSON: a file or a folder")
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
    keys.add_argument("--nodes", type=whole, default=1, help="nodes of the cluster, for the advice (%(default)s)")
    keys.add_argument("--node-cores", type=whole, default=8, help="cores of each (%(default)s)")
    keys.add_argument("--bytes-per-core", type=number, default=0.0, help="bytes/s in and out of a core (%(default)s)")
    keys.add_argument("--shuffles", type=number, default=0.0, help="abrupt changes of the keys a minute (%(default)s)")
    keys.add_argument("--json", action="store_true", help="print JSON")
