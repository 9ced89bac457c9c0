"""Options of ``workbench speed``."""

import argparse

from workbench.cli.options.numbers import number


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the parser."""
    speed = commands.add_parser(
        "speed",
        epilog="example: workbench speed --json",
        description="Time two fixed pieces of work, arithmetic within the first cache and reads at random places of "
        "the memory, and say how fast this machine's cores are, compared with the reference machine's: that of the "
        "plans that ship with the workbench. It needs neither Java nor Spark.",
    )
    speed.add_argument("--seconds", type=number, default=20.0, help="how long to time (%(default)g)")
    speed.add_argument("--json", action="store_true", help="print JSON, times in seconds")
