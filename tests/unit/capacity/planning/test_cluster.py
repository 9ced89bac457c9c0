import itertools
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refusals

from workbench.capacity.planning import InstanceType, cheapest, pack, read_instances
from workbench.capacity.planning.workers import _cuts
from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.records import DRIVER_CORES, DRIVER_MEMORY_MB, CapacityPlan, Executor


def plan_of(slots, cpus=1.0, memory_mb=1024, query="mine:orders"):
    budget = Budget(slots, SlotProfile(cpus, memory_mb))
    return CapacityPlan(query, 1e5, 1.1, budget, 1.2e5, 1.1e5, 1.3e5, "scaling", "Spark", "spark", 3, 1.0)


def instance(vcpus, memory_mb, price=1.0, name="small"):
    return InstanceType(name, "x", "y", vcpus, memory_mb, price, "USD", "test", "2026-01")


@pytest.fixture(autouse=True, scope="module")
def workers_keep_nothing():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("workbench.capacity.planning.workers.kubernetes_reserve", lambda _cpus, _mb: (0.0, 0.0))
        yield


def fewest(plans, cpus, memory):
    """The least workers over all cuts and all ways to distribute the containers, by trying each."""

    def fits(containers, workers):
        free = [(cpus, memory)] * workers

        def put(place, free):
            if place == len(containers):
                return True
            cores, size = containers[place]
            for worker in {one: number for number, one in enumerate(free)}.values():
                left = free[worker][0] - cores, free[worker][1] - size
                if min(left) >= -1e-6 and put(place + 1, [*free[:worker], left, *free[worker + 1 :]]):
                    return True
            return False

        return put(0, free)

    found = math.inf
    for executors in itertools.product(*(list(_cuts(plan, cpus, memory)) for plan in plans)):
        containers = [(DRIVER_CORES, float(DRIVER_MEMORY_MB))] * len(plans)
        for plan, executor in zip(plans, executors, strict=True):
            each = executor.millicores / 1000, float(executor.memory_mb)
            containers += [each] * math.ceil(plan.budget.slots / executor.slots)
        containers.sort(reverse=True)
        found = min(found, next(count for count in itertools.count(1) if fits(containers, count)))
    return found


@given(st.lists(st.tuples(st.integers(1, 5), st.sampled_from([0.5, 1.0])), min_size=1, max_size=2))
def test_no_packing_by_brute_force_is_much_better_and_every_container_has_room(sizes):
    plans = [plan_of(slots, cpus) for slots, cpus in sizes]
    cluster = pack(plans, [instance(3.0, 8192)])
    best = fewest(plans, 3.0, 8192)
    assert cluster.least <= best <= len(cluster.workers) <= best + 1
    for worker in cluster.workers:
        held = [cluster.executors[place] for place, n in enumerate(worker.executors) for _ in range(n)]
        cores = sum(one.millicores for one in held) / 1000 + len(worker.drivers) * DRIVER_CORES
        memory = sum(one.memory_mb for one in held) + len(worker.drivers) * DRIVER_MEMORY_MB
        assert cores <= 3.0 + 1e-6
        assert memory <= 8192
    for place, plan in enumerate(plans):
        assert cluster.count(place) * cluster.executors[place].slots >= plan.budget.slots
    assert sorted(place for worker in cluster.workers for place in worker.drivers) == list(range(len(plans)))


def test_plans_share_workers_the_cheapest_type_wins_and_ties_go_to_fewer_workers():
    plans = [plan_of(2), plan_of(2, query="mine:clicks")]
    cluster = pack(plans, [instance(8.0, 16384)])
    assert (len(cluster.workers), cluster.least, cluster.per_hour, cluster.apart_per_hour) == (1, 1, 1.0, 2.0)
    assert cluster.workers[0].executors == (1, 1)
    types = [instance(4.0, 8192, 1.0), instance(8.0, 16384, 2.0, "large")]
    assert pack([plan_of(7)], types).instance.name == "large"
    assert pack([plan_of(2)], types).instance.name == "small"


def test_executors_of_a_plan_are_alike_and_those_that_were_measured_are_not_cut_anew():
    cluster = pack([plan_of(5)], [instance(4.0, 65536)])
    assert cluster.executors == (Executor(3, SlotProfile(1.0, 1024)),)
    assert cluster.count(0) == 2
    measured = replace(plan_of(6), executors=3, executor_slots=2)
    found = pack([measured], [instance(4, 8192)])
    assert [one.slots for one in found.executors] == [2]
    assert found.count(0) == 3
    with pytest.raises(
        WorkbenchError,
        match=r"holds a driver and an executor of each plan \(6 slots, each 1 core and 1,024 MB\), apart",
    ):
        pack([replace(measured, executors=1, executor_slots=6)], [instance(4, 65536)])


def test_executors_that_share_no_worker_bound_their_number():
    measured = replace(plan_of(20), executors=4, executor_slots=5)
    found = pack([measured], [instance(8, 65536)])
    assert (len(found.workers), found.least) == (4, 4)
    few = pack([replace(measured, least_slots=10)], [instance(8, 65536)])
    assert (few.count(0), few.least) == (2, 2)


test_what_cannot_be_packed_is_refused_with_the_next_step = refusals(
    pack,
    (
        [plan_of(1, cpus=8.0)],
        [instance(4.0, 8192)],
        "None of the 1 instance types holds a driver and a slot of each plan",
    ),
    ([plan_of(1)], [], r"no price list.*\(prices\)"),
    ([], [instance(4.0, 8192)], "no plan to put on a cluster"),
)


def test_each_type_holds_the_plans_for_its_own_cores():
    """On cores twice as fast half the slots are enough, which is worth more money; a type too slow is left out."""
    plans = [plan_of(8), plan_of(8, query="mine:clicks")]
    slow, usual, fast = (
        instance(6.0, 16384, price, name) for name, price in (("slow", 0.1), ("usual", 1.0), ("fast", 1.5))
    )

    def there(place, one):
        if one is slow:
            raise WorkbenchError("Cores of slow are busy for the whole interval.")
        return replace(plans[place], budget=replace(plans[place].budget, slots=4 if one is fast else 8))

    found = pack(plans, [slow, usual, fast], on_cores=there)
    assert found.instance is fast
    assert [plan.budget.slots for plan in found.plans] == [4, 4]
    assert found.per_hour == pack(found.plans, [fast]).per_hour
    assert found.apart_per_hour == pack(found.plans, [fast]).apart_per_hour
    with pytest.raises(WorkbenchError, match="busy for the whole interval"):
        pack(plans, [slow], on_cores=there)


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


def read(tmp_path, content):
    (tmp_path / "prices.csv").write_bytes(content)
    return read_instances(tmp_path / "prices.csv")


def test_a_price_list_as_a_spreadsheet_writes_it_is_read(tmp_path):
    assert [one.name for one in read(tmp_path, "\ufeff".encode() + HEADER + ROW)] == ["a"]


test_a_price_list_that_is_none_is_refused = refusals(
    read,
    (HEADER + ROW + b"\x80uro,b,c,2,4096,0.1,EUR,x,2024\n", r"not text in UTF-8: byte 0x80 at \d+\. Save"),
    (HEADER, r"prices.csv has a heading and no instance types; add one a line"),
    (HEADER + ROW + ROW.replace(b"USD", b"EUR"), r"prices in EUR, USD, which cannot be compared. Give all"),
    (HEADER + b'"' + b"a" * 200_000, r"cannot be read as CSV: field larger than field limit"),
    (HEADER + ROW + b"d,e,f,2,4096,-1,USD,x,2024\n", r"Line 3 of the price list .*price_per_hour .*-1"),
    (HEADER + ROW + b"d,e,f,2,4096,0.1\n", r"Line 3 of the price list .* it ends before currency, source"),
    (b"name,vcpus\n", r"has no column 'provider', .*'date'; its first line names name, vcpus"),
    fixture="tmp_path",
)
