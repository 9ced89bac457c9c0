"""The command line: one module per group of commands; their options are in `options`.

A command's work is loaded when it is carried out, so that help, which lists the exit codes, comes at once. Progress
goes to standard error: to a terminal in one line, elsewhere line by line; results go to standard output.
"""

import argparse
import errno
import os
import shlex
import signal
import sys
import threading
import time
import traceback
from _thread import interrupt_main
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import NoReturn

from workbench import __version__
from workbench.cli import console
from workbench.cli.options import add, flag
from workbench.errors import NoCapacityError, WorkbenchError, shortened
from workbench.escaping import for_terminal

_GROUPS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "measure": {
        "doctor": ("checking", "what this machine supports, and how to fix what is missing"),
        "speed": ("speed", "how fast this machine's cores are, compared with a reference machine's"),
        "measure": ("measuring", "the maximum sustainable throughput of a query on a budget"),
        "verify": ("measuring", "run a query at a rate: sustained or not"),
        "keys": ("keys", "how often each key of your data occurs, its skew, and the advice"),
        "observe": ("observing", "what a running query sustains, from its event log"),
        "capture": ("topics", "a sample of a Kafka topic as a data set"),
        "fill": ("topics", "a Kafka topic filled from a data set or from Nexmark"),
        "journal": ("journals", "what was measured: list, show, compare and prune it"),
    },
    "plan": {
        "init": ("drafting", "a first study for your query and your data"),
        "plan": ("planning", "how many slots, with how much memory, for which rate: measure, model, plan"),
        "cluster": ("clusters", "several plans at their own rates on one priced cluster"),
    },
    "place and scale": {
        "place": ("placing", "which task on which worker, and how much throughput depends on the placement"),
        "replay": ("replaying", "what autoscaling policies would do on a load that changes, simulated"),
    },
    "report": {"report": ("reporting", "a report as one HTML file that opens offline")},
}
"""The commands by purpose: each with its module, and what it answers."""
_MODULES: Mapping[str, str] = {name: module for group in _GROUPS.values() for name, (module, _) in group.items()}

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_SOON_S = 0.01  # after which a signal that Python dropped comes again
_GRACE_S = 5.0  # of a command after a signal; a second signal then adds nothing

_EXAMPLES = """examples:
  workbench measure nexmark:q5                        five to nine minutes on this machine
  workbench plan data/q5.yaml --report q5.html        what to deploy for three rates
  workbench place .workbench/data-q5-plan.json        where its tasks go
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; as a program, which reads its own arguments, handle signals."""
    asked = list(sys.argv[1:] if arguments is None else arguments)
    options = argparse.Namespace(asked="the command")
    try:
        if arguments is None:
            _prepare()
        options = _parser().parse_args(asked)
        return _carry_out(options, asked)
    except KeyboardInterrupt:
        if arguments is None:
            for one in _ENDING:  # a further signal adds nothing
                signal.signal(one, signal.SIG_IGN)
        kept = f"; {options.kept}" if "kept" in options else ""
        console.print_error(f"{options.asked} was interrupted{kept}.")
        return console.INTERRUPTED


def _carry_out(options: argparse.Namespace, asked: Sequence[str]) -> int:
    try:
        module = import_module(f"workbench.cli.{_MODULES[options.asked]}")
        code: int = getattr(module, f"run_{options.asked}")(options)
        if sys.stdout is not None:  # a query's module may have removed it
            sys.stdout.flush()
    except WorkbenchError as error:
        if hasattr(error, "__notes__"):  # a deployment failed: its logs are in the notes
            _kept_for_report(error, options, asked)
        # as options of the command, and otherwise as keys of a study; those of a report are its parameters
        known: Mapping[str, object] = {} if options.asked == "report" else vars(options)
        console.print_error(error.spelled(lambda setting: flag(setting) if setting in known else setting))
        return console.NOT_SUSTAINED if isinstance(error, NoCapacityError) else console.BAD_INPUT
    except BrokenPipeError:  # the reader of the pipe has closed it
        console.finish(sys.stdout)
        console.finish(sys.stderr)
        return console.PIPE_CLOSED
    except Exception as error:  # noqa: BLE001 - a defect must not look like "not sustained" to a script
        if isinstance(error, OSError) and error.errno in _FULL:
            console.finish(sys.stdout)
            where = "the answer or temporary files" if error.filename is None else repr(error.filename)
            console.print_error(f"there is no room for {where}: {error.strerror}. Make room, or choose another place.")
            return console.BAD_INPUT
        console.print_status(traceback.format_exc().rstrip())
        console.print_error(f"this is a defect of the workbench. {_kept_for_report(error, options, asked)}")
        return console.DEFECT
    return code


def _kept_for_report(error: Exception, options: argparse.Namespace, asked: Sequence[str]) -> str:
    """Record a failure next to the journal, and return how to report it."""
    from workbench.bundle import record_failure  # noqa: PLC0415 - only when something failed

    journal = getattr(options, "journal", console.JOURNAL)
    recorded = record_failure(error, ["workbench", *asked], Path(journal).parent)
    kept = "" if recorded is None else f"It is recorded in {recorded}. "
    again = "workbench doctor --bundle workbench-defect.zip"
    again += "" if journal == console.JOURNAL else f" --journal {shlex.quote(journal)}"
    return f"{kept}To report it, make a file of what repeats it, without data or secrets, with: {again}"


def _prepare() -> None:
    """Get the program ready: open its streams, and let Ctrl-C, SIGTERM and SIGHUP end it.

    What is ignored, as with nohup, stays ignored. A second signal while the first still ends what is running is passed
    over, so that nothing is left half undone. A signal that arrives where Python drops exceptions, as where a generator
    is deleted, comes again at once.
    """
    console.open_streams()
    if not os.environ.get("COLUMNS", "0").strip("0"):  # nothing fits into no columns
        os.environ.pop("COLUMNS", None)
    last_s, came = -_GRACE_S, signal.SIGINT.value

    def interrupt(number: int, _frame: FrameType | None) -> None:
        nonlocal last_s, came
        if time.monotonic() - last_s >= _GRACE_S:
            last_s, came = time.monotonic(), number
            raise KeyboardInterrupt

    def dropped(what: "sys.UnraisableHookArgs") -> None:
        nonlocal last_s
        if not issubclass(what.exc_type, KeyboardInterrupt):
            sys.__unraisablehook__(what)
            return
        last_s = -_GRACE_S
        threading.Timer(_SOON_S, interrupt_main, (came,)).start()

    sys.unraisablehook = dropped
    for one in _ENDING:
        if signal.getsignal(one) is not signal.SIG_IGN:
            signal.signal(one, interrupt)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        super().error(for_terminal(shortened(message)))


def _parser() -> argparse.ArgumentParser:
    listed: list[str] = []
    for group, answers in _GROUPS.items():
        listed += [f"{group}:", *(f"  {name:9} {answer}" for name, (_, answer) in answers.items())]
    parser = _Parser(
        prog="workbench",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="How many slots, with how much memory, does my streaming query need? Measure it, model it, plan "
        "it.\n\n" + "\n".join(listed),
        epilog=f"{_EXAMPLES}\nExit codes: 0 done (verify: sustained), 1 not sustained, no plan or a partial report, "
        "2 bad input or\nan unsuitable machine, 3 source-bound, 70 a defect, 130 interrupted, 141 the reader of a pipe "
        "left early.",
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(
        required=True,
        metavar="COMMAND",
        dest="asked",
        help="one of the commands above; workbench COMMAND --help lists its options",
    )
    for name in _MODULES:
        add(commands, name)
    return parser
