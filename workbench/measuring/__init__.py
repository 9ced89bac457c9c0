"""Measuring: bracket the MST of one deployment, record every step, resume after a kill."""

from workbench.measuring._measure import (
    LOAD_CURVE,
    Configuration,
    failed,
    load_curve_s,
    measure,
    measurement_key,
    say_nothing,
    verify,
)
from workbench.measuring.bracket import SearchSettings, Step
from workbench.measuring.costs import MIN_LEVELS, Line, count_levels, fit_costs, fit_line
from workbench.measuring.estimator import CapacityEstimator
from workbench.measuring.repeatability import EXPECTED_DEVIATION, EXPECTED_WEIGHT, LEVEL, expected_deviation, with_prior
from workbench.measuring.streambed import SIMPLE_QUERIES, STATEFUL_QUERIES, StreamBedSchedule
from workbench.measuring.verdict import SOURCE_MARGIN, judge

__all__ = [
    "EXPECTED_DEVIATION",
    "EXPECTED_WEIGHT",
    "LEVEL",
    "LOAD_CURVE",
    "MIN_LEVELS",
    "SIMPLE_QUERIES",
    "SOURCE_MARGIN",
    "STATEFUL_QUERIES",
    "CapacityEstimator",
    "Configuration",
    "Line",
    "SearchSettings",
    "Step",
    "StreamBedSchedule",
    "count_levels",
    "expected_deviation",
    "failed",
    "fit_costs",
    "fit_line",
    "judge",
    "load_curve_s",
    "measure",
    "measurement_key",
    "say_nothing",
    "verify",
    "with_prior",
]
