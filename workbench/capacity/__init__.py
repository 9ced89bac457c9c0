"""From short runs to a capacity: estimate the MST, fit the costs, record the measurement."""

from workbench.capacity.costs import OperatorCost, fit_costs
from workbench.capacity.estimator import CapacityEstimator
from workbench.capacity.measurement import Measurement, probe_from_dict, probe_to_dict
from workbench.capacity.probes import MstEstimate, Probe, SearchSettings, Step
from workbench.capacity.streambed import SIMPLE_QUERIES, STATEFUL_QUERIES, StreamBedSchedule
from workbench.capacity.verdict import Judgement, Verdict, judge

__all__ = [
    "SIMPLE_QUERIES",
    "STATEFUL_QUERIES",
    "CapacityEstimator",
    "Judgement",
    "Measurement",
    "MstEstimate",
    "OperatorCost",
    "Probe",
    "SearchSettings",
    "Step",
    "StreamBedSchedule",
    "Verdict",
    "fit_costs",
    "judge",
    "probe_from_dict",
    "probe_to_dict",
]
