"""Extrapolation of capacity models and coverage of their intervals: StreamBed's forms and rules, and ours.

    python benchmarks/model.py [explorations]

Five tables: simulated explorations with a known truth 2 to 5 times beyond the most slots measured, with rates only;
random queries with metrics of their operators, 5 and 20 times beyond; StreamBed's published runs of q1 and q2, from
small runs to large-scale validation (if the files are next to the repository); the same small runs, fitted to fewer
slots and judged on more; and the published scaling curves, family by family (``benchmarks/families.py``). The first
four are of pipelined engines, where slots are spent on tasks. Least-squares forms have the textbook prediction interval
here, to show its value. Asserts nothing.
"""

import sys
import time
from pathlib import Path

import numpy as np
from scipy.stats import t as student

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import families
from capacity_truths import LEVELLING, MECHANISMS, explore
from published_runs import FOLDER, columns, saturated, small_runs
from query_truths import capacity, explored, random_query

from workbench.capacity import ScalingModel, review_readings, select_model
from workbench.capacity.model import Mechanism, transform

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


def ours(stateful):
    def method(points, rates, targets):
        model = ScalingModel(stateful=stateful, growth="tasks").fit(points, rates)
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


def mechanisms(count, slowing=0.0):
    """Ten runs of random queries at the edge, with the run effect of the query's noise; memory as measured."""
    rows = {(name, factor): [] for name in ("rates alone", "operators seen") for factor in (5, 20)}
    explained = 0
    for seed in range(count):
        query = random_query(seed)
        most = 5 * len(query.modelled)
        runs = explored(query, most, seed=seed, slowing=slowing)
        points = [[run.budget.profile.memory_mb, run.budget.slots] for run in runs]
        rates = [run.estimate.rate for run in runs]
        stateful = any(one.stateful for one in query.dataflow.operators)
        models = {
            "rates alone": ScalingModel(stateful=stateful, growth="tasks").fit(points, rates),
            "operators seen": ScalingModel(stateful=stateful, growth="tasks").fit(points, rates, runs),
        }
        explained += isinstance(models["operators seen"].law_, Mechanism)
        for (name, factor), found in rows.items():
            target = np.array([[4096.0, factor * most]])
            truth = capacity(query, 4096, factor * most) / (1 + slowing * factor * most)
            (middle,), ((low,), (high,)) = models[name].predict(target), models[name].interval(target, LEVEL)
            found.append((middle / truth - 1, low <= truth <= high, (high - low) / middle))
    print(f"{count} random queries, ten runs each, in {explained} of which the mechanism explains the runs", end="")
    print(f"; every slot slows all others by {slowing:.2%}" if slowing else "")
    print(HEADER)
    for (name, factor), found in rows.items():
        line(f"{name}, {factor} times", np.array(found, dtype=float))


def published():
    for query in ("q1", "q2"):
        runs = small_runs(query)
        points, rates = columns(runs)
        review = review_readings(points, rates, runs.bids2_objective_ev_s)
        valid = np.array(review.valid)
        targets, measured = saturated(query)
        print(f"{query}: {valid.sum()} of {len(valid)} small runs; predicted / measured at {targets[0, 1]:g} slots, "
              f"{targets[0, 1] / points[:, 1].max():.1f} times beyond")  # fmt: skip
        for group in review.outliers:
            print("  set aside:", group)
        for name, method in METHODS.items():
            middle, low, high = method(points[valid], rates[valid], targets)
            ratios = " ".join(f"{ratio:6.3f}" for ratio in middle / measured)
            held = int(((low <= measured) & (measured <= high)).sum())
            print(f"  {name:26}{ratios}   holds {held} of {len(measured)}, width {np.max((high - low) / middle):6.1%}")


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


def main():
    begun = time.perf_counter()
    simulated(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
    mechanisms(300)
    mechanisms(100, slowing=5e-4)
    if FOLDER.is_dir():
        published()
        held_out()
        families.main("")
    print(f"{time.perf_counter() - begun:.1f} s")


if __name__ == "__main__":
    main()
