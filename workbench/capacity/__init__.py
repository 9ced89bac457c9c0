"""From short runs to a capacity: estimate the MST, fit the costs, record the measurement."""

from workbench.capacity._bids2 import Allocation, bids2
from workbench.capacity.costs import OperatorCost, fit_costs
from workbench.capacity.estimator import CapacityEstimator
from workbench.capacity.layout import BatchLayout, Stage, micro_batch_layout
from workbench.capacity.measurement import Measurement, probe_from_dict, probe_to_dict
from workbench.capacity.measuring import Configuration, measure, verify
from workbench.capacity.probes import MstEstimate, Probe, SearchSettings, Step
from workbench.capacity.streambed import SIMPLE_QUERIES, STATEFUL_QUERIES, StreamBedSchedule
from workbench.capacity.verdict import Judgement, Verdict, judge

__all__ = [
    "SIMPLE_QUERIES",
    "STATEFUL_QUERIES",
    "Allocation",
    "BatchLayout",
    "CapacityEstimator",
    "Configuration",
    "Judgement",
    "Measurement",
    "MstEstimate",
    "OperatorCost",
    "Probe",
    "SearchSettings",
    "Stage",
    "Step",
    "StreamBedSchedule",
    "Verdict",
    "bids2",
    "fit_costs",
    "judge",
    "measure",
    "micro_batch_layout",
    "probe_from_dict",
    "probe_to_dict",
    "verify",
]
