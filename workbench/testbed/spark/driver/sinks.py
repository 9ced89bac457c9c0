"""How the queries of a deployment write: to the job's sink, in a separate place of the deployment."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from workbench.records import FUNCTION, NOOP

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

_CATALOG, _ICEBERG = "workbench", "org.apache.iceberg.spark.SparkCatalog"


@dataclass(frozen=True)
class Writes:
    """Where the queries of a deployment write."""

    kind: str = NOOP  # a key of `workbench.records.MODES`
    place: str = ""  # a folder of the deployment, as Hadoop names it, or the address of a topic
    call: Callable[..., Any] | None = None  # called by ``foreachBatch``, with `place` if there is one
    options: Mapping[str, str] = field(default_factory=dict)  # options of Spark's sink

    @property
    def folder(self) -> str:
        """The folder that is removed with the deployment; "" if there is none."""
        return "" if self.kind == "kafka" else self.place

    def folder_of(self, name: str) -> str:
        """Name the folder of the query `name`; "" if it has none."""
        return self.folder and f"{self.folder}/{name}"

    def begin(self, writer: "DataStreamWriter", spark: "SparkSession", name: str) -> "StreamingQuery":
        """Start the query `name` of `writer`, which writes to a place of its own."""
        own = self.folder_of(name)
        if self.kind == FUNCTION and self.call is not None:
            return writer.foreachBatch(partial(self.call, place=own) if own else self.call).start()
        writer = writer.format(self.kind).options(**self.options)
        if self.kind == "iceberg":
            for key, value in {"": _ICEBERG, ".type": "hadoop", ".warehouse": self.folder}.items():
                spark.conf.set(f"spark.sql.catalog.{_CATALOG}{key}", value)
            return writer.toTable(f"{_CATALOG}.measured.{name}")
        return (writer.option("path", own) if own else writer).start()
