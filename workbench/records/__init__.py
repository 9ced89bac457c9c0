"""Documents that outlive a run: one type, one reader and one writer each."""

from workbench.files import write_whole
from workbench.records.documents import Setting, structure, unstructure
from workbench.records.gauges import Gauge, alert_rules, exposition, unnamed
from workbench.records.job_settings import (
    FUNCTION,
    JOINED,
    MODES,
    NOOP,
    OURS,
    JobSettings,
    Sink,
    check_place,
    is_uri,
    path_of,
    why_ours,
)
from workbench.records.measurement import (
    RECORDED,
    SIMULATED,
    FailedRun,
    Judgement,
    Limit,
    Machine,
    Measurement,
    MstEstimate,
    MstInterval,
    OperatorCost,
    Phase,
    Probe,
    Run,
    Verdict,
    core_speed_of,
    measurement_from_document,
    nearest_run,
    overrun_s,
)
from workbench.records.plan import CapacityPlan, deployed, plan_to_dict
from workbench.records.plan_parts import (
    DRIVER_CORES,
    DRIVER_MEMORY_MB,
    ENVIRONMENT_PYTHON,
    HOURS_PER_MONTH,
    MEASURED,
    Allocation,
    BatchLayout,
    Concern,
    CountedCores,
    Day,
    EndingRun,
    Executor,
    InstanceType,
    ModelFinding,
    Outage,
    PlanVerdict,
    Price,
    Stage,
    Status,
    Unbounded,
    as_environment,
    state_settings,
)
from workbench.records.planned import (
    FormComparison,
    FormEvidence,
    FormFit,
    FormRule,
    FormTarget,
    PlannedStudy,
    Refusal,
    planned_from_dict,
    planned_to_dict,
)
from workbench.records.platforms import DATABRICKS, EMR_SERVERLESS
from workbench.records.skeleton import ScriptFacts, script_of
