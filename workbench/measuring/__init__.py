"""Measuring: bracket the MST of one deployment, record every step, resume after a kill."""

from workbench.measuring._measure import (
    LOAD_CURVE,
    Configuration,
    failed,
    load_curve_s,
    measure,
    measurement_key,
    reusable,
    verify,
)
from workbench.measuring.adaptive import AdaptiveSchedule
from workbench.measuring.contents import (
    Pruning,
    Recorded,
    References,
    files_referring,
    find_recorded,
    prune_journal,
    read_contents,
    read_references,
)
from workbench.measuring.costs import MIN_LEVELS, Line, count_levels, fit_costs, fit_line
from workbench.measuring.estimator import CapacityEstimator
from workbench.measuring.events import (
    CutShort,
    Deployed,
    Event,
    Failed,
    Finished,
    GivenUp,
    LoadProbed,
    Probed,
    Reused,
    Rounded,
    Turned,
    ignore,
    record,
    recorded,
    result_of,
)
from workbench.measuring.progress import describe, describe_run
from workbench.measuring.readings import Rounds, filling_rate, reading_estimate
from workbench.measuring.repeatability import EXPECTED_DEVIATION, EXPECTED_WEIGHT, LEVEL, expected_deviation, with_prior
from workbench.measuring.rounds import Together, loads_s, look_s, measure_together, reading_s, recorded_together
from workbench.measuring.schedule import Schedule, Step, Times
from workbench.measuring.state import State, replay
from workbench.measuring.streambed import SIMPLE_QUERIES, STATEFUL_QUERIES, StreamBedSchedule
from workbench.measuring.verdict import judge
from workbench.metrics import SOURCE_MARGIN

__all__ = [
    "EXPECTED_DEVIATION",
    "EXPECTED_WEIGHT",
    "LEVEL",
    "LOAD_CURVE",
    "MIN_LEVELS",
    "SIMPLE_QUERIES",
    "SOURCE_MARGIN",
    "STATEFUL_QUERIES",
    "AdaptiveSchedule",
    "CapacityEstimator",
    "Configuration",
    "CutShort",
    "Deployed",
    "Event",
    "Failed",
    "Finished",
    "GivenUp",
    "Line",
    "LoadProbed",
    "Probed",
    "Pruning",
    "Recorded",
    "References",
    "Reused",
    "Rounded",
    "Rounds",
    "Schedule",
    "State",
    "Step",
    "StreamBedSchedule",
    "Times",
    "Together",
    "Turned",
    "count_levels",
    "describe",
    "describe_run",
    "expected_deviation",
    "failed",
    "files_referring",
    "filling_rate",
    "find_recorded",
    "fit_costs",
    "fit_line",
    "ignore",
    "judge",
    "load_curve_s",
    "loads_s",
    "look_s",
    "measure",
    "measure_together",
    "measurement_key",
    "prune_journal",
    "read_contents",
    "read_references",
    "reading_estimate",
    "reading_s",
    "record",
    "recorded",
    "recorded_together",
    "replay",
    "result_of",
    "reusable",
    "verify",
    "with_prior",
]
