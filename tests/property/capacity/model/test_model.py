"""Capacity models against independent calculations: explicit fits and refits, scans, a dense Gaussian process."""

import math
from dataclasses import replace
from functools import partial
from itertools import product
from typing import get_args

import numpy as np
import pytest
from capacity_truths import explore
from examples import examples
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import norm

from workbench.capacity import (
    CapacityModel,
    ScalingModel,
    leave_one_out_error,
    model_of_form,
    review_readings,
    select_model,
)
from workbench.capacity.model import FORMS, STREAMBED_FORMS
from workbench.capacity.model.forms import TRANSFORMS
from workbench.capacity.model.growth import Growth, prior_of, read_steps, shapes_of
from workbench.capacity.model.model import least_integer
from workbench.capacity.model.scaling_law import fit_scaling_law

memories = st.sampled_from([512, 1024, 2048, 4096])
budgets = st.tuples(memories, st.integers(2, 60))
runs = st.lists(st.tuples(budgets, st.integers(1, 10**7)), min_size=4, max_size=12)


def arrays(rows):
    return np.array([budget for budget, _ in rows], float), np.array([rate for _, rate in rows], float)


@examples(150)
@given(runs, st.sampled_from(sorted(TRANSFORMS)))
def test_every_form_is_ordinary_least_squares(rows, form):
    points, y = arrays(rows)
    design = np.column_stack([TRANSFORMS[form](points), np.ones(len(y))])
    scale = design.max(axis=0)
    assume(np.linalg.matrix_rank(design / scale, rtol=1e-10) == 3)
    expected = np.linalg.lstsq(design / scale, y)[0] / scale
    asked = np.concatenate([points, [(512.0, 180.0), (4096.0, 300.0)]])
    predicted = CapacityModel(form).fit(points, y).predict(asked)
    assert predicted == pytest.approx(
        TRANSFORMS[form](asked) @ expected[:2] + expected[2], rel=1e-7, abs=1e-6 * y.max()
    )


@examples(100)
@given(runs, st.sampled_from(sorted(TRANSFORMS)))
def test_leave_one_out_errors_are_those_of_refits(rows, form):
    points, y = arrays(rows)
    assume(len(np.unique(points[:, 0])) > 1 and len(np.unique(points[:, 1])) > 1)
    errors = []
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        design = np.column_stack([TRANSFORMS[form](points), np.ones(len(y))])
        scaled = design / np.abs(design).max(axis=0)
        if np.linalg.matrix_rank(scaled[rest], rtol=1e-10) < 3:
            errors.append(math.inf)
        else:
            errors.append(abs(scaled[i] @ np.linalg.lstsq(scaled[rest], y[rest])[0] - y[i]))
    assert leave_one_out_error(points, y, form) == pytest.approx(np.mean(errors), rel=1e-5, abs=1e-6 * y.max())


@examples(60)
@given(runs)
def test_halves_are_the_stated_rule(rows):
    points, y = arrays(rows)
    order = sorted(range(len(y)), key=lambda i: (points[i, 1], points[i, 0], i))

    def rank(rows_):
        return np.linalg.matrix_rank(
            np.column_stack([points[rows_] / points.max(axis=0), np.ones(len(rows_))]), rtol=1e-10
        )

    first = next(k for k in range(len(y) // 2, len(y) + 1) if rank(order[:k]) == rank(order))
    lower, upper = order[:first], order[first:]
    if len(upper) >= 2:
        errors = {
            form: math.sqrt(
                np.mean((CapacityModel(form).fit(points[lower], y[lower]).predict(points[upper]) - y[upper]) ** 2)
            )
            for form in STREAMBED_FORMS
        }
    else:
        errors = {form: leave_one_out_error(points, y, form) for form in STREAMBED_FORMS}
    ranked = sorted(errors.values())
    assume(ranked[0] == math.inf or ranked[1] > ranked[0] * (1 + 1e-6))  # a near tie may fall either way
    assert select_model(points, y).form == min(errors, key=errors.get)
    if len(upper) < 2:
        assert select_model(points, y, rule="leave-one-out").form == min(errors, key=errors.get)


@examples(200)
@given(st.integers(1, 500), st.integers(1, 500), st.integers(0, 600))
def test_least_integer_is_the_linear_scan(start, limit, threshold):
    assume(start <= limit)
    expected = next((n for n in range(start, limit + 1) if n >= threshold), None)
    assert least_integer(lambda n: n >= threshold, start, limit) == expected


@examples(20)
@given(
    st.integers(0, 10**6),
    st.sampled_from(FORMS),
    st.sampled_from([None, 0.05, 0.3]),
    st.integers(1, 12),
    st.floats(0.1, 1.5),
)
def test_slots_for_is_the_linear_scan(seed, form, risk, min_slots, factor):
    one = explore(seed)
    model = model_of_form(form, stateful=bool(seed % 2)).fit(one.X, one.y)
    assume(form == "scaling" or model.coef_[1] > 0)
    memory, rate = float(one.target[0, 0]), factor * float(one.y.max())
    scanned = np.array([[memory, n] for n in range(min_slots, 250)])
    capacity = model.predict(scanned)
    if risk is not None:
        capacity = np.minimum(capacity, model.law_.quantile(scanned, risk))
    enough = np.flatnonzero(capacity >= 1.1 * rate - 1e-9 * max(1, 1.1 * rate))
    assume(len(enough))
    assert model.slots_for(rate, memory, min_slots=min_slots, risk=risk) == min_slots + enough[0]


def dense_mixture(points, rates, target, beliefs):
    """Weights, means and deviations of ln capacity by a Gaussian process over the runs, grid point by grid point."""
    slots = np.append(points[:, 1], target[1])  # the target is the last of all
    log_memory = np.log(np.append(points[:, 0], target[0]))
    centred = log_memory - log_memory[:-1].mean()
    z, known, fewest = np.log(rates), slice(-1), slots[:-1].min()
    others = max(fewest - 1, fewest / 2)
    shapes = partial(shapes_of, beliefs.growth, fewest)
    pipelined = shapes(in_proportion=beliefs.tasks_in_proportion, key=beliefs.key, every=2)
    kinds = (
        (beliefs.tasks, np.linspace(0, others, 7), pipelined),
        (1 - beliefs.tasks, fewest * np.array([0, 0.15, 0.3]), shapes()),
    )
    noises = np.geomspace(beliefs.noise_low, beliefs.noise_high, 7)
    credible = np.exp(-0.5 * np.log(noises / beliefs.noise_typical) ** 2)
    same = slots[:, None] == slots
    same[-1] = same[:, -1] = False
    same[-1, -1] = True
    memory = beliefs.memory**2 * np.outer(centred, centred)
    memory += beliefs.bend**2 * np.exp(-np.abs(log_memory[:, None] - log_memory))
    mixture = []
    for chance, overhead, shape, noise in (
        (chance / len(overheads), *one)
        for chance, overheads, likely in kinds
        if chance > 0
        for one in product(overheads, likely, noises)
    ):
        busy = slots - overhead
        if beliefs.steps is not None:
            heights = dict(zip(beliefs.steps.slots, beliefs.steps.heights, strict=True))
            most = beliefs.steps.slots[-1] - overhead
            busy = np.array(
                [most * np.exp(heights[n]) if n in heights else one for n, one in zip(slots, busy, strict=True)]
            )
        start = np.log(fewest - overhead)
        beyond = np.maximum(np.log(busy) - start - shape.bend, 0.0)
        growth = np.log(busy) - start - beyond
        growth -= growth[known].mean()
        covariance = 100.0 + memory + shape.deviation**2 * np.outer(growth, growth)
        covariance += same * beliefs.configuration**2
        prior = z.mean() + shape.exponent * growth + shape.after * beyond
        prior -= np.log1p(shape.contention * slots / fewest)
        of_runs = covariance[known, known] + noise**2 * np.eye(len(z))
        solved = np.linalg.solve(of_runs, np.column_stack([z - prior[known], covariance[known, -1]]))
        weight = chance * shape.weight * credible[noises == noise][0]
        evidence = math.log(weight) - 0.5 * (z - prior[known]) @ solved[:, 0] - 0.5 * np.linalg.slogdet(of_runs)[1]
        mean = prior[-1] + covariance[-1, known] @ solved[:, 0]
        variance = covariance[-1, -1] - covariance[-1, known] @ solved[:, 1]
        mixture.append((evidence, mean, math.sqrt(variance)))
    evidence, mean, deviation = np.array(mixture).T
    weight = np.exp(evidence - evidence.max())
    return weight / weight.sum(), mean, deviation


@examples(8)
@given(
    st.integers(0, 10**6),
    st.sampled_from([False, None, True]),
    st.sampled_from([(growth, 0.0) for growth in ("workers", "cores")] + [(None, 0.25), (None, 1.0)]),
    st.booleans(),
)
def test_the_scaling_law_is_the_dense_gaussian_process(seed, stateful, known, objectives):
    one = explore(seed)
    growth, tasks = known
    beliefs = prior_of(one.X[:, 1].min(), stateful=stateful, growth=growth, tasks=tasks)
    if objectives and tasks == 1:
        # Every objective of one slot count is the same, so the steps are these objectives.
        beliefs = replace(beliefs, steps=read_steps(one.X, 1e5 * np.floor(one.X[:, 1] ** 0.9)))
    law = fit_scaling_law(one.X, one.y, beliefs)
    weight, mean, deviation = dense_mixture(one.X, one.y, one.target[0], beliefs)
    for probability in (0.05, 0.5, 0.95):
        expected = brentq(
            lambda x, p=probability: weight @ norm.cdf((x - mean) / deviation) - p, mean.min() - 9, mean.max() + 9
        )
        assert law.quantile(one.target, probability)[0] == pytest.approx(math.exp(expected), rel=1e-5)


@examples(15)
@example(440, "tasks")
@example(461, "cores")
@given(st.integers(0, 10**6), st.sampled_from(get_args(Growth)))
def test_the_prediction_and_the_lower_end_grow_with_slots(seed, growth):
    one = explore(seed)
    model = ScalingModel(growth=growth).fit(one.X, one.y)
    scanned = np.array([[one.target[0, 0], n] for n in (*range(1, 80), 100, 200, 400, 800)])
    for capacity in (model.predict(scanned), model.interval(scanned)[0]):
        assert (np.diff(capacity) > -0.01 * capacity[:-1]).all()


def hits(explorations, *, stateful):
    """Whether each 90 % interval holds the truth, the error of its prediction, and its width, as shares."""
    rows = []
    for one in explorations:
        model = ScalingModel(stateful=stateful, growth="tasks").fit(one.X, one.y)
        (middle,), ((low,), (high,)) = model.predict(one.target), model.interval(one.target)
        rows.append((low <= one.truth <= high, abs(middle / one.truth - 1), (high - low) / middle))
    return np.array(rows).T


def test_ninety_percent_intervals_hold_the_truth_in_85_to_97_percent():
    held, errors, widths = hits([explore(seed) for seed in range(10_000, 10_300)], stateful=False)
    assert 0.85 <= held.mean() <= 0.97
    assert np.median(errors) < 0.06
    assert widths.mean() < 0.4


def test_intervals_of_stateful_queries_hold_the_truth_of_hot_keys():
    held, errors, _ = hits([explore(seed, "hot key") for seed in range(10_000, 10_060)], stateful=True)
    assert held.mean() >= 0.85
    assert np.median(errors) < 0.2


@examples(60)
@given(st.integers(0, 10**6), st.floats(0.05, 0.5), st.integers(0, 4))
def test_stuck_readings_are_found_and_nothing_else(seed, share, count):
    one = explore(seed)
    rng = np.random.default_rng(seed)
    limit = share * float(one.y.min())
    rows = rng.choice(len(one.y), min(count, len(one.y) // 3), replace=False)
    y = one.y.copy()
    y[rows] = limit * (1 + 2e-3 * rng.uniform(size=len(rows)))
    touched = np.unique(one.X[rows], axis=0)
    review = review_readings(one.X, y)
    if len(touched) >= 3 and len(np.unique(touched[:, 1])) >= 2:
        (group,) = review.outliers
        assert set(group.runs) == set(rows.tolist())
    else:
        assert review.outliers == ()
