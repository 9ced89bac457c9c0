"""Studies: what the user asks for, run from beginning to end with progress, cancelling and resuming."""

from workbench.study._drift import Change, Drift, drift, study_drift
from workbench.study.carry_out import SoFar, Verified, plan_to_verify, planned_so_far, run_study, verify_plan
from workbench.study.catalogue import find_query, read_query
from workbench.study.draft import Draft, draft
from workbench.study.history import StudyHistory
from workbench.study.local import first_study, first_testbed, loop_study, quick_estimator, small_budget, spark_here
from workbench.study.observed import Observed, gauges, observe
from workbench.study.placing import DRAWS, PlacementStudy, shapes_compared, study_placement
from workbench.study.planned import (
    PROBLEM,
    Planned,
    asked_of,
    intervals_left_out,
    plan_on,
    planned_document,
    plans_path,
    read_planned,
    refuse_failures,
    resolved,
    what_the_hottest_takes,
    where_it_goes,
    write_planned,
)
from workbench.study.prepared import DryRun, Prepared, dry_run, fitting, prepare, query_of, testbed_of
from workbench.study.runner import Runner, Snapshot, State, measuring, planning
from workbench.study.scaling import (
    KEEPS_UP,
    KEYED,
    NAMES,
    POLICIES,
    Policies,
    Pool,
    Replayed,
    ReplayedParadigms,
    Start,
    compare_policies,
    replay_paradigms,
    replay_start,
)
from workbench.study.scenario import (
    RESTARTS_S,
    Scenario,
    measured_start,
    planned_start,
    replay_restarts,
    simulated_start,
)
from workbench.study.scripts import ScriptDraft, draft_script
from workbench.study.spec import Study, cluster_changes, cluster_given, cluster_of, read_study, study_from
