"""Options of ``workbench replay``."""

import argparse

from workbench.cli.options.numbers import number, rate, whole

_KEYED = "keyed"
_SIMULATED = "q1, q2, q3, q5, q8, q11, Q1-sliding, Q2-join, Q3-inf, Q4-join, Q5-aggregate, Q6-session"
_POLICIES = "static, ds2, flink, dynamic-allocation, keda, justin, justin-hysteresis, justin-gives-back, "
_POLICIES += "capsys, capsys-optimum, capsys-default, capsys-evenly"
_PARADIGMS = "static, resource-centric, naive-executor-centric, executor-centric"


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the parser."""
    replayed = commands.add_parser(
        "replay",
        epilog="example: workbench replay q11 data/day.csv --slots 40",
        description="Replay a changing load against a simulated deployment under autoscaling policies: time at the "
        "target rate, latency, cost and reconfigurations of each policy.",
    )
    replayed.add_argument(
        "query",
        metavar="QUERY",
        help=f"a simulated query ({_SIMULATED}), a study that was planned, its plans, a measurement, or '{_KEYED}': "
        "one keyed operator under Elasticutor's paradigms",
    )
    replayed.add_argument("rates", metavar="CSV", help="the load: columns of time (seconds) and rate (records/s)")
    replayed.add_argument("--time-column", default="time_s", metavar="NAME", help="column of the time (%(default)s)")
    replayed.add_argument(
        "--rate-column", default="rate_per_s", metavar="NAME", help="column of the rate (%(default)s)"
    )
    replayed.add_argument(
        "--slots",
        type=whole,
        help="slots at the beginning, at most 100,000, assigned by BIDS2 "
        "(default: those of the plan, or of the published deployment of "
        "a CAPSys query)",
    )
    replayed.add_argument("--plan-rate", type=rate, metavar="RATE", help="target rate of the plan (the last plan)")
    replayed.add_argument("--memory-mb", type=number, default=2048.0, help="memory of one slot, MB (2048)")
    replayed.add_argument(
        "--managed-mb",
        type=number,
        help="managed memory of a slot at the beginning, Justin's level 0 (158 with Justin; other policies do not "
        "split a slot unless this is set)",
    )
    replayed.add_argument(
        "--policy",
        nargs="+",
        metavar="NAME",
        help=f"some of {_POLICIES} (static ds2 flink), or module:name of your own; for '{_KEYED}' some of {_PARADIGMS} "
        "(all)",
    )
    replayed.add_argument(
        "--setting",
        nargs="+",
        default=[],
        metavar="NAME=VALUE",
        help="settings of all autoscalers except flink, such as activation_s=90 max_parallelism=40, of "
        "dynamic-allocation, such as executor_slots=4 max_executors=30 tasks=200, and of keda, such as "
        "lag_threshold=1000 partitions=32; for "
        f"'{_KEYED}' of the operator and its elasticity, such as cpu_s=0.001 executors=8 shard_bytes=32768",
    )
    replayed.add_argument("--restart", type=number, default=10.0, help="downtime of a reconfiguration, seconds (10)")
    replayed.add_argument(
        "--response",
        nargs=3,
        metavar=("OPERATOR", "FILE", "TASKS"),
        help="hit rate, latency and true rate against memory, measured with TASKS tasks, CSV",
    )
    _add_workers(replayed)
    _add_keys(replayed)
    replayed.add_argument("--seed", type=whole, default=0, help="seed of random placements, keys and service times (0)")
    replayed.add_argument("--json", action="store_true", help="print JSON")
    replayed.add_argument("--output", metavar="FILE", help="write every step of every policy as CSV")


def _add_workers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--workers", type=whole, help=f"workers of the capsys policies, nodes of '{_KEYED}' (4)")
    parser.add_argument("--worker-slots", type=whole, default=4, help=f"slots of each, cores for '{_KEYED}' (4)")
    parser.add_argument("--worker-cpus", type=number, help="cores of each (as many as slots)")
    parser.add_argument("--worker-io-mb", type=number, help="MB/s of state access of each (no limit)")
    parser.add_argument(
        "--worker-net-mb", type=number, help=f"MB/s of network output of each (no limit; 1 Gbit/s for '{_KEYED}')"
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
