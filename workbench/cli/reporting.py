"""``workbench report``: a result as one offline HTML file."""

import argparse
import sys
from pathlib import Path

from workbench.capacity import Measurement
from workbench.cli.console import DONE, NOT_SUSTAINED
from workbench.report import render


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the parser."""
    reported = commands.add_parser("report", help="make the HTML report of a measurement again")
    reported.add_argument("measurement", help="JSON file of a measurement")
    reported.add_argument("output", help="the HTML file to write")
    reported.set_defaults(command=_report)


def _report(options: argparse.Namespace) -> int:
    Measurement.from_json(options.measurement)  # refuses what is no measurement before a report is begun
    report = render("measure", {"measurement": str(Path(options.measurement).resolve())}, options.output)
    print(f"report: {report.path}")
    if not report.complete:
        print(f"workbench: the report is partial: {report.error}", file=sys.stderr)
    return DONE if report.complete else NOT_SUSTAINED
