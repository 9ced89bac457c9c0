"""Queries as users write them, and their rows, importable in Spark's processes."""

import json
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

TIME = pa.timestamp("us", "UTC")
SHOPS = 7
NAMES = ("one", "two", "three", "four", "five", "six", "seven")


@dataclass(frozen=True)
class Orders:
    """Row n has id n // 2, so that each comes twice, and a shop; its text is deep JSON with an array."""

    def schema(self):
        kinds = [("id", pa.int64()), ("shop", pa.string()), ("amount", pa.float64()), ("text", pa.string())]
        return pa.schema([*kinds, ("time", TIME)])

    def batches(self, first, last, clock):
        numbers = np.arange(first, last)
        shops = [NAMES[n % SHOPS] for n in numbers]
        text = [
            json.dumps({"order": {"id": n, "lines": [{"sku": "a", "n": 1}, {"sku": "b", "n": n}]}})
            for n in numbers.tolist()
        ]
        columns = [numbers // 2, shops, numbers % 100 / 10, text]
        arrays = [pa.array(column, kind.type) for column, kind in zip(columns, self.schema(), strict=False)]
        yield pa.record_batch([*arrays, pa.array(clock.times_us(numbers)).cast(TIME)], schema=self.schema())


def sessions(orders):
    from pyspark.sql import functions as f

    return orders.withWatermark("time", "5 seconds").groupBy(f.session_window("time", "1 second"), "shop").count()


def seen_once(orders):
    return orders.withWatermark("time", "5 seconds").dropDuplicatesWithinWatermark(["id"])


def with_a_csv(orders):
    from pyspark.sql import functions as f

    shops = orders.sparkSession.read.csv("shops.csv", header=True, schema="shop string, city string")
    return orders.join(f.broadcast(shops), "shop").groupBy("city").agg(f.sum("amount"))


def counted_in_pandas(orders):
    def count(key, parts, state):
        import pandas as pd

        total = (state.get[0] if state.exists else 0) + sum(len(part) for part in parts)
        state.update((total,))
        yield pd.DataFrame({"shop": [key[0]], "n": [total]})

    by_shop = orders.groupBy("shop")
    return by_shop.applyInPandasWithState(count, "shop string, n long", "n long", "update", "NoTimeout")


def transformed_in_pandas(orders):
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    class Count(StatefulProcessor):
        def init(self, handle):
            self.total = handle.getValueState("total", "n long")

        def handleInputRows(self, key, rows, timerValues):  # noqa: N802, N803, ARG002 - Spark's names
            total = (self.total.get()[0] if self.total.exists() else 0) + sum(len(part) for part in rows)
            self.total.update((total,))
            yield pd.DataFrame({"shop": [key[0]], "n": [total]})

        def close(self):
            pass

    return orders.groupBy("shop").transformWithStateInPandas(Count(), "shop string, n long", "Update", "None")


def with_scalar_functions(orders):
    from pyspark.sql import functions as f

    gross = f.udf(lambda amount: amount * 1.2, "double")
    return orders.withColumn("gross", gross("amount"))


def with_pandas_functions(orders):
    import pandas as pd
    from pyspark.sql import functions as f

    def gross(amounts: pd.Series) -> pd.Series:
        return amounts * 1.2

    return orders.withColumn("gross", f.pandas_udf(gross, "double")("amount"))


def joined_with_itself(orders):
    from pyspark.sql import functions as f

    first = orders.selectExpr("id", "time AS placed").withWatermark("placed", "5 seconds")
    second = orders.selectExpr("id AS other", "time AS paid").withWatermark("paid", "5 seconds")
    return first.join(second, f.expr("id = other AND paid BETWEEN placed AND placed + INTERVAL 1 SECOND"))


def in_sql(orders):
    orders.createOrReplaceTempView("orders")
    return orders.sparkSession.sql("SELECT shop, sum(amount) AS total FROM orders GROUP BY shop HAVING total > 0")


def sorted_in_full(orders):
    from pyspark.sql import functions as f

    return orders.groupBy("shop").agg(f.sum("amount").alias("total")).orderBy(f.desc("total"))


def chained(orders):
    from pyspark.sql import functions as f

    timed = orders.withWatermark("time", "1 second")
    by_shop = timed.groupBy(f.window("time", "1 second"), "shop").agg(f.sum("amount").alias("total"))
    return by_shop.groupBy(f.window(f.window_time("window"), "2 seconds")).agg(f.max("total"))


def approximated(orders):
    from pyspark.sql import functions as f

    return orders.groupBy("shop").agg(f.approx_count_distinct("id"), f.percentile_approx("amount", 0.9))


def deep(orders):
    from pyspark.sql import functions as f

    schema = "order struct<id: long, lines: array<struct<sku: string, n: long>>>"
    lines = orders.select(f.explode(f.from_json("text", schema)["order"]["lines"]).alias("line"))
    return lines.groupBy("line.sku").agg(f.sum("line.n"))


def nothing(orders):
    return orders.where("amount < 0")


QUERIES = {
    "session windows": (sessions, "append"),
    "dropDuplicatesWithinWatermark": (seen_once, "append"),
    "broadcast join with a CSV": (with_a_csv, "update"),
    "applyInPandasWithState": (counted_in_pandas, "update"),
    "transformWithStateInPandas": (transformed_in_pandas, "update"),
    "scalar functions": (with_scalar_functions, "append"),
    "pandas functions": (with_pandas_functions, "append"),
    "interval self-join": (joined_with_itself, "append"),
    "SQL over a view": (in_sql, "update"),
    "complete mode with sorting": (sorted_in_full, "complete"),
    "chained aggregations": (chained, "append"),
    "approximations": (approximated, "update"),
    "deep JSON": (deep, "update"),
    "no output": (nothing, "append"),
}


def ranked(orders):
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    return orders.withColumn("place", f.row_number().over(Window.partitionBy("shop").orderBy("amount")))


def sorted_rows(orders):
    return orders.orderBy("amount")


def outer_join_without_a_watermark(orders):
    return orders.join(orders.selectExpr("id AS other"), orders["id"] == 1, "left_outer")


REFUSED = {
    "ranked": (ranked, "append", "NON_TIME_WINDOW_NOT_SUPPORTED_IN_STREAMING"),
    "sorted": (sorted_rows, "append", "Sorting is not supported on streaming"),
    "outer join": (outer_join_without_a_watermark, "append", "without a watermark"),
}
