"""Price lists, and the cheapest workers for a number of slots."""

import pytest

from workbench.capacity.planning import InstanceType, cheapest, read_instances
from workbench.capacity.planning.prices import prices
from workbench.dataflow import SlotProfile
from workbench.errors import WorkbenchError


def test_prices_count_whole_workers():
    small = InstanceType("small", "x", "y", 4, 8192, 1.0, "USD", "test", "2024-01")
    large = InstanceType("large", "x", "y", 16, 65536, 3.5, "USD", "test", "2024-01")
    found = prices([small, large], 10, SlotProfile(1.0, 4096))
    assert [(price.instance.name, price.workers, price.per_hour, price.idle_slots) for price in found] == [
        ("large", 1, 3.5, 3),
        ("small", 10, 10.0, 0),
    ]
    with pytest.raises(WorkbenchError, match=r"None of the 1 instance types holds a slot of 8 cores"):
        cheapest([small], 1, SlotProfile(8.0, 1024))


def test_a_wrong_price_is_refused_with_its_line(tmp_path):
    path = tmp_path / "prices.csv"
    header = "name,provider,region,vcpus,memory_mb,price_per_hour,currency,source,date\n"
    path.write_text(header + "a,b,c,2,4096,0.1,USD,x,2024\nd,e,f,2,4096,-1,USD,x,2024\n")
    with pytest.raises(WorkbenchError, match=r"Line 3 of the price list .*price_per_hour .*-1"):
        read_instances(path)
    path.write_text(header + "a,b,c,2,4096,0.1,USD,x,2024\nd,e,f,2,4096,0.1\n")
    with pytest.raises(WorkbenchError, match=r"Line 3 of the price list .* is wrong: it ends before currency, source"):
        read_instances(path)
    path.write_text("name,vcpus\n")
    with pytest.raises(WorkbenchError, match=r"has no column 'provider', .*'date'; its first line names name, vcpus"):
        read_instances(path)
