"""Where the generator's benchmark takes q1's maximum from, and what it says of it."""

import os
from dataclasses import replace

import benchmark_script
import pytest
from example_measurement import example_measurement


@pytest.fixture(scope="module")
def benchmark():
    return benchmark_script.load("generator")


@pytest.fixture(scope="module")
def measured():
    return example_measurement()


def test_the_latest_measurement_that_is_kept_is_taken(benchmark, measured, tmp_path, monkeypatch):
    monkeypatch.setattr(benchmark, "KEPT", tmp_path)
    assert benchmark.measured_q1(now=False) is None
    for at, name in enumerate(("nexmark-q1-run-9", "nexmark-q1-run-1", "nexmark-q5-run-1")):
        replace(measured, query=name).to_json(tmp_path / f"{name}.json")
        os.utime(tmp_path / f"{name}.json", (at, at))
    found, where = benchmark.measured_q1(now=False)
    assert (found.query, where) == ("nexmark-q1-run-1", "nexmark-q1-run-1.json of 2026-11-20")


def test_the_maximum_is_told_per_core_of_the_slots(benchmark, measured):
    told = benchmark.said_of_maximum((measured, "in this run"), 8 * measured.estimate.rate / 0.8)
    assert told.startswith("q1's MST per core (in this run)")
    assert told.endswith("0.02 M rows per second and core   generator / this 8.0")


def test_a_maximum_that_is_not_known_is_told_with_the_next_step(benchmark, measured):
    nothing = replace(measured, estimate=replace(measured.estimate, rate=None))
    for found in (None, (nothing, "in this run")):
        assert "measure it with --measure" in benchmark.said_of_maximum(found, 1.0)
