"""The skeleton of a job, as planned: trigger, source partitions, checkpoint, and the admission cap.

A script is its own job; of that, what it must set itself.
"""

import keyword
import math
import re
import shlex
from collections.abc import Mapping

from workbench import units
from workbench.records.job_settings import JobSettings
from workbench.records.sink import NOOP, Sink

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
_ONE: Mapping[str, float] = {"": 1.0}


def names_of(query: str) -> tuple[str, str]:
    """Give the module and the function of a query, in capitals if it has none of its own."""
    found = _OWN.fullmatch(query)
    if found is None or found[1] == _OURS or any(keyword.iskeyword(word) for word in re.split("[.:]", query)):
        return "MODULE", "FUNCTION"
    return found[1], found[2]


def module_file(query: str) -> str:
    """Give the file of a query's module, to be sent to the executors: of a package, its archive."""
    module, *within = names_of(query)[0].split(".")
    return f"{module}.{'zip' if within else 'py'}"


def script_of(query: str) -> tuple[str, ...] | None:
    """Give the path of the script whose query it is, and its arguments; None of a function."""
    found = _SCRIPT.fullmatch(query)
    try:
        return None if found is None else (found[1], *shlex.split(found[2]))
    except ValueError:  # a quote that does not end
        return None


def skeleton(
    query: str,
    rate: float,
    partitions: int,
    capacity: float,
    interval_s: float,
    *,
    ends: bool = False,
    inputs: Mapping[str, float] = _ONE,
    settings: JobSettings | None = None,
) -> str:
    """Write the job of `query` for `rate`, whose batches admit what `capacity` works off in one interval.

    It goes on, or takes what there is and `ends`. Several `inputs` have their shares of it. It writes as `settings`
    say, to a TABLE of yours. Of a script's query, what the script must set itself.
    """
    title = f"{query} at {units.rate(rate)}".replace("\\", "/").replace('"', "'")
    caps = {name: _floored(share * capacity * interval_s) for name, share in inputs.items()}
    trigger = "availableNow=True" if ends else f'processingTime="{round(interval_s * 1000)} milliseconds"'
    if (script := script_of(query)) is not None:
        lines = [
            f'    source{f" {name}" * bool(name)}, if it is Kafka: .option("minPartitions", {partitions})'
            f'.option("maxOffsetsPerTrigger", {cap})'
            for name, cap in caps.items()
        ]
        lines += [f"    query: .trigger({trigger})"] * script[0].endswith(".py")
        return _SCRIPTS.format(title=title, lines="\n".join(lines))
    brought = settings or JobSettings()
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


def _writing(sink: Sink) -> tuple[str, str, str]:
    """Give the import that writing to a sink takes, how its writer begins, and how it starts."""
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
