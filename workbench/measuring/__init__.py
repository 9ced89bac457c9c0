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
from workbench.measuring.costs import (
    EXPECTED_DEVIATION,
    EXPECTED_WEIGHT,
    LEVEL,
    MIN_LEVELS,
    Line,
    batch_line,
    count_levels,
    expected_deviation,
    fit_costs,
    fit_line,
    judged_batches,
    mst_interval,
    with_prior,
)
from workbench.measuring.estimator import CapacityEstimator, fill_s, filling_rate
from workbench.measuring.events import (
    Abandoned,
    Concluded,
    Deployed,
    Estimated,
    Event,
    Failed,
    Finished,
    LoadProbed,
    Probed,
    Reused,
    describe,
    describe_run,
    ignore,
    record,
    recorded,
    replay,
    result_of,
)
from workbench.measuring.schedules import SIMPLE_QUERIES, STATEFUL_QUERIES
from workbench.measuring.verdict import Schedule, Step, Times, closing, judge
from workbench.metrics import SOURCE_MARGIN
