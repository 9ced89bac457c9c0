"""The weights of the scaling law's shapes of growth, and how well its intervals hold in families it has not seen.

    python benchmarks/families.py           # the table: coverage, error and width by family
    python benchmarks/families.py weights   # the weights that workbench/capacity/model/growth.py has
    python benchmarks/families.py choice    # what decides between the law and a form: see `choice`

Peers are the paper's choice by halves, and the median of three predictions (halves, Gunther's law, a power).
The published curves must be next to the repository. Expectation and maximisation: each curve says how probable each
shape is, given the weights; the weights are what the curves say on average. The evidence is the law's own.
"""

import csv
import math
import sys
from collections import defaultdict
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from published_runs import FOLDER

from workbench.capacity import select_model
from workbench.capacity.model import Prior, Weights, fit_scaling_law, prior_of

CORES = {"saber", "crayfish", "dd", "gbm", "usl"}  # one machine; the others added workers or nodes
TRAINED = 0.25  # of the largest level
LEVEL = 0.9
NOISE = 0.06  # of a rate, of `shared` and `power`
SHARED = 3.0  # curves that the common weights count for in those of workers and of cores
VAGUE = 0.1  # of a curve, for each shape
ROUNDS = 60
BRACKET = 1.1  # its high over its low end
FEWEST = 3
EVEN = Weights((0.2,) * 5, (0.07,) * 7, (0.17,) * 3)  # before any curve is seen


def read_rows():
    with (FOLDER / "scaling_curves.csv").open() as file:
        return [row for row in csv.DictReader(file) if float(row["throughput"]) > 0]


def read_curves():
    """Rates by level by curve; of repeats all."""
    curves = defaultdict(lambda: defaultdict(list))
    for row in read_rows():
        curves[row["curve"]][float(row["parallelism"])].append(float(row["throughput"]))
    return curves


def family(curve):
    return curve.split("-")[0].replace("pdspU", "pdsp")


def added(name):
    return "cores" if name in CORES else "workers"


def table(levels):
    """Points and rates of some levels of a curve."""
    pairs = [(level, rate) for level in sorted(levels) for rate in levels[level]]
    return np.array([(1024.0, level) for level, _ in pairs]), np.array([rate for _, rate in pairs])


def fitted(points, rates, kind="workers", weights=None):
    return fit_scaling_law(points, rates, Prior(growth=kind, weights=weights))


def predicted(law, target):
    return [float(law.quantile(target, share)[0]) for share in (0.5, (1 - LEVEL) / 2, (1 + LEVEL) / 2)]


def likelihoods(points, rates):
    """How probable the rates are with each shape, up to a factor."""
    law = fitted(points, rates, weights=EVEN)
    found = defaultdict(float)
    grid = law.grid
    for weight, *shape in zip(grid.weight, grid.exponent, grid.contention, grid.bend, grid.after, strict=True):
        found[tuple(shape)] += weight
    return np.array([found[one.exponent, one.contention, one.bend, one.after] / one.weight for one in EVEN.shapes()])


def everything():
    """Likelihoods of every curve, by family."""
    found = defaultdict(list)
    for name, levels in read_curves().items():
        found[family(name)].append(likelihoods(*table(levels)))
    return found


def kind_of(shape):
    """A bend and what comes after it, or contention."""
    return (True, shape.after) if math.isfinite(shape.bend) else (False, shape.contention)


def weigh(curves):
    """Weights of workers and of cores for likelihoods by family."""
    shapes = list(EVEN.shapes())
    exponents = list(dict.fromkeys(shape.exponent for shape in shapes))
    bent = {shape.exponent for shape in shapes if math.isfinite(shape.bend)}
    kinds = list(dict.fromkeys(map(kind_of, shapes)))  # contentions, then exponents after a bend
    of_exponent = np.array([[shape.exponent == one for one in exponents] for shape in shapes], float)
    of_kind = np.array([[kind_of(shape) == one for one in kinds] for shape in shapes], float)
    bendable = np.array([shape.exponent in bent for shape in shapes])
    weights = dict.fromkeys(("workers", "cores"), EVEN)
    for _ in range(ROUNDS):
        seen = {kind: [np.zeros(len(exponents)), np.zeros(len(kinds))] for kind in weights}
        for name, found in curves.items():
            prior = np.array([shape.weight for shape in weights[added(name)].shapes()])
            for likelihood in found:
                chance = prior * likelihood
                chance /= chance.sum() * math.sqrt(len(found))
                seen[added(name)][0] += chance @ of_exponent
                seen[added(name)][1] += (chance * bendable) @ of_kind
        common = [VAGUE + sum(one[part] for one in seen.values()) for part in (0, 1)]
        for kind, parts in seen.items():
            drawn = [part + SHARED * whole / whole.sum() for part, whole in zip(parts, common, strict=True)]
            first, second = ((part / part.sum()).tolist() for part in drawn)
            steady = len(EVEN.contentions)
            weights[kind] = Weights(tuple(first), tuple(second[:steady]), tuple(second[steady:]))
    return weights


def ours(kind, weights=None):
    return lambda points, rates, target: predicted(fitted(points, rates, kind, weights), target)


def in_proportion(points, rates, target):
    return predicted(fit_scaling_law(points, rates, Prior(tasks=1.0)), target)


def not_told(stateful, weights):
    """Of the query it is known whether it is stateful, and nothing of the engine."""

    def method(points, rates, target):
        prior = replace(prior_of(float(points[:, 1].min()), stateful=stateful), weights=weights)
        return predicted(fit_scaling_law(points, rates, prior), target)

    return method


def halves(points, rates, target):
    (middle,) = select_model(points, rates, rule="halves").predict(target)
    return [max(middle, 1e-9), math.nan, math.nan]


def shared(points, rates, target):
    """Gunther's law with weak priors of .05 and .003."""
    slots, observed = points[:, 1], np.log(rates)

    def grown(found, at):
        return found[0] + np.log(at) - np.log1p(found[1] * (at - 1) + found[2] * at * (at - 1))

    def off(found):
        return np.concatenate([(observed - grown(found, slots)) / NOISE, [found[1] / 0.05, found[2] / 0.003]])

    start = [np.mean(observed - np.log(slots)), 0.01, 0.001]
    return grown(least_squares(off, start, bounds=([-np.inf, 0, 0], np.inf)).x, target[0, 1])


def power(points, rates, target):
    """A power of the slots, drawn to a slope of .8, give or take .2."""
    slots, observed = np.log(points[:, 1]), np.log(rates)
    apart = slots - slots.mean()
    slope = (apart @ observed / NOISE**2 + 0.8 / 0.2**2) / (apart @ apart / NOISE**2 + 1 / 0.2**2)
    return observed.mean() + slope * (math.log(target[0, 1]) - slots.mean())


def of_three():
    """Judge the median of three predictions; its interval is what the other families were off, by the distance."""
    found = []
    for curve, levels in read_curves().items():
        if (asked := question(levels)) is not None:
            few, largest, truth = asked
            points, rates, target = *table(few), np.array([(1024.0, largest)])
            three = (
                math.log(halves(points, rates, target)[0]),
                shared(points, rates, target),
                power(points, rates, target),
            )
            found.append((family(curve), float(np.median(three)), truth, math.log(largest / max(few))))
    rows = []
    for name, middle, truth, distance in found:
        others = [(one, (there - said) / far) for one, said, there, far in found if one != name]
        weight = np.array([1 / sum(one == other for other, _ in others) for one, _ in others])
        off = np.array([each for _, each in others])
        low, high = (distance * quantile(off, weight, share) for share in ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
        rows.append((name, (middle - truth, low <= truth - middle <= high, high - low)))
    return rows


def question(levels):
    """Return the small levels, the largest, and ln of its rate; None where too few levels are small."""
    largest = max(levels)
    few = {level: rates for level, rates in levels.items() if level <= TRAINED * largest + 1e-9}
    return None if len(few) < 2 else (few, largest, float(np.mean(np.log(levels[largest]))))


def judge(levels, method):
    """Log error, whether the interval holds, and its log width; None where too few levels are small."""
    if (asked := question(levels)) is None:
        return None
    few, largest, truth = asked
    middle, low, high = (math.log(one) for one in method(*table(few), np.array([(1024.0, largest)])))
    return middle - truth, low <= truth <= high, high - low


def quantile(values, weights, share=0.5):
    order = np.argsort(values)
    place = (np.cumsum(weights[order]) - 0.5 * weights[order]) / weights.sum()
    return float(np.interp(share, place, values[order]))


def show(rows, title):
    """One line per family, and all of them, each family with the same weight."""
    print(f"{title:26}{'curves':>8}{'median |error|':>16}{'holds':>8}{'high / low':>12}")
    names = sorted({name for name, _ in rows})
    for name in names:
        error, hit, width = np.array([row for one, row in rows if one == name], dtype=float).T
        print(
            f"  {name:24}{len(error):8}{np.median(np.abs(np.expm1(error))):16.1%}{hit.mean():8.0%}"
            f"{math.exp(np.median(width)):12.2f}"
        )
    error, hit, width = np.array([row for _, row in rows], dtype=float).T
    weight = np.array([1 / sum(one == name for one, _ in rows) for name, _ in rows])
    print(
        f"  {'each family the same':24}{len(rows):8}{quantile(np.abs(np.expm1(error)), weight):16.1%}"
        f"{weight @ hit / weight.sum():8.0%}{math.exp(quantile(width, weight)):12.2f}",
        flush=True,
    )


def left_out(curves, *, told=True):
    """Judge every curve with weights that its family had no part in; `told` whether they are of workers or of cores."""
    rows = []
    published, stateful = read_curves(), {row["curve"]: row["stateful"] for row in read_rows()}
    for name in sorted(curves):
        weights = weigh({one: found for one, found in curves.items() if one != name})
        for curve in (one for one in published if family(one) == name):
            known = {"yes": True, "no": False}.get(stateful[curve])
            method = ours(added(name), weights[added(name)]) if told else not_told(known, weights["workers"])
            judged = judge(published[curve], method)
            rows += [(name, judged)] if judged else []
    return rows


def choice(curves):
    """Compare the law, the form, and ways to choose between them, on what no fit has seen.

    "tied": the law, drawn to the brackets it misses, taken as `BRACKET` wide. "form if nearer": the form that the
    halves choose, where it misses a run left out by less than the law.
    """
    published, off = read_curves(), defaultdict(list)
    for name in sorted(curves):
        weights = weigh({one: found for one, found in curves.items() if one != name})[added(name)]
        for levels in (found for curve, found in published.items() if family(curve) == name):
            counts = sorted(levels)
            few = {level: levels[level] for level in counts if level <= TRAINED * counts[-1] + 1e-9}
            if len(few) > 1:
                beyond = [level for level in counts if level > max(few)]
                asked = {"near": [level for level in beyond if level <= 2.5 * max(few)], "largest": counts[-1:]}
                compare(off, name, few, asked, levels=levels, weights=weights)
            some = [level for level in counts if level <= counts[-1] / 2 + 1e-9]
            for left in some[1:-1] if len(some) > 3 else ():
                others = {level: levels[level] for level in some if level != left}
                compare(off, name, others, {"between": [left]}, levels=levels, weights=weights)
    for (where, title), rows in sorted(off.items()):
        weight = np.array([1 / sum(one == name for one, _ in rows) for name, _ in rows])
        error = np.array([each for _, each in rows])
        print(f"{where:10}{title:18}{len(rows):6}{quantile(error, weight):9.1%}{quantile(error, weight, 0.9):9.1%}")


def compare(off, name, few, asked, *, levels, weights):
    """Add what each way is off at the `asked` levels by the `few`."""
    points, rates = table(few)
    law = fitted(points, rates, weights=weights)
    tied = law.tied(points, rates / BRACKET**0.5, rates * BRACKET**0.5)
    form = select_model(points, rates)
    nearer = left_out_error(few, lambda *runs: select_model(*runs, (form.form,)).predict) < left_out_error(
        few, lambda *runs: partial(fitted(*runs, weights=weights).quantile, probability=0.5)
    )
    for where, wanted in asked.items():
        for level in wanted:
            target, truth = np.array([(1024.0, level)]), float(np.exp(np.mean(np.log(levels[level]))))
            said = {
                "law": law.quantile(target, 0.5)[0],
                "law, tied": tied.quantile(target, 0.5)[0],
                "form": form.predict(target)[0],
            }
            said["form if nearer"] = said["form" if nearer else "law, tied"]
            for title, rate in said.items():
                off[where, title].append((name, abs(rate / truth - 1)))


def left_out_error(few, fit):
    """Mean relative error at a level left out; inf where the others are too few."""
    if len(few) < FEWEST:
        return math.inf
    errors = []
    for left in few:
        points, rates = table({left: few[left]})
        predict = fit(*table({level: found for level, found in few.items() if level != left}))
        errors.append(np.mean(abs(predict(points) / rates - 1)))
    return float(np.mean(errors))


def of_method(method):
    """Judge every curve with a method that needs no weights."""
    judged = [(family(curve), judge(levels, method)) for curve, levels in read_curves().items()]
    return [(name, row) for name, row in judged if row]


def main(what):
    curves = everything()
    if what == "choice":
        choice(curves)
        return
    if what == "weights":
        for kind, found in weigh(curves).items():
            print(
                kind,
                *(tuple(round(one, 3) for one in part) for part in (found.exponents, found.contentions, found.bends)),
            )
        return
    show(of_method(halves), "StreamBed's halves")
    show(of_three(), "median of three")
    show(of_method(in_proportion), "growth in proportion")
    show(left_out(curves), "scaling law, family left out")
    show(left_out(curves, told=False), "the same, engine not known")


if __name__ == "__main__":
    main(*sys.argv[1:] or [""])
