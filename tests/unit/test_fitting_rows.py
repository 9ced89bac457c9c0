"""As much as fits: the batch size converges to what lasts one interval, whatever it started from."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.testbed.spark.live import LEAST_BATCH_ROWS, _root_cause, fitting_rows


@given(st.floats(0.0, 1.8), st.floats(1e-6, 1e-3), st.integers(100, 10**6))
def test_it_converges_to_the_batch_that_fills_the_interval(fixed, per_row, rows):
    seen = []
    for _ in range(60):
        seen.append((rows, fixed + per_row * rows))
        rows = fitting_rows(seen[-6:], 2.0)
    wanted = max(LEAST_BATCH_ROWS, (2.0 - fixed) / per_row)
    assert rows == pytest.approx(wanted, rel=0.05, abs=2)


def test_a_query_that_never_fits_gets_the_least_batch():
    rows = 5_000
    for _ in range(40):
        rows = fitting_rows([(rows, 9.0)], 2.0)
    assert rows == LEAST_BATCH_ROWS


def test_a_python_error_is_found_among_java_causes():
    text = (
        "Job aborted\nCaused by: org.apache.spark.SparkException: wrapped\n"
        "Traceback (most recent call last):\nZeroDivisionError: division by zero\n\tat java.lang.Thread.run"
    )
    assert _root_cause(text) == "ZeroDivisionError: division by zero"


def test_else_the_innermost_java_cause_is_told():
    assert _root_cause("x\nCaused by: a.B: outer\nCaused by: a.C: inner.") == "a.C: inner"
