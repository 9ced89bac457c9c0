"""Options of ``workbench plan``."""

import argparse

from workbench.cli.console import JOURNAL, KEPT
from workbench.cli.options.masters import add_master


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the parser."""
    planned = commands.add_parser(
        "plan",
        epilog="example: workbench plan data/q5.yaml --report q5.html",
        description="Carry a study out: measure a query on small budgets, fit a model of its capacity, and plan the "
        "slots, memory and settings for each target rate. What is recorded in the journal is not measured again.",
    )
    planned.add_argument(
        "study",
        metavar="STUDY",
        help="YAML file: query, targets (at most 1e15/s), slots (at most 100,000), memory_mb and more",
    )
    planned.add_argument("--dry-run", action="store_true", help="say what would be measured and how long it takes")
    planned.add_argument("--json", action="store_true", help="print JSON")
    planned.add_argument("--journal", default=JOURNAL, help="where every run is recorded (%(default)s)")
    planned.add_argument("--output", metavar="FILE", help="the plans as JSON (.workbench/FOLDER-STUDY-plan.json)")
    planned.add_argument("--report", metavar="FILE", help="also write one offline HTML file")
    planned.add_argument(
        "--alerts", metavar="FILE", help="write Prometheus' alerting rules of the plans, on what observe --watch serves"
    )
    add_master(planned)
    planned.set_defaults(kept=KEPT)
