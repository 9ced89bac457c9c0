"""Options of ``workbench init``."""

import argparse


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the parser."""
    drafted = commands.add_parser(
        "init",
        description="Write a study for your query and your data: the event time found, keys looked at, budgets that "
        "fit this machine. You add your rates. A script runs with its streams recorded instead of carried out; each "
        "streaming query that it starts gets a study, and each flow of a project of Declarative Pipelines.",
        epilog="For example: workbench init jobs.py:orders data/orders.csv, or workbench init job.py orders=orders.csv",
    )
    drafted.add_argument(
        "query",
        metavar="QUERY",
        help="jobs.py:function, or nexmark:q5 with data of your own; or a script, job.py, or 'job.py ARGUMENT ...'; or "
        "a project, spark-pipeline.yml",
    )
    drafted.add_argument(
        "data",
        metavar="DATA",
        nargs="*",
        help="Parquet, CSV or JSON, a file or a folder: one for each streaming DataFrame that the function takes; of a "
        "script, a sample of each source, SOURCE=FILE or in order",
    )
    drafted.add_argument(
        "--event-time",
        metavar="COLUMN",
        action="append",
        default=[],
        help="the event-time column (found by its type and name); of several data sets, once for each",
    )
    drafted.add_argument(
        "--sink",
        metavar="SINK",
        help="where the job writes: noop, parquet PLACE, delta PLACE, iceberg PLACE, kafka://HOST:PORT/TOPIC, or "
        "module:function for foreachBatch, with a place or without (a script's own, else noop)",
    )
    drafted.add_argument(
        "--checkpoint", metavar="PLACE", help="a folder or URI for checkpoints (next to a script's own, else in memory)"
    )
    drafted.add_argument("--output", metavar="FILE", default="study.yaml", help="the study (%(default)s)")
