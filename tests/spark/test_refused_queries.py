"""Queries that Spark or the workbench refuses when they start; a session is enough, so nothing is deployed."""

from dataclasses import replace

import pytest
import toy_query
from one_slot import one_slot

from workbench.errors import WorkbenchError
from workbench.testbed.spark.driver.feed import ReplayFeed
from workbench.testbed.spark.driver.live import LiveQuery
from workbench.workload import nexmark

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (toy_query.no_watermark, r"refuses query 'q' in output mode 'append'.*try"),
        (toy_query.not_streaming, r"has no streaming plan.*Build it from the function's argument"),
        (toy_query.wrong_column, r"failed while it built the query.*the input's columns are event_type, person"),
        (lambda _rows: 3, r"returned int; it must return a DataFrame"),
    ],
)
def test_a_query_that_cannot_start_is_refused_with_the_next_step(spark, tmp_path, build, message):
    rows = nexmark.query("q1").dataset
    spec = replace(one_slot(tmp_path), name="q", build=build, generator=rows, output_mode="append")
    live = LiveQuery(spec, tmp_path / "live", 1.0, None, ReplayFeed(tmp_path / "live"), spark)
    with pytest.raises(WorkbenchError, match=message):
        live.start()
