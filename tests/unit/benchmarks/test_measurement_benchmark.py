"""What the benchmark of measurements says of its runs, without running them."""

from dataclasses import replace

import benchmark_script
import pytest
from example_measurement import example_measurement

from workbench import cli
from workbench.records import MstInterval


@pytest.fixture(scope="module")
def benchmark():
    return benchmark_script.load("measurement")


@pytest.fixture(scope="module")
def measured():
    return example_measurement()


def result(rate, interval=None, low=1000.0, high=1040.0, seconds=100.0):
    return {"rate": rate, "interval": interval, "low": low, "high": high, "seconds": seconds}


def test_repeats_are_judged_by_their_spread_first(benchmark):
    close = [result(1000.0, [900.0, 1100.0]), result(950.0, [960.0, 1100.0]), result(990.0)]
    assert list(benchmark.said_of_repeats(close)) == [
        "(max - min) / max = 0.050: at most 0.10 is met",
        "1 of 3 runs report an interval that contains all 3 rates",
    ]
    first, _ = benchmark.said_of_repeats([result(1000.0), result(890.0)])
    assert first == "(max - min) / max = 0.110: at most 0.10 is NOT met"


@pytest.mark.parametrize(("rates", "spread"), [([None, 1000.0], "1.000"), ([None, None], "nan")])
def test_a_repeat_that_sustained_nothing_is_not_passed_over(benchmark, rates, spread):
    first, _ = benchmark.said_of_repeats([result(rate) for rate in rates])
    assert first == f"(max - min) / max = {spread}: at most 0.10 is NOT met"


def test_schedules_tell_overlap_of_brackets_and_of_intervals(benchmark):
    lines = list(
        benchmark.said_of_schedules(
            {
                "adaptive": [result(1000.0, [900.0, 1100.0]), result(1000.0, None, 1030.0)],
                "streambed": [result(1000.0, [1150.0, 1200.0], 1020.0, None, 400.0)],
            }
        )
    )
    time, width, brackets, intervals = lines
    assert (time, width) == ("adaptive / streambed = 0.500 of the estimation time", "widest adaptive bracket 0.040")
    assert brackets == (
        "the brackets overlap from 1.03 k records/s to 1.04 k records/s: 1 k records/s to 1.04 k records/s, "
        "1.03 k records/s to 1.04 k records/s, 1.02 k records/s to no end"
    )
    assert intervals == (
        "the intervals do not all overlap (1 of 3 runs have none): 900 records/s to 1.1 k records/s, "
        "1.15 k records/s to 1.2 k records/s"
    )


def test_runs_without_any_interval_are_told(benchmark):
    *_, last = benchmark.said_of_schedules({"adaptive": [result(1.0)], "streambed": [result(1.0)]})
    assert last == "no run has intervals"


def test_costs_are_those_of_the_report(benchmark, measured):
    lower = [probe for probe in measured.estimate.probes if probe.judgement]
    lines = list(benchmark.said_of_costs(replace(measured, load_curve=tuple(lower))))
    assert [line.split(" up to")[0].strip() for line in lines] == [cost.operator for cost in measured.costs]
    for line, cost in zip(lines, measured.costs, strict=True):
        assert f"up to the MST: a {cost.fixed_s:.4f} s, 1/b {1 / cost.per_record_s:,.0f} records/s" in line
    doubled = tuple(replace(cost, per_record_s=2 * cost.per_record_s) for cost in measured.costs)
    again = list(benchmark.said_of_costs(replace(measured, load_curve=tuple(lower), costs=doubled)))
    ratios = [[float(line.split("ratio ")[1]) for line in each] for each in (lines, again)]
    assert ratios[1] == pytest.approx([ratio / 2 for ratio in ratios[0]], abs=1e-3)
    (only,) = benchmark.said_of_costs(replace(measured, costs=()))
    assert only.startswith("the measurement has no costs")


def test_a_measurement_without_costs_shows_nothing(benchmark, measured, tmp_path):
    replace(measured, costs=()).to_json(tmp_path / "bare.json")
    with pytest.raises(SystemExit, match="1"):
        benchmark.costs(tmp_path / "bare.json")


def test_verify_runs_on_the_measured_budget_at_95_percent_of_low_and_125_of_high(benchmark, measured):
    interval = MstInterval(8000.0, 16000.0, 0.9, 1, 0.1)
    spans = dict(benchmark.ends(replace(measured, interval=interval)))
    assert spans == {
        "bracket": (measured.estimate.low, measured.estimate.high),
        "interval": (8000.0, 16000.0),
    }
    options = cli._parser().parse_args(benchmark.verify_arguments(measured, *spans["interval"]))
    assert (options.query, options.slots, options.slot_cpus) == ("q5", 4, 0.2)
    assert (options.memory_mb, options.interval, options.json) == (512, 2.0, True)
    assert [options.rate * percent / 100 for percent in options.percent] == pytest.approx([7600.0, 20000.0])


def test_verify_leaves_out_what_has_no_two_ends(benchmark, measured):
    endless = replace(measured, estimate=replace(measured.estimate, high=float("inf")), interval=None)
    assert dict(benchmark.ends(endless)) == {"bracket": None, "interval": None}


def test_verdicts_are_told_beside_what_was_promised(benchmark):
    verdicts = [{"rate": 950.0, "verdict": "overloaded"}, {"rate": 1300.0, "verdict": "overloaded"}]
    assert list(benchmark.said_of_verdicts("q5", "bracket", verdicts)) == [
        "q5 at 0.95 x low of its bracket, 950 records/s: overloaded, NOT sustained",
        "q5 at 1.25 x high of its bracket, 1.3 k records/s: overloaded, as promised",
    ]
