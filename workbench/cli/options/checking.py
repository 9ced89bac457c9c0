"""Options of ``workbench doctor``."""

import argparse


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the parser."""
    doctor = commands.add_parser(
        "doctor",
        description="Check whether this machine can measure, draw and report, and show how to fix what is missing; the "
        "exit code is 2 if something is lacking that measuring needs.",
    )
    doctor.add_argument("--json", action="store_true", help="print JSON")
