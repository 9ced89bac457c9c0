"""Faults at chosen moments of a command: it runs in a child of this process, and a moment is a Python call in it."""

import os
import signal
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path

from simulated_study import SIMULATED

from workbench import cli
from workbench.cli import planning  # noqa: F401 - loaded once, and not again in each child
from workbench.study import read_planned

STUDY = f"{SIMULATED.replace('20000000', '9000000')}most_runs: 3\nform: linear\n"
PLAN = ("plan", "study.yaml", "--journal", "kept/journal.jsonl", "--output", "kept/plan.json")


@dataclass(frozen=True)
class Ended:
    """How a child ended: its exit code, or the negative number of the signal; what it printed; calls that it made."""

    code: int
    said: str
    calls: int


def command(*arguments, moments=None, files=""):
    """Run ``workbench ARGUMENTS`` in a child; `moments` maps numbers of its calls to the signal that it gets there.

    Calls are counted in the code of the workbench, where `moments` are given: it takes as long again. `files` begins
    the paths of the files that this uses itself.
    """
    output, counted = Path(f"{files}output.txt"), Path(f"{files}calls.txt")
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        _run(arguments, moments, output, counted)
    _, status = os.waitpid(child, 0)
    calls = int(counted.read_text()) if counted.exists() else 0
    counted.unlink(missing_ok=True)
    said = output.read_text()
    output.unlink()
    return Ended(os.waitstatus_to_exitcode(status), said, calls)


def _run(arguments, moments, output, counted):
    code = 99
    try:
        handle = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False, buffering=1)
        for one, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL)):
            signal.signal(one, handler)
        calls = 0
        part = f"{os.sep}workbench{os.sep}"

        def trace(frame, event, _):
            nonlocal calls
            if event == "call" and part in frame.f_code.co_filename:
                calls += 1
                if calls in moments:
                    os.kill(os.getpid(), moments[calls])

        if moments is not None:
            sys.settrace(trace)
        sys.argv = ["workbench", *arguments]
        code = cli.main()
        sys.settrace(None)
        counted.write_text(str(calls))
    except SystemExit as end:
        code = end.code
    except BaseException:  # noqa: BLE001 - printed, and seen by the exit code
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def planned(path="kept/plan.json"):
    """What the command planned: budgets, capacities and tasks, without times."""
    return [
        (one.budget, one.expected_rate, one.low, one.high, dict(one.allocation.tasks))
        for one in read_planned(Path(path)).plans
    ]


def left_behind(folder):
    """Files that are neither the study nor what the command writes."""
    known = {"study.yaml", "kept/journal.jsonl", "kept/plan.json"}
    return sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and str(path.relative_to(folder)) not in known
    )
