import random

import pytest

from workbench.measuring import count_levels, fit_costs, fit_line
from workbench.metrics import TaskSample


def samples(operator, records, cost):
    return [TaskSample(operator, float(x), cost(x)) for x in records]


def test_exact_line_is_found_per_operator():
    data = samples("scan", [100, 200, 400], lambda x: 0.5 + 0.01 * x) + samples("join", [10, 20, 30], lambda x: 0.1 * x)
    scan, join = fit_costs(data)
    assert (scan.operator, join.operator) == ("scan", "join")
    assert (scan.fixed_s, scan.per_record_s) == (pytest.approx(0.5), pytest.approx(0.01))
    assert scan.per_record_error == pytest.approx(0, abs=1e-9)
    assert (scan.records_low, scan.records_high, scan.samples, scan.levels) == (100, 400, 3, 3)
    assert (join.fixed_s, join.per_record_s) == (pytest.approx(0, abs=1e-12), pytest.approx(0.1))


def test_two_levels_are_not_enough():
    (cost,) = fit_costs(samples("scan", [100, 101, 200, 201, 202], lambda x: 0.5 + 0.01 * x))
    assert (cost.fixed_s, cost.per_record_s, cost.per_record_error) == (None, None, None)
    assert (cost.levels, cost.samples) == (2, 5)


def test_costs_are_never_negative():
    (below,) = fit_costs(samples("o", [1, 2, 3], lambda x: x - 0.9))
    assert below.fixed_s == 0.0
    assert below.per_record_s == pytest.approx((0.1 + 2 * 1.1 + 3 * 2.1) / 14)
    (falling,) = fit_costs(samples("o", [1, 2, 3], lambda x: 4 - x))
    assert (falling.fixed_s, falling.per_record_s) == (pytest.approx(2.0), 0.0)


def test_error_is_the_textbook_one():
    from scipy.stats import linregress

    rng = random.Random(7)
    points = [(x, 2 + 0.3 * x + rng.gauss(0, 0.2)) for x in range(1, 40)]
    line, expected = fit_line(points), linregress(*zip(*points, strict=True))
    assert (line.fixed, line.slope, line.slope_error) == pytest.approx(
        (expected.intercept, expected.slope, expected.stderr)
    )


def test_nothing_to_fit():
    assert fit_costs([]) == ()
    assert fit_line([]) is None
    assert fit_line([(0.0, 1.0)]) is None
    assert fit_costs(samples("idle", [0, 0, 0], lambda _x: 1.0))[0].per_record_s is None


def test_levels_span_two_percent():
    assert count_levels([100, 102, 102.1, 104, 200]) == 3
    assert count_levels([0, 0, 1]) == 2
