"""What each command can be asked: its options, apart from its work, so that `--help` answers at once."""

import argparse
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any, TypeAlias

from workbench import defaults
from workbench.cli.console import JOURNAL, KEPT
from workbench.cli.numbers import number, port, rate, whole

Commands: TypeAlias = "argparse._SubParsersAction[Any]"  # noqa: SLF001 - no other name

_METHODS = (
    "optimal: most records/s (the default); caps: as CAPSys; caps-first, caps-all, least-cost, top-down, task-level, "
    "naive-pairs, best-groups, flink-default, flink-evenly, round-robin, random, odrp (reconstructed from CAPSys)"
)
_KEYED = "keyed"
_SIMULATED = "q1, q2, q3, q5, q8, q11, Q1-sliding, Q2-join, Q3-inf, Q4-join, Q5-aggregate, Q6-session"
_POLICIES = "static, ds2, flink, dynamic-allocation, keda, justin, justin-hysteresis, justin-gives-back, "
_POLICIES += "capsys, capsys-optimum, capsys-default, capsys-evenly"
_PARADIGMS = "static, resource-centric, naive-executor-centric, executor-centric"


def _checking(commands: Commands) -> None:
    doctor = commands.add_parser(
        "doctor",
        epilog="example: workbench doctor --bundle workbench-defect.zip",
        description="Check whether this machine can measure, draw and report, and show how to fix what is missing; of "
        "a cluster (--master), also whether it gives executors on which a query can be measured. The exit code is 2 "
        "if something is lacking that measuring needs. With --bundle, list what a maintainer needs to repeat a "
        "failure, without data and secrets; with --yes, write it too.",
    )
    add = doctor.add_argument
    add("--bundle", metavar="FILE", help="list what goes into FILE.zip; nothing is written without --yes")
    add("--yes", action="store_true", help="write the bundle")
    add("--study", metavar="FILE", help="the study that failed (the last failure's)")
    add("--journal", default=JOURNAL, metavar="FILE", help="the journal that failed (%(default)s)")
    add("--json", action="store_true", help="print JSON")
    add("--slots", type=whole, default=1, help="slots that a cluster is asked for (1)")
    add("--memory-mb", type=whole, default=defaults.MEMORY_MB, help="memory of each of these slots, MB (1024)")
    _add_master(doctor)


def _speed(commands: Commands) -> None:
    speed = commands.add_parser(
        "speed",
        epilog="example: workbench speed --json",
        description="Time two fixed pieces of work, arithmetic within the first cache and reads at random places of "
        "the memory, and say how fast this machine's cores are, compared with the reference machine's: that of the "
        "plans that ship with the workbench. It needs neither Java nor Spark.",
    )
    add = speed.add_argument
    add("--seconds", type=number, default=20.0, help="how long to time (%(default)g)")
    add("--json", action="store_true", help="print JSON, times in seconds")


def _measuring(commands: Commands) -> None:
    own = "nexmark:q5, module:function of your own, or a study, for its query and data"
    deployed = _deployment_options(own)
    measured = commands.add_parser(
        "measure",
        parents=[deployed],
        epilog="example: workbench measure nexmark:q5 --slots 2 --report q5.html",
        description="Deploy a query on this machine or a cluster and try rates until the highest that it sustains is "
        "bracketed. Every probe is recorded in the journal: a measurement that was interrupted goes on from its last.",
    )
    add = measured.add_argument
    add("--tolerance", type=number, help="relative width of the bracket (0.04; StreamBed's schedules: 0.01)")
    add(
        "--schedule",
        choices=["adaptive", "streambed", "streambed-stateful"],
        default="adaptive",
        help="how rates are tried: adaptive, or StreamBed's published times for simple or stateful queries",
    )
    add(
        "--minutes",
        type=number,
        help="no further rate is tried after these, if one is sustained (the time of 7 undisturbed probes)",
    )
    add("--max-rate", type=rate, metavar="R", help="highest rate to try, records/s")
    add("--no-costs", dest="costs", action="store_false", help="leave out the runs for fixed and per-record costs")
    add("--journal", default=JOURNAL, help="where every probe is recorded (%(default)s)")
    add("--output", metavar="FILE", help="the measurement as JSON (.workbench/QUERY.json)")
    add("--report", metavar="FILE", help="also write one offline HTML file")
    measured.set_defaults(kept=KEPT)

    verified = commands.add_parser(
        "verify",
        parents=[_deployment_options(f"{own}, or a plan file such as .workbench/q5-plan.json")],
        epilog="example: workbench verify .workbench/q5-plan.json",
        description="Deploy a query on this machine or a cluster and run it at a rate, or at shares of it. The exit "
        "code says whether the lowest was sustained. Of a file that workbench plan wrote, the deployment of a target "
        "is run as planned: at its rate, which must be sustained, and just above its interval, which must not.",
    )
    add = verified.add_argument
    add("--rate", type=rate, help="records/s; of a plan, the target (the highest that fits)")
    add(
        "--percent",
        type=number,
        nargs="+",
        default=[100, 120, 150],
        help="percentages of the rate to run at (100 120 150)",
    )


def _deployment_options(query: str) -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(add_help=False)
    add = options.add_argument
    add("query", metavar="QUERY", help=query)
    add("--slots", type=whole, help="tasks that run at once (2; whole cores: all but one)")
    add("--slot-cpus", type=number, metavar="CORES", help="cores of one slot (0.4; without quotas 1)")
    add("--memory-mb", type=whole, default=defaults.MEMORY_MB, help="memory of one slot, MB (1024)")
    add("--interval", type=number, default=defaults.INTERVAL_S, help="trigger interval, seconds (2)")
    add(
        "--dataset",
        metavar="PATH",
        help="Parquet, CSV or JSON file or folder that feeds the query, or kafka://HOST:PORT/TOPIC",
    )
    add("--event-time", metavar="COLUMN", help="its event-time column, replaced on replay")
    add(
        "--source",
        choices=["replay", "kafka"],
        default="replay",
        help="how the query gets its rows: replayed, or by Spark's Kafka source from the topic that --dataset names",
    )
    add("--output-mode", choices=["append", "update", "complete"], help="Spark's output mode")
    add("--json", action="store_true", help="print JSON")
    _add_master(options)
    return options


def _keys(commands: Commands) -> None:
    keys = commands.add_parser(
        "keys",
        epilog="example: workbench keys data/orders.csv shop",
        description="Count the keys of a column: the hottest of them, how unevenly they fill shuffle partitions, and "
        "how many tasks are of use. Files of at most 1 GiB take about a second; Spark counts what is larger, nested or "
        "has more than a million keys.",
    )
    add = keys.add_argument
    add("data", metavar="DATA", help="Parquet, CSV or JSON: a file or a folder; or a study")
    add("column", metavar="COLUMN", help="the key")
    add("--method", default="auto", choices=("auto", "exact", "sketch"), help="how to count (%(default)s)")
    add("--tracked", type=whole, default=10_000, help="items of the sketch (%(default)s)")
    add("--top", type=whole, default=1000, help="keys listed by --json (%(default)s)")
    add(
        "--partitions",
        type=whole,
        nargs="+",
        default=[8, 32, 200],
        metavar="N",
        help="shuffle partitions to spread over",
    )
    add(
        "--plan",
        metavar="FILE",
        help="a study that was planned, its plans, or a measurement of the query: what the hottest key takes in it",
    )
    add("--rate", type=rate, metavar="R", help="records/s to say that for (the plan's)")
    add("--json", action="store_true", help="print JSON")


def _observing(commands: Commands) -> None:
    observe = commands.add_parser(
        "observe",
        description="Read the log of a running query, and say what it sustains, what limits it, what it has left at "
        "its peak, what an outage costs, and how it changes. Nothing is started and nothing is measured. With "
        "--target, it is also planned for other rates.",
        epilog="example: workbench observe eventlog_v2_app-20260131 --target 500000 --report head-room.html",
    )
    add = observe.add_argument
    add(
        "log",
        metavar="LOG",
        help="event log, log of the driver, or progress events as JSON: a file or a folder; zstd, lz4, snappy, gz",
    )
    add("--query", metavar="NAME", help="name or id of the query, if the log has several")
    add("--progress", metavar="FILE", help="progress events, if an event log has none")
    add("--interval", type=number, metavar="S", help="trigger interval in seconds (default: read from the log)")
    add("--slots", type=whole, metavar="N", help="tasks that can run at once, which progress events do not show")
    add("--slot-cpus", type=number, metavar="C", help="cores of a slot (default: as the cluster counts them)")
    add("--target", type=rate, nargs="+", default=[], metavar="R", help="rates to plan for, records/s")
    add("--rows", type=rate, metavar="N", help="rows of a run that takes what there is and ends")
    add("--deadline", type=number, metavar="S", help="seconds from its start in which it must be done")
    add("--start", type=number, metavar="S", help="seconds until its first batch (default: as the log shows, or 60)")
    add("--prices", metavar="FILE", help="CSV file of worker types, for plans with costs")
    add("--risk", type=number, metavar="P", help="probability of falling short that plans may have")
    add("--outage", type=number, default=10.0, metavar="MIN", help="outage in minutes to catch up after (%(default)g)")
    add("--measured", metavar="PLANS", help="compare with the plans of a study that was measured (workbench plan)")
    add("--output", metavar="FILE", help="where to write the plans (default: in .workbench)")
    add("--report", metavar="FILE", help="write an HTML report")
    add("--json", action="store_true", help="print JSON")
    add(
        "--watch",
        action="store_true",
        help="follow the log as it is written, and serve what it shows for Prometheus on 127.0.0.1",
    )
    add("--port", type=port, default=9464, metavar="N", help="of --watch; 0: any that is free (%(default)s)")


def _topics(commands: Commands) -> None:
    client = argparse.ArgumentParser(add_help=False)
    add = client.add_argument
    add(
        "--client-config",
        metavar="FILE",
        help="client settings, name=value a line, secrets included "
        "(default: the file that WORKBENCH_KAFKA_CONFIG names)",
    )
    add("--json", action="store_true", help="print JSON")

    capture = commands.add_parser(
        "capture",
        parents=[client],
        epilog="example: workbench capture kafka://localhost:9092/orders orders.parquet --rows 100000",
        description="Write the newest records of a Kafka topic to a Parquet file, as data for a study: values that are "
        "JSON objects, or Avro with a schema, become columns, with key, timestamp, partition, offset and headers.",
    )
    add = capture.add_argument
    add("topic", metavar="TOPIC", help="kafka://HOST:PORT/TOPIC")
    add("file", metavar="FILE", help="the Parquet file")
    add("--rows", type=whole, default=1_000_000, help="most records (%(default)s)")
    add("--megabytes", type=whole, default=512, help="most MiB of keys and values (%(default)s)")
    add("--seconds", type=number, help="only records of the last S seconds")
    add(
        "--schema",
        metavar="SCHEMA",
        help="the values' schema: an Avro record, or a schema registry's answer, as a file",
    )
    capture.set_defaults(kept="nothing was written")

    fill = commands.add_parser(
        "fill",
        parents=[client],
        epilog="example: workbench fill kafka://localhost:9092/bids nexmark --rows 100000",
        description="Send rows of a data set, or Nexmark events, to a Kafka topic at full speed, as JSON; a captured "
        "sample with its keys, headers and values as they were. A record's timestamp is its event time. The topic is "
        "created if it is missing.",
    )
    add = fill.add_argument
    add("topic", metavar="TOPIC", help="kafka://HOST:PORT/TOPIC")
    add("data", metavar="DATA", help="Parquet, CSV or JSON file or folder, or nexmark")
    add("--rows", type=whole, default=1_000_000, help="rows to send, repeating a data set (%(default)s)")
    add("--event-time", metavar="COLUMN", help="event-time column of the data, replaced up to now")
    add("--event-rate", type=rate, default=100_000.0, help="rows per second of event time (%(default)g)")
    add("--key", metavar="COLUMN", help="column that is the record's key (default: none; of a sample, its own)")
    add("--partitions", type=whole, default=4, help="of a topic that is created (%(default)s)")


def _journals(commands: Commands) -> None:
    journal = commands.add_parser(
        "journal",
        description="List what was measured, show one measurement, compare two, or remove what is not needed. Nothing "
        "is deleted unless you add --yes to prune.",
        epilog="A KEY is a measurement's name in the list, or its beginning: workbench journal show nexmark:q5/1a2b",
    )
    journal.set_defaults(action="list", keys=[])
    _shared(journal, JOURNAL, as_json=False)
    actions = journal.add_subparsers(metavar="ACTION", dest="action", help="list (the default), show, compare, prune")
    listed = actions.add_parser("list", description="List the measurements of a journal, with their sizes.")
    shown = actions.add_parser("show", description="Show one measurement: its rate, its probes, the plans that use it.")
    add = shown.add_argument
    add("keys", nargs=1, metavar="KEY", help="the measurement")
    compared = actions.add_parser(
        "compare",
        description="Compare two measurements, and say whether chance explains the difference. Of one KEY, its last "
        "two measurements are compared.",
    )
    add = compared.add_argument
    add("keys", nargs="+", metavar="KEY", help="one or two measurements, the earlier one first")
    pruned = actions.add_parser(
        "prune",
        description="Say what can be removed: the probes that their finished measurement holds itself, those of "
        "measurements that were given up, and the measurements that you name. What plans refer to stays. Nothing is "
        "removed without --yes.",
    )
    add = pruned.add_argument
    add("keys", nargs="*", metavar="KEY", help="also remove all measurements that begin so")
    add("--before", type=_day, metavar="DATE", help="also remove those from before a day, as 2026-01-31")
    add("--plans", nargs="+", default=[], metavar="FILE", help="plans whose measurements stay, next to the journal's")
    add("--yes", action="store_true", help="remove it")
    for one in (listed, shown, compared, pruned):
        _shared(one, argparse.SUPPRESS, as_json=argparse.SUPPRESS)


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no day; give one such as 2026-01-31") from None


def _shared(parser: argparse.ArgumentParser, journal: str, *, as_json: object) -> None:
    """Add what may stand before and after the action."""
    add = parser.add_argument
    add("--journal", default=journal, metavar="FILE", help=f"where the runs are recorded ({JOURNAL})")
    add("--json", action="store_true", default=as_json, help="print JSON")


def _drafting(commands: Commands) -> None:
    drafted = commands.add_parser(
        "init",
        description="Write a study for your query and your data: the event time found, keys looked at, budgets that "
        "fit this machine. You add your rates. A script runs with its streams recorded instead of carried out; each "
        "streaming query that it starts gets a study, and each flow of a project of Declarative Pipelines.",
        epilog="For example: workbench init jobs.py:orders data/orders.csv, or workbench init job.py orders=orders.csv",
    )
    add = drafted.add_argument
    add(
        "query",
        metavar="QUERY",
        help="jobs.py:function, or nexmark:q5 with data of your own; or a script, job.py, or 'job.py ARGUMENT ...'; or "
        "a project, spark-pipeline.yml",
    )
    add(
        "data",
        metavar="DATA",
        nargs="*",
        help="Parquet, CSV or JSON, a file or a folder: one for each streaming DataFrame that the function takes; of a "
        "script, a sample of each source, SOURCE=FILE or in order",
    )
    add(
        "--event-time",
        metavar="COLUMN",
        action="append",
        default=[],
        help="the event-time column (found by its type and name); of several data sets, once for each",
    )
    add(
        "--sink",
        metavar="SINK",
        help="where the job writes: noop, parquet PLACE, delta PLACE, iceberg PLACE, kafka://HOST:PORT/TOPIC, or "
        "module:function for foreachBatch, with a place or without (a script's own, else noop)",
    )
    add(
        "--checkpoint", metavar="PLACE", help="a folder or URI for checkpoints (next to a script's own, else in memory)"
    )
    add("--output", metavar="FILE", default="study.yaml", help="the study (%(default)s)")


def _planning(commands: Commands) -> None:
    planned = commands.add_parser(
        "plan",
        epilog="example: workbench plan data/q5.yaml --report q5.html",
        description="Carry a study out: measure a query on small budgets, fit a model of its capacity, and plan the "
        "slots, memory and settings for each target rate. What is recorded in the journal is not measured again.",
    )
    add = planned.add_argument
    add(
        "study",
        metavar="STUDY",
        help="YAML file: query, targets (at most 1e15/s), slots (at most 100,000), memory_mb and more",
    )
    add("--dry-run", action="store_true", help="say what would be measured and how long it takes")
    add("--json", action="store_true", help="print JSON")
    add("--journal", default=JOURNAL, help="where every run is recorded (%(default)s)")
    add("--output", metavar="FILE", help="the plans as JSON (.workbench/FOLDER-STUDY-plan.json)")
    add("--report", metavar="FILE", help="also write one offline HTML file")
    add(
        "--alerts", metavar="FILE", help="write Prometheus' alerting rules of the plans, on what observe --watch serves"
    )
    _add_master(planned)
    planned.set_defaults(kept=KEPT)


def _clusters(commands: Commands) -> None:
    clusters = commands.add_parser(
        "cluster",
        description="Find the cheapest workers of one type that hold the executors and drivers of several plans.",
        epilog="For example: workbench cluster .workbench/data-q5-plan.json@60000 .workbench/q8-plan.json --prices "
        "data/instances.csv",
    )
    add = clusters.add_argument
    add(
        "plans",
        metavar="PLANS[@RATE]",
        nargs="+",
        help="what workbench plan wrote, and the target meant (records/s); default: the highest",
    )
    add("--prices", metavar="FILE", help="CSV file of instance types; default: the first study's")
    add("--json", action="store_true", help="print JSON")


def _placing(commands: Commands) -> None:
    placed = commands.add_parser(
        "place",
        epilog="example: workbench place data/placement.yaml --compare",
        description="Place the tasks of one or several queries on workers. INPUT is a problem (JSON or YAML: workers, "
        "slots, operators with tasks, cpu, io, net per task, edges; optional rate, worker, speeds, queries), a study "
        "that was planned, its plans, or a measurement.",
    )
    add = placed.add_argument
    add("inputs", nargs="+", metavar="INPUT", help="several are placed together on the same workers")
    add("--workers", type=whole, help="number of workers, unless the input says")
    add("--slots", type=whole, help="slots of each worker, unless the input says")
    add(
        "--speeds",
        type=_numbers,
        metavar="A,B,...",
        help="size of every worker: 2 has twice the cores and bytes/s, no faster ones (all alike)",
    )
    add("--rate", type=rate, metavar="R", help="target, records/s; which of several plans (the last)")
    add("--cpus", type=number, metavar="N", help="cores of a worker")
    add("--io", type=number, metavar="B", help="bytes/s of state access a worker can give")
    add("--net", type=number, metavar="B", help="bytes/s a worker can send")
    add(
        "--calibrate",
        action="store_true",
        help="take workers that the most even plan just fills at the rate (CAPSys, section 3.1), with 10 Gbit/s",
    )
    add("--method", metavar="NAME", help=_METHODS)
    add("--thresholds", type=_numbers, metavar="CPU,IO,NET", help="for caps and caps-first; inf switches one off")
    add("--odrp", metavar="NAME", help="weights of the odrp method: default, weighted or latency (default)")
    add(
        "--timeout",
        type=number,
        metavar="S",
        help="time limit of a search, seconds (5; of optimal none); Ctrl-C ends one with the best found so far",
    )
    add("--seed", type=whole, default=0, help="for methods that draw (0)")
    add("--draws", type=whole, help="placements drawn by --compare and --shapes (50)")
    add("--compare", action="store_true", help="all methods: cost vector and sustained rate")
    add(
        "--shapes",
        metavar="4x4,8x2",
        help="compare worker shapes under random placement, as Spark does, and name the best",
    )
    add("--flink", metavar="FILE", help="the plan (of --method) as CSV: operator, subtask, worker")
    add("--json", action="store_true", help="print JSON")


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of numbers such as 1,1,2") from None


def _scaling(commands: Commands) -> None:
    replayed = commands.add_parser(
        "replay",
        epilog="example: workbench replay q11 data/day.csv --slots 40",
        description="Replay a changing load against a simulated deployment under autoscaling policies: time at the "
        "target rate, latency, cost and reconfigurations of each policy.",
    )
    add = replayed.add_argument
    add(
        "query",
        metavar="QUERY",
        help=f"a simulated query ({_SIMULATED}), a study that was planned, its plans, a measurement, or '{_KEYED}': "
        "one keyed operator under Elasticutor's paradigms",
    )
    add("rates", metavar="CSV", help="the load: columns of time (seconds) and rate (records/s)")
    add("--time-column", default="time_s", metavar="NAME", help="column of the time (%(default)s)")
    add("--rate-column", default="rate_per_s", metavar="NAME", help="column of the rate (%(default)s)")
    add(
        "--slots",
        type=whole,
        help="slots at the beginning, at most 100,000, assigned by BIDS2 "
        "(default: those of the plan, or of the published deployment of "
        "a CAPSys query)",
    )
    add("--plan-rate", type=rate, metavar="RATE", help="target rate of the plan (the last plan)")
    add("--memory-mb", type=number, default=2048.0, help="memory of one slot, MB (2048)")
    add(
        "--managed-mb",
        type=number,
        help="managed memory of a slot at the beginning, Justin's level 0 (158 with Justin; other policies do not "
        "split a slot unless this is set)",
    )
    add(
        "--policy",
        nargs="+",
        metavar="NAME",
        help=f"some of {_POLICIES} (static ds2 flink), or module:name of your own; for '{_KEYED}' some of {_PARADIGMS} "
        "(all)",
    )
    add(
        "--setting",
        nargs="+",
        default=[],
        metavar="NAME=VALUE",
        help="settings of all autoscalers except flink, such as activation_s=90 max_parallelism=40, of "
        "dynamic-allocation, such as executor_slots=4 max_executors=30 tasks=200, and of keda, such as "
        "lag_threshold=1000 partitions=32; for "
        f"'{_KEYED}' of the operator and its elasticity, such as cpu_s=0.001 executors=8 shard_bytes=32768",
    )
    add("--restart", type=number, default=10.0, help="downtime of a reconfiguration, seconds (10)")
    add(
        "--response",
        nargs=3,
        metavar=("OPERATOR", "FILE", "TASKS"),
        help="hit rate, latency and true rate against memory, measured with TASKS tasks, CSV",
    )
    _add_workers(replayed)
    _add_keys(replayed)
    add("--seed", type=whole, default=0, help="seed of random placements, keys and service times (0)")
    add("--json", action="store_true", help="print JSON")
    add("--output", metavar="FILE", help="write every step of every policy as CSV")


def _add_workers(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--workers", type=whole, help=f"workers of the capsys policies, nodes of '{_KEYED}' (4)")
    add("--worker-slots", type=whole, default=4, help=f"slots of each, cores for '{_KEYED}' (4)")
    add("--worker-cpus", type=number, help="cores of each (as many as slots)")
    add("--worker-io-mb", type=number, help="MB/s of state access of each (no limit)")
    add("--worker-net-mb", type=number, help=f"MB/s of network output of each (no limit; 1 Gbit/s for '{_KEYED}')")
    add("--prices", metavar="FILE", help="price list of instance types, CSV")
    add("--instance", metavar="NAME", help="pay for complete workers of this type of the price list")


def _add_keys(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--hot-key",
        nargs=3,
        metavar=("OPERATOR", "SHARE", "PER_MIN"),
        help="one key has this share of the operator's records; another key takes its place PER_MIN times a minute",
    )
    add(
        "--shuffle-keys",
        nargs=3,
        metavar=("OPERATOR", "ZIPF", "PER_MIN"),
        help="the popularity of keys follows Zipf's law with this exponent and is shuffled PER_MIN times a minute",
    )
    add(
        "--keys",
        nargs=3,
        metavar=("OPERATOR", "FILE", "PER_MIN"),
        help="the popularity of your own keys, as printed by 'workbench keys DATA COLUMN --json', is shuffled PER_MIN "
        "times a minute",
    )


def _reporting(commands: Commands) -> None:
    reported = commands.add_parser(
        "report",
        description="Render a report as one HTML file that opens offline. NAME is capacity (carries a study out and "
        "compares it with its previous run), plan, measure, observe, papers, placement, scaling, the path of a report "
        "notebook, or a JSON file that measure or plan wrote.",
        epilog="A failed step gives a partial report that says what failed, and exit code 1. For example: "
        "workbench report capacity capacity.html -p study data/q5.yaml",
    )
    add = reported.add_argument
    add("name", metavar="NAME", help="which report")
    add("output", metavar="FILE", nargs="?", help="the HTML file to write")
    add("-p", "--parameter", nargs=2, action="append", default=[], metavar=("NAME", "VALUE"), help="set a parameter")
    add("-f", "--file", metavar="YAML", help="set the parameters in this file")
    add("--executed", action="store_true", help="NAME is a notebook that a scheduler has run: only write it as HTML")
    add("--parameters", action="store_true", help="list the report's parameters and end")
    add("--title", help="of the page")
    add("--timeout", type=number, metavar="S", help="longest time of one step, seconds")
    add("--json", action="store_true", help="print JSON")


def _add_master(parser: argparse.ArgumentParser) -> None:
    """Add the master and the settings of a cluster; none has a default, so that a study's own stay."""
    group = parser.add_argument_group("cluster", "where Spark runs, if not on this machine; docs/clusters.md has more")
    add = group.add_argument
    add("--master", metavar="URL", help="spark://HOST:PORT, k8s://https://HOST:PORT or yarn (local)")
    add("--checkpoint", metavar="URI", help="folder that this machine and all executors reach")
    add("--executor-slots", type=whole, metavar="N", help="slots of one executor (1)")
    add("--python", metavar="PATH", help="the executors' Python: a path, or a name on their PATH")
    add(
        "--environment",
        metavar="ARCHIVE",
        help="the executors' Python and packages, as conda-pack or venv-pack packs them",
    )
    add("--driver-host", metavar="HOST", help="this machine's address as executors reach it")
    add("--event-log", metavar="URI", help="folder to copy each deployment's event log to")
    add("--allocation-s", type=number, metavar="SECONDS", help="longest wait for executors (120)")


ADD: Mapping[str, Callable[[Commands], None]] = {
    one.__name__.removeprefix("_"): one
    for one in (
        _checking,
        _speed,
        _measuring,
        _keys,
        _observing,
        _topics,
        _journals,
        _drafting,
        _planning,
        _clusters,
        _placing,
        _scaling,
        _reporting,
    )
}
"""What adds commands to the parser, by the module that carries them out."""
