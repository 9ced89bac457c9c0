"""``workbench replay``: policies on a load that moves."""

import argparse
import json
import math
from pathlib import Path

from workbench.capacity.planning import read_instances
from workbench.cli.console import DONE, check_file
from workbench.errors import WorkbenchError
from workbench.records import write_whole
from workbench.scaling import Fleet, WorkerShape
from workbench.simulation import PRESETS, KeyTrace, RateTrace, StateResponse, Worker
from workbench.study import (
    NAMES,
    POLICIES,
    Pool,
    Start,
    planned_start,
    preset_start,
    replay_start,
    timelines_csv,
    with_response,
)
from workbench.views import units

_KEYS = 10_000
_MB = float(1 << 20)


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the parser."""
    replayed = commands.add_parser(
        "replay",
        help="what autoscaling policies would do on a load that moves, simulated",
        description="Replay a load that moves against a simulated deployment under autoscaling policies: time at the "
        "target rate, latency, cost and reconfigurations of each.",
    )
    replayed.add_argument("query", metavar="QUERY", help=f"a simulated query ({', '.join(PRESETS)}), or a plan's JSON")
    replayed.add_argument("rates", metavar="CSV", help="the load: columns of time (seconds) and rate (records/s)")
    replayed.add_argument("--time-column", default="time_s", metavar="NAME", help="column of the time (%(default)s)")
    replayed.add_argument(
        "--rate-column", default="rate_per_s", metavar="NAME", help="column of the rate (%(default)s)"
    )
    replayed.add_argument("--slots", type=int, help="slots at the beginning, dealt out by BIDS2 (a plan says its own)")
    replayed.add_argument("--plan-rate", type=float, metavar="RATE", help="which plan of the file (the last)")
    replayed.add_argument("--memory-mb", type=float, default=2048.0, help="memory of one slot, MiB (2048)")
    replayed.add_argument(
        "--managed-mb", type=float, help="of it managed memory at the beginning, Justin's level 0 (40 %% with Justin)"
    )
    replayed.add_argument(
        "--policy", nargs="+", default=list(POLICIES), metavar="NAME", help=f"of {', '.join(NAMES)} (the first three)"
    )
    replayed.add_argument(
        "--setting",
        nargs="+",
        default=[],
        metavar="NAME=VALUE",
        help="of the autoscalers but flink's, such as activation_s=90 max_parallelism=40 scale_down_interval_s=600",
    )
    replayed.add_argument("--restart", type=float, default=10.0, help="downtime of a reconfiguration, seconds (10)")
    replayed.add_argument(
        "--response",
        nargs=3,
        metavar=("OPERATOR", "FILE", "TASKS"),
        help="hit rate, latency and true rate against memory as measured with so many tasks, CSV",
    )
    _add_workers(replayed)
    replayed.add_argument(
        "--hot-key",
        nargs=3,
        metavar=("OPERATOR", "SHARE", "PER_MIN"),
        help="a key with this share of the operator's records wanders so often",
    )
    replayed.add_argument(
        "--shuffle-keys",
        nargs=3,
        metavar=("OPERATOR", "ZIPF", "PER_MIN"),
        help="keys popular by Zipf's law of this exponent are shuffled so often",
    )
    replayed.add_argument("--seed", type=int, default=0, help="of random placements and keys (0)")
    replayed.add_argument("--json", action="store_true", help="print JSON")
    replayed.add_argument("--output", metavar="FILE", help="every step of every policy as CSV")
    replayed.set_defaults(command=_replay)


def _add_workers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--workers", type=int, help="workers that the capsys policies place on")
    parser.add_argument("--worker-slots", type=int, default=4, help="slots of each (4)")
    parser.add_argument("--worker-cpus", type=float, help="cores of each (as many as slots)")
    parser.add_argument("--worker-io-mb", type=float, help="MB/s of state access of each (no limit)")
    parser.add_argument("--worker-net-mb", type=float, help="MB/s of network output of each (no limit)")
    parser.add_argument("--prices", metavar="FILE", help="price list of instance types, CSV")
    parser.add_argument("--instance", metavar="NAME", help="pay for whole workers of this type of the price list")


def _replay(options: argparse.Namespace) -> int:
    check_file(options.output)
    if options.seed < 0:
        raise WorkbenchError(f"--seed is {options.seed}; give a whole number of at least 0.")
    trace = RateTrace.from_csv(options.rates, options.time_column, options.rate_column)
    start = _start(options)
    found = replay_start(
        start,
        trace,
        options.policy,
        restart_s=options.restart,
        managed_mb=options.managed_mb,
        pool=_pool(options, start.slot_cpus),
        fleet=_fleet(options, start),
        keys=_keys(options),
        seed=options.seed,
        settings=dict(_setting(text) for text in options.setting),
    )
    if options.output:
        write_whole(options.output, timelines_csv(found.timelines))
    if options.json:
        print(json.dumps(found.rows, indent=1))
        return DONE
    width = max(len(name) for name in found.rows)
    for name, row in found.rows.items():
        cost = f"  cost {row['cost']:,.2f}" if "cost" in row else ""
        print(
            f"{name:{width}} at target {units.share(row['at_target']):>7}  p99 latency "
            f"{units.seconds(row['latency_p99_s']):>10}  {row['core_hours']:,.1f} core-hours  "
            f"{row['gb_hours']:,.1f} GB-hours{cost}  {row['reconfigurations']:.0f} reconfigurations  "
            f"{units.size(row['moved_bytes'])} moved"
        )
    return DONE


def _setting(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    try:
        return name, float(value)
    except ValueError as error:
        raise WorkbenchError(
            f"--setting {text} is not NAME=VALUE with a number; such as utilization_target=0.7."
        ) from error


def _start(options: argparse.Namespace) -> Start:
    start = _deployed(options)
    if options.response is None:
        return start
    operator, path, tasks = options.response
    if not (tasks.isascii() and tasks.isdigit()):
        raise WorkbenchError(f"--response was measured with {tasks!r} tasks; give a whole number of at least 1.")
    return with_response(start, operator, StateResponse.from_csv(path, int(tasks)))


def _deployed(options: argparse.Namespace) -> Start:
    if options.query.endswith(".json"):
        return planned_start(Path(options.query), options.plan_rate)
    if options.plan_rate is not None:
        raise WorkbenchError(f"--plan-rate names a plan of a plan's JSON file, but {options.query!r} is a query.")
    if options.slots is None:
        raise WorkbenchError(f"How many slots does {options.query!r} begin with? Give --slots, or a plan's JSON file.")
    return preset_start(options.query, options.slots, options.memory_mb)


def _pool(options: argparse.Namespace, slot_cpus: float) -> Pool | None:
    for option in ("workers", "worker_slots", "worker_cpus", "worker_io_mb", "worker_net_mb"):
        value = getattr(options, option)
        if value is not None and not value > 0:
            raise WorkbenchError(f"--{option.replace('_', '-')} is {value:g}; it must be above 0.")
    if options.workers is None:
        return None
    cpus = slot_cpus * options.worker_slots if options.worker_cpus is None else options.worker_cpus
    io, net = (math.inf if mb is None else mb * _MB for mb in (options.worker_io_mb, options.worker_net_mb))
    return Pool(options.workers, options.worker_slots, Worker(cpus, io, net))


def _fleet(options: argparse.Namespace, start: Start) -> Fleet | None:
    if options.instance is None:
        return None
    if options.prices is None:
        raise WorkbenchError("--instance names a type of a price list; give the list with --prices.")
    listed = {one.name: one for one in read_instances(Path(options.prices))}
    if options.instance not in listed:
        raise WorkbenchError(f"{options.prices} has no instance type {options.instance!r}; it has {', '.join(listed)}.")
    chosen = listed[options.instance]
    return Fleet(WorkerShape(chosen.vcpus, chosen.memory_mb), start.memory_mb, start.slot_cpus, chosen.price_per_hour)


def _keys(options: argparse.Namespace) -> dict[str, KeyTrace]:
    keys: dict[str, KeyTrace] = {}
    for option, words in (("--hot-key", options.hot_key), ("--shuffle-keys", options.shuffle_keys)):
        if words is None:
            continue
        operator, *numbers = words
        if operator in keys:
            raise WorkbenchError(f"--hot-key and --shuffle-keys both say how {operator!r} gets its records; give one.")
        try:
            first, per_minute = (float(number) for number in numbers)
        except ValueError as error:
            raise WorkbenchError(f"{option} {' '.join(words)} has what is no number: {error}.") from error
        if option == "--hot-key":
            keys[operator] = KeyTrace.hot_key(_KEYS, first, per_minute, options.seed)
        else:
            keys[operator] = KeyTrace.zipf(_KEYS, first, per_minute, seed=options.seed)
    return keys
