from operator import call

import numpy as np
import pytest
from refusals import refusals

from workbench.simulation import RateTrace


def file(tmp_path, text):
    path = tmp_path / "rates.csv"
    if text is not None:
        path.write_bytes(text.encode(errors="surrogateescape"))
    return path


def test_constant_and_steps():
    trace = RateTrace.constant(5.0, 60.0)
    assert (trace.rate_at(0.0), trace.rate_at(59.9), trace.rate_at(60.0), trace.rate_at(-1.0)) == (5.0, 5.0, 0.0, 0.0)
    trace = RateTrace.steps([(10.0, 100.0), (5.0, 0.0), (5.0, 300.0)])
    assert [trace.rate_at(time) for time in (0, 9.9, 10, 14.9, 15, 19.9)] == [100, 100, 0, 0, 300, 300]
    assert (trace.duration_s, trace.mean_per_s, trace.peak_per_s) == (20.0, 125.0, 300.0)
    assert trace.per_step(4.0).tolist() == [400.0, 400.0, 200.0, 300.0, 1200.0]


def test_a_day_has_its_peak_at_noon_and_records_due_do_not_depend_on_the_step():
    trace = RateTrace.diurnal(100.0, 900.0)
    for step in (0.7, 1.0, 61.0, 90_000.0):
        assert trace.per_step(step).sum() == pytest.approx(trace.mean_per_s * 86_400.0)
    assert trace.rate_at(43_200.0) == pytest.approx(900.0, rel=1e-4)
    assert trace.rate_at(0.0) == pytest.approx(100.0, rel=1e-3)
    assert trace.mean_per_s == pytest.approx(500.0)
    twice = RateTrace.diurnal(0.0, 10.0, duration_s=200.0, period_s=100.0, peak_at_s=0.0, step_s=1.0)
    assert twice.rate_at(100.0) == twice.rate_at(0.0) == pytest.approx(10.0, rel=1e-2)


def test_a_file_of_rates(tmp_path):
    trace = RateTrace.from_csv(file(tmp_path, "time_s,rate_per_s\n100,5\n160,7.5\n220,0\n"))
    assert trace.times_s.tolist() == [0.0, 60.0, 120.0]
    assert trace.rates_per_s.tolist() == [5.0, 7.5, 0.0]
    assert trace.duration_s == 180.0
    rounded = RateTrace.from_csv(file(tmp_path, "t,x\n0,1\n0.333,1\n0.667,1\n1,1\n"), "t", "x")
    assert rounded.times_s.tolist() == [0.0, 0.333, 0.667, 1.0]
    assert rounded.duration_s == pytest.approx(4 / 3, rel=1e-3)


test_a_file_with_a_fault_is_refused_with_its_line = refusals(
    lambda tmp_path, text: RateTrace.from_csv(file(tmp_path, text)),
    ("time_s,rate_per_s\n", r"rates\.csv has no rows; give at least two"),
    ("", r"has no column 'time_s', 'rate_per_s'; its first line names no columns"),
    ("time_s,rate\n0,1\n", r"has no column 'rate_per_s'; its first line names time_s, rate"),
    ("time_s,rate_per_s\n0,1\n", r"has one row, so it does not say how long the rate lasts"),
    ("time_s,rate_per_s\n0,1\n60,-2\n", r"Line 3 of .*rates\.csv has the rate -2 records/s; it must be at least 0"),
    ("time_s,rate_per_s\n0,1\n60,2\n60,3\n", r"Line 4 of .* repeats the time 60 s; give each time once"),
    ("time_s,rate_per_s\n0,1\n60,2\n30,3\n", r"Line 4 of .* goes back from 60 s to 30 s; sort the rows by time_s"),
    ("time_s,rate_per_s\n0,1\n60,2\n120,3\n240,4\n", r"Line 5 of .* comes 120 s after the row before, where"),
    (None, r"cannot be read: .* Check the path"),
    ("\udcff\udcfe\0", "is not text in UTF-8: byte 0xff at 0"),
    ("time_s,rate_per_s\n0,1\n120,2\n180,3\n240,4\n", r"Line 3 of .* comes 120 s after the row before"),
    ("time_s,rate_per_s\n0,1\n120,2\n180,3\n", r"Line 3 of .* comes 120 s after the row before"),
    ("time_s,rate_per_s\n0,1\n60,1e308\n", r"Line 3 of .* has the rate 1e\+308 records/s; it must be at most 1e"),
    ("time_s,rate_per_s\n0,1\n60,many\n", r"Line 3 of .* has 'many' in column 'rate_per_s'; it must be a finite"),
    ("time_s,rate_per_s\n0,1\n60\n", r"Line 3 of .* has None in column 'rate_per_s'"),
    fixture="tmp_path",
)


test_traces_that_make_no_sense_are_refused = refusals(
    call,
    (lambda: RateTrace(np.array([]), np.array([]), 1.0), "has no rates"),
    (lambda: RateTrace(np.array([0.0, 1.0]), np.array([1.0, -1.0]), 2.0), "rates from -1 to 1 records/s"),
    (lambda: RateTrace.constant(1e308, 60.0), r"rates from 1e\+308 .* at least 0 and at most 1e\+15"),
    (lambda: RateTrace(np.array([0.0, 0.0]), np.array([1.0, 1.0]), 2.0), "must ascend from 0 s"),
    (lambda: RateTrace(np.array([0.0]), np.array([1.0]), 0.0), "the end is 0 s"),
    (lambda: RateTrace(np.array([0.0]), np.array([1.0, 2.0]), 1.0), "as many times as rates"),
    (lambda: RateTrace.constant(1.0, 2e12).per_step(5.0), "400,000,000,000 steps of 5 s, more than"),
    (lambda: RateTrace.steps([]), "has none; give at least one"),
    (lambda: RateTrace.steps([(0.0, 1.0)]), "lasts 0 s"),
    (lambda: RateTrace.diurnal(2.0, 1.0), "run from 2 to 1 records/s"),
    (lambda: RateTrace.diurnal(1.0, 2.0, step_s=0.0), "must be above 0"),
)
