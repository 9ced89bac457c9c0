"""``workbench replay``: policies on a load that changes."""

import argparse
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path

from workbench.capacity.planning import read_instances
from workbench.cli.console import DONE, check_file
from workbench.errors import WorkbenchError
from workbench.records import write_whole
from workbench.scaling import Fleet, WorkerShape
from workbench.scaling.elastic import PARADIGMS, ElasticCluster
from workbench.simulation import SIMULATED, KeyTrace, RateTrace, StateResponse, Worker
from workbench.study import (
    KEYED,
    NAMES,
    POLICIES,
    Pool,
    Start,
    paradigms_csv,
    planned_start,
    replay_paradigms,
    replay_start,
    simulated_start,
    timelines_csv,
    with_response,
)
from workbench.views import units
from workbench.workload import read_key_frequencies

_KEYS = 10_000
_MB = float(1 << 20)
_NODES = 4
_NOT_KEYED = ("slots", "plan_rate", "managed_mb", "response", "prices", "instance", "worker_cpus", "worker_io_mb")


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the parser."""
    replayed = commands.add_parser(
        "replay",
        description="Replay a changing load against a simulated deployment under autoscaling policies: time at the "
        "target rate, latency, cost and reconfigurations of each policy.",
    )
    replayed.add_argument(
        "query",
        metavar="QUERY",
        help=f"a simulated query ({', '.join(SIMULATED)}), the JSON file of a plan, or '{KEYED}': one keyed operator "
        "under Elasticutor's paradigms",
    )
    replayed.add_argument("rates", metavar="CSV", help="the load: columns of time (seconds) and rate (records/s)")
    replayed.add_argument("--time-column", default="time_s", metavar="NAME", help="column of the time (%(default)s)")
    replayed.add_argument(
        "--rate-column", default="rate_per_s", metavar="NAME", help="column of the rate (%(default)s)"
    )
    replayed.add_argument(
        "--slots",
        type=int,
        help="slots at the beginning, assigned by BIDS2 (default: those of the plan, or of the published deployment of "
        "a CAPSys query)",
    )
    replayed.add_argument("--plan-rate", type=float, metavar="RATE", help="target rate of the plan (the last plan)")
    replayed.add_argument("--memory-mb", type=float, default=2048.0, help="memory of one slot, MiB (2048)")
    replayed.add_argument(
        "--managed-mb",
        type=float,
        help="managed memory of a slot at the beginning, Justin's level 0 (40 %% with Justin; other policies do not "
        "split a slot unless this is set)",
    )
    replayed.add_argument(
        "--policy",
        nargs="+",
        metavar="NAME",
        help=f"some of {', '.join(NAMES)} ({', '.join(POLICIES)}); for '{KEYED}' some of {', '.join(PARADIGMS)} (all)",
    )
    replayed.add_argument(
        "--setting",
        nargs="+",
        default=[],
        metavar="NAME=VALUE",
        help="settings of all autoscalers except flink, such as activation_s=90 max_parallelism=40; for "
        f"'{KEYED}' of the operator and its elasticity, such as cpu_s=0.001 executors=8 shard_bytes=32768",
    )
    replayed.add_argument("--restart", type=float, default=10.0, help="downtime of a reconfiguration, seconds (10)")
    replayed.add_argument(
        "--response",
        nargs=3,
        metavar=("OPERATOR", "FILE", "TASKS"),
        help="hit rate, latency and true rate against memory, measured with TASKS tasks, CSV",
    )
    _add_workers(replayed)
    _add_keys(replayed)
    replayed.add_argument("--seed", type=int, default=0, help="seed of random placements, keys and service times (0)")
    replayed.add_argument("--json", action="store_true", help="print JSON")
    replayed.add_argument("--output", metavar="FILE", help="write every step of every policy as CSV")
    replayed.set_defaults(command=_replay)


def _add_workers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--workers", type=int, help=f"workers of the capsys policies, nodes of '{KEYED}' ({_NODES})")
    parser.add_argument("--worker-slots", type=int, default=4, help=f"slots of each, cores for '{KEYED}' (4)")
    parser.add_argument("--worker-cpus", type=float, help="cores of each (as many as slots)")
    parser.add_argument("--worker-io-mb", type=float, help="MB/s of state access of each (no limit)")
    parser.add_argument(
        "--worker-net-mb", type=float, help=f"MB/s of network output of each (no limit; 1 Gbit/s for '{KEYED}')"
    )
    parser.add_argument("--prices", metavar="FILE", help="price list of instance types, CSV")
    parser.add_argument("--instance", metavar="NAME", help="pay for complete workers of this type of the price list")


def _add_keys(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--hot-key",
        nargs=3,
        metavar=("OPERATOR", "SHARE", "PER_MIN"),
        help="one key has this share of the operator's records; another key takes its place PER_MIN times a minute",
    )
    parser.add_argument(
        "--shuffle-keys",
        nargs=3,
        metavar=("OPERATOR", "ZIPF", "PER_MIN"),
        help="the popularity of keys follows Zipf's law with this exponent and is shuffled PER_MIN times a minute",
    )
    parser.add_argument(
        "--keys",
        nargs=3,
        metavar=("OPERATOR", "FILE", "PER_MIN"),
        help="the popularity of your own keys, as printed by 'workbench keys DATA COLUMN --json', is shuffled PER_MIN "
        "times a minute",
    )


def _replay(options: argparse.Namespace) -> int:
    check_file(options.output)
    if options.seed < 0:
        raise WorkbenchError(f"--seed is {options.seed}; give a whole number of at least 0.")
    trace = RateTrace.from_csv(options.rates, options.time_column, options.rate_column)
    settings = dict(_setting(text) for text in options.setting)
    if options.query == KEYED:
        return _replay_keyed(options, trace, settings)
    start = _start(options)
    found = replay_start(
        start,
        trace,
        options.policy or list(POLICIES),
        restart_s=options.restart,
        managed_mb=options.managed_mb,
        pool=_pool(options, start.slot_cpus),
        fleet=_fleet(options, start),
        keys=_keys(options),
        seed=options.seed,
        settings=settings,
    )
    if options.output:
        write_whole(options.output, timelines_csv(found.timelines))
    return _report(found.rows, _policy_line, as_json=options.json)


def _policy_line(row: Mapping[str, float]) -> str:
    cost = f"  cost {row['cost']:,.2f}" if "cost" in row else ""
    return (
        f"at target {units.share(row['at_target']):>7}  p99 latency "
        f"{units.seconds(row['latency_p99_s']):>10}  {row['core_hours']:,.1f} core-hours  "
        f"{row['gb_hours']:,.1f} GB-hours{cost}  {row['reconfigurations']:.0f} reconfigurations  "
        f"{units.size(row['moved_bytes'])} moved"
    )


def _replay_keyed(options: argparse.Namespace, trace: RateTrace, settings: Mapping[str, float]) -> int:
    """Replay the load on a keyed operator under Elasticutor's paradigms."""
    _check_workers(options)
    given = [name for name in _NOT_KEYED if getattr(options, name) is not None]
    if given:
        raise WorkbenchError(
            f"--{given[0].replace('_', '-')} does not apply to {KEYED!r}. Describe its cluster with --workers and "
            "--worker-slots, and the operator with --setting."
        )
    keys = _keys(options)
    if list(keys) != [KEYED]:
        raise WorkbenchError(
            f"The keys of {KEYED!r} are missing. Give --hot-key {KEYED} SHARE PER_MIN, --shuffle-keys {KEYED} ZIPF "
            f"PER_MIN, or --keys {KEYED} FILE PER_MIN."
        )
    network = {} if options.worker_net_mb is None else {"network_bytes_per_s": options.worker_net_mb * _MB}
    cluster = ElasticCluster(options.workers or _NODES, options.worker_slots, **network)
    found = replay_paradigms(
        trace, keys[KEYED], options.policy or PARADIGMS, cluster=cluster, settings=settings, seed=options.seed
    )
    if options.output:
        write_whole(options.output, paradigms_csv(found))
    return _report(found.rows, _paradigm_line, as_json=options.json)


def _paradigm_line(row: Mapping[str, float]) -> str:
    return (
        f"{units.rate(row['throughput_per_s']):>15}  p99 latency {units.seconds(row['p99_latency_s']):>10}  "
        f"{row['cores']:.1f} cores  {row['shard_moves']:.0f} shard moves  {row['core_moves']:.0f} core moves  "
        f"{row['repartitions']:.0f} repartitions  {units.count(row['waiting'], 'records')} wait"
    )


def _report(
    rows: Mapping[str, Mapping[str, float]], line: Callable[[Mapping[str, float]], str], *, as_json: bool
) -> int:
    """Print one row for each policy or paradigm."""
    if as_json:
        print(json.dumps(rows, indent=1))
        return DONE
    width = max(map(len, rows))
    for name, row in rows.items():
        print(f"{name:{width}} {line(row)}")
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
        raise WorkbenchError(f"The TASKS of --response are {tasks!r}; give a whole number of at least 1.")
    return with_response(start, operator, StateResponse.from_csv(path, int(tasks)))


def _deployed(options: argparse.Namespace) -> Start:
    if options.query.endswith(".json"):
        return planned_start(Path(options.query), options.plan_rate)
    if options.plan_rate is not None:
        raise WorkbenchError(f"--plan-rate needs the JSON file of a plan, but {options.query!r} is a query.")
    return simulated_start(options.query, options.slots, options.memory_mb)


def _check_workers(options: argparse.Namespace) -> None:
    for option in ("workers", "worker_slots", "worker_cpus", "worker_io_mb", "worker_net_mb"):
        value = getattr(options, option)
        if value is not None and not value > 0:
            raise WorkbenchError(f"--{option.replace('_', '-')} is {value:g}; it must be above 0.")


def _pool(options: argparse.Namespace, slot_cpus: float) -> Pool | None:
    _check_workers(options)
    if options.workers is None:
        return None
    cpus = slot_cpus * options.worker_slots if options.worker_cpus is None else options.worker_cpus
    io, net = (math.inf if mb is None else mb * _MB for mb in (options.worker_io_mb, options.worker_net_mb))
    return Pool(options.workers, options.worker_slots, Worker(cpus, io, net))


def _fleet(options: argparse.Namespace, start: Start) -> Fleet | None:
    if options.instance is None:
        return None
    if options.prices is None:
        raise WorkbenchError("--instance is a type of a price list; give the list with --prices.")
    listed = {one.name: one for one in read_instances(Path(options.prices))}
    if options.instance not in listed:
        raise WorkbenchError(
            f"{options.prices} has no instance type {options.instance!r}; use one of {', '.join(listed)}."
        )
    chosen = listed[options.instance]
    return Fleet(WorkerShape(chosen.vcpus, chosen.memory_mb), start.memory_mb, start.slot_cpus, chosen.price_per_hour)


def _keys(options: argparse.Namespace) -> dict[str, KeyTrace]:
    """Return the popularity of the keys by operator."""
    keys: dict[str, KeyTrace] = {}
    given = {"--hot-key": options.hot_key, "--shuffle-keys": options.shuffle_keys, "--keys": options.keys}
    for option, words in given.items():
        if words is None:
            continue
        operator, kind, often = words
        if operator in keys:
            raise WorkbenchError(
                f"Two of {', '.join(given)} describe the keys of {operator!r}; give one of them for each operator."
            )
        try:
            per_minute = float(often)
            number = math.nan if option == "--keys" else float(kind)
        except ValueError as error:
            raise WorkbenchError(f"{option} {' '.join(words)} must have numbers after OPERATOR: {error}.") from error
        if option == "--hot-key":
            keys[operator] = KeyTrace.hot_key(_KEYS, number, per_minute, options.seed)
        elif option == "--shuffle-keys":
            keys[operator] = KeyTrace.zipf(_KEYS, number, per_minute, seed=options.seed)
        else:
            keys[operator] = read_key_frequencies(kind).trace(per_minute, seed=options.seed)
    return keys
