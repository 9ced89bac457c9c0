"""StreamBed's published numbers: Tables III and IV, and the runs of q1 and q2 where they are next to the repository."""

import math
import shutil

import numpy as np
import published_runs
import pytest
from published_runs import SMALL_RUNS, columns, explored, saturated, small_runs
from scipy.optimize import linprog
from staged_runs import rated_run

from workbench.capacity import (
    CapacityModel,
    ConfigurationOptimizer,
    ResourceExplorer,
    Space,
    exploration_cost,
    leave_one_out_error,
    review_readings,
    select_model,
)
from workbench.capacity.model.forms import TRANSFORMS
from workbench.measuring import CapacityEstimator
from workbench.testbed import RecordedRate, RecordedTestbed

beside = published_runs.needed()

# Table III as printed: form, and (mantissa, exponent) of a, b, c, truncated to two digits; Table IV: requested rate,
# slots by memory. Memory is MB of a TaskManager of 16 slots. The q5 row is a fit of log1p, the authors' log.
PRINTED = {
    "q1": ("linear", ((1.0, 0), (9.9, 5), (-7.6, 5)), 160e6, {8192: 179, 16384: 179, 32768: 179, 65536: 178}),
    "q2": ("linear", ((7.5, 0), (3.0, 6), (-2.7, 6)), 190e6, {8192: 69, 16384: 69, 32768: 69, 65536: 69}),
    "q5": ("log1p", ((-7.6, 3), (5.7, 5), (-1.2, 6)), 2.5e6, {32768: 1069, 65536: 1079}),
    "q8": ("sqrt", ((2.6, 3), (1.4, 6), (-3.9, 6)), 15e6, {32768: 179, 65536: 176}),
    "q11": ("linear", ((4.1, 0), (3.9, 4), (-2.1, 5)), 20e6, {8192: 565, 16384: 564, 32768: 562, 65536: 559}),
}
MARGIN = 1.10


def coefficients(query, unit=1.0, margin=MARGIN, form=None):
    """Coefficients that print as Table III and give all of Table IV's cells, by one LP; None if there are none.

    The LP looks for the largest share by which every cell keeps off its bounds.
    """
    printed_form, printed, rate, cells = PRINTED[query]
    g = TRANSFORMS[form or printed_form]
    needed = margin * rate
    rows, limits = [], []
    for memory, slots in cells.items():
        reaches = [float(g(memory * unit)), float(g(slots)), 1.0]
        before = [float(g(memory * unit)), float(g(slots - 1)), 1.0]
        rows += [[-value for value in reaches] + [needed], [*before, needed]]
        limits += [-needed, needed]
    boxes = []
    for mantissa, exponent in printed:
        low, high = sorted((mantissa * 10**exponent, math.copysign(abs(mantissa) + 0.1, mantissa) * 10**exponent))
        boxes.append((low, high))
    found = linprog([0, 0, 0, -1], A_ub=rows, b_ub=limits, bounds=[*boxes, (1e-9, None)])
    return found.x[:3] if found.status == 0 else None


@pytest.mark.parametrize("query", sorted(PRINTED))
def test_table_iv_follows_from_table_iii(query):
    form, _, rate, cells = PRINTED[query]
    found = coefficients(query)
    assert found is not None
    budgets = np.array([(m, n) for m in (8192.0, 32768.0, 65536.0) for n in (4.0, 9.0, 25.0, 48.0)])
    g = TRANSFORMS[form]
    model = CapacityModel(form).fit(budgets, g(budgets) @ found[:2] + found[2])
    assert {memory: model.slots_for(rate, memory) for memory in cells} == cells


def test_other_readings_of_table_iii_fail_and_ln_for_log1p_gives_q5_one_slot_more():
    a, b, c = coefficients("q5")
    budgets = np.array([(m, n) for m in (32768.0, 65536.0) for n in (9.0, 25.0, 48.0)])
    model = CapacityModel("log").fit(budgets, np.log(budgets) @ [a, b] + c)
    assert [model.slots_for(2.5e6, memory) for memory in (32768, 65536)] == [1070, 1080]
    assert all(coefficients(query, margin=1.0) is None for query in PRINTED)  # without the 110 %
    assert coefficients("q8", unit=1 / 16) is None  # MB per slot
    assert coefficients("q11", unit=1 / 16) is None


REFITS = {  # rows, a, b, c, leave-one-out error, request, slots for 0.5, 1, 2, 4 GB
    "q1": (10, 10.1336, 990_145, -799_536, 457_685, 160e6, [179, 179, 179, 178]),
    "q2": (20, 7.50006, 3_072_579, -2_710_731, 366_279, 190e6, [69, 69, 69, 69]),
}
MEMORY = (8192, 16384, 32768, 65536)


@beside
def test_leave_one_out_errors_as_the_exploration_went_on():
    points, y = columns(explored("q1"))
    errors = [leave_one_out_error(points[:rows], y[:rows]) for rows in range(5, 12)]
    expected = [761_968, 589_938, 596_121, 478_665, 522_864, 457_685, 783_478]
    assert errors == pytest.approx(expected, abs=0.6)
    assert leave_one_out_error(points[:10], y[:10], "sqrt") == pytest.approx(406_105, abs=0.6)
    assert exploration_cost(points[:10], y[:10]) == pytest.approx(406_105, abs=0.6)


@beside
@pytest.mark.parametrize(("query", "form"), [("q1", "sqrt"), ("q2", "linear")])
def test_halves_that_are_extended_choose_a_form(query, form):
    points, y = columns(explored(query)[: REFITS[query][0]])
    assert set(np.sort(points[:, 1])[: len(y) // 2]) == {2}  # one slot count determines no fit
    assert select_model(points, y).form == form


@beside
@pytest.mark.parametrize(("query", "stuck"), [("q1", 4), ("q2", 5)])
def test_stuck_limiter_readings_are_set_aside(query, stuck):
    runs = small_runs(query)
    points, y = columns(runs)
    for objectives in (None, runs.bids2_objective_ev_s):
        review = review_readings(points, y, objectives)
        (group,) = review.outliers
        assert len(group.runs) == group.budgets == stuck
        assert group.rate == pytest.approx(64 * 10_000, rel=0.005)
        assert list(group.runs) == np.flatnonzero(y < 640_000).tolist()


def predict_at_scale(query, folder, targets, *, objectives):
    """The way of the workbench: set outliers aside, fit the scaling law to the others; q1, q2 are stateless."""
    runs = small_runs(query, folder)
    points, y = columns(runs)
    valid = np.array(review_readings(points, y, runs.bids2_objective_ev_s).valid)
    known = {"objectives": runs.bids2_objective_ev_s[valid]} if objectives else {"growth": "tasks"}
    model = select_model(points[valid], y[valid], rule="robust", stateful=False, **known)
    return model.predict(targets), *model.interval(targets, level=0.9)


@beside
@pytest.mark.parametrize("objectives", [True, False])
@pytest.mark.parametrize("query", ["q1", "q2"])
def test_saturated_capacity_at_scale_is_predicted_from_the_small_runs_alone(query, objectives, tmp_path):
    shutil.copy(published_runs.FOLDER / SMALL_RUNS, tmp_path)  # nothing else can be read there
    targets = np.array(list(zip(MEMORY, REFITS[query][-1], strict=True)), float)
    predicted, low, high = predict_at_scale(query, tmp_path, targets, objectives=objectives)

    validated, measured = saturated(query)
    assert validated.tolist() == targets.tolist()
    assert predicted == pytest.approx(measured, rel=0.15)
    assert (low <= measured).all()
    assert (measured <= high).all()
    assert (high <= 1.7 * low).all()


def replayed(query, journal, **settings):
    """Give an explorer the published runs in order, until it asks for no more."""
    optimizer = ConfigurationOptimizer(RecordedTestbed([RecordedRate(512, 2, 1.0)]), CapacityEstimator(), journal)
    explorer = ResourceExplorer(optimizer, Space((2, 16), (8192, 65536)), form="linear", **settings)
    for run in explored(query).itertuples():
        if explorer.reason() is not None:
            break
        explorer.tell(rated_run(int(run.slots), int(run.memory_mb), run.observed_rate_ev_s))
    return explorer


@beside
@pytest.mark.parametrize(
    ("query", "runs", "reason"),
    [
        ("q1", 11, "run 11 raised the model's error from 458 k records/s to 783 k records/s"),
        ("q2", 20, "20 runs were made"),
    ],
)
def test_the_explorer_stops_where_table_iii_did(query, runs, reason, journal):
    explorer = replayed(query, journal, score_form="linear")
    assert len(explorer.runs) == runs
    assert explorer.reason() == reason
    rows, a, b, c, error, request, slots = REFITS[query]
    found = explorer.conclude()
    assert found.fitted == tuple(range(rows))  # the column of estimator runs
    assert (*found.model.coef_, found.model.intercept_) == pytest.approx((a, b, c), rel=1e-5)
    assert found.costs[rows - 1] == pytest.approx(error, abs=0.6)
    assert [found.model.slots_for(request, memory) for memory in MEMORY] == slots


@beside
def test_by_equation_9_the_explorer_stops_q1_two_runs_earlier(journal):
    explorer = replayed("q1", journal)
    assert explorer.reason().startswith("run 9 raised the model's error")
    assert explorer.conclude().fitted == tuple(range(8))
