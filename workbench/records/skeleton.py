"""The skeleton of a planned job: trigger, source partitions, checkpoint, and the admission cap.

A script is its own job; of that, what it must set itself.
"""

import keyword
import math
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench import units
from workbench.records.job_settings import NOOP, JobSettings, Sink

if TYPE_CHECKING:
    from workbench.records.plan import CapacityPlan

NEEDED = "org.apache.spark:spark-sql-kafka-0-10_2.13:SPARK-VERSION"  # the package that its source needs
_OWN = re.compile(r"([^\W\d]\w*(?:\.[^\W\d]\w*)*):([^\W\d]\w*)", re.ASCII)
_SCRIPT = re.compile(r"([^\s:]+\.(?:py|sql|ya?ml))((?:\s.*)?)#\d+", re.DOTALL)
_OURS = "nexmark"
_DIGITS = 3  # of the cap
_JOB = '''"""{title}, as planned by the Streaming Capacity Workbench.

Replace the names in capitals. Start it with the plan's command.
"""

from pyspark.sql import SparkSession

{more}from {module} import {decodes}, {function}  # DECODE turns Kafka's value into the columns your query expects

spark = SparkSession.builder.appName({name}).getOrCreate()
{streams}
(
    {function}({decoded})
    .writeStream.queryName({name}){sink}
    .outputMode("MODE")
    .option("checkpointLocation", {checkpoint})
    .trigger({trigger})
    .{start}
    .awaitTermination()
)
'''
_SCRIPTS = '''"""{title}, as planned by the Streaming Capacity Workbench.

The script stays the job: start it with the plan's command. What a script sets itself counts, not what the command sets:
take out what is in both. Set in it what no command can:

{lines}
"""
'''
_STREAM = """{stream} = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", "BROKERS")
    .option("subscribe", "{topic}")
    .option("minPartitions", {partitions})
    .option("maxOffsetsPerTrigger", {cap})
    .load()
)"""
_FILES = {"csv", "delta", "json", "orc", "parquet", "text", "xml"}


@dataclass(frozen=True)
class ScriptFacts:
    """Facts about the script that a plan starts."""

    name: str = ""  # name of its query (``queryName``); "" if it has none
    reads: tuple[str, ...] = ()  # Spark's formats of its sources, in the order of the inputs; empty: not known
    sets: tuple[str, ...] = ()  # settings that it makes itself, ``NAME=VALUE``


def names_of(query: str) -> tuple[str, str]:
    """Return the module and the function of a query, in capitals if it has none of its own."""
    found = _OWN.fullmatch(query)
    if found is None or found[1] == _OURS or any(keyword.iskeyword(word) for word in re.split("[.:]", query)):
        return "MODULE", "FUNCTION"
    return found[1], found[2]


def module_file(query: str) -> str:
    """Return the file of a query's module, to be sent to the executors; for a package, its archive."""
    module, *within = names_of(query)[0].split(".")
    return f"{module}.{'zip' if within else 'py'}"


def script_of(query: str) -> tuple[str, ...] | None:
    """Return the path of a query's script, and its arguments; None for a function."""
    found = _SCRIPT.fullmatch(query)
    try:
        return None if found is None else (found[1], *shlex.split(found[2]))
    except ValueError:  # a quote that is not closed
        return None


def skeleton(plan: "CapacityPlan") -> str:
    """Write the job of a plan, whose batches admit what its capacity processes in one interval.

    It runs continuously, or takes the available rows and ends. It writes as the plan's settings say, to a TABLE of
    yours. For a script: what it must set itself, and what it sets otherwise than the plan.
    """
    query, interval_s, inputs = plan.query, plan.budget.interval_s, plan.inputs or {"": 1.0}
    laid_out = [] if plan.layout is None else [*plan.layout.source_partitions.values()]
    partitions = max(laid_out, default=plan.budget.slots)
    title = f"{query} at {units.rate(plan.rate)}".replace("\\", "/").replace('"', "'")
    caps = {name: _floored(share * plan.expected_rate * interval_s) for name, share in inputs.items()}
    ends = plan.run is not None
    trigger = "availableNow=True" if ends else f'processingTime="{round(interval_s * 1000)} milliseconds"'
    if (started := script_of(query)) is not None:
        known = plan.script or ScriptFacts()
        reads = known.reads if len(known.reads) == len(caps) else [""] * len(caps)
        sources = zip(caps.items(), reads, strict=True)
        lines = [line for (name, cap), kind in sources for line in _source(name, kind, partitions, cap)]
        if started[0].endswith(".py"):
            named = f".queryName({query!r})" if plan.script is not None and not plan.script.name else ""
            lines.append(f"    query: {named}.trigger({trigger})")
        conf, made = plan.spark_conf(), (one.partition("=") for one in known.sets)
        doubled = [(name, value) for name, _, value in made if conf.get(name, value) != value]
        lines += [f"    take out {name}={value}: the plan has {conf[name]}" for name, value in doubled]
        told = "\n".join(lines) or "    nothing"
        return _SCRIPTS.format(title=title, lines=told.replace("\\", "/").replace('"' * 3, "'"))
    brought = plan.settings or JobSettings()
    sink, checkpoint = brought.writes, brought.checkpoint
    more, written, start = _writing(sink)
    module, function = names_of(query)
    decodes = {name: f"DECODE_{name.upper()}" if name else "DECODE" for name in inputs}
    stream = {name: f"{name}_stream" if name else "stream" for name in inputs}
    streams = [
        _STREAM.format(
            stream=stream[name],
            topic=f"{name.upper()}_TOPIC" if name else "TOPIC",
            partitions=partitions,
            cap=caps[name],
        )
        for name in inputs
    ]
    return _JOB.format(
        title=title,
        name=repr(query),
        module=module,
        function=function,
        decodes=", ".join(decodes.values()),
        streams="\n".join(streams),
        decoded=", ".join(f"{decodes[name]}({stream[name]})" for name in inputs),
        more=more,
        sink=written,
        start=start,
        checkpoint=repr(f"{checkpoint.rstrip('/')}/NAME") if checkpoint else '"CHECKPOINT"',
        trigger=trigger,
    )


def _source(name: str, kind: str, partitions: int, cap: int) -> Iterator[str]:
    """Yield what to set at a script's source of a `kind`, "" if that is unknown."""
    source = f"    source{f' {name}' * bool(name)}"
    if kind in {"", "kafka"}:
        options = f'.option("minPartitions", {partitions}).option("maxOffsetsPerTrigger", {cap})'
        yield f"{source}{', if it is Kafka' * (not kind)}: {options}"
    elif kind in _FILES:
        yield f'{source}, {kind}: .option("maxFilesPerTrigger", FILES), as many as have {cap:,} rows'


def _writing(sink: Sink) -> tuple[str, str, str]:
    """Return the import that writing to a sink takes, the beginning of its writer, and its start."""
    if sink.kind == NOOP:
        return "", '.format("SINK")', "start()"
    if sink.function:
        module, _, function = sink.function.rpartition(":")
        module = module.removesuffix(".py").replace("/", ".")
        return f"from {module} import {function}\n", f".foreachBatch({function})", "start()"
    if sink.kind == "kafka":
        servers, _, topic = sink.place.removeprefix("kafka://").partition("/")
        options = f'.option("kafka.bootstrap.servers", {servers!r}).option("topic", {topic!r})'
        return "", f'.format("kafka"){options}', "start()"
    if sink.kind == "iceberg":
        return "", '.format("iceberg")', 'toTable("CATALOG.DATABASE.TABLE")'
    return "", f".format({sink.kind!r})", f"start({sink.place.rstrip('/') + '/TABLE'!r})"


def _floored(rows: float) -> int:
    """Round down to the digits that a capacity is known to."""
    unit: int = 10 ** max(0, math.floor(math.log10(max(1.0, rows))) + 1 - _DIGITS)
    return math.floor(rows / unit) * unit
