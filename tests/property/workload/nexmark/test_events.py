"""Nexmark rows: any slicing gives the same rows, and the fast form equals the plain one."""

from dataclasses import replace

import pyarrow as pa
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from plain_nexmark import event

from workbench.workload import EventClock
from workbench.workload.nexmark import NexmarkGenerator, NexmarkSettings

SIZES = st.integers(0, 700)
SETTINGS = st.builds(
    NexmarkSettings,
    seed=st.sampled_from([0, 7, 2**63 - 1]),
    people=st.integers(1, 3),
    auctions=st.integers(1, 5),
    bids=st.integers(0, 60),
    person_bytes=st.sampled_from([0, 60, 200]),
    auction_bytes=st.sampled_from([0, 100, 500]),
    bid_bytes=st.sampled_from([0, 34, 100, 900]),
    hot_auction_ratio=st.integers(1, 4),
    hot_seller_ratio=st.integers(1, 4),
    hot_bidder_ratio=st.integers(1, 4),
    hot_batch=st.sampled_from([1, 10, 100]),
    auctions_in_flight=st.integers(1, 200),
    active_people=st.integers(1, 2000),
    group_size=st.sampled_from([1, 10, 100, 951, 1000]),
    first_event_id=st.sampled_from([0, 2, 10**9]),
    first_person_id=st.sampled_from([0, 1000]),
    first_auction_id=st.sampled_from([0, 1000]),
    late_probability=st.sampled_from([0.0, 0.1, 1.0]),
    late_delay_s=st.sampled_from([0.001, 3.0]),
    characters=st.sampled_from(["letters", "original"]),
)
CLOCKS = st.builds(
    EventClock,
    origin_us=st.integers(10**15, 2 * 10**15),
    first=st.sampled_from([0, 5, 10**6]),
    spacing_us=st.sampled_from([0.07, 1.0, 12.5, 100.0, 10_000.0]),
)
NUMBERS = st.one_of(st.integers(0, 3000), st.integers(0, 10**12))


def rows(first: int, last: int, chosen: NexmarkSettings, clock: EventClock) -> pa.Table:
    generator = NexmarkGenerator(chosen)
    return pa.Table.from_batches(generator.batches(first, last, clock), generator.schema())


@examples(50)
@given(SETTINGS, CLOCKS, NUMBERS, st.integers(1, 120))
def test_vectorised_rows_equal_the_plain_definition(chosen, clock, first, count):
    table = rows(first, first + count, chosen, clock)
    table.validate(full=True)
    assert table.to_pylist() == [event(number, chosen, clock) for number in range(first, first + count)]


@examples(40)
@given(SETTINGS, CLOCKS, NUMBERS, st.lists(SIZES, min_size=1, max_size=5))
def test_any_slicing_gives_the_same_rows(chosen, clock, first, sizes):
    whole = rows(first, first + sum(sizes), chosen, clock)
    slices, start = [], first
    for size in sizes:
        slices.append(rows(start, start + size, chosen, clock))
        start += size
    assert pa.concat_tables(slices).combine_chunks().equals(whole.combine_chunks())


@examples(25)
@given(SETTINGS, CLOCKS, st.integers(0, 50), st.sampled_from([10, 100, 951]))
def test_groups_change_the_order_of_events_and_nothing_else(chosen, clock, group, size):
    first = group * size
    shuffled = rows(first, first + size, replace(chosen, group_size=size), clock).to_pylist()
    ordered = rows(first, first + size, replace(chosen, group_size=1), clock).to_pylist()
    assert shuffled != ordered
    assert sorted(map(repr, shuffled)) == sorted(map(repr, ordered))
