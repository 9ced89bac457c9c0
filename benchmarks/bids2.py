"""BIDS2: the exact solver compared with the paper's MILP on CBC, on the same instances in the same run.

Run ``python benchmarks/bids2.py``. Prints the best wall seconds of a few runs (CBC at the largest size: one run of at
most 30 s), their ratio, and the source rate of CBC's allocation over the exact solver's. Asserts nothing.
"""

import random
import time

from workbench.capacity import bids2

SIZES = ((9, 48, 5, None), (100, 10_000, 2, 20.0), (1000, 100_000, 1, 30.0))


def instance(operators, seed=1):
    rng = random.Random(seed)
    names = [f"o{i}" for i in range(operators)]
    return {name: rng.lognormvariate(9, 1) for name in names}, {name: rng.uniform(0.05, 2) for name in names}


def best_of(runs, solve):
    """Least seconds of `runs` runs, and the last result."""
    seconds = []
    for _ in range(runs):
        begun = time.perf_counter()
        found = solve()
        seconds.append(time.perf_counter() - begun)
    return min(seconds), found


def main():
    for operators, slots, runs, limit_s in SIZES:
        rates, ratios = instance(operators)
        exact_s, exact = best_of(max(20, 20_000 // operators), lambda r=rates, q=ratios, n=slots: bids2(r, q, n))
        cbc_s, cbc = best_of(
            runs, lambda r=rates, q=ratios, n=slots, t=limit_s: bids2(r, q, n, solver="cbc", time_limit_s=t)
        )
        print(
            f"{operators:5} operators {slots:7} slots: exact {exact_s:.6f} s, CBC {cbc_s:8.3f} s ({cbc.status}), "
            f"CBC / exact {cbc_s / exact_s:9,.0f}; rate of CBC / exact {cbc.source_rate / exact.source_rate:.12f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
