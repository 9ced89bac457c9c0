"""From short runs to a capacity: estimate the MST, fit the costs, record the measurement."""

from workbench.capacity._bids2 import Allocation, bids2
from workbench.capacity._plan import CapacityPlan, plan
from workbench.capacity.costs import OperatorCost, fit_costs
from workbench.capacity.estimator import CapacityEstimator
from workbench.capacity.explorer import Exploration, ResourceExplorer, Space
from workbench.capacity.layout import BatchLayout, Stage, micro_batch_layout
from workbench.capacity.measurement import Measurement, probe_from_dict, probe_to_dict
from workbench.capacity.measuring import Configuration, measure, verify
from workbench.capacity.model import CapacityModel
from workbench.capacity.model_checks import ModelFinding, check_model
from workbench.capacity.optimizer import ConfigurationOptimizer
from workbench.capacity.probes import MstEstimate, Probe, SearchSettings, Step
from workbench.capacity.readings import Readings, StuckReadings, review_readings
from workbench.capacity.selection import exploration_cost, leave_one_out_error, select_model
from workbench.capacity.streambed import SIMPLE_QUERIES, STATEFUL_QUERIES, StreamBedSchedule
from workbench.capacity.verdict import Judgement, Verdict, judge

__all__ = [
    "SIMPLE_QUERIES",
    "STATEFUL_QUERIES",
    "Allocation",
    "BatchLayout",
    "CapacityEstimator",
    "CapacityModel",
    "CapacityPlan",
    "Configuration",
    "ConfigurationOptimizer",
    "Exploration",
    "Judgement",
    "Measurement",
    "ModelFinding",
    "MstEstimate",
    "OperatorCost",
    "Probe",
    "Readings",
    "ResourceExplorer",
    "SearchSettings",
    "Space",
    "Stage",
    "Step",
    "StreamBedSchedule",
    "StuckReadings",
    "Verdict",
    "bids2",
    "check_model",
    "exploration_cost",
    "fit_costs",
    "judge",
    "leave_one_out_error",
    "measure",
    "micro_batch_layout",
    "plan",
    "probe_from_dict",
    "probe_to_dict",
    "review_readings",
    "select_model",
    "verify",
]
