"""Documents that outlive a run: one type, one reader and one writer each."""

from workbench.records.documents import Setting, write_whole
from workbench.records.estimate import Judgement, Limit, MstEstimate, MstInterval, OperatorCost, Phase, Probe, Verdict
from workbench.records.layout import BatchLayout, Stage, costed_run, stages_of
from workbench.records.machine import Machine, machine_of_facts
from workbench.records.measurement import (
    FailedRun,
    Measurement,
    Run,
    measurement_from_dict,
    measurement_from_document,
    measurement_to_dict,
    nearest_run,
    probe_from_dict,
    probe_to_dict,
    run_from_dict,
    run_to_dict,
)
from workbench.records.plan import CapacityPlan, plan_from_dict, plan_to_dict
from workbench.records.plan_parts import (
    HOURS_PER_MONTH,
    Allocation,
    Concern,
    Executor,
    InstanceType,
    ModelFinding,
    Price,
    Status,
    Unbounded,
)
from workbench.records.planned import PlannedStudy, Refusal, planned_from_dict, planned_to_dict

__all__ = [
    "HOURS_PER_MONTH",
    "Allocation",
    "BatchLayout",
    "CapacityPlan",
    "Concern",
    "Executor",
    "FailedRun",
    "InstanceType",
    "Judgement",
    "Limit",
    "Machine",
    "Measurement",
    "ModelFinding",
    "MstEstimate",
    "MstInterval",
    "OperatorCost",
    "Phase",
    "PlannedStudy",
    "Price",
    "Probe",
    "Refusal",
    "Run",
    "Setting",
    "Stage",
    "Status",
    "Unbounded",
    "Verdict",
    "costed_run",
    "machine_of_facts",
    "measurement_from_dict",
    "measurement_from_document",
    "measurement_to_dict",
    "nearest_run",
    "plan_from_dict",
    "plan_to_dict",
    "planned_from_dict",
    "planned_to_dict",
    "probe_from_dict",
    "probe_to_dict",
    "run_from_dict",
    "run_to_dict",
    "stages_of",
    "write_whole",
]
