"""``workbench capture`` and ``workbench fill``: a sample of a topic as a file, and a topic filled from data."""

import argparse
import tempfile
from dataclasses import asdict
from pathlib import Path

from workbench import units
from workbench.cli import look
from workbench.cli.console import DONE, check_files
from workbench.cli.progress import progress
from workbench.testbed.spark.kafka import Limits, capture, fill
from workbench.workload import Dataset, Generator, nexmark, prepare
from workbench.workload.kafka import Topic, client_settings, read_schema


def run_capture(options: argparse.Namespace) -> int:
    """Write a sample of a topic."""
    check_files((options.file,), (options.schema, options.client_config))
    topic, limits = Topic.parse(options.topic), Limits(options.rows, options.megabytes, options.seconds)
    schema = read_schema(options.schema) if options.schema else None
    settings = client_settings(options.client_config)
    with progress() as say:
        say(f"capturing {topic.url}")
        found = capture(topic, Path(options.file), limits, settings, schema=schema, progress=say)
    if options.json:
        look.document(asdict(found) | {"path": str(found.path)})
        return DONE
    of = f"{units.seconds(found.seconds)} of traffic on {units.some(found.partitions, 'partition')}"
    look.answer(f"{units.some(found.rows, 'record')} of {topic.name}, {of}.")
    look.line(f"columns: {', '.join(found.columns)}")
    if found.not_json:
        look.line(f"note: values that are not JSON object: {units.count(found.not_json)}")
    if found.not_decoded:
        look.line(f"note: values that do not decode with the schema: {units.count(found.not_decoded)}")
    if schema and (len(found.schema_ids) > 1 or {*found.schema_ids} - {schema.number or found.schema_ids[0]}):
        ids = ", ".join(map(str, found.schema_ids))
        look.line(f"note: the values have the schema ids {ids}; all were read with {schema.said}")
    look.whole(f"data set: {found.path}")
    return DONE


def run_fill(options: argparse.Namespace) -> int:
    """Send rows to a topic."""
    topic = Topic.parse(options.topic)
    with tempfile.TemporaryDirectory(prefix="workbench-fill-") as folder, progress() as say:
        generator: Generator
        event_time = options.event_time
        if options.data == "nexmark":
            query = nexmark.query("q5")  # all its queries have the same events
            generator, event_time = query.dataset, query.event_time  # type: ignore[assignment]
        else:
            generator = prepare(Dataset.at(options.data, options.event_time), options.event_time, Path(folder))
        say(f"filling {topic.url}")
        sent = fill(
            topic,
            generator,
            options.rows,
            client_settings(options.client_config),
            key=options.key,
            event_time=event_time,
            partitions=options.partitions,
            event_rate=options.event_rate,
            progress=say,
        )
    if options.json:
        look.document(asdict(sent) | {"rate": sent.rate})
    else:
        rows, partitions = units.some(sent.rows, "row"), units.some(sent.partitions, "partition")
        how = f"in {units.seconds(sent.seconds)}, {units.rate(sent.rate)}, on {partitions}"
        look.answer(f"{rows} sent to {topic.name} {how}.")
    return DONE
