"""An event log, and a batch that was read from it."""

import pytest
from event_log_lines import BATCH, write

from workbench.testbed.spark.log.event_log import EventLog


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log"
    path.touch()
    return EventLog(path)


@pytest.fixture
def batch(log):
    write(log.path, BATCH)
    return log.poll()[0][1]
