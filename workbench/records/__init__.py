"""Documents that outlive a run: one type, one reader and one writer each."""

from workbench.records.documents import Setting, write_whole
from workbench.records.estimate import Judgement, Limit, MstEstimate, MstInterval, OperatorCost, Phase, Probe, Verdict
from workbench.records.measurement import (
    FailedRun,
    Measurement,
    Run,
    measurement_from_dict,
    measurement_to_dict,
    probe_from_dict,
    probe_to_dict,
    run_from_dict,
    run_to_dict,
)

__all__ = [
    "FailedRun",
    "Judgement",
    "Limit",
    "Measurement",
    "MstEstimate",
    "MstInterval",
    "OperatorCost",
    "Phase",
    "Probe",
    "Run",
    "Setting",
    "Verdict",
    "measurement_from_dict",
    "measurement_to_dict",
    "probe_from_dict",
    "probe_to_dict",
    "run_from_dict",
    "run_to_dict",
    "write_whole",
]
