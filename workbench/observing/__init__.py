"""Observing: what a running query sustains, from its logs, without a testbed."""

from workbench.observing.events import PROGRESS, USEFUL, read_events
from workbench.observing.headroom import Headroom, as_measurement, headroom, not_identifiable, unseen
from workbench.observing.log import LEFT_OUT, follow_log, read_log
from workbench.observing.running_query import EndingRuns, RunningQuery, ending_runs
from workbench.observing.series import Drift
from workbench.observing.state import StateSeen
