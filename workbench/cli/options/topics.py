"""Options of ``workbench capture`` and ``workbench fill``."""

import argparse

from workbench.cli.options.numbers import number, rate, whole


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the commands to the parser."""
    client = argparse.ArgumentParser(add_help=False)
    client.add_argument(
        "--client-config", metavar="FILE", help="client settings, name=value a line, secrets included "
        "(default: the file that WORKBENCH_KAFKA_CONFIG names)"
    )  # fmt: skip
    client.add_argument("--json", action="store_true", help="print JSON")

    capture = commands.add_parser(
        "capture",
        parents=[client],
        epilog="example: workbench capture kafka://localhost:9092/orders orders.parquet --rows 100000",
        description="Write the newest records of a Kafka topic to a Parquet file, as data for a study: values that are "
        "JSON objects, or Avro with a schema, become columns, with key, timestamp, partition, offset and headers.",
    )
    capture.add_argument("topic", metavar="TOPIC", help="kafka://HOST:PORT/TOPIC")
    capture.add_argument("file", metavar="FILE", help="the Parquet file")
    capture.add_argument("--rows", type=whole, default=1_000_000, help="most records (%(default)s)")
    capture.add_argument("--megabytes", type=whole, default=512, help="most MiB of keys and values (%(default)s)")
    capture.add_argument("--seconds", type=number, help="only records of the last S seconds")
    capture.add_argument(
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
    fill.add_argument("topic", metavar="TOPIC", help="kafka://HOST:PORT/TOPIC")
    fill.add_argument("data", metavar="DATA", help="Parquet, CSV or JSON file or folder, or nexmark")
    fill.add_argument("--rows", type=whole, default=1_000_000, help="rows to send, repeating a data set (%(default)s)")
    fill.add_argument("--event-time", metavar="COLUMN", help="event-time column of the data, replaced up to now")
    fill.add_argument("--event-rate", type=rate, default=100_000.0, help="rows per second of event time (%(default)g)")
    fill.add_argument(
        "--key", metavar="COLUMN", help="column that is the record's key (default: none; of a sample, its own)"
    )
    fill.add_argument("--partitions", type=whole, default=4, help="of a topic that is created (%(default)s)")
