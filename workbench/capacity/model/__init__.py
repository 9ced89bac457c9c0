"""How capacity grows with memory and slots: forms, the scaling law, and their checks."""

from workbench.capacity.model.checks import (
    FEWEST_RUNS,
    FEWEST_SLOT_COUNTS,
    Asked,
    Room,
    alike,
    check_model,
    check_runs,
    remedies,
)
from workbench.capacity.model.forms import STREAMBED_FORMS, fit_least_squares, transform
from workbench.capacity.model.growth import SHARED_CORES, Growth, Prior, Weights, prior_of
from workbench.capacity.model.kinds import (
    FORMS,
    SCALING,
    CapacityModel,
    ScalingModel,
    exploration_cost,
    halves,
    leave_one_out_error,
    model_of_form,
    root_mean_square,
    select_model,
)
from workbench.capacity.model.micro_batch import MicroBatch, StageLine, fit_micro_batch, turns
from workbench.capacity.model.model import MARGIN, Law, Model, least_integer
from workbench.capacity.model.outliers import (
    advise,
    describe_runs,
    full,
    review_readings,
    unmeasured_memory_mb,
    why_no_capacity,
)
from workbench.capacity.model.scaling_law import (
    IN_PROPORTION,
    SHARING_IN_PROPORTION,
    PartsLaw,
    carries,
    fit_scaling_law,
)
from workbench.records import ModelFinding
