"""Your own queries go here: functions from a streaming DataFrame to a streaming DataFrame.

They are in a module, not in a notebook, because Spark's processes import them.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as f


def revenue_per_shop(orders: DataFrame) -> DataFrame:
    """Revenue and number of orders of every shop, every ten seconds."""
    revenue = f.sum(f.col("price") * f.col("quantity"))
    return (
        orders.withWatermark("time", "10 seconds")
        .groupBy(f.window("time", "10 seconds"), "shop")
        .agg(revenue.alias("revenue"), f.count("*").alias("orders"))
    )
