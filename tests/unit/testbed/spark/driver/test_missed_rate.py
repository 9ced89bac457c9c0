"""What a driver does where a rate is missed and the source is not known yet."""

from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from workbench.dataflow import Budget, SlotProfile
from workbench.testbed.spark.driver.deployment import Driver


@pytest.fixture
def driver():
    budget = Budget(2, SlotProfile(0.3, 1024), 1.0)
    spec = SimpleNamespace(budget=budget, cluster="spark://n:7077", generator=None, quota=None)
    driver = Driver(MagicMock(), spec)
    driver._queries, driver._live = MagicMock(), MagicMock(rows_fitting=500, done=[])
    driver._live.feed.restarts = False
    driver._source = MagicMock(known=False)
    driver._source.doubtful.return_value = False
    return driver


def test_it_looks_at_the_source_and_goes_on_with_the_rate(driver):
    driver._look_where_missed(1000.0, 989.0)
    driver._source.measure.assert_called_once()
    driver._live.command.assert_called_once_with(1000.0)  # the owner may observe again, without a new command


def test_it_does_not_where_the_rate_is_met_or_the_source_is_known(driver):
    driver._look_where_missed(1000.0, 991.0)
    driver._source.known = True
    driver._look_where_missed(1000.0, 500.0)
    driver._source.measure.assert_not_called()
    driver._queries.drain.assert_not_called()
