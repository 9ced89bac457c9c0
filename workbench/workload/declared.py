"""The sources that a script declares: their columns and their names."""

import re
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StructType, _parse_datatype_string

from workbench.workload.script import KAFKA_COLUMNS

_COLUMNS = {
    "kafka": KAFKA_COLUMNS,
    "rate": "timestamp timestamp, value bigint",
    "rate-micro-batch": "timestamp timestamp, value bigint",
    "socket": "value string",
    "text": "value string",
}
_MORE = {
    ("kafka", "includeheaders"): ", headers array<struct<key: string, value: binary>>",
    ("socket", "includetimestamp"): ", timestamp timestamp",
}
_NAMING = ("subscribe", "topic", "subscribepattern", "streamname", "eventhubs.name", "table", "path")
_COMMON = {"csv", "json", "parquet", "orc", "txt", "gz"}


def columns_of(kind: str, options: Mapping[str, str], schema: object) -> StructType | None:
    """Return the columns of a source if its kind or the script defines them."""
    if schema is None:
        asked = {name.lower() for name, value in options.items() if value.lower() == "true"}
        more = "".join(text for (of, option), text in _MORE.items() if of == kind and option in asked)
        schema = _COLUMNS[kind] + more if kind in _COLUMNS else None
    if isinstance(schema, str):
        schema = _parse_datatype_string(schema)
    return schema if isinstance(schema, StructType) else None


def as_declared(stream: DataFrame, columns: StructType) -> DataFrame:
    """Return a stream with the columns that a source declares, new at each call; those not in a sample are empty."""
    there = {name.lower() for name in stream.columns}
    return stream.select(
        *(
            (f.col(f"`{one.name}`") if one.name.lower() in there else f.lit(None)).cast(one.dataType).alias(one.name)
            for one in columns.fields
        )
    )


def name_of_source(kind: str, options: Mapping[str, str], known: Sequence[str]) -> str:
    """Name a source by its topic, table or path."""
    lower = {key.lower(): value for key, value in options.items()}
    place = next((lower[key] for key in _NAMING if lower.get(key)), kind)
    parts = [part for part in re.split(r"[/\\.,]", place) if re.search(r"\w", part) and part.lower() not in _COMMON]
    name = re.sub(r"[^\w-]+", "_", parts[-1] if parts else kind).strip("_") or kind
    return name if name not in known else f"{name}_{len(known) + 1}"
