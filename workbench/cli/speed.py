"""``workbench speed``: how fast this machine's cores are, compared with the reference machine's."""

import argparse
from dataclasses import asdict

from workbench.checks import within
from workbench.cli import look
from workbench.cli.console import DONE
from workbench.errors import WorkbenchError
from workbench.speed import REFERENCE, measure_speed, milliseconds, relative_speed

_MOST_S = 3600.0
_REFERENCE = "The reference machine is the one of data/q5.recorded.json."


def run_speed(options: argparse.Namespace) -> int:
    """Time fixed pieces of work, and print their times here and on the reference machine."""
    found = measure_speed(within("--seconds", options.seconds, 0, _MOST_S, "s"))
    relative = relative_speed(found, REFERENCE)
    if relative is None:
        raise WorkbenchError("The clock of this thread's CPU time stands still, so nothing was timed. Try again.")
    if options.json:
        compared = {"core_speed": relative.times, "low": relative.low, "high": relative.high}
        look.document({**asdict(found), "reference": asdict(REFERENCE), **compared})
        return DONE
    look.answer(f"This machine's cores are {relative.words('those of the reference machine')}.")
    table = look.Columns("work", ">here", ">reference", ">times as fast")
    for name, one in found.pieces.items():
        if (there := REFERENCE.pieces.get(name)) is not None:
            table.add_row(name, milliseconds(one), milliseconds(there), f"{there / one:.2f}")
    look.put(table)
    look.line(f"In a price list, core_speed of machines like this one is {relative.times:.2f}. {_REFERENCE}")
    return DONE
