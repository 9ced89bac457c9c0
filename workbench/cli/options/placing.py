"""Options of ``workbench place``."""

import argparse

from workbench.cli.options.numbers import number, rate, whole

_METHODS = (
    "optimal: most records/s (the default); caps: as CAPSys; caps-first, caps-all, least-cost, top-down, task-level, "
    "naive-pairs, best-groups, flink-default, flink-evenly, round-robin, random, odrp (reconstructed from CAPSys)"
)


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the parser."""
    placed = commands.add_parser(
        "place",
        epilog="example: workbench place data/placement.yaml --compare",
        description="Place the tasks of one or several queries on workers. INPUT is a problem (JSON or YAML: workers, "
        "slots, operators with tasks, cpu, io, net per task, edges; optional rate, worker, speeds, queries), a study "
        "that was planned, its plans, or a measurement.",
    )
    placed.add_argument("inputs", nargs="+", metavar="INPUT", help="several are placed together on the same workers")
    placed.add_argument("--workers", type=whole, help="number of workers, unless the input says")
    placed.add_argument("--slots", type=whole, help="slots of each worker, unless the input says")
    placed.add_argument(
        "--speeds",
        type=_numbers,
        metavar="A,B,...",
        help="size of every worker: 2 has twice the cores and bytes/s, no faster ones (all alike)",
    )
    placed.add_argument("--rate", type=rate, metavar="R", help="target, records/s; which of several plans (the last)")
    placed.add_argument("--cpus", type=number, metavar="N", help="cores of a worker")
    placed.add_argument("--io", type=number, metavar="B", help="bytes/s of state access a worker can give")
    placed.add_argument("--net", type=number, metavar="B", help="bytes/s a worker can send")
    placed.add_argument(
        "--calibrate",
        action="store_true",
        help="take workers that the most even plan just fills at the rate (CAPSys, section 3.1), with 10 Gbit/s",
    )
    placed.add_argument(
        "--method",
        metavar="NAME",
        help=_METHODS,
    )
    placed.add_argument(
        "--thresholds", type=_numbers, metavar="CPU,IO,NET", help="for caps and caps-first; inf switches one off"
    )
    placed.add_argument(
        "--odrp", metavar="NAME", help="weights of the odrp method: default, weighted or latency (default)"
    )
    placed.add_argument(
        "--timeout",
        type=number,
        metavar="S",
        help="time limit of a search, seconds (5; of optimal none); Ctrl-C ends one with the best found so far",
    )
    placed.add_argument("--seed", type=whole, default=0, help="for methods that draw (0)")
    placed.add_argument("--draws", type=whole, help="placements drawn by --compare and --shapes (50)")
    placed.add_argument("--compare", action="store_true", help="all methods: cost vector and sustained rate")
    placed.add_argument(
        "--shapes",
        metavar="4x4,8x2",
        help="compare worker shapes under random placement, as Spark does, and name the best",
    )
    placed.add_argument("--flink", metavar="FILE", help="the plan (of --method) as CSV: operator, subtask, worker")
    placed.add_argument("--json", action="store_true", help="print JSON")


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of numbers such as 1,1,2") from None
