"""The options of each command, written as its help shows them; apart from its work, so that `--help` is quick.

A text has a description, the options and an example, apart by empty lines. An option is one line, or several of which
the further ones are indented: its names, its values, its default, and after two blanks its help.

- ``--rate:rate R`` takes a value called R, which is read as a rate; ``:str`` is for a text without such a name.
- ``--interval>interval_s`` is the setting `interval_s`, by its name in Python and in studies.
- ``N ...`` takes one or more, ``[N ...]`` any number, ``[FILE]`` one or none, ``NAME VALUE`` two, ``a|b`` one of these.
- ``--event-time* COLUMN`` may be given several times.
- ``--watch``, without a value, is a switch; `add` gives ``--json`` to each command that prints.
"""

import argparse
import re
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any, TypeAlias

from workbench import bounds, units
from workbench.cli.console import JOURNAL, KEPT
from workbench.defaults import INTERVAL_S, MEMORY_MB
from workbench.errors import WorkbenchError

Commands: TypeAlias = "argparse._SubParsersAction[Any]"  # noqa: SLF001 - no other name

_COMMAS = re.compile(r"[-+]?\d{1,3}(,\d{3})+(\.\d*)?")  # in the form of answers


def _reader(read: Callable[[str], Any], what: str) -> Callable[[str], Any]:
    """Make a reader of a value, which names `what` it is not in its error."""

    def reader(text: str) -> object:
        try:
            return read(text.replace(",", "") if _COMMAS.fullmatch(text) and read in {int, float} else text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a {what}") from None

    return reader


_whole = _reader(int, "whole number; write it like 1024 or 1,024")
_number = _reader(float, "number; write it like 1024 or 1,024")


def _rate(text: str) -> float:
    """Read records per second: a number, or one with a prefix such as ``"1.5M"``."""
    try:
        value: float = _number(text)
    except argparse.ArgumentTypeError:
        try:
            value = units.read_rate(text)
        except WorkbenchError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
    if value > bounds.RATE:
        raise argparse.ArgumentTypeError(f"{text!r} is too high; give at most {bounds.RATE:g} records/s")
    return value


def _port(text: str) -> int:
    value: int = _whole(text)
    if not 0 <= value < 1 << 16:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port; give 0 to 65535")
    return value


_READ: Mapping[str, Callable[[str], Any]] = {
    "str": str, "whole": _whole, "number": _number, "rate": _rate, "port": _port,
    "numbers": _reader(lambda text: tuple(map(float, text.split(","))), "list of numbers such as 1,1,2"),
    "day": _reader(date.fromisoformat, "date; write it like 2026-01-31"),
}  # fmt: skip
_OPTION = re.compile(
    r"(?P<names>(?:-\w, )?[-\w]+)(?P<often>\*)?(?:>(?P<setting>\w+))?(?::(?P<kind>\w+))?"
    r"(?: (?P<values>[^=].*?))?(?: =(?P<default>.*))?"
)

_DEPLOYMENT = f"""
--slots:whole  tasks that run at once (2; whole cores: all but one)
--slot-cpus:number CORES  cores of one slot (0.4; without quotas 1)
--memory-mb:whole ={MEMORY_MB}  memory of one slot, MB (1024)
--interval>interval_s:number ={INTERVAL_S}  trigger interval, seconds (2)
--dataset PATH  Parquet, CSV or JSON file or folder that feeds the query, or kafka://HOST:PORT/TOPIC
--event-time COLUMN  its event-time column, replaced on replay
--source replay|kafka =replay  how the query gets its rows: replayed, or by Spark's Kafka source from --dataset, a topic
--output-mode append|update|complete  Spark's output mode"""

_CLIENT = """
--client-config FILE  client settings, name=value a line, secrets included (else what WORKBENCH_KAFKA_CONFIG names)"""

_CLUSTER = """
--master URL  spark://HOST:PORT, k8s://https://HOST:PORT or yarn (local)
--checkpoint URI  folder that this machine and all executors reach
--executor-slots:whole N  slots of one executor (1)
--python PATH  the executors' Python: a path, or a name on their PATH
--environment ARCHIVE  the executors' Python and packages, as conda-pack or venv-pack packs them
--driver-host HOST  this machine's address as executors reach it
--event-log URI  folder to copy each deployment's event log to
--allocation-s:number SECONDS  longest wait for executors (120)"""
"""Options without a default, so that a study's own values stay."""

_COMMANDS: Mapping[str, str] = {
    "doctor": f"""
Check whether this machine can measure, draw and report, and show how to fix what is missing; of a cluster (--master),
also whether it gives executors on which a query can be measured. The exit code is 2 if something is lacking that
measuring needs. With --bundle, list what a maintainer needs to repeat a failure, without data and secrets.

--bundle FILE  list what goes into this ZIP file; nothing is written without --yes
--yes  write the file
--study FILE  the study that failed (the last failure's)
--journal FILE ={JOURNAL}  the journal that failed (%(default)s)
--slots:whole =1  slots that a cluster is asked for (1)
--memory-mb:whole ={MEMORY_MB}  memory of each of these slots, MB (1024)

example: workbench doctor --bundle workbench-defect.zip""",
    "speed": """
Time two fixed pieces of work, arithmetic within the first cache and reads at random places of the memory, and say how
fast this machine's cores are, compared with the reference machine's: that of the plans that ship with the workbench. It
needs neither Java nor Spark. With --json, times are in seconds.

--seconds:number =20.0  how long to time (%(default)g)

example: workbench speed --json""",
    "measure": f"""
Deploy a query on this machine or a cluster and try rates until the highest that it sustains is bracketed. Every probe
is recorded in the journal: a measurement that was interrupted goes on from its last.

query QUERY  nexmark:q5, module:function of your own, or a study, for its query and data{_DEPLOYMENT}
--tolerance:number  relative width of the bracket (0.04; StreamBed's schedules: 0.01)
--schedule adaptive|streambed|streambed-stateful =adaptive  how rates are tried: adaptively, or by
    StreamBed's published times for simple or for stateful queries
--minutes:number  no further rate is tried after these, if one is sustained (the time of 7 undisturbed probes)
--max-rate:rate R  highest rate to try, records/s
--no-costs  leave out the runs for fixed and per-record costs
--journal ={JOURNAL}  where every probe is recorded (%(default)s)
--output FILE  the measurement as JSON (.workbench/QUERY.json)
--report FILE  also write one offline HTML file

example: workbench measure nexmark:q5 --slots 2 --report q5.html""",
    "verify": f"""
Deploy a query on this machine or a cluster and run it at a rate, or at shares of it. The exit code says whether the
lowest was sustained. Of a file that workbench plan wrote, the deployment of a target is run as planned: at its rate,
which must be sustained, and just above its interval, which must not.

query QUERY  nexmark:q5, module:function, a study, for its query and data, or a file of plans{_DEPLOYMENT}
--rate:rate  records/s; of a plan, the target (the highest that fits)
--percent:number PERCENT ... =100 120 150  percentages of the rate to run at (100 120 150)

example: workbench verify .workbench/data-q5-plan.json""",
    "keys": """
Count the keys of a column: the hottest of them, how unevenly they fill shuffle partitions, and how many tasks are of
use. Files of at most 1 GiB take about a second; Spark counts what is larger, nested or has more than a million keys.

data DATA  Parquet, CSV or JSON: a file or a folder; or a study
column COLUMN  the key
--method auto|exact|sketch =auto  how to count (%(default)s)
--tracked:whole =10000  items of the sketch (%(default)s)
--top:whole =1000  keys listed by --json (%(default)s)
--partitions:whole N ... =8 32 200  shuffle partitions to spread over
--plan FILE  a study that was planned, its plans, or a measurement of the query: what the hottest key takes in it
--rate:rate R  records/s to say that for (the plan's)

example: workbench keys data/orders.csv shop""",
    "observe": """
Read the log of a running query, and say what it sustains, what limits it, what it has left at its peak, what an outage
costs, and how it changes. Nothing is started and nothing is measured. With --target, it is also planned for other
rates.

log LOG  event log, log of the driver, or progress events as JSON: a file or a folder; zstd, lz4, snappy, gz
--query NAME  name or id of the query, if the log has several
--progress FILE  progress events, if an event log has none
--interval>interval_s:number S  trigger interval in seconds (default: read from the log)
--slots:whole N  tasks that can run at once, which progress events do not show
--slot-cpus:number C  cores of a slot (default: as the cluster counts them)
--target>targets:rate R ...  rates to plan for, records/s
--rows:rate N  rows of a run that takes what there is and ends
--deadline>deadline_s:number S  seconds from its start in which it must be done
--start>start_s:number S  seconds until its first batch (default: as the log shows, or 60)
--prices FILE  CSV file of worker types, for plans with costs
--risk:number P  probability of falling short that plans may have
--outage>outage_min:number MIN =10.0  outage in minutes to catch up after (%(default)g)
--measured PLANS  compare with the plans of a study that was measured (workbench plan)
--output FILE  where to write the plans (default: in .workbench)
--report FILE  write an HTML report
--watch  follow the log as it is written, and serve what it shows for Prometheus on 127.0.0.1
--port:port N =9464  of --watch; 0: any that is free (%(default)s)

example: workbench observe eventlog_v2_app-20260131 --target 500000 --report head-room.html""",
    "capture": f"""
Write the newest records of a Kafka topic to a Parquet file, as data for a study: values that are JSON objects, or Avro
with a schema, become columns, with key, timestamp, partition, offset and headers.
{_CLIENT}
topic TOPIC  kafka://HOST:PORT/TOPIC
file FILE  the Parquet file
--rows:whole =1000000  most records (%(default)s)
--megabytes:whole =512  most MiB of keys and values (%(default)s)
--seconds:number  only records of the last S seconds
--schema SCHEMA  the values' schema: an Avro record, or a schema registry's answer, as a file

example: workbench capture kafka://localhost:9092/orders orders.parquet --rows 100000""",
    "fill": f"""
Send rows of a data set, or Nexmark events, to a Kafka topic at full speed, as JSON; a captured sample with its keys,
headers and values as they were. A record's timestamp is its event time. The topic is created if it is missing.
{_CLIENT}
topic TOPIC  kafka://HOST:PORT/TOPIC
data DATA  Parquet, CSV or JSON file or folder, or nexmark
--rows:whole =1000000  rows to send, repeating a data set (%(default)s)
--event-time COLUMN  event-time column of the data, replaced up to now
--event-rate:rate =100000.0  rows per second of event time (%(default)g)
--key COLUMN  column that is the record's key (default: none; of a sample, its own)
--partitions:whole =4  of a topic that is created (%(default)s)

example: workbench fill kafka://localhost:9092/bids nexmark --rows 100000""",
    "journal": """
List what was measured, show one measurement, compare two, or remove what is not needed. Nothing is deleted unless you
add --yes to prune.



A KEY is a measurement's name in the list, or its beginning: workbench journal show nexmark:q5/1a2b""",
    "init": """
Write a study for your query and your data: the event time found, keys looked at, budgets that fit this machine. You add
your rates. A script runs with its streams recorded instead of carried out; each streaming query that it starts gets a
study, and each flow of a project of Declarative Pipelines.

query QUERY  jobs.py:function, nexmark:q5 with data of your own, a script, job.py or 'job.py ARGUMENT ...', or a
    project, spark-pipeline.yml
data [DATA ...]  Parquet, CSV or JSON, a file or a folder: one for each streaming DataFrame that the function takes; of
    a script, a sample of each source, SOURCE=FILE or in order
--event-time* COLUMN  the event-time column (found by its type and name); of several data sets, once for each
--sink SINK  where the job writes: noop, parquet PLACE, delta PLACE, iceberg PLACE, kafka://HOST:PORT/TOPIC, or
    module:function for foreachBatch, with a place or without (a script's own, else noop)
--checkpoint PLACE  a folder or URI for checkpoints (next to a script's own, else in memory)
--output FILE =study.yaml  the study (%(default)s)

For example: workbench init jobs.py:orders data/orders.csv, or workbench init job.py orders=orders.csv""",
    "plan": f"""
Carry a study out: measure a query on small budgets, fit a model of its capacity, and plan the slots, memory and
settings for each target rate. What is recorded in the journal is not measured again.

study STUDY  YAML file: query, targets (at most 1e15/s), slots (at most {bounds.TASKS:,}), memory_mb and more
--dry-run  say what would be measured and how long it takes
--journal ={JOURNAL}  where every run is recorded (%(default)s)
--output FILE  the plans as JSON (.workbench/FOLDER-STUDY-plan.json)
--report FILE  also write one offline HTML file
--alerts FILE  write Prometheus' alerting rules of the plans, on what observe --watch serves

example: workbench plan data/q5.yaml --report q5.html""",
    "cluster": """
Find the cheapest workers of one type that hold the executors and drivers of several plans.

plans PLANS[@RATE] ...  what workbench plan wrote, and the target meant (records/s); default: the highest
--prices FILE  CSV file of instance types; default: the first study's

For example: workbench cluster .workbench/data-q5-plan.json@60000 .workbench/q8-plan.json --prices
data/instances.csv""",
    "place": """
Place the tasks of one or several queries on workers. INPUT is a problem (JSON or YAML: workers, slots, operators with
tasks, cpu, io, net per task, edges; optional rate, worker, speeds, queries), a study that was planned, its plans, or a
measurement.

inputs INPUT ...  several are placed together on the same workers
--workers:whole  number of workers, unless the input says
--slots:whole  slots of each worker, unless the input says
--speeds:numbers A,B,...  size of every worker: 2 has twice the cores and bytes/s, no faster ones (all alike)
--rate:rate R  target, records/s; which of several plans (the last)
--cpus:number N  cores of a worker
--io:number B  bytes/s of state access a worker can give
--net:number B  bytes/s a worker can send
--calibrate  take workers that the most even plan just fills at the rate (CAPSys, section 3.1), with 10 Gbit/s
--method NAME  optimal: most records/s (the default); caps: as CAPSys; caps-first, caps-all, least-cost, top-down,
    task-level, naive-pairs, best-groups, flink-default, flink-evenly, round-robin, random, odrp (reconstructed from
    CAPSys)
--thresholds:numbers CPU,IO,NET  for caps and caps-first; inf switches one off
--odrp NAME  weights of the odrp method: default, weighted or latency (default)
--timeout>timeout_s:number S  time limit of a search, seconds (5; none for optimal); Ctrl-C ends it with the best so far
--seed:whole =0  for methods that draw (0)
--draws>samples:whole  placements drawn by --compare and --shapes (50)
--compare  all methods: cost vector and sustained rate
--shapes 4x4,8x2  compare worker shapes under random placement, as Spark does, and name the best
--flink FILE  the plan (of --method) as CSV: operator, subtask, worker

example: workbench place data/placement.yaml --compare""",
    "replay": f"""
Replay a changing load against a simulated deployment under autoscaling policies: time at the target rate, latency, cost
and reconfigurations of each policy.

query QUERY  a simulated query (q1, q2, q3, q5, q8, q11, Q1-sliding, Q2-join, Q3-inf, Q4-join, Q5-aggregate,
    Q6-session), a study that was planned, its plans, a measurement, or 'keyed': one keyed operator under Elasticutor's
    paradigms
rates CSV  the load: columns of time (seconds) and rate (records/s)
--time-column NAME  column of the time (time_s)
--rate-column NAME  column of the rate (rate_per_s)
--slots:whole  slots at the beginning, at most {bounds.TASKS:,}, assigned by BIDS2 (the plan's, or as CAPSys published)
--plan-rate:rate RATE  target rate of the plan (the lowest over the peak)
--memory-mb:number  memory of one slot, MB (2048)
--managed-mb:number  managed memory of a slot at the beginning, Justin's level 0 (158 with
    Justin; other policies split a slot only if this is given)
--policy>policies NAME ...  some of static, ds2, flink, dynamic-allocation, keda, justin, justin-hysteresis,
    justin-gives-back, capsys, capsys-optimum, capsys-default, capsys-evenly (static ds2 flink), or
    module:name of your own; for 'keyed' some of static, resource-centric, naive-executor-centric, executor-centric
    (all)
--setting>settings NAME=VALUE ...  settings of all autoscalers except flink, such as activation_s=90 max_parallelism=40,
    of dynamic-allocation, such as executor_slots=4 max_executors=30 tasks=200, and of keda, such as lag_threshold=1000
    partitions=32; for 'keyed' of the operator and its elasticity, such as cpu_s=0.001 executors=8 shard_bytes=32768
--restart>restart_s:number  downtime of a reconfiguration, seconds (10)
--response OPERATOR FILE TASKS  hit rate, latency and true rate against memory, measured with TASKS tasks, CSV
--workers:whole  workers of the capsys policies, nodes of 'keyed' (4)
--worker-slots:whole  slots of each, cores for 'keyed' (4)
--worker-cpus:number  cores of each (as many as slots)
--worker-io-mb:number  MB/s of state access of each (no limit)
--worker-net-mb:number  MB/s of network output of each (no limit; 1 Gbit/s for 'keyed')
--prices FILE  price list of instance types, CSV (the plan's price)
--instance NAME  pay for complete workers of this type of the price list (the plan's)
--hot-key OPERATOR SHARE PER_MIN  one key has this share of OPERATOR's records; which one changes PER_MIN times a minute
--shuffle-keys OPERATOR ZIPF PER_MIN  shares of OPERATOR's keys by Zipf's law with this exponent,
    shuffled PER_MIN times a minute
--keys OPERATOR FILE PER_MIN  shares of your keys, as 'workbench keys DATA COLUMN --json' prints them,
    shuffled PER_MIN times a minute
--seed:whole  seed of random placements, keys and service times (0)
--output FILE  write every step of every policy as CSV; its latency_s is that of the last records of a step, while the
    answer's latencies are over all records

example: workbench replay q11 data/day.csv --slots 40""",
    "report": """
Render a report as one HTML file that opens offline. NAME is capacity (carries a study out and compares it with its
previous run), plan, measure, observe, papers, placement, scaling, the path of a report notebook, or a JSON file that
measure or plan wrote.

name NAME  which report
output [FILE]  the HTML file to write
-p, --parameter* NAME VALUE  set a parameter
-f, --file YAML  set the parameters in this file
--executed  NAME is a notebook that a scheduler has run: only write it as HTML
--parameters  list the report's parameters and end
--title:str  of the page
--timeout>timeout_s:number S  longest time of one step, seconds

A failed step gives a partial report that says what failed, and exit code 1. For example: workbench report capacity
capacity.html -p study data/q5.yaml""",
}

_ACTIONS: Mapping[str, str] = {
    "list": """
List the measurements of a journal, with their sizes.""",
    "show": """
Show one measurement: its rate, its probes, the plans that use it.""",
    "compare": """
Compare two measurements, and say whether chance explains the difference. Of one KEY, its last two measurements are
compared.

keys KEY ...  one or two measurements, the earlier one first""",
    "prune": """
Say what can be removed: the probes that their finished measurement holds itself, those of measurements that were given
up, and the measurements that you name. What plans refer to stays. Nothing is removed without --yes.

keys [KEY ...]  also remove all measurements that begin so
--before:day DATE  also remove those from before a day, as 2026-01-31
--plans FILE ...  plans whose measurements stay, next to the journal's
--yes  remove it""",
}
"""Of the journal."""

_ON_A_CLUSTER, _WITHOUT_JSON = {"doctor", "measure", "verify", "plan"}, {"init", "journal"}
_FLAGS: Mapping[str, str] = {
    setting: name for text in _COMMANDS.values() for name, setting in re.findall(r"(?m)^(--.+?)>(\w+)", text)
}
_KEPT = {"measure": KEPT, "plan": KEPT, "capture": "nothing was written"}


def flag(setting: str) -> str:
    """Return the option of a setting."""
    return _FLAGS.get(setting, f"--{setting.replace('_', '-')}")


def add(commands: Commands, name: str) -> None:
    """Add a command to the parser."""
    made = _added(commands, name, _COMMANDS[name])
    if name not in _WITHOUT_JSON:
        made.add_argument("--json", action="store_true", help="print JSON")
    made.set_defaults(usual={one.dest: one.default for one in made._actions})  # noqa: SLF001 - no other way
    if name in _KEPT:
        made.set_defaults(kept=_KEPT[name])
    if name in _ON_A_CLUSTER:
        where = "where Spark runs, if not on this machine; docs/clusters.md has more"
        _add_options(made.add_argument_group("cluster", where), _CLUSTER)
    if name == "journal":
        _add_shared(made, JOURNAL, as_json=False)
        actions = made.add_subparsers(metavar="ACTION", dest="action", help="list (the default), show, compare, prune")
        for action, text in _ACTIONS.items():
            _add_shared(_added(actions, action, text), argparse.SUPPRESS, as_json=argparse.SUPPRESS)
        actions.choices["show"].add_argument("keys", nargs=1, metavar="KEY", help="the measurement")


def _values(text: str | None) -> dict[str, Any]:
    """Return what argparse needs to know about the values of an option."""
    if not text:
        return {}
    first, *more = text.strip("[]").split()
    if "|" in text:
        return {"choices": text.split("|")}
    if text.startswith("["):
        return {"metavar": first, "nargs": "*" if more else "?"}
    if more == ["..."]:
        return {"metavar": first, "nargs": "+"}
    return {"metavar": (first, *more), "nargs": 1 + len(more)} if more else {"metavar": first}


def _added(commands: Commands, name: str, text: str) -> argparse.ArgumentParser:
    description, options, example = [*text.strip().split("\n\n"), "", ""][:3]
    made: argparse.ArgumentParser = commands.add_parser(name, description=description, epilog=example)
    _add_options(made, options)
    return made


def _add_options(parser: "argparse.ArgumentParser | argparse._ArgumentGroup", text: str) -> None:
    """Add the options of a text; the module describes their form."""
    for entry in filter(None, re.split(r"\n+(?! )", text)):
        said, _, explained = entry.partition("  ")
        found = _OPTION.fullmatch(said)
        assert found is not None, said  # noqa: S101 - written above
        names, read = found["names"].split(", "), _READ[found["kind"] or "str"]
        given: dict[str, Any] = {"help": explained}
        if found["setting"]:
            given |= {"dest": found["setting"], "metavar": names[-1].lstrip("-").upper()}
        if said == names[-1]:
            parser.add_argument(*names, action="store_true", **given)
            continue
        given |= {"type": read, **_values(found["values"])}
        if found["often"]:
            given |= {"action": "append", "default": []}
        elif found["default"] is not None:
            defaults = [int(one) if one.isdigit() else read(one) for one in found["default"].split()]
            given["default"] = defaults if "nargs" in given else defaults[0]
        elif given.get("nargs") == "+" and names[0].startswith("-"):
            given["default"] = []
        parser.add_argument(*names, **given)


def _add_shared(parser: argparse.ArgumentParser, journal: str, *, as_json: object) -> None:
    """Add the options that are allowed before and after the action."""
    parser.add_argument("--journal", default=journal, metavar="FILE", help=f"where the runs are recorded ({JOURNAL})")
    parser.add_argument("--json", action="store_true", default=as_json, help="print JSON")
