import math

import pytest
from refusals import refusals

from workbench.placement import count_plans


@pytest.mark.parametrize(
    ("parallelism", "workers", "slots", "plans"),
    [
        ((1, 2, 5, 8), 4, 4, 80),  # CAPSys 3.2
        ((2, 5, 8), 4, 4, 80),  # an idle slot in place of an operator
        ((1, 1, 1, 2, 4, 7), 4, 4, 665),  # 3.3
        ((1, 3, 3, 4, 5), 4, 4, 950),
        ((4, 6, 8, 4), 8, 4, 3_254_014),  # 4.4
        ((2, 2, 4, 1), 3, 3, 16),  # Figure 4
        ((2, 1), 2, 2, 2),
        ((3, 2), 3, 2, 3),
        ((2, 3, 1), 2, 3, 3),
        ((3, 3), 3, 4, 16),
        ((4, 6, 5, 8, 1), 4, 6, 12_214),
        ((1,), 1, 1, 1),
        ((3, 0), 2, 2, 1),
        ((5,), 2, 2, 0),
        ((), 2, 2, 1),
        ((1000, 1000), 3000, 1, 1),
        ({"map": 2, "sink": 1}, 2.0, 2, 2),
        ((3,), 10**30, 10**30, 3),
    ],
)
def test_published_numbers_of_plans(parallelism, workers, slots, plans):
    assert count_plans(parallelism, workers, slots) == plans


def test_one_operator_is_counted_as_partitions_even_beyond_64_bits():
    def partitions(tasks, parts):  # p(n, k) = p(n, k - 1) + p(n - k, k)
        ways = [1] + [0] * tasks
        for part in range(1, parts + 1):
            for total in range(part, tasks + 1):
                ways[total] += ways[total - part]
        return ways[tasks]

    assert count_plans((40,), 40, 40) == partitions(40, 40) == 37_338
    assert count_plans((400,), 60, 400) == partitions(400, 60) > 2**61
    assert count_plans((500,), 40, 500) == partitions(500, 40) > 2**63


test_what_cannot_be_counted_is_refused = refusals(
    lambda arguments: count_plans(*arguments),
    (((1, -1), 2, 2), "Entry 1 of parallelism is -1; it must be a whole number of at least 0"),
    (((1,), 0, 2), "workers is 0; it must be a whole number of at least 1"),
    (((math.nan,), 2, 2), "Entry 0 of parallelism is nan; it must be a whole number of at least 0"),
    (("22", 2, 2), "parallelism is '22'; give a sequence"),
    (((1000, 1000), 1500, 2), r"takes about \d+ GiB of memory, more than the 2 allowed; count a smaller"),
    (((10**400,), 10**400, 1), r"takes about 2e\+300 additions, more than the 5e\+10 allowed"),
    (((1,), 2, 0.5), "slots is 0.5; it must be a whole number of at least 1"),
    (((40, 72, 56, 80, 8), 16, 16), r"takes about \de\+\d\d additions, more than the 5e\+10 allowed"),
)
