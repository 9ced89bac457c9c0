"""``workbench place``: where the tasks go, what default schedulers would do, and what that costs."""

import argparse
import csv
import io
import json
import math
import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from typing import Any

from workbench.cli.console import DONE, check_file
from workbench.errors import WorkbenchError
from workbench.placement import (
    METHODS,
    ODRP_SETTINGS,
    Comparison,
    CostVector,
    Placed,
    PlacementInput,
    PlacementProblem,
    Spread,
    best_method,
    calibrated_worker,
    compare,
    must_compile,
    place,
    read_placement_input,
    shape_spreads,
)
from workbench.records import write_whole
from workbench.simulation import Worker
from workbench.views import units

_DRAWS = 20
_CAPACITIES = {"cpus": "cpus", "io_bytes_per_s": "io", "net_bytes_per_s": "net"}  # of a worker, and their options


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the parser."""
    placed = commands.add_parser(
        "place",
        description="Place the tasks of one or several queries on workers. INPUT is a problem (JSON or YAML: workers, "
        "slots, operators with tasks, cpu, io, net per task, edges; optional rate, worker, speeds, queries), a "
        "measurement, or the plans that workbench plan wrote.",
    )
    placed.add_argument("inputs", nargs="+", metavar="INPUT", help="several are placed together on the same workers")
    placed.add_argument("--workers", type=int, help="number of workers, unless the problem says")
    placed.add_argument("--slots", type=int, help="slots of each worker, unless the problem says")
    placed.add_argument(
        "--speeds",
        type=_numbers,
        metavar="A,B,...",
        help="size of every worker: 2 has twice the cores and bytes/s, no faster ones (all alike)",
    )
    placed.add_argument("--rate", type=float, metavar="R", help="target, records/s; which plan, if there are several")
    placed.add_argument("--cpus", type=float, metavar="N", help="cores of a worker")
    placed.add_argument("--io", type=float, metavar="B", help="bytes/s of state access a worker can give")
    placed.add_argument("--net", type=float, metavar="B", help="bytes/s a worker can send")
    placed.add_argument(
        "--calibrate",
        action="store_true",
        help="take workers that the most even plan just fills at the rate (CAPSys, section 3.1), with 10 Gbit/s",
    )
    placed.add_argument(
        "--method",
        metavar="NAME",
        help=f"{', '.join(METHODS)} (fastest if rate and capacities are known)",
    )
    placed.add_argument(
        "--thresholds", type=_numbers, metavar="CPU,IO,NET", help="for caps and caps-first; inf switches one off"
    )
    placed.add_argument("--odrp", metavar="NAME", help=f"weights: {', '.join(ODRP_SETTINGS)} (default)")
    placed.add_argument("--timeout", type=float, metavar="S", help="time limit of a search, seconds (60; compare: 10)")
    placed.add_argument("--seed", type=int, default=0, help="for methods that draw (0)")
    placed.add_argument("--draws", type=int, help="placements drawn by --compare and --shapes (20)")
    placed.add_argument("--compare", action="store_true", help="all methods: cost vector and sustained rate")
    placed.add_argument(
        "--shapes", type=_shapes, metavar="4x4,8x2", help="worker shapes for random placement, as on Spark: the best"
    )
    placed.add_argument("--flink", metavar="FILE", help="the plan (of --method) as CSV: operator, subtask, worker")
    placed.add_argument("--json", action="store_true", help="print JSON")
    placed.set_defaults(command=_place)


def _place(options: argparse.Namespace) -> int:
    _check(options)
    with _notes():
        return _answer(options)


def _answer(options: argparse.Namespace) -> int:
    thresholds = None if options.thresholds is None else _thresholds(options.thresholds)
    given = _given(options)
    if must_compile():
        print("workbench: the search is compiled first, once on this machine: about half a minute", file=sys.stderr)
    if options.shapes:
        return _show_shapes(given, options)
    method = options.method or best_method(given)
    _check_method(options, method)
    if options.compare and method == "fastest" != best_method(given):
        raise WorkbenchError(
            "--compare leaves out the method fastest without the rate of the loads and a capacity; give --rate and "
            "--cpus, --io or --net, or another --method."
        )
    if options.compare:
        rows = compare(
            given,
            thresholds=thresholds,
            seed=options.seed,
            draws=options.draws or _DRAWS,
            timeout_s=options.timeout or 10.0,
            weights=options.odrp or "default",
        )
        _print_compared(given, rows, as_json=options.json)
        _print_basis(given, as_json=options.json)
        if options.flink and method in rows.refused:
            raise WorkbenchError(f"--flink has no plan to write: {method}: {rows.refused[method]}")
        chosen = next((row.placed for row in rows if row.placed.method == method), rows[0].placed)
    else:
        chosen = place(
            given,
            method,
            thresholds=thresholds,
            seed=options.seed,
            timeout_s=options.timeout,
            weights=options.odrp or "default",
        )
        _print_placed(chosen, as_json=options.json)
        _print_basis(given, as_json=options.json)
    if options.flink:
        sys.stdout.flush()  # the file may be the same
        write_whole(options.flink, _subtasks(chosen))
    return DONE


@contextmanager
def _notes() -> Iterator[None]:
    """Print each warning once, as a line for readers."""
    told = set()

    def tell(message: Warning | str, category: type[Warning], *_where: object, **_how: object) -> None:
        line = f"workbench: note: {message}"
        if issubclass(category, UserWarning) and line not in told:
            told.add(line)
            print(line, file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = tell
        yield


def _check(options: argparse.Namespace) -> None:
    """Refuse before anything is read what is out of its range, or would not be looked at."""
    check_file(options.flink)
    if options.method not in {None, *METHODS}:
        raise WorkbenchError(f"There is no placement method {options.method!r}; use one of {', '.join(METHODS)}.")
    if options.odrp not in {None, *ODRP_SETTINGS}:
        raise WorkbenchError(f"There are no ODRP weights {options.odrp!r}; use one of {', '.join(ODRP_SETTINGS)}.")
    if options.seed < 0:
        raise WorkbenchError(f"--seed is {options.seed}; give a whole number from 0 on.")
    if options.draws is not None and options.draws < 1:
        raise WorkbenchError(f"--draws is {options.draws}; give a whole number from 1 on.")
    if options.timeout is not None and not (math.isfinite(options.timeout) and options.timeout > 0):
        raise WorkbenchError(f"--timeout is {options.timeout:g}; give seconds above 0.")
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
    if options.thresholds is not None and not method.startswith("caps"):
        raise WorkbenchError(
            f"--thresholds would have no effect on the method {method}; give --method caps or caps-first with them."
        )
    if options.odrp is not None and method != "odrp":
        raise WorkbenchError(f"--odrp would have no effect on the method {method}; give --method odrp with it.")


def _given(options: argparse.Namespace) -> PlacementInput:
    capacities = {name: getattr(options, option) for name, option in _CAPACITIES.items()}
    said = {name: value for name, value in capacities.items() if value is not None}
    if options.calibrate and said:
        raise WorkbenchError("--calibrate finds the workers' capacities; leave out --cpus, --io and --net.")
    room = None
    if options.shapes and (options.slots is not None or not said):  # capacities said belong to slots that are said too
        room = max(workers * slots for workers, slots in options.shapes)
    read = [
        read_placement_input(
            path, workers=options.workers, slots=options.slots, rate=options.rate, speeds=options.speeds, room=room
        )
        for path in options.inputs
    ]
    unit = _unit_cpus(read)
    queries = _queries(read)
    if options.rate is None:
        _alike(options.inputs, "rate", "--rate", [one.rate for one in read])
    for name, option in _CAPACITIES.items():
        if name not in said:
            _alike(options.inputs, option, f"--{option}", [getattr(one.worker, name) for one in read])
    if "cpus" in said:
        said["cpus"] /= unit
    given = PlacementInput(
        queries,
        options.rate if options.rate is not None else read[0].rate,
        Worker(**(vars(read[0].worker) | said)),
        " ".join(dict.fromkeys(one.basis for one in read if one.basis)),
        unit,
    )
    _ = given.problem
    return replace(given, worker=calibrated_worker(given.problem)) if options.calibrate else given


def _queries(read: Sequence[PlacementInput]) -> Mapping[str, PlacementProblem]:
    """Give the queries of all files; a name that is there twice gets a number."""
    if len(read) == 1:
        return read[0].queries
    queries: dict[str, PlacementProblem] = {}
    taken = {name for one in read for name in one.queries}
    for one in read:
        for name, problem in one.queries.items():
            own = name
            if name in queries:
                own = next(free for free in (f"{name}-{number}" for number in count(2)) if free not in taken)
                taken.add(own)
            queries[own] = problem
    return queries


def _unit_cpus(read: Sequence[PlacementInput]) -> float:
    """Give the cores of one unit of CPU, the same in all files."""
    found = sorted({one.unit_cpus for one in read})
    if len(found) > 1:
        raise WorkbenchError(
            "The files are placed together, but a plan of micro-batches, which is placed in slots, can only be placed "
            "with others of slots as large. Place the files apart."
        )
    return found[0]


def _alike(paths: Sequence[str], thing: str, option: str, values: Sequence[float | None]) -> None:
    if len(set(values)) > 1:
        said = ", ".join(
            f"{path}: {'none' if value is None else f'{value:g}'}" for path, value in zip(paths, values, strict=True)
        )
        raise WorkbenchError(
            f"The files are placed together, but their {thing} differs ({said}); make it the same in all, or give "
            f"{option}."
        )


def _print_placed(placed: Placed, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(_document(placed), indent=1))
        return
    width = max(map(len, placed.problem.operators))
    print(f"{'':{width}}  worker" + "".join(f"{worker:4}" for worker in range(placed.problem.workers)))
    for name, row in zip(placed.problem.operators, placed.counts, strict=True):
        print(f"{name:{width}}        " + "".join(f"{count or '.':>4}" for count in row))
    print(f"cost: {_costs(placed.cost)}" + (f"; {placed.note}" if placed.note else ""))
    if placed.rate is not None:
        print(f"sustains {_rate(placed.rate.rate)}; {_limit(placed)}")


def _print_basis(given: PlacementInput, *, as_json: bool) -> None:
    """Say what the rates rest on; next to a JSON document on standard error."""
    if given.basis:
        print(given.basis, file=sys.stderr if as_json else sys.stdout)


def _print_compared(given: PlacementInput, rows: Comparison, *, as_json: bool) -> None:
    if as_json:
        documents: list[Mapping[str, object]] = [
            _document(row.placed) | {"draws": row.draws, "lowest": _finite(row.lowest), "highest": _finite(row.highest)}
            for row in rows
        ]
        documents += [{"method": method, "refused": reason} for method, reason in rows.refused.items()]
        print(json.dumps(documents, indent=1))
        return
    print(f"{'method':14} {'cpu':>7} {'io':>7} {'net':>7} {'decided in':>11}  sustained")
    for row in rows:
        placed = row.placed
        costs = " ".join(f"{cost:7.3f}" for cost in placed.cost)
        sustained = "" if placed.rate is None else _rate(placed.rate.rate)
        if row.draws > 1 and placed.rate is not None:
            sustained += f" ({row.draws} draws: {_rate(row.lowest)} to {_rate(row.highest)})"
        if placed.problem.parallelism != given.problem.parallelism:
            sustained += f" with {placed.problem.tasks} tasks of its own choice"
        print(f"{row.placed.method:14} {costs} {units.seconds(placed.seconds):>11}  {sustained}".rstrip())
    for method, reason in rows.refused.items():
        print(f"{method:14} {reason}")


def _show_shapes(given: PlacementInput, options: argparse.Namespace) -> int:
    if given.rate is None:
        raise WorkbenchError("The rate that the loads belong to is unknown; give --rate, or a rate in the problem.")
    if not any(math.isfinite(limit) for limit in vars(given.worker).values()):
        raise WorkbenchError(
            "The capacities of the workers are unknown, so shapes cannot be distinguished; give --cpus, --io or --net."
        )
    slots = given.problem.slots
    core = Worker(*(limit / slots for limit in vars(given.worker).values()))
    spreads = shape_spreads(
        given.problem, given.rate, core=core, shapes=options.shapes, samples=options.draws or _DRAWS, seed=options.seed
    )
    if options.json:
        print(json.dumps([_spread(one) for one in spreads], indent=1))
        return DONE
    for one in spreads:
        print(
            f"{f'{one.workers} x {one.slots}':8} nine of ten random placements sustain {_rate(one.quantile(0.1))}, "
            f"median {_rate(one.quantile(0.5))}, worst {_rate(one.quantile(0.0))}, best {_rate(one.best)}"
        )
    best = spreads[0]
    print(f"Choose {best.workers} workers of {best.slots} slots.")
    return DONE


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
    table.writerows(placed.problem.subtasks(placed.counts))
    return text.getvalue()


def _limit(placed: Placed) -> str:
    if placed.rate is None or placed.rate.resource is None:
        return "nothing limits it"
    if placed.rate.resource == "task":
        return "then a task is busy all the time"
    names = {"cpu": "cores", "io": "access to state", "net": "network"}
    return f"then the {names[placed.rate.resource]} of worker {placed.rate.worker} are used up"


def _costs(cost: CostVector) -> str:
    return ", ".join(f"{name} {value:.4f}" for name, value in zip(("cpu", "io", "net"), cost, strict=True))


def _rate(value: float | None) -> str:
    return units.rate(value)


def _finite(value: float | None) -> float | str | None:
    return "inf" if value is not None and math.isinf(value) else value


def _thresholds(values: Sequence[float]) -> CostVector:
    if len(values) != len(tuple(CostVector())):
        raise WorkbenchError(f"--thresholds has {len(values)} entries; give three, such as 0.1,0.2,inf.")
    return CostVector(*values)


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of numbers such as 1,1,2") from None


def _shapes(text: str) -> tuple[tuple[int, int], ...]:
    shapes = []
    for part in text.split(","):
        found = re.fullmatch(r"([1-9]\d*)x([1-9]\d*)", part.strip())
        if found is None:
            raise argparse.ArgumentTypeError(f"{part!r} is no shape such as 4x4 (workers x slots)")
        shapes.append((int(found[1]), int(found[2])))
    return tuple(shapes)
