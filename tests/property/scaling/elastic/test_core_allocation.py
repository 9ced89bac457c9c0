"""The greedy core allocation against brute force over all allocations."""

from fractions import Fraction
from itertools import product

from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from workbench.scaling import allocate_cores

RATES = st.integers(1, 12)


def exact_latency(arrivals, service, source, cores):
    """Equation 1 in rationals, Erlang C from its textbook sum; None when unstable."""
    total = Fraction(0)
    for arrival, rate, k in zip(arrivals, service, cores, strict=True):
        load = Fraction(arrival, rate)
        if load >= k:
            return None
        term = below = Fraction(1)
        for i in range(1, k):
            term = term * load / i
            below += term
        last = term * load / (k - load)
        total += arrival * (last / (below + last) / (k * rate - arrival) + Fraction(1, rate))
    return total / source


@examples(60)
@given(
    stations=st.lists(st.tuples(RATES, RATES), min_size=1, max_size=3),
    tightness=st.fractions(Fraction(1, 50), 3, max_denominator=50),
    spare=st.integers(0, 5),
)
def test_greedy_is_brute_force(stations, tightness, spare):
    arrivals, service = zip(*stations, strict=True)
    source = arrivals[0]
    start = [a // s + 1 for a, s in stations]
    supply = sum(start) + spare
    target = sum(Fraction(a, s) for a, s in stations) / source * (1 + tightness)
    answer = allocate_cores(arrivals, service, source, float(target), supply)

    possible = [range(k, k + spare + 1) for k in start]
    latencies = {
        cores: exact_latency(arrivals, service, source, cores) for cores in product(*possible) if sum(cores) <= supply
    }
    margin = target * Fraction(1, 10**8)
    if any(abs(latency - target) <= margin for latency in latencies.values()):
        return  # on the edge of the slack either answer is right
    met = [cores for cores, latency in latencies.items() if latency < target]
    assert answer.status == ("ok" if met else "exhausted")
    if met:
        assert sum(answer.cores) == min(map(sum, met))
    else:
        assert sum(answer.cores) == supply
    least = min(latency for cores, latency in latencies.items() if sum(cores) == sum(answer.cores))
    assert abs(answer.latency - float(least)) <= 1e-9 * float(least)
    assert abs(answer.latency - float(latencies[answer.cores])) <= 1e-9 * answer.latency
