"""Find the query a user names: ``nexmark:q5`` or ``module:function``."""

import hashlib
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.errors import WorkbenchError
from workbench.study.own import load_own, missing, module_of, read_own
from workbench.workload import Dataset, OutputMode, Query, check_dataset, kafka, nexmark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


SOURCES = ("replay", "kafka")
"""How a query gets its rows."""

CAPTURES = Path(".workbench/captured")
"""Where samples of topics are kept that are named as a data set."""


def find_query(
    name: str,
    dataset: str | None = None,
    event_time: str | None = None,
    output_mode: OutputMode | None = None,
    source: str = SOURCES[0],
) -> Query:
    """Return the query called `name`, fed from `dataset` where one is given.

    Parameters
    ----------
    name
        ``"nexmark:QUERY"``, or ``"module:name"`` of a function from streaming DataFrame to streaming DataFrame (it
        needs a data set) or of a `Query`. Modules are looked for in the current folder first, and read again there.
    dataset, event_time
        Path of the data, or ``kafka://HOST:PORT/TOPIC``, of which a sample is captured once; and its event-time column,
        which is the query's own by default.
    output_mode
        Replaces the query's own.
    source
        ``"replay"``: the data is replayed at a controlled rate. ``"kafka"``: the topic that `dataset` names is read by
        Spark's own Kafka source.

    Raises
    ------
    WorkbenchError
        When there is no such query, its data set is missing or does not fit it, or an event time is given alone.
    """
    check_source(source, dataset)
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise WorkbenchError(
            f"The query {name!r} is not of the form nexmark:QUERY or module:function; "
            "for example nexmark:q5, or jobs:orders for the function orders in jobs.py."
        )
    if module == "nexmark":
        query = _fed(nexmark.query(attribute), dataset, event_time)
    else:
        query = _users(name, module, attribute, dataset, event_time)
    if source == "kafka":
        query = replace(query, topic=dataset)
    return replace(query, output_mode=output_mode) if output_mode else query


def read_query(
    name: str,
    dataset: str | None = None,
    event_time: str | None = None,
    output_mode: OutputMode | None = None,
    source: str = SOURCES[0],
) -> Query:
    """Return the query called `name` as `find_query` does, without importing a module of the user's: it cannot run.

    No topic is read either: a sample of it must be here. A name that its module's text does not define as a function
    may be a `Query`, of which nothing else is known then.
    """
    require_captured(dataset)
    module, _, attribute = name.partition(":")
    if not module or not attribute or module == "nexmark":
        return find_query(name, dataset, event_time, output_mode, source)
    check_source(source, dataset)
    found = read_own(name, "query")
    name = f"{found.module}:{attribute}"
    if not dataset and found.surely:
        raise _needs_data(name)
    data = _checked(dataset, event_time) if dataset else Dataset(str(found.file), "csv")
    topic = dataset if source == "kafka" else None
    return Query(name, found, data, event_time, output_mode or "append", topic=topic)


def check_source(source: str, dataset: str | None) -> None:
    """Refuse Spark's Kafka source without a topic.

    Raises
    ------
    WorkbenchError
        When the data set is no topic.
    """
    if source == "kafka" and not (dataset or "").startswith(kafka.SCHEME):
        raise WorkbenchError(
            f"source is 'kafka', but the data set is {dataset!r}, which is no topic. Name one, such as "
            "kafka://localhost:9092/orders, or use source: replay.",
            settings=("dataset",),
        )


def recorded_query(name: str, table: str) -> Query:
    """Return a stand-in for a query of which only measured rates are known: those in the file `table`."""
    return Query(name, _unknown, Dataset(table, "csv"))


def _unknown(_: "DataFrame") -> "DataFrame":
    raise WorkbenchError("Of a recorded query only its rates are known; it cannot be run.")


def _users(name: str, text: str, attribute: str, dataset: str | None, event_time: str | None) -> Query:
    module = module_of(text)
    name = f"{module}:{attribute}"
    found = load_own(name, "query")
    if isinstance(found, Query):
        return _fed(found, dataset, event_time)
    if not callable(found):
        raise missing(module, attribute, sys.modules[module])
    if not dataset:
        raise _needs_data(name)
    data = _checked(dataset, event_time)
    return Query(name, found, data, event_time)


def _needs_data(name: str) -> WorkbenchError:
    return WorkbenchError(
        f"The query {name!r} is a function, so it needs data to read. Give the path of a data set, and its "
        "event-time column if the query uses event time.",
        settings=("dataset", "event_time"),
    )


def _fed(query: Query, dataset: str | None, event_time: str | None) -> Query:
    """Return `query` with the rows that are asked for, or its own."""
    if dataset:
        return query.reading(_checked(dataset, event_time or query.event_time))
    if event_time:
        raise WorkbenchError(
            f"The event time {event_time!r} is a column of a data set, and none is given: the query {query.name!r} "
            "feeds itself. Give a data set, or leave out the event time.",
            settings=("dataset", "event_time"),
        )
    if isinstance(query.dataset, Dataset):
        check_dataset(query.dataset, query.event_time)
    return query


def _checked(path: str, event_time: str | None) -> Dataset:
    data = Dataset.at(str(_captured(path)) if path.startswith(kafka.SCHEME) else path, event_time)
    check_dataset(data, event_time)
    return data


def _captured(url: str) -> Path:
    """Give the sample of a topic, captured at its first use; delete the file to capture again."""
    place = _sample_of(url)
    if not place.exists():
        kafka.capture(kafka.Topic.parse(url), place, settings=kafka.client_settings())
    return place


def _sample_of(url: str) -> Path:
    """Say where the sample of a topic is kept that is named as a data set."""
    topic = kafka.Topic.parse(url)
    return CAPTURES / f"{topic.name}-{hashlib.sha256(topic.url.encode()).hexdigest()[:8]}.parquet"


def require_captured(dataset: str | None) -> None:
    """Refuse a topic of which no sample is here, where none must be made.

    Raises
    ------
    WorkbenchError
        When there is none, or it is no address.
    """
    if dataset is not None and dataset.startswith(kafka.SCHEME) and not _sample_of(dataset).exists():
        raise WorkbenchError(
            f"No sample of {kafka.Topic.parse(dataset).url} is in {CAPTURES}. Run workbench plan, which captures one, "
            "or workbench capture, and name its file as the data set."
        )
