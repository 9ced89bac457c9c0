"""A stateless query and functions for ``foreachBatch``, importable in Spark's processes."""

import time


def cents(rows):
    """Keep one row of three, with a column of its own."""
    return rows.where("id % 3 = 0").selectExpr("id", "key", "id * 3 AS cents")


def keep(batch, number, place="/nowhere"):
    """Write a batch, with rows or without, to a folder of its number in the place that it is given."""
    batch.write.mode("append").parquet(f"{place}/batch={number}")


def slow(batch, number):
    """Sleep in the driver, longer with each batch."""
    time.sleep(0.2 + 0.02 * number)
    batch.write.format("noop").mode("overwrite").save()


def texts(rows):
    """Give the column that Kafka's sink takes."""
    return rows.selectExpr("CAST(id AS STRING) AS value")
