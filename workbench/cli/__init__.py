"""The command line: one module per group of commands, each adding its own to the parser.

Exit codes: 0 done (verify: sustained), 1 not sustained, no plan or a partial report, 2 bad input or an
unfit machine, 3 the source was the limit, 70 a defect of the workbench, 130 interrupted.
Progress goes to standard error, and only to a terminal; results go to standard output.
"""

import argparse
import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import FrameType, MappingProxyType

from workbench import __version__
from workbench.cli import checking, clusters, keys, measuring, placing, planning, reporting, scaling
from workbench.cli.console import BAD_INPUT, DEFECT, DONE, INTERRUPTED
from workbench.errors import WorkbenchError

_OPTIONS: Mapping[str, str] = MappingProxyType({"interval_s": "interval"})
"""Options that have another name than their setting."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, _interrupt)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup stays in force
        signal.signal(signal.SIGHUP, _interrupt)
    command: Callable[[argparse.Namespace], int] = options.command
    try:
        return command(options)
    except WorkbenchError as error:
        print(f"workbench: {error.spelled(partial(_spelled, options))}", file=sys.stderr)
        return BAD_INPUT
    except BrokenPipeError:  # the reader of a pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except KeyboardInterrupt:
        kept = f"; {options.kept}" if "kept" in options else ""
        print(f"workbench: {options.asked} was interrupted{kept}.", file=sys.stderr)
        return INTERRUPTED
    except Exception:  # noqa: BLE001 - a defect must not look like "not sustained" to a script
        traceback.print_exc()
        print("workbench: this is a defect of the workbench; please report it.", file=sys.stderr)
        return DEFECT


def _spelled(options: argparse.Namespace, setting: str) -> str:
    """Spell a setting as the option of the command, if it has one, and as the key of a study otherwise."""
    name = _OPTIONS.get(setting, setting)
    return f"--{name.replace('_', '-')}" if hasattr(options, name) else setting


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="workbench",
        description="How many slots of which memory does my streaming query need? Measure it, model it, plan it.",
        epilog="Exit codes: 0 done (verify: sustained), 1 not sustained, no plan or a partial report, 2 bad input or "
        "an unfit machine, 3 source-bound, 70 a defect, 130 interrupted.",
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="asked")
    for group in (checking, measuring, planning, clusters, keys, placing, scaling, reporting):
        group.add(commands)
    return parser
