"""A query and data that the workbench was never tuned to: fares of invented taxi trips, per zone and quarter hour."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS, ZONES = 300_000, 260
BEGIN = datetime(2026, 1, 5, 6, tzinfo=UTC)


def fares(trips):
    """Mean fare and distance per zone and length of trip, over the last quarter hour, every five minutes."""
    from pyspark.sql import functions as f

    mile = f.col("fare") / f.greatest(f.col("miles"), f.lit(0.1))
    long = f.when(f.col("miles") > 5, "long").otherwise("short")
    return (
        trips.withColumn("per_mile", mile)
        .withColumn("length", long)
        .filter("fare > 2.5")
        .withWatermark("picked_up", "2 minutes")
        .groupBy(f.window("picked_up", "15 minutes", "5 minutes"), "zone", "length")
        .agg(f.avg("per_mile"), f.stddev("fare"), f.max("miles"), f.count("*"))
    )


def tariffs(trips):
    """Join each trip with its zone's tariff, row by row; one zone has 30 % of the trips, and a row costs much there."""
    from pyspark.sql import functions as f

    crowded = f.when(f.crc32(f.col("driver").cast("binary")) % 10 < 3, f.lit(-1)).otherwise(f.col("zone"))
    zones = trips.sparkSession.range(-1, ZONES)
    known = zones.select(f.col("id").cast("int").alias("zone"), (f.col("id") % 7).alias("tariff"))
    receipt = f.sha2(f.repeat(f.concat_ws("|", "driver", "fare", "tariff"), 40), 512)
    return (
        trips.withColumn("zone", crowded)
        .join(known.hint("merge"), "zone")
        .withColumn("receipt", receipt)
        .filter(f.col("receipt") > "1")
    )


def write(path: Path) -> Path:
    """Write the trips as Parquet, the same ones every time: a tenth of the zones have most of them."""
    draw = np.random.default_rng(7)
    gaps = draw.exponential(0.05, ROWS).cumsum()
    miles = draw.lognormal(0.9, 0.8, ROWS)
    chances = 1 / np.arange(1, ZONES + 1)
    table = pa.table(
        {
            "picked_up": [BEGIN + timedelta(seconds=float(gap)) for gap in gaps],
            "zone": draw.choice(ZONES, ROWS, p=chances / chances.sum()).astype("int32"),
            "miles": miles.round(2),
            "fare": (3 + 2.6 * miles + draw.normal(0, 1.5, ROWS)).round(2),
            "driver": [f"driver-{number:05d}" for number in draw.integers(0, 12_000, ROWS)],
        }
    )
    pq.write_table(table, path)
    return path
