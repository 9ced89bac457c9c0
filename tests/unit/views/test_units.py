"""Numbers in text."""

import math

import pytest

from workbench.views import units


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1_234_000, "1.23 M records/s"),
        (999_950, "1 M records/s"),
        (12_345, "12.3 k records/s"),
        (999.4, "999 records/s"),
        (0.5, "0.5 records/s"),
        (0, "0 records/s"),
        (-1500, "-1.5 k records/s"),
        (None, "unknown"),
        (math.nan, "unknown"),
        (math.inf, "unlimited"),
    ],
)
def test_rate(value, text):
    assert units.rate(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (1000, "1,000 B"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (512 * 2**20, "512 MiB"),
        (None, "unknown"),
    ],
)
def test_size(value, text):
    assert units.size(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 s"),
        (2, "2 s"),
        (0.35, "350 ms"),
        (0.0000123, "12.3 µs"),
        (0.99999, "1 s"),
        (90, "90 s"),
        (150, "2 min 30 s"),
        (180, "3 min"),
        (5400, "1.5 h"),
        (1e-12, "0.001 ns"),
        (math.inf, "unlimited"),
    ],
)
def test_seconds(value, text):
    assert units.seconds(value) == text


@pytest.mark.parametrize(("value", "text"), [(0, "0 %"), (0.25, "25 %"), (0.9876, "98.8 %"), (None, "unknown")])
def test_share(value, text):
    assert units.share(value) == text


def test_count_and_number():
    assert units.count(1_234_567, "rows") == "1,234,567 rows"
    assert units.count(3) == "3"
    assert units.number(0.000123456) == "0.000123"
    assert units.number(123_456) == "123,456"
    assert units.number(10) == "10"
