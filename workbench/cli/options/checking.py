"""Options of ``workbench doctor``."""

import argparse

from workbench import defaults
from workbench.cli.console import JOURNAL
from workbench.cli.options.masters import add_master
from workbench.cli.options.numbers import whole


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the parser."""
    doctor = commands.add_parser(
        "doctor",
        epilog="example: workbench doctor --bundle workbench-defect.zip",
        description="Check whether this machine can measure, draw and report, and show how to fix what is missing; of "
        "a cluster (--master), also whether it gives executors on which a query can be measured. The exit code is 2 "
        "if something is lacking that measuring needs. With --bundle, list what a maintainer needs to repeat a "
        "failure, without data and secrets; with --yes, write it too.",
    )
    doctor.add_argument(
        "--bundle", metavar="FILE", help="list what goes into FILE.zip; nothing is written without --yes"
    )
    doctor.add_argument("--yes", action="store_true", help="write the bundle")
    doctor.add_argument("--study", metavar="FILE", help="the study that failed (the last failure's)")
    doctor.add_argument("--journal", default=JOURNAL, metavar="FILE", help="the journal that failed (%(default)s)")
    doctor.add_argument("--json", action="store_true", help="print JSON")
    doctor.add_argument("--slots", type=whole, default=1, help="slots that a cluster is asked for (1)")
    doctor.add_argument(
        "--memory-mb", type=whole, default=defaults.MEMORY_MB, help="memory of each of these slots, MB (1024)"
    )
    add_master(doctor)
