"""What users write runs, is read and is observed; what Spark refuses is refused at once, with Spark's reason."""

import pytest
from one_slot import carried_out
from user_queries import QUERIES, REFUSED

pytestmark = pytest.mark.spark

STATEFUL = set(QUERIES) - {"scalar functions", "pandas functions", "no output"}
OF_THE_SCRIPT = ("script #1", "script #2")
QUICK = {"session windows", "dropDuplicatesWithinWatermark", "applyInPandasWithState", "transformWithStateInPandas"}
QUICK |= {"pandas functions", "interval self-join", "no output", "script #1"}  # those that make test tries
ROWS = 300

TWO_QUERIES = """
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.appName("two").master("spark://nowhere:7077").getOrCreate()
orders = spark.readStream.table("orders")
per_shop = orders.groupBy("shop").count()
first = per_shop.writeStream.outputMode("update").format("console").start()
large = orders.where("amount > 5").writeStream.format("parquet").option("path", "/nowhere").start()
spark.streams.awaitAnyTermination()
"""

# Runs every query on the feed, the session and the event log of a deployment, one after the other.
SCRIPT = """
import json
import time
from dataclasses import replace
from pathlib import Path

from one_slot import one_slot
from user_queries import QUERIES, REFUSED, Orders

from workbench.errors import WorkbenchError
from workbench.testbed.spark.log.event_log import EventLog
from workbench.testbed.spark.driver.live import Meter
from workbench.testbed.spark.log.operators import SourceCost, fullest_labels, operator_metrics
from workbench.testbed.spark.driver.queries import Queries
from workbench.testbed.spark.log.operators import check_read, dropped_late
from workbench.testbed.spark.driver.session import end_session, start_session
from workbench.workload import Script

ROWS = %(rows)d
folder = Path("run").resolve()
folder.mkdir()
spec = one_slot(folder)
spark = start_session(spec)
events = EventLog(next((folder / "eventlog").iterdir()))
queries = Queries(spark, events, Meter(None, None), lambda: time.sleep(0.02))
found = {}


def run(number, name, build, mode):
    this = replace(spec, name=name, build=build, output_mode=mode, generator=Orders())
    live = queries.start(this, f"query{number}")
    live.fixed_batches(ROWS)
    logs = queries.batches(live, 2)
    operators, _ = operator_metrics(logs, 1.0, 1.0, SourceCost(), fullest_labels(logs, logs))
    check_read(name, logs)
    late = dropped_late(name, logs, operators)
    queries.retire(live)
    return {
        "operators": [one.operator for one in operators],
        "rows": [one.batch.records for one in logs],
        "read": operators[1].records_in if len(operators) > 1 else operators[0].records_out,
        "state": sum(one.state_rows_updated or 0 for one in operators),
        "late": late,
    }


builds = {
    **QUERIES,
    "script #1": (Script("two.py", number=1), "update"),
    "script #2": (Script("two.py", number=2), "append"),
    **{name: (build, mode) for name, (build, mode, _) in REFUSED.items()},
}
for number, name in enumerate(%(names)r):
    try:
        found[name] = run(number, name, *builds[name])
    except WorkbenchError as error:
        found[name] = {"refused": str(error)}
    Path("found.json").write_text(json.dumps(found))
end_session(spark)
"""


@pytest.fixture(scope="module")
def found(request, tmp_path_factory):
    """What came of each query that a test of this run looks at."""
    folder = tmp_path_factory.mktemp("queries")
    (folder / "two.py").write_text(TWO_QUERIES)
    (folder / "shops.csv").write_text("shop,city\none,Bonn\ntwo,Ulm\nthree,Ulm\n")
    here = [one for one in request.session.items if one.nodeid.startswith(f"{request.node.nodeid}::")]
    looked_at = {one.callspec.params["name"] for one in here}
    names = [name for name in (*QUERIES, *OF_THE_SCRIPT, *REFUSED) if name in looked_at]
    return carried_out(SCRIPT % {"rows": ROWS, "names": names}, folder)


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=[] if one in QUICK else pytest.mark.long) for one in (*QUERIES, *OF_THE_SCRIPT)]
)
def test_it_runs_and_is_observed(found, name):
    seen = found[name]
    assert "refused" not in seen, seen
    assert set(seen["rows"]) == {ROWS}
    assert seen["late"] == 0
    assert seen["operators"][0] == "source"
    assert bool(seen["state"]) == (name in STATEFUL or name == OF_THE_SCRIPT[0]), seen


@pytest.mark.parametrize("name", REFUSED)
def test_what_spark_refuses_is_refused_when_it_starts_with_its_reason(found, name):
    assert REFUSED[name][2] in found[name]["refused"]
    assert "Spark refuses query" in found[name]["refused"]  # and not at run time, after batches
