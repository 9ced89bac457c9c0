"""``workbench init``: a first study for your query and your data."""

import argparse
from pathlib import Path

from workbench.cli.console import DONE, check_file
from workbench.errors import WorkbenchError
from workbench.records import write_whole
from workbench.study import draft


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the parser."""
    drafted = commands.add_parser(
        "init",
        description="Write a study for your query and your data: the event time found, keys looked at, budgets that "
        "fit this machine. You add your rates.",
        epilog="For example: workbench init jobs.py:orders data/orders.csv",
    )
    drafted.add_argument("query", metavar="QUERY", help="jobs.py:function, or nexmark:q5 with data of your own")
    drafted.add_argument("data", metavar="DATA", help="Parquet, CSV or JSON: a file or a folder")
    drafted.add_argument("--event-time", metavar="COLUMN", help="the event-time column (found by its type and name)")
    drafted.add_argument("--output", metavar="FILE", default="study.yaml", help="the study (%(default)s)")
    drafted.set_defaults(command=_init)


def _init(options: argparse.Namespace) -> int:
    check_file(options.output)
    if Path(options.output).exists():
        raise WorkbenchError(f"{options.output} exists already; name another --output, or remove it.")
    made = draft(options.query, options.data, options.event_time)
    write_whole(options.output, made.text)
    print(f"{options.output} is written for {made.query}.")
    print(f"event time: {made.event_time or 'none was found; name it with --event-time if the query has a watermark'}")
    for column, share in made.hot.items():
        print(f"column {column}: one value has {share:.0%} of the rows")
    print(f"Next: put your rates into it, then run: workbench plan {options.output} --dry-run")
    return DONE
