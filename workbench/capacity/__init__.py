"""From measured budgets to a capacity plan: explore budgets, model the capacity, plan a deployment."""

from workbench.capacity.allocation import allocate, bids2
from workbench.capacity.explore import ConfigurationOptimizer, Exploration, ResourceExplorer, Space
from workbench.capacity.model import (
    CapacityModel,
    Model,
    ModelFinding,
    ScalingModel,
    check_model,
    exploration_cost,
    leave_one_out_error,
    model_of_form,
    review_readings,
    select_model,
)
from workbench.capacity.partitions import bids2_micro_batch
from workbench.capacity.planning import BatchLayout, CapacityPlan, Stage, compare_forms, plan
from workbench.measuring import CapacityEstimator
from workbench.records import Allocation, Measurement, MstEstimate
