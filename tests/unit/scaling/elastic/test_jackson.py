import math
from decimal import Decimal, localcontext
from fractions import Fraction
from operator import call

import pytest
from refusals import refusals

from workbench.scaling import allocate_cores, erlang_c, jackson_latency

ARRIVALS, SERVICE, SOURCE = (20, 30), (8, 10), 20


def exact_erlang_c(servers, load):
    """From the textbook sum, in rationals."""
    term, total = Fraction(1), Fraction(1)
    for i in range(1, servers):
        term = term * load / i
        total += term
    last = term * load / servers * servers / (servers - load)
    return last / (total + last)


@pytest.mark.parametrize("servers", [1, 2, 7, 50, 300])
@pytest.mark.parametrize("busy", [Fraction(1, 1000), Fraction(1, 2), Fraction(9, 10), Fraction(9999, 10000)])
def test_erlang_c_to_12_digits(servers, busy):
    load = Fraction(float(busy * servers))
    assert erlang_c(servers, float(load)) == pytest.approx(float(exact_erlang_c(servers, load)), rel=1e-12)


MANY = [(5_000, 4_900.5), (20_000, 19_999.0), (20_000, 15e3), (50_400, 50_001.0), (80_000, 79_999.5), (80_000, 60e3)]


@pytest.mark.parametrize(("servers", "load"), MANY)
def test_erlang_c_to_12_digits_with_many_servers(servers, load):
    # the textbook sum from its last term down, in 50 digits: 1 + k/a + k(k-1)/a^2 + ... over what waits
    with localcontext() as context:
        context.prec = 50
        a, term, total = Decimal(load), Decimal(1), Decimal(0)
        for i in range(servers, 0, -1):
            term = term * i / a
            total += term
        waits = Decimal(servers) / (servers - a)
        assert erlang_c(servers, load) == pytest.approx(float(waits / (waits + total)), rel=1e-12)


def test_erlang_c_of_many_servers_neither_overflows_nor_leaves_its_range():
    # the square-root rule: k = a + c sqrt(a) waits with probability 1 / (1 + c Phi(c) / phi(c)), 0.2234 for c = 1
    assert erlang_c(100_100 + 217, 100_000.0 + 1) == pytest.approx(0.2234, abs=0.06)
    assert erlang_c(1_000_000, 1e-3) == 0.0
    assert erlang_c(10**7, 5.0) == erlang_c(10**12, 1e3) == erlang_c(10**12, 1e6) == 0.0
    assert erlang_c(4, 4.0) == erlang_c(4, 1e300) == 1.0
    assert erlang_c(3, 0.0) == 0.0


def test_a_target_is_met_with_the_fewest_cores_and_what_no_supply_can_meet_is_an_answer():
    latency = allocate_cores(ARRIVALS, SERVICE, SOURCE, 0.35, 100).latency
    for target, supply, cores, status in (
        (0.35, 100, (4, 5), "ok"),
        (latency, 9, (4, 5), "ok"),
        (0.35, 6, (3, 4), "insufficient"),
        (0.2749, 6, (3, 4), "unreachable"),  # the service times alone take 5.5 / 20
    ):
        answer = allocate_cores(ARRIVALS, SERVICE, SOURCE, target, supply)
        assert (answer.cores, answer.status) == (cores, status)
        assert answer.latency == jackson_latency(ARRIVALS, SERVICE, SOURCE, cores)
    many = allocate_cores([1e7], [1.0], 1e7, 10.0, 10)
    assert (many.cores, many.status) == ((10_000_001,), "insufficient")
    # in heavy traffic 1 / (k - a) waits with a probability near 1
    assert 1 < many.latency < 2
    assert allocate_cores([1e300], [1.0], 1e300, 1e300, 10).status == "insufficient"


def test_a_load_of_whole_cores_needs_one_more_and_idle_executors_cost_nothing_but_a_core():
    assert jackson_latency([0.3], [0.1], 1.0, [3]) == math.inf  # 0.3 / 0.1 is a little less than 3 in floats
    assert allocate_cores([0.3], [0.1], 1.0, 100.0, 10).cores == (4,)
    assert jackson_latency([0.0, 5.0], [1.0, 10.0], 5.0, [0, 1]) == pytest.approx(1 / 5)
    assert allocate_cores([0.0, 5.0], [1.0, 10.0], 5.0, 0.2, 10).cores == (1, 1)


test_bad_input_is_named = refusals(
    call,
    (lambda: erlang_c(0, 1.0), "servers is 0; it must be a whole number of at least 1"),
    (lambda: erlang_c(2, -1.0), "offered_load is -1.0; it must be a finite number of at least 0"),
    (lambda: allocate_cores([1e300], [1e-300], 1.0, 1.0, 10), r"^Executor 0 .* 1e\+300 .* busy cores, must be at"),
    (lambda: jackson_latency([1.0, 1e300], [1.0, 1e-300], 1.0, [10, 10]), r"^Executor 1 .* a service rate of"),
    (lambda: jackson_latency([], [], 1.0, []), "There are no executors; give at least one arrival rate"),
    (lambda: jackson_latency([1.0], [2.0, 3.0], 1.0, [1]), "service_rates has 2 entries for 1 executors"),
    (lambda: allocate_cores([1.0, math.nan], [2.0, 3.0], 1.0, 1.0, 4), "arrival rate of executor 1 is nan"),
    (lambda: allocate_cores([1.0], [0.0], 1.0, 1.0, 4), "service rate of executor 0 is 0.0; .* number above 0"),
    (lambda: allocate_cores([1.0], [1.0], 1.0, 0.0, 4), "target_latency is 0.0; it must be a finite number above"),
)
