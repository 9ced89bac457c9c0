"""Price lists, and the cheapest workers for a number of slots."""

from dataclasses import replace

import pytest

from workbench.capacity.planning import InstanceType, cheapest, read_instances
from workbench.dataflow import SlotProfile
from workbench.errors import WorkbenchError


def test_prices_count_whole_workers():
    small = InstanceType("small", "x", "y", 4, 8192, 1.0, "USD", "test", "2024-01")
    large = InstanceType("large", "x", "y", 16, 65536, 3.5, "USD", "test", "2024-01")
    for instances, expected in (((small, large), ("large", 1, 3.5, 3)), ((small,), ("small", 10, 10.0, 0))):
        price = cheapest(instances, 10, SlotProfile(1.0, 4096))
        assert (price.instance.name, price.workers, price.per_hour, price.idle_slots) == expected
    with pytest.raises(WorkbenchError, match=r"None of the 1 instance types holds a slot of 8 cores"):
        cheapest([small], 1, SlotProfile(8.0, 1024))
    one = r"8 slots of 1 cores and 1,024 MB in one executor, apart from what the system keeps; .* use smaller executors"
    with pytest.raises(WorkbenchError, match=f"None of the 1 instance types holds {one}"):
        cheapest([small], 8, SlotProfile(1.0, 1024), 8)
    tiny = replace(small, memory_mb=16)  # less than the system keeps
    with pytest.raises(WorkbenchError, match=r"None of the 1 instance types holds 2 slots of 1 cores"):
        cheapest([tiny], 8, SlotProfile(1.0, 1024), 2)


HEADER = b"name,provider,region,vcpus,memory_mb,price_per_hour,currency,source,date\n"
ROW = b"a,b,c,2,4096,0.1,USD,x,2024\n"


def test_a_price_list_as_a_spreadsheet_writes_it_is_read(tmp_path):
    path = tmp_path / "prices.csv"
    path.write_bytes("\ufeff".encode() + HEADER + ROW)
    assert [one.name for one in read_instances(path)] == ["a"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (HEADER + ROW + b"\x80uro,b,c,2,4096,0.1,EUR,x,2024\n", r"not text in UTF-8: byte 0x80 at \d+\. Save"),
        (HEADER, r"prices.csv has a heading and no instance types; add one a line"),
        (HEADER + ROW + ROW.replace(b"USD", b"EUR"), r"prices in EUR, USD, which cannot be compared. Give all"),
        (HEADER + b'"' + b"a" * 200_000, r"cannot be read as CSV: field larger than field limit"),
        (HEADER + ROW + b"d,e,f,2,4096,-1,USD,x,2024\n", r"Line 3 of the price list .*price_per_hour .*-1"),
        (HEADER + ROW + b"d,e,f,2,4096,0.1\n", r"Line 3 of the price list .* it ends before currency, source"),
        (b"name,vcpus\n", r"has no column 'provider', .*'date'; its first line names name, vcpus"),
    ],
)
def test_a_price_list_that_is_none_is_refused(tmp_path, content, message):
    path = tmp_path / "prices.csv"
    path.write_bytes(content)
    with pytest.raises(WorkbenchError, match=message):
        read_instances(path)
