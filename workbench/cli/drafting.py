"""``workbench init``: a first study for your query and your data."""

import argparse
import shlex
from pathlib import Path

from workbench import units
from workbench.cli.console import DONE, check_file, show
from workbench.errors import WorkbenchError
from workbench.records import write_whole
from workbench.study import draft


def run_init(options: argparse.Namespace) -> int:
    """Write the first study."""
    check_file(options.output)
    if Path(options.output).exists():
        raise WorkbenchError(f"{options.output} exists already; name another --output, or remove it.")
    made = draft(options.query, options.data, options.event_time)
    write_whole(options.output, made.text)
    show(f"{options.output} is written for {made.query}.")
    none = "none was found; name it with --event-time if the query has a watermark"
    for one in made.found:
        of = f"{one.name}: " if one.name else ""
        show(f"{of}event time: {none if one.event_time is None else f'column {one.event_time!r}'}")
        if one.keys:
            show(f"{of}state or join: by {', '.join(map(repr, one.keys))}")
        if one.renew:
            show(f"{of}unique: {', '.join(map(repr, one.renew))}, so other values in each pass over the data")
        for column, share in one.hot.items():
            show(f"{of}column {column!r} has {units.percent(share)} of its rows with one value")
    if made.tables:
        show(f"static tables, read by the function itself: {', '.join(made.tables)}")
    show(f"Next: put your rates into it, then run: workbench plan {shlex.quote(options.output)} --dry-run")
    return DONE
