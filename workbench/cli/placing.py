"""``workbench place``: where the tasks go, what default schedulers would do, and what that costs."""

import argparse
import csv
import io
import json
import math
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

from workbench.cli import look
from workbench.cli.console import DONE, check_files
from workbench.cli.progress import Progress, progress
from workbench.cli.show_placement import show_basis, show_compared, show_placed, show_shapes
from workbench.errors import WorkbenchError
from workbench.escaping import for_spreadsheet, for_terminal
from workbench.placement import (
    SEARCH_S,
    SEARCHED,
    Comparison,
    Placed,
    PlacementInput,
    Spread,
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
from workbench.study import DRAWS, PROBLEM, check_placing, resolved, shapes_compared

_TAKES = "a placement problem, a study, plans or a measurement"


def run_place(options: argparse.Namespace) -> int:
    """Place the tasks, compare methods, or compare worker shapes."""
    _check(options)
    with _notes():
        return _answer(options)


def _answer(options: argparse.Namespace) -> int:
    shapes = shapes_of(options.shapes.split(",")) if options.shapes else ()
    asked = {
        "thresholds": thresholds_of(options.thresholds),
        "seed": options.seed,
        "weights": options.odrp or "default",
    }
    inputs = [str(resolved(one, "place", _TAKES, frozenset({PROBLEM}))[1]) for one in options.inputs]
    given = placed_together(
        inputs,
        workers=options.workers,
        slots=options.slots,
        rate=options.rate,
        speeds=options.speeds,
        cpus=options.cpus,
        io=options.io,
        net=options.net,
        calibrate=options.calibrate,
        shapes=shapes,
    )
    if shapes:
        return _compare_shapes(given, shapes, options)
    if given.alike and not (options.json or options.flink or options.method):
        out = look.console()
        look.answer(out, given.alike)
        show_basis(out, given)
        return DONE
    (method,) = check_methods([options.method or "optimal"], options.seed, options.timeout)
    _check_method(options, method)
    with _searching() as say:
        if options.compare:
            rows = compare(
                given,
                draws=options.draws or DRAWS,
                timeout_s=options.timeout,
                progress=say,
                **asked,
            )
        else:
            with _until_interrupted(method):
                chosen = place(given, method, timeout_s=options.timeout, **asked)
    if options.compare:
        _say_compared(given, rows, as_json=options.json)
        if options.flink and method in rows.refused:
            raise WorkbenchError(f"--flink has no plan to write: {method}: {rows.refused[method]}")
        chosen = next((row.placed for row in rows if row.placed.method == method), rows[0].placed)
    elif options.json:
        print(json.dumps(_document(chosen), indent=1))
    else:
        show_placed(chosen, given)
    notes = (given.chosen and f"The plan is {given.chosen}.", given.basis, given.alike)
    for said in notes if options.json else ():
        if said:
            print(for_terminal(said), file=sys.stderr)
    if options.flink:
        sys.stdout.flush()  # the file may be the same
        write_whole(options.flink, _subtasks(chosen))
    return DONE


def _compare_shapes(given: PlacementInput, shapes: Sequence[tuple[int, int]], options: argparse.Namespace) -> int:
    with _searching() as say:
        say("drawing placements")
        spreads = shapes_compared(given, shapes, options.draws or DRAWS, options.seed)
    if options.json:
        print(json.dumps([_spread(one) for one in spreads], indent=1))
    else:
        show_shapes(spreads)
    return DONE


@contextmanager
def _searching() -> Iterator[Progress]:
    """Say what goes on, first of all that the search must be compiled, if so."""
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


@contextmanager
def _notes() -> Iterator[None]:
    """Print each warning once, as a line for readers."""
    told = set()

    def tell(message: Warning | str, category: type[Warning], *_where: object, **_how: object) -> None:
        line = f"workbench: note: {message}"
        if issubclass(category, UserWarning) and line not in told:
            told.add(line)
            print(for_terminal(line), file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = tell
        yield


def _check(options: argparse.Namespace) -> None:
    """Refuse before anything is read what is out of its range, or would not be looked at."""
    check_files((options.flink,), options.inputs)
    draws = DRAWS if options.draws is None else options.draws
    timeout_s = SEARCH_S if options.timeout is None else options.timeout
    check_placing(options.seed, draws, timeout_s, options.odrp, options.method)
    if options.shapes:
        others = ("compare", "method", "flink", "thresholds", "odrp", "timeout", "speeds")
        said = [f"--{name}" for name in others if getattr(options, name) not in {None, False}]
        if said:
            raise WorkbenchError(
                f"--shapes compares random placements on other, equal workers, so {', '.join(said)} would have no "
                "effect; leave it out, or --shapes."
            )
    elif options.draws is not None and not options.compare:
        raise WorkbenchError("--draws would have no effect; it goes with --compare or --shapes.")
    if options.compare and options.method and not options.flink:
        raise WorkbenchError(
            "--compare shows all methods, and --method only says whose plan --flink writes; leave one of them out, or "
            "give --flink."
        )


def _check_method(options: argparse.Namespace, method: str) -> None:
    if options.compare:
        return
    if options.thresholds is not None and method not in {"caps", "caps-first"}:
        raise WorkbenchError(
            f"--thresholds would have no effect on the method {method}; give --method caps or caps-first with them."
        )
    if options.odrp is not None and method != "odrp":
        raise WorkbenchError(f"--odrp would have no effect on the method {method}; give --method odrp with it.")


def _say_compared(given: PlacementInput, rows: Comparison, *, as_json: bool) -> None:
    if not as_json:
        show_compared(given, rows)
        return
    documents: list[Mapping[str, object]] = [
        _document(row.placed) | {"draws": row.draws, "lowest": _finite(row.lowest), "highest": _finite(row.highest)}
        for row in rows
    ]
    documents += [{"method": method, "refused": reason} for method, reason in rows.refused.items()]
    print(json.dumps(documents, indent=1))


def _document(placed: Placed) -> dict[str, Any]:
    problem = placed.problem
    return {
        "method": placed.method,
        "workers": problem.workers,
        "slots": problem.slots,
        "counts": {
            name: [int(count) for count in row] for name, row in zip(problem.operators, placed.counts, strict=True)
        },
        "cost": dict(zip(("cpu", "io", "net"), placed.cost, strict=True)),
        "rate": None if placed.rate is None else _finite(placed.rate.rate),
        "bound": placed.bound,
        "limited_by": None if placed.rate is None else placed.rate.resource,
        "limited_at": None if placed.rate is None else placed.rate.worker,
        "seconds": round(placed.seconds, 6),
        "note": placed.note,
        "tasks": [subtask._asdict() for subtask in problem.subtasks(placed.counts)],
    }


def _spread(one: Spread) -> Mapping[str, object]:
    return {
        "workers": one.workers,
        "slots": one.slots,
        **{f"p{100 * share:g}": _finite(one.quantile(share)) for share in (0.0, 0.1, 0.5, 0.9, 1.0)},
        "best": _finite(one.best),
        "best_is_proven": one.proven,
    }


def _subtasks(placed: Placed) -> str:
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(("operator", "subtask", "worker"))
    table.writerows(map(for_spreadsheet, row) for row in placed.problem.subtasks(placed.counts))
    return text.getvalue()


def _finite(value: float | None) -> float | str | None:
    return "inf" if value is not None and math.isinf(value) else value
