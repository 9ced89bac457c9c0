"""Extrapolation of capacity models and coverage of their intervals: StreamBed's forms and rules, and ours.

    python benchmarks/model.py [explorations | streambed]

Four tables, or the second alone: simulated explorations with a known truth 2 to 5 times beyond the most slots measured;
StreamBed's five queries, from small runs to the slots of Table IV; q1's and q2's small runs, fitted to fewer slots and
judged on more; and the published scaling curves, family by family (``benchmarks/families.py``). q1's, q2's and the
curves must be next to the repository. Least-squares forms have the textbook prediction interval here, to show its
value. Asserts nothing.

Of the five queries, q1 and q2 are measurements, and the law's constants were set with q1 at hand. Of q5, q8 and q11 no
runs are published: they are drawn from Table III's models at the budgets of the paper's runs, with the published
spread, once at those of the exploration and once at the sixteen of Figure 9; the truth is 110 % of the rate that Table
IV's slots were planned for and sustained, as the models were confirmed. Their objectives are BIDS2's, from the presets.

Simulated are the presets and random stateful queries (tests/support/query_truths.py): "edge" takes the sixteen runs
that `choice` edge makes, "explored" thirteen at random; the truth is the engine's, five times beyond and at the slots
of Table IV, or twenty times beyond. The thirds of the prior are not a fit to any of these, so none has to be left out.
"each query the same" gives every query's cells the same weight.
"""

import math
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import families
from capacity_truths import LEVELLING, MECHANISMS, explore
from published_runs import FOLDER, columns, published_model, saturated, small_runs
from published_runs import explored as explored_runs
from query_truths import capacity, dealt, random_query

from workbench.capacity import ScalingModel, review_readings, select_model
from workbench.capacity.model import transform
from workbench.simulation import preset

LEVEL = 0.9


def textbook(form, points, rates, targets, weights=None):
    """Prediction and 90 % prediction interval of (weighted) least squares."""
    weights = np.ones(len(rates)) if weights is None else weights
    design = np.column_stack([transform(form, points), np.ones(len(rates))]) * weights[:, None]
    there = np.column_stack([transform(form, targets), np.ones(len(targets))])
    scale = np.abs(design).max(axis=0)
    inverse = np.linalg.pinv(design / scale)
    coefficients = inverse @ (rates * weights)
    left_over = rates * weights - design / scale @ coefficients
    freedom = max(1, len(rates) - np.linalg.matrix_rank(design / scale))
    predicted = there / scale @ coefficients
    run = 1.0 if np.all(weights == 1) else predicted**2
    spread = np.sqrt(left_over @ left_over / freedom * (run + ((there / scale @ inverse) ** 2).sum(axis=1)))
    half = student.ppf((1 + LEVEL) / 2, freedom) * spread
    return predicted, predicted - half, predicted + half


def of_form(form):
    return lambda points, rates, targets: textbook(form, points, rates, targets)


def selected(rule):
    return lambda points, rates, targets: textbook(select_model(points, rates, rule=rule).form, points, rates, targets)


def relative(points, rates, targets):
    return textbook("linear", points, rates, targets, 1 / rates)


def ours(stateful, growth="tasks"):
    def method(points, rates, targets, objectives=None):
        model = ScalingModel(stateful=stateful, growth=growth).fit(points, rates, objectives=objectives)
        return model.predict(targets), *model.interval(targets, LEVEL)

    return method


METHODS = {
    "linear": of_form("linear"),
    "sqrt": of_form("sqrt"),
    "log": of_form("log"),
    "StreamBed's halves": selected("halves"),
    "leave-one-out": selected("leave-one-out"),
    "linear, relative errors": relative,
    "scaling, stateless": ours(stateful=False),
    "scaling, not known": ours(stateful=None),
    "scaling, stateful": ours(stateful=True),
}


def judge(method, explorations):
    """Signed errors, hits and widths of `method`, one row per exploration."""
    rows = []
    for one in explorations:
        (middle,), (low,), (high,) = method(one.X, one.y, one.target)
        rows.append((middle / one.truth - 1, low <= one.truth <= high, (high - low) / abs(middle)))
    return np.array(rows)


def line(label, rows):
    error, hit, width = rows.T
    print(
        f"{label:26}{np.median(np.abs(error)):9.1%}{np.quantile(np.abs(error), 0.9):9.1%}{np.median(error):+9.1%}"
        f"{hit.mean():9.1%}{width.mean():9.1%}"
    )


HEADER = f"{'':26}{'median':>9}{'90 %':>9}{'bias':>9}{'holds':>9}{'width':>9}"


def simulated(count):
    explorations = [explore(seed) for seed in range(count)]
    print(f"{count} simulated explorations, 2 to 5 times beyond; |error| (median, 90th percentile), 90 % interval")
    print(HEADER)
    for name, method in METHODS.items():
        line(name, judge(method, explorations))
    print("scaling, stateless, by mechanism")
    rows = judge(METHODS["scaling, stateless"], explorations)
    for mechanism in MECHANISMS:
        line("  " + mechanism, rows[[one.mechanism == mechanism for one in explorations]])
    for mechanism in LEVELLING:
        explorations = [explore(seed, mechanism) for seed in range(count // 5)]
        print(f"{len(explorations)} explorations of stateful queries: {mechanism}")
        for name in ("linear", "StreamBed's halves", "scaling, stateless", "scaling, not known", "scaling, stateful"):
            line(name, judge(METHODS[name], explorations))


class Case(NamedTuple):
    """Small runs, and what is known at scale."""

    points: np.ndarray
    rates: np.ndarray
    objectives: np.ndarray
    targets: np.ndarray
    truths: np.ndarray


# Slots and memory of the paper's runs, how many follow the four corners, the deviation of one run; Table II's rate of
# the fewest slots, Table IV's rate, and its slots by memory.
STATEFUL = {
    "q5": ((9, 12, 16, 24, 32, 40, 48), (2048, 4096), 10, 0.065, 5e4, 2.5e6, {2048: 1069, 4096: 1079}),
    "q8": ((9, 12, 16, 20, 24, 28, 32), (2048, 4096), 9, 0.185, 1.4e6, 15e6, {2048: 179, 4096: 176}),
    "q11": (
        (4, 12, 16, 24, 32, 40, 48),
        (512, 1024, 2048, 4096),
        12,
        0.05,
        6e4,
        20e6,
        {512: 565, 1024: 564, 2048: 562, 4096: 559},
    ),
}
FIGURE_9 = (12, 16, 32, 48)


def measured(query, runs):
    """Published small runs of q1 or q2, and what their plans carried."""
    points, rates = columns(runs)
    valid = np.array(review_readings(points, rates, runs.bids2_objective_ev_s).valid)
    return Case(points[valid], rates[valid], runs.bids2_objective_ev_s.to_numpy(float)[valid], *saturated(query))


def of_tables(query, seed, source):
    """Runs of q5, q8 or q11 by ``"explored"`` or ``"swept"`` budgets of the tables."""
    slots, memories, more, noise, least, asked, cells = STATEFUL[query]
    rng = np.random.default_rng([seed, len(query), len(source)])
    budgets = [(memory, count) for count in (slots[0], slots[-1]) for memory in (memories[0], memories[-1])]
    budgets += [(int(rng.choice(memories)), int(rng.choice(slots))) for _ in range(more)]
    if source == "swept":
        budgets = [(memory, count) for memory in memories for count in FIGURE_9 for _ in range(3)]
    rates = [least if count == slots[0] else published_model(query, memory, count) for memory, count in budgets]
    targets = np.array(list(cells.items()), float)
    truths = np.full(len(cells), 1.1 * asked)
    return case(preset(query), rng, noise, budgets=budgets, rates=rates, targets=targets, truths=truths)


def of_engine(query, seed, source, *, slots, memories, far):
    """Runs of a simulated query, and what it carries five times beyond and `far`."""
    rng = np.random.default_rng([seed, len(slots), len(source)])
    ends = (memories[0], memories[-1])
    budgets = [(memory, count) for count in (slots[0], slots[-1]) for memory in ends]
    if source == "edge":
        budgets += [(memory, count) for count in (slots[len(slots) // 2], *slots[-1:] * 2) for memory in ends] * 2
    else:
        budgets += [(int(rng.choice(memories)), int(rng.choice(slots))) for _ in range(9)]
    targets = [(memory, count) for memory in ends for count in (5 * slots[-1], far)]
    rates, truths = ([capacity(query, *one) for one in some] for some in (budgets, targets))
    targets = np.array(targets, float)
    return case(query, rng, query.noise, budgets=budgets, rates=rates, targets=targets, truths=np.array(truths))


def case(query, rng, noise, *, budgets, rates, targets, truths):
    """Make runs of `budgets` with the `noise` of one run; the run that BIDS2 starts from has it, too."""
    least = min(count for _, count in budgets)
    scale = {memory: math.exp(noise * rng.normal()) for memory in sorted({memory for memory, _ in budgets})}
    objectives = [
        math.nan if count == least else scale[memory] * dealt(query, memory, count).source_rate
        for memory, count in budgets
    ]
    noisy = np.array(rates) * np.exp(noise * rng.normal(size=len(rates)))
    return Case(np.array(budgets, float), noisy, np.array(objectives), targets, truths)


def spread_out(least, most):
    """Five slot counts from the least to the most."""
    return sorted({round(least + share * (most - least)) for share in (0, 0.25, 0.5, 0.75, 1)})


def all_cases(seeds):
    """Cases by group, by query."""
    groups = {}
    if FOLDER.is_dir():
        runs = {"measured": small_runs, "measured, explored": explored_runs}
        groups["q1 and q2"] = {
            f"{query} {name}": [measured(query, read(query))] for name, read in runs.items() for query in ("q1", "q2")
        }
    groups["Table III's models"] = {
        f"{query} {source}": [of_tables(query, seed, source) for seed in range(seeds)]
        for source in ("explored", "swept")
        for query in STATEFUL
    }
    for source in ("edge", "explored"):
        found = groups.setdefault(f"simulated, {source}", {})
        for query, (slots, memories, *_, cells) in STATEFUL.items():
            counts, far = spread_out(slots[0], slots[-1]), max(cells.values())
            found[query] = [
                of_engine(preset(query), seed, source, slots=counts, memories=memories, far=far)
                for seed in range(seeds)
            ]
        random = groups.setdefault(f"random, {source}", {}).setdefault("random stateful queries", [])
        for seed in range(10 * seeds):
            query = random_query(seed)
            if any(one.stateful for one in query.dataflow.operators):
                least = len(query.modelled)
                counts = spread_out(least, 5 * least)
                random.append(of_engine(query, seed, source, slots=counts, memories=(1024, 4096), far=20 * counts[-1]))
    return groups


def streambed(seeds):
    """Few slots to many, where slots are whole tasks."""
    groups = all_cases(seeds)
    for name, growth, known in (
        ("growth: workers", "workers", False),
        ("the law, engine not known", None, False),
        ("the law, rates alone", "tasks", False),
        ("the law, with BIDS2's objectives", None, True),
    ):
        print(f"{name:33}{'cells':>7}{'|error|':>9}{'holds':>8}{'high / low':>12}")
        for group, queries in groups.items():
            print(f" {group}")
            rows = {}
            for query, found in queries.items():
                method = ours(group != "q1 and q2", growth)
                for one in found:
                    middle, low, high = method(one.points, one.rates, one.targets, one.objectives if known else None)
                    holds = (low <= one.truths) & (one.truths <= high)
                    rows.setdefault(query, []).extend(zip(abs(middle / one.truths - 1), holds, high / low, strict=True))
                cells(query, [rows[query]])
            if len(rows) > 1:
                cells("each query the same", rows.values())


def cells(title, queries):
    weight = np.concatenate([np.full(len(rows), 1 / len(rows)) for rows in queries])
    error, hit, ends = np.array([row for rows in queries for row in rows], dtype=float).T
    median = families.quantile
    print(
        f"  {title:31}{len(error):7}{median(error, weight):9.3f}{weight @ hit / weight.sum():8.0%}"
        f"{median(ends, weight):12.2f}",
        flush=True,
    )


def held_out():
    print("small runs only: fitted up to some slots, root-mean-square relative error at more slots")
    for query, upto in (("q1", 3), ("q1", 6), ("q1", 11), ("q2", 3), ("q2", 4), ("q2", 5)):
        points, rates = columns(small_runs(query))
        valid = np.array(review_readings(points, rates).valid)
        few, more = valid & (points[:, 1] <= upto), valid & (points[:, 1] > upto)
        print(f"  {query} up to {upto:2} slots:", end="")
        for name, method in METHODS.items():
            middle, low, high = method(points[few], rates[few], points[more])
            error = np.sqrt(np.mean((middle / rates[more] - 1) ** 2))
            held = np.mean((low <= rates[more]) & (rates[more] <= high))
            print(f"  {name} {error:.1%} ({held:.0%})", end="")
        print()


def main(what="500"):
    begun = time.perf_counter()
    if what != "streambed":
        simulated(int(what))
    streambed(8)
    if FOLDER.is_dir() and what != "streambed":
        held_out()
        families.main("")
    print(f"{time.perf_counter() - begun:.1f} s")


if __name__ == "__main__":
    main(*sys.argv[1:])
