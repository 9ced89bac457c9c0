"""The cards of a placement: the plan that sustains most, what other methods do, worker shapes, the thresholds."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import median

from workbench import units
from workbench.placement import BLIND, DIMENSIONS, Compared, Placed, Plan, best_of
from workbench.study import PlacementStudy
from workbench.views.cards import Card, Cell, Column, Table, fold, gather
from workbench.views.figures import (
    COST_NAMES,
    cost_vectors,
    draw_cost_vectors,
    draw_pareto,
    draw_placement_map,
    draw_pruning,
    draw_spreads,
    placement_map,
    pruning,
    spreads,
)
from workbench.views.placement_front import UNKNOWN, costs, front_html, median_rate, rates, sentence

_COSTS = tuple(Column(COST_NAMES[name], "0 even, 1 worst") for name in DIMENSIONS)
_FULL = {
    "cpu": "cores of worker w{} fill",
    "io": "state access of worker w{} fills",
    "net": "network of worker w{} fills",
}
_SAME = 1e-9  # costs that differ by no more are one


def cards(study: PlacementStudy, asked: Mapping[str, object] = UNKNOWN) -> list[Card]:
    """Make all cards; one that cannot be made becomes an error card and never hides the others.

    Parameters
    ----------
    study
        What was found.
    asked
        Parameters of the report that are not its own, which the commands of advice repeat.
    """
    evidence = gather((_methods, _shapes, _front, _thresholds, _problem), study)
    return [*gather((partial(_best, asked=asked),), study), *map(fold, evidence)]


def _best(study: PlacementStudy, asked: Mapping[str, object]) -> list[Card]:
    best = study.shown
    problem = best.problem
    data = placement_map(problem, best.counts, f"The plan of {best.method}")
    finding = f"{sentence(study)}{_limit(best)}{_proof(study)}"
    columns = (Column("Operator"), *(Column(name) for name in data.workers))
    rows = tuple((name, *counts) for name, counts in zip(problem.operators, best.counts.tolist(), strict=True))
    note = f" ({best.note})" if best.note else ""
    caption = f"Tasks of each operator on each worker. {data.finding}; its costs are {costs(best.cost)}{note}."
    table = Table(caption, columns, rows)
    return [
        Card("best", "Where do the tasks go?", finding, draw_placement_map(data), table, html=front_html(study, asked))
    ]


def _proof(study: PlacementStudy) -> str:
    """Say what is proven of the plan: by the method that seeks the rate alone, else by its own."""
    plan = study.asked or next(iter(study.methods.get("optimal", ())), study.best)
    return f" {plan.note[0].upper()}{plan.note[1:]}." if plan.note else ""


def _limit(best: Placed) -> str:
    if best.rate is None or not math.isfinite(best.rate.rate):
        return ""
    if best.rate.worker is None:
        return " A task that is busy all the time is the limit."
    full = _FULL.get(best.rate.resource or "", "capacity of worker w{} fills").format(best.rate.worker)
    return f" The {full} up first."


def _methods(study: PlacementStudy) -> list[Card]:
    rows = tuple(_method(name, plans) for name, plans in study.methods.items())
    finding = _beside_rates(study) or _beside_costs(study)
    rebuilt = " odrp is reconstructed from CAPSys's account of it." if "odrp" in study.methods else ""
    refused = "".join(f" {name}: {reason}" for name, reason in study.refused.items())
    columns = (
        Column("Method"),
        Column("Tasks"),
        Column("Plans drawn"),
        Column("Worst cost, best draw", "0 even, 1 worst"),
        Column("Worst cost, median", "0 even, 1 worst"),
        Column("Worst cost, worst draw", "0 even, 1 worst"),
        Column("Rate, lowest", "records/s"),
        Column("Rate, median", "records/s"),
        Column("Decided in", "ms"),
    )
    table = Table("Methods side by side", columns, rows, opened=True)
    return [Card("methods", "What would others do?", finding + rebuilt + refused, table=table)]


def _beside_rates(study: PlacementStudy) -> str:
    """Compare the plan with the method that ignores loads and sustains most, by what they sustain; empty if unknown."""
    known = {name: rates(study.methods[name]) for name in BLIND if rates(study.methods.get(name, ()))}
    best = study.best
    if not known or best.rate is None or not math.isfinite(best.rate.rate):
        return ""
    nearest = max(known, key=lambda name: median(known[name]))
    drawn = known[nearest]
    return (
        f"The nearest that knows no loads, {nearest}, sustains {_of_draws(drawn, min(drawn), units.rate)}; "
        f"{best.method} sustains {units.rate(best.rate.rate)}."
    )


def _beside_costs(study: PlacementStudy) -> str:
    """Compare the plan with the method that does not know the loads and costs least, CPU first."""
    rows = [Compared(study.methods[name]) for name in BLIND if name in study.methods]
    own = f"{study.best.method} has {costs(study.best.cost)}"
    if not rows:
        return f"{own}."
    nearest = best_of(rows)
    return f"The nearest that knows no loads, {nearest.placed.method}, has the costs {costs(nearest.costs)}; {own}."


def _of_draws(drawn: Sequence[float], worst: float, written: Callable[[float], str]) -> str:
    """Write the one value there is, or the median of several and the worst."""
    if len(drawn) == 1:
        return written(drawn[0])
    return (
        f"{written(median(drawn))} in the median of {units.some(len(drawn), 'draw')} and {written(worst)} in the worst"
    )


def _method(name: str, plans: Sequence[Placed]) -> tuple[Cell, ...]:
    costs = _worst(plans)
    sustained = rates(plans)
    return (
        name,
        plans[0].problem.tasks,
        len(plans),
        min(costs),
        median(costs),
        max(costs),
        min(sustained, default=None),
        median_rate(plans),
        round(1e3 * median(plan.seconds for plan in plans), 3),
    )


def _worst(plans: Sequence[Placed]) -> list[float]:
    return [max(plan.cost) for plan in plans]


def _shapes(study: PlacementStudy) -> list[Card]:
    title = "Which worker shape suits a scheduler that places at random, such as Spark's?"
    if not study.shapes:
        text = "The input names no rate and no worker's capacities; add 'rate' and 'worker' to have shapes compared."
        return [Card("shapes", title, text, kind="no-data")]
    data = spreads(study.shapes)
    columns = (
        Column("Workers"),
        Column("Slots of each"),
        Column("Lowest", "records/s"),
        Column("One in ten below", "records/s"),
        Column("Median", "records/s"),
        Column("Highest drawn", "records/s"),
        Column("Best plan", "records/s"),
    )
    rows = tuple(
        (one.workers, one.slots, *(_finite(one.quantile(q)) for q in (0.0, 0.1, 0.5, 1.0)), _finite(one.best))
        for one in study.shapes
    )
    table = Table("Rates that random placements sustain, the shape to choose first", columns, rows)
    return [Card("shapes", title, f"{data.finding}.", draw_spreads(data), table)]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _front(study: PlacementStudy) -> list[Card]:
    front = study.front
    title = "Which plans are worth choosing between?"
    if not front.pareto:
        return [Card("front", title, "The search found no plan within its time; give it more.", kind="no-data")]
    plans, best = _with_best(front.pareto, study.best)
    data = cost_vectors(plans, chosen=best, thresholds=study.within)
    finding = f"{data.finding}. {_told(plans, best, study.best.method)}" + (
        "" if front.exhausted else " The search ran out of time, so there may be better ones."
    )
    rows = tuple((number, *plan.cost) for number, plan in enumerate(plans))
    listed = "Plans that no other dominates" + ", and the plan above" * (len(plans) > len(front.pareto))
    table = Table(listed, (Column("Plan"), *_COSTS), rows)
    made = [Card("front", title, finding, draw_cost_vectors(data), table)]
    if len(plans) > 1:
        asked = "How do the two costs trade against each other?"
        made.append(Card("pareto", asked, f"{data.trade}.", draw_pareto(data)))
    return made


def _with_best(front: Sequence[Plan], best: Placed) -> tuple[tuple[Plan, ...], int]:
    """Give the plans of the front, the plan shown after them if none of them has its costs, and which one does."""
    same = [
        number
        for number, plan in enumerate(front)
        if all(math.isclose(one, other, abs_tol=_SAME) for one, other in zip(plan.cost, best.cost, strict=True))
    ]
    return (tuple(front), same[0]) if same else ((*front, Plan(best.counts, best.cost)), len(front))


def _told(plans: Sequence[Plan], best: int, method: str) -> str:
    """Say which plan is shown, by which method, and which has the least worst cost."""
    least = min(range(len(plans)), key=lambda number: plans[number].cost.worst)
    cost = units.number(plans[least].cost.worst)
    chosen = f"The chosen one, plan {best}, has the costs of the plan above, by {method}"
    also = ", and" if least == best else f"; plan {least} has"
    return f"{chosen}{also} the least worst cost, {cost}."


def _thresholds(study: PlacementStudy) -> list[Card]:
    tuning = study.tuning
    data = pruning(study.searches)
    tightest = zip(DIMENSIONS, tuning.thresholds, strict=True)
    listed = ", ".join(f"{name} {units.number(limit)}" for name, limit in tightest)
    late = "" if tuning.minimal else "; one ran out of time, so they may be loose"
    finding = (
        f"{data.finding}. CAPS's tuning (section 5.2) ends with the thresholds {listed}, after "
        f"{units.some(tuning.probes, 'probe')}{late}."
        + ("" if study.admitted is None else f" They admit {units.some(study.admitted, 'plan')}.")
    )
    columns = (
        Column("CPU cost at most", "0 even, 1 worst"),
        Column("Plans"),
        Column("Nodes"),
        Column("Whole space searched"),
    )
    rows = tuple(
        (limits.cpu, result.count, result.nodes, "yes" if result.exhausted else "no")
        for limits, result in study.searches
    )
    table = Table("Searches under tightening thresholds", columns, rows)
    return [Card("thresholds", "How tight can the thresholds be?", finding, draw_pruning(data), table)]


def _problem(study: PlacementStudy) -> list[Card]:
    problem = study.given.problem
    finding = (
        f"{units.some(problem.tasks, 'task')} of {units.some(len(problem.operators), 'operator')} on "
        f"{units.some(problem.workers, 'worker')} with {units.some(problem.slots, 'slot')} each"
        + (f"; there are {units.count(study.possible)} ways to place them." if study.possible else ".")
    )
    columns = (
        Column("Operator"),
        Column("Tasks"),
        Column("CPU", "cores per task"),
        Column("State access", "bytes/s per task"),
        Column("Network", "bytes/s per task"),
    )
    rows = tuple(zip(problem.operators, problem.parallelism, problem.cpu, problem.io, problem.net, strict=True))
    return [
        Card("problem", "What was placed?", finding, table=Table("Operators and loads", columns, rows, opened=True))
    ]
