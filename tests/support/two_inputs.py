"""A join of two streams and its data, importable in Spark's processes: orders, and the payments of most of them."""

import random
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from workbench.workload import Dataset, Input, Query

ORDERS, CUSTOMERS = 4_000, 50
LAG_S = 5.0
"""Seconds at most from an order to its payment."""


def revenue(orders, payments, within="1 MINUTE"):
    """Join each order with its payments of the minute after it, and a static table of customers."""
    from pyspark.sql import functions as f

    table = orders.sparkSession.createDataFrame([(n, f"r{n % 3}") for n in range(CUSTOMERS)], "who long, region string")
    paid = payments.withWatermark("paid_at", "10 seconds")
    placed = orders.withWatermark("placed_at", "10 seconds").join(f.broadcast(table), f.expr("customer = who"))
    return placed.join(
        paid, f.expr(f"id = order_id AND paid_at BETWEEN placed_at AND placed_at + INTERVAL {within}")
    ).select("id", "region", "amount", "placed_at", "paid_at")


def write(folder):
    """Write ``orders.parquet`` and ``payments.parquet``: 10 ms of event time from one order to the next."""
    chance = random.Random(7)
    at = [1_767_225_600_000_000 + n * 10_000 for n in range(ORDERS)]
    orders = {"id": range(ORDERS), "customer": [chance.randrange(CUSTOMERS) for _ in at], "placed_at": stamps(at)}
    paid = sorted((at[n] + chance.randrange(round(LAG_S * 1e6)), n) for n in range(ORDERS) if chance.random() < 0.5)
    payments = {
        "order_id": [n for _, n in paid],
        "amount": [chance.randrange(1, 500) for _ in paid],
        "paid_at": stamps([time for time, _ in paid]),
    }
    for name, columns in (("orders", orders), ("payments", payments)):
        pq.write_table(pa.table(columns), Path(folder) / f"{name}.parquet")


def stamps(times_us):
    return pa.array(times_us, pa.timestamp("us", "UTC"))


def inputs(folder, shares=(None, None)):
    return (
        Input("orders", Dataset(f"{folder}/orders.parquet", "parquet", "placed_at"), shares[0]),
        Input("payments", Dataset(f"{folder}/payments.parquet", "parquet", "paid_at"), shares[1]),
    )


def query(folder, shares=(None, None)):
    return Query("two_inputs:revenue", partial(revenue, within="1 SECOND"), inputs(folder, shares))
