"""What the benchmarks of growing work and of long use make of what they measured."""

import math

import benchmark_script
import pytest


@pytest.fixture(scope="module")
def growth():
    return benchmark_script.load("growth")


@pytest.fixture(scope="module")
def soak():
    return benchmark_script.load("soak")


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_the_exponent_is_that_of_the_last_sizes(growth, power):
    rows = [{"size": size, "cpu_s": 1.0 if size < 100 else (size / 100) ** power} for size in (1, 10, 100, 1000, 10000)]
    assert growth.exponent(rows, "cpu_s", 0.01) == pytest.approx(power)


@pytest.mark.parametrize(("leak_mb", "flat"), [(0.0, True), (0.2, False)])
def test_memory_that_grows_in_the_second_half_is_seen(soak, capsys, leak_mb, flat):
    seen = [{"memory, MB": 100.0 + min(number, 20) + leak_mb * number, "threads": 4} for number in range(100)]
    assert soak.judged("work", 100, seen)["flat"] == {"memory, MB": flat, "threads": True}
    assert ("GROWS" in capsys.readouterr().out) != flat


def test_what_is_too_small_to_be_seen_has_no_exponent(growth):
    assert math.isnan(growth.exponent([{"size": size, "cpu_s": 1e-3} for size in (1, 10, 100)], "cpu_s", 0.01))


def test_a_size_that_takes_too_long_or_fails_ends_its_series_with_the_reason(growth, monkeypatch, capsys):
    answers = {1_000: {"size": 1_000, "cpu_s": 1.0, "peak_mb": 9.0, "added_mb": 5.0}, 3_000: "more than 7 s"}
    monkeypatch.setattr(growth, "grown", lambda _name, size, _limit: answers[size])
    found = growth.measure("append", 10**9, 7)
    assert (len(found["rows"]), found["ended"]) == (1, "3,000: more than 7 s")
    assert "WORSE than n log n" in capsys.readouterr().out
