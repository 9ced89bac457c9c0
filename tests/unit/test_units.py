import math

import pytest

from workbench import units
from workbench.errors import WorkbenchError

WRITTEN = {
    units.rate: {
        1_234_000: "1.23 M records/s", 999_950: "1 M records/s", 12_345: "12.3 k records/s", -1500: "-1.5 k records/s",
        999.4: "999 records/s", 0.5: "0.5 records/s", 0: "0 records/s",
        None: "unknown", math.nan: "unknown", math.inf: "unlimited",
    },
    units.size: {
        0: "0 B", 1: "1 B", 1000: "1,000 B", 1024: "1 KiB", 1536: "1.5 KiB", 512 * 2**20: "512 MiB", None: "unknown",
    },
    units.seconds: {
        0: "0 s", 2: "2 s", 0.35: "350 ms", 0.0000123: "12.3 µs", 0.99999: "1 s", 1e-12: "0.001 ns",
        90: "90 s", 150: "2 min 30 s", 180: "3 min", 5400: "1.5 h", math.inf: "unlimited",
    },
    units.share: {0: "0 %", 0.25: "25 %", 0.9876: "98.8 %", None: "unknown"},
    units.clock: {0: "00:00", 23_400: "06:30", 23_405: "06:30:05", 86_400: "day 2, 00:00", 59.9: "00:01"},
    units.number: {0.000123456: "0.000123", 123_456: "123,456", 10: "10"},
    units.count: {3: "3", 1_234_567: "1,234,567"},
}  # fmt: skip


@pytest.mark.parametrize(("write", "value"), [(write, value) for write, texts in WRITTEN.items() for value in texts])
def test_quantities_are_written_with_their_unit(write, value):
    assert write(value) == WRITTEN[write][value]


def test_a_count_has_the_name_of_what_is_counted_and_what_is_left_over_of_a_calculation_is_0():
    assert units.count(1_234_567, "rows") == "1,234,567 rows"
    assert [units.number(value) for value in (5e-324, -4.4e-20, 1.23e-15)] == ["0", "0", "0.00000000000000123"]
    assert (units.padded(4.4e-20, "s"), units.seconds(5e-324)) == ("0 s", "0 ns")


@pytest.mark.parametrize(
    ("text", "rate"),
    [("1,500,000", 1.5e6), ("1.5M", 1.5e6), (" 1.5 m records/s ", 1.5e6), ("2e5", 2e5), ("12 k", 12e3), ("0.5", 0.5)],
)
def test_a_rate_as_people_write_it(text, rate):
    assert units.read_rate(text) == rate


@pytest.mark.parametrize("text", ["", "many", "-3", "0", "1.5 MB", "1e999", "nan", "1,5", "1,50,000"])
def test_what_is_no_rate_is_refused(text):
    with pytest.raises(WorkbenchError, match=r"The rate is '.*'; write records/s above 0, such as 1,500,000 or 1\.5 M"):
        units.read_rate(text)


@pytest.mark.parametrize(
    ("low", "high", "texts"),
    [
        (12_900, 13_000, ("12.9 k", "13.0 k")),
        (21_900_000, 22_800_000, ("21.9 M", "22.8 M")),
        (79_960, 80_000, ("79.96 k", "80.00 k")),
        (999.96, 1_000, ("999.96", "1.0000 k")),
        (5_000, 5_000, ("5.00 k", "5.00 k")),
        (0, math.inf, ("0", "unlimited")),
    ],
)
def test_two_ends_that_differ_read_differently(low, high, texts):
    assert units.ends(low, high) == texts
