"""The skeleton of a job, as planned: trigger, source partitions, checkpoint, and the admission cap."""

import keyword
import math
import re

from workbench import units

NEEDED = "org.apache.spark:spark-sql-kafka-0-10_2.13:SPARK-VERSION"
"""The package that its source needs."""

_OWN = re.compile(r"([^\W\d]\w*(?:\.[^\W\d]\w*)*):([^\W\d]\w*)", re.ASCII)
_OURS = "nexmark"
_DIGITS = 3  # of the cap
_JOB = '''"""{title}, as planned by the Streaming Capacity Workbench.

Replace the names in capitals. Start it with the plan's command.
"""

from pyspark.sql import SparkSession

from {module} import DECODE, {function}  # DECODE turns Kafka's value into the columns your query expects

spark = SparkSession.builder.appName({name}).getOrCreate()
stream = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", "BROKERS")
    .option("subscribe", "TOPIC")
    .option("minPartitions", {partitions})
    .option("maxOffsetsPerTrigger", {cap})
    .load()
)
(
    {function}(DECODE(stream))
    .writeStream.format("SINK")
    .outputMode("MODE")
    .option("checkpointLocation", "CHECKPOINT")
    .trigger({trigger})
    .start()
    .awaitTermination()
)
'''


def names_of(query: str) -> tuple[str, str]:
    """Give the module and the function of a query, in capitals if it has none of its own."""
    found = _OWN.fullmatch(query)
    if found is None or found[1] == _OURS or any(keyword.iskeyword(word) for word in re.split("[.:]", query)):
        return "MODULE", "FUNCTION"
    return found[1], found[2]


def skeleton(
    query: str, rate: float, partitions: int, capacity: float, interval_s: float, *, ends: bool = False
) -> str:
    """Write the job of `query` for `rate`, whose batches admit what `capacity` works off in one interval.

    It goes on, or takes what there is and `ends`.
    """
    module, function = names_of(query)
    return _JOB.format(
        title=f"{query} at {units.rate(rate)}".replace("\\", "/").replace('"', "'"),
        name=repr(query),
        module=module,
        function=function,
        partitions=partitions,
        cap=_floored(capacity * interval_s),
        trigger="availableNow=True" if ends else f'processingTime="{round(interval_s * 1000)} milliseconds"',
    )


def _floored(rows: float) -> int:
    """Round down to the digits that a capacity is known to."""
    unit: int = 10 ** max(0, math.floor(math.log10(max(1.0, rows))) + 1 - _DIGITS)
    return math.floor(rows / unit) * unit
