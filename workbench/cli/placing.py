"""``workbench place``: where the tasks go, where default schedulers would put them, and what that costs."""

import argparse
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import FrameType

from workbench.answers.answer import Answer
from workbench.cli import look
from workbench.cli.console import DONE, check_files
from workbench.cli.options import flag
from workbench.cli.progress import Progress, progress
from workbench.errors import WorkbenchError
from workbench.escaping import csv_text, for_terminal
from workbench.placement import (
    SEARCHED,
    Placed,
    PlacementInput,
    check_methods,
    compare,
    must_compile,
    place,
    placed_together,
    shapes_of,
    stopping_when,
    thresholds_of,
)
from workbench.records import write_whole
from workbench.spelling import spelled, spelled_options
from workbench.study import DRAWS, PROBLEM, resolved, shapes_compared

_NOT_REPEATED = {"help", "inputs", "shapes", "flink", "json"}  # by the commands of advice
_TAKES = "a placement problem, a study, plans or a measurement"


@contextmanager
def _notes() -> Iterator[None]:
    """Print each warning once, as a line for readers."""
    told = set()

    def print_warning(message: Warning | str, category: type[Warning], *_where: object, **_how: object) -> None:
        line = f"workbench: note: {message}"
        if issubclass(category, UserWarning) and line not in told:
            told.add(line)
            print(for_terminal(line), file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = print_warning
        yield


@_notes()
def run_place(options: argparse.Namespace) -> int:
    """Place the tasks, compare methods, or compare worker shapes."""
    _check(options)
    from workbench.answers import placed  # noqa: PLC0415 - it draws, and plotly takes as long as all else

    shapes = shapes_of(options.shapes.split(",")) if options.shapes else ()
    given = placed_together(
        [str(resolved(one, "place", _TAKES, frozenset({PROBLEM}))[1]) for one in options.inputs],
        **{name: getattr(options, name) for name in ("workers", "slots", "rate", "speeds", "cpus", "io", "net")},
        calibrate=options.calibrate,
        shapes=shapes,
    )
    alike = given.alike and not (shapes or options.json or options.flink or options.method)
    made, chosen = (placed.of_batches(given), None) if alike else _placed(given, shapes, options)
    if options.json:
        look.document(made.document())
        for said in (given.chosen and f"The plan is {given.chosen}.", given.basis, given.alike):
            if said and not shapes:
                print(for_terminal(said), file=sys.stderr)
    else:
        look.show(made)
        if alike and options.compare:
            look.line("note: All plans are alike, so they are not compared. --json lists them.")
    if options.flink and chosen is not None:
        sys.stdout.flush()  # the file may be the same
        header = ("operator", "subtask", "worker")
        write_whole(options.flink, csv_text([header, *chosen.problem.subtasks(chosen.counts)]))
    return DONE


def _placed(
    given: PlacementInput, shapes: Sequence[tuple[int, int]], options: argparse.Namespace
) -> tuple[Answer, Placed | None]:
    """Place by one method or by all, or draw placements on `shapes`; also return the plan that --flink writes."""
    from workbench.answers import placed  # noqa: PLC0415

    draws = options.samples or DRAWS
    if shapes:
        with _searching() as say:
            say("drawing placements")
            return placed.shapes(shapes_compared(given, shapes, draws, options.seed)), None
    asked = {
        "thresholds": thresholds_of(options.thresholds),
        "seed": options.seed,
        "timeout_s": options.timeout_s,
        "weights": options.odrp or "default",
    }
    method = options.method or "optimal"
    again = partial(_again, options)
    if not options.compare:
        with _searching(), _until_interrupted(method):
            plan = place(given, method, **asked)
        return placed.answer(plan, given, again), plan
    with _searching() as say:
        found = compare(given, draws=draws, progress=say, **asked)
    if options.flink and method in found.refused:
        raise WorkbenchError(f"--flink has no plan to write: {method}: {found.refused[method]}")
    plans = {row.placed.method: row.placed for row in found.rows}
    return placed.compared(given, found, again), plans.get(method, found.rows[0].placed)


def _again(options: argparse.Namespace, **changes: object) -> str:
    asked = {name: getattr(options, name) for name in options.usual if name not in _NOT_REPEATED} | changes
    words = ["workbench place", *map(spelled, options.inputs)]
    for name, value in asked.items():
        if value is True:
            words.append(flag(name))
        elif value:
            listed = ",".join(f"{one:.12g}" for one in value) if isinstance(value, list | tuple) else value
            words.append(spelled_options({flag(name)[2:]: listed}))
    return " ".join(words)


@contextmanager
def _searching() -> Iterator[Progress]:
    """Show progress, beginning with the compilation of the search if it is needed."""
    with progress() as say:
        if must_compile():
            say("compiling the search, once on this machine: about half a minute")
        yield say


@contextmanager
def _until_interrupted(method: str) -> Iterator[None]:
    """Let Ctrl-C end a search with the best plan found so far; a second one ends the command."""
    if method not in SEARCHED or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a shell
        yield
        return
    asked = threading.Event()

    def stop(_signal: int, _frame: FrameType | None) -> None:
        asked.set()
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, stop)
    try:
        with stopping_when(asked.is_set):
            yield
    finally:
        signal.signal(signal.SIGINT, before)


def _check(options: argparse.Namespace) -> None:
    """Refuse, before anything is read, values out of range and options that would be ignored."""
    check_files((options.flink,), options.inputs)
    check_methods(
        [options.method] if options.method is not None else [],
        seed=options.seed,
        draws=DRAWS if options.samples is None else options.samples,
        timeout_s=options.timeout_s,
        weights=options.odrp or "default",
    )
    if options.shapes:
        others = ("compare", "method", "flink", "thresholds", "odrp", "timeout_s", "speeds")
        said = [flag(name) for name in others if getattr(options, name) not in {None, False}]
        if said:
            raise WorkbenchError(
                f"--shapes compares random placements on other, equal workers, so {', '.join(said)} would have no "
                "effect; leave it out, or --shapes."
            )
    elif options.samples is not None and not options.compare:
        raise WorkbenchError("--draws would have no effect; it goes with --compare or --shapes.")
    thresholds_of(options.thresholds)
    for name, methods in (("thresholds", ("caps", "caps-first")), ("odrp", ("odrp",))):
        if getattr(options, name) is not None and not options.compare and options.method not in methods:
            raise WorkbenchError(
                f"--{name} would have no effect on the method {options.method or 'optimal'}; give --method "
                f"{' or '.join(methods)} with it."
            )
    if options.compare and options.method and not options.flink:
        raise WorkbenchError(
            "--compare shows all methods, and --method only says whose plan --flink writes; leave one of them out, or "
            "give --flink."
        )
