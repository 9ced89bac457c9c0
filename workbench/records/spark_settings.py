"""Settings of Spark that change what a query sustains: the testbed measures with them, and plans export them."""

from collections.abc import Mapping

MEASURED: Mapping[str, str] = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.adaptive.streaming.stateless.enabled": "false",
    "spark.sql.streaming.minBatchesToRetain": "3",
}
"""Of every query: partitions stay as planned, and each batch cleans up after the third before it."""

_STATE = "spark.sql.streaming.stateStore."


def state_settings(rocksdb_mb: int) -> dict[str, str]:
    """Give the settings of the state store of an executor whose RocksDB may use `rocksdb_mb` MiB."""
    return {
        _STATE + "providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        _STATE + "rocksdb.boundedMemoryUsage": "true",
        _STATE + "rocksdb.maxMemoryUsageMB": str(rocksdb_mb),
        _STATE + "rocksdb.trackTotalNumberOfRows": "false",
        _STATE + "rocksdb.changelogCheckpointing.enabled": "false",  # changelogs make the cost swing over 40 batches
    }


ENVIRONMENT_PYTHON = "./environment/bin/python"
"""The Python of an archive of installed packages, where Spark has unpacked it."""


def as_environment(archive: str) -> str:
    """Name an archive as Spark's settings do, so that it is unpacked where `ENVIRONMENT_PYTHON` is."""
    return f"{archive}#environment"
