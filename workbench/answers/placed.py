"""What a placement says: where the tasks go, the rate that this sustains, other methods, and the shape of workers."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from workbench import bounds, units
from workbench.advice import Advice
from workbench.answers import page
from workbench.answers.answer import COUNT, NUMBER, SECONDS, Answer, Fact, Unit
from workbench.placement import DIMENSIONS, Comparison, CostVector, MethodRow, Placed, PlacementInput, Plan, Spread
from workbench.spelling import spelled_report
from workbench.study import PlacementStudy
from workbench.views import figures
from workbench.views.cards import Card, Column, Table, headings, tabulate

_WHERE = "Where do the tasks go?"
_SHAPE = "Which worker shape suits a scheduler that places at random, such as Spark's?"
_SCALE = "0 is perfectly even, 1 the most uneven there is"
_FULL = {
    "cpu": "The cores of worker w{} fill up first.",
    "io": "The state access of worker w{} fills up first.",
    "net": "The network of worker w{} fills up first.",
    "task": "A task that is busy all the time is the limit.",
}
_USUAL = ("flink-default", "flink-evenly", "round-robin", "random")  # methods on a page's first screen, with the best
_MOST_COLUMNS = 10  # of workers
_MORE_TIME = 6.0  # factor over the time that a search had
_SAME = 0.005  # shares that differ by less count as equal
_MEDIAN = 0.5
_EQUAL = 1e-9  # costs that differ by less are equal, and rates that differ by a smaller share
_COSTS = tuple(Column(figures.COST_NAMES[name], "0 even, 1 worst") for name in DIMENSIONS)
_RATE = Unit(lambda value: "no limit" if value == "inf" else units.scaled(value, ""), "records/s")
_TASKS = Unit(lambda count: f"{count:,}" if count else ".")
_CHANGE = Unit(
    lambda share: "the same" if abs(share) < _SAME else f"{'+' if share > 0 else '-'}{units.percent(abs(share))}",
    "%",
    100.0,
)

Again = Callable[..., str]  # returns the command that places again with changed parameters; None leaves one out


def of_a_report(**asked: object) -> Again:
    """Return a function that writes the command of a report; a placement without a name gets one."""

    def again(**changes: object) -> str:
        given = {"placement": "PLACEMENT.yaml", **asked, **changes}
        return spelled_report("placement", {name: value for name, value in given.items() if value is not None})

    return again


def answer(placed: Placed, given: PlacementInput, again: Again) -> Answer:
    """Answer where one method puts the tasks, and what this sustains."""
    sustained = "" if placed.rate is None else f" sustains {units.rate(placed.rate.rate)}"
    return Answer(
        "placed",
        _WHERE,
        f"{placed.method}{sustained or f' has the costs {_costs(placed.cost)}'}.",
        *_origin(given, placed),
        tuple(filter(None, (_limit(placed), f"Its costs are {_costs(placed.cost)} ({_SCALE}).", _proof(placed)))),
        _document(placed),
        _tasks(placed),
        f"Tasks of each operator on each worker, by {placed.method}",
        cautions=_cautions(given, placed, placed if placed.method == "optimal" else None, again),
        draw=lambda: figures.draw_placement_map(_map(placed)),
    )


def of_batches(given: PlacementInput) -> Answer:
    """Answer why micro-batches need no placement."""
    cautions = {given.basis: _VERIFY} if given.basis else {}
    return Answer("placed", _WHERE, given.alike, *_origin(given), cautions=cautions)


def compared(given: PlacementInput, found: Comparison, again: Again, shown: Placed | None = None) -> Answer:
    """Answer what the plan `shown`, by default the best, gains over Flink's default scheduler, and what others gain."""
    best = found.best
    ranked = sorted(found.rows, key=lambda row: (row is not best, -(row.median or 0.0), tuple(row.costs)))
    rows = [_method(row, best, given) for row in ranked]
    plan = best.placed if shown is None else shown
    optimal = next((row.placed for row in ranked if row.placed.method == "optimal"), plan)
    cautions, refused = _cautions(given, plan, best.placed, again), found.refused.items()
    cautions |= {f"{method} found no plan.": Advice(reason) for method, reason in refused}
    empty = [replace(fact, value=None, key="") for fact in rows[0][1:] if fact.name]
    return Answer(
        "best",
        _WHERE,
        _gain(plan, found, given),
        *_origin(given, plan),
        tuple(filter(None, (_limit(plan), _proof(optimal if shown is None else plan), *_doubts(given, found)))),
        rows=(*rows, *((Fact(method, "method", "Method"), *empty, Fact(why, "refused")) for method, why in refused)),
        caption=f"Methods side by side. Costs: how unevenly a load is spread over the workers; {_SCALE}.",
        chosen=0,
        cautions=cautions,
        draw=lambda: figures.draw_placement_map(_map(plan)),
    )


def shapes(found: Sequence[Spread]) -> Answer:
    """Answer which worker shape to choose where tasks are placed at random."""
    return Answer(
        "shapes",
        _SHAPE,
        f"{figures.spreads(found)}.",
        "CALCULATED",
        ("rates by the loads given, not by running a placement",),
        rows=tuple(map(_shape, found)),
        caption="Rates that random placements sustain, the shape to choose first",
        listed=False,
        chosen=0,
        draw=lambda: figures.draw_spreads(found),
    )


def studied(found: PlacementStudy, again: Again | None = None) -> Answer:
    """Answer everything worth knowing about a placement; `again` writes the commands of advice."""
    again = of_a_report() if again is None else again
    made = compared(found.given, found.compared, again, found.asked)
    cautions = dict(made.cautions)
    if not found.front.exhausted:
        more_s = min(_MORE_TIME * found.timeout_s, bounds.SECONDS)
        cautions["The search for plans to choose between ran out of time."] = Advice(
            "Give it more. Run", again(timeout_s=more_s)
        )
    few = {found.best.method, found.shown.method, *_USUAL}
    sections = (_plan, _shapes, _front, _thresholds, _problem)
    evidence = (partial(_methods, made), *(partial(section, found) for section in sections))
    rows = tuple(row for row in made.rows if row[0].value in few)
    return replace(made, rows=rows, cautions=cautions, evidence=evidence)


_VERIFY = Advice("Verify the placement under load before you rely on a rate.")


def _map(placed: Placed) -> figures.PlacementMap:
    return figures.placement_map(placed.problem, placed.counts, f"The plan of {placed.method}")


def _origin(given: PlacementInput, placed: Placed | None = None) -> tuple[str, tuple[str, ...]]:
    problem = given.problem
    chosen = f"the plan {given.chosen}" if given.chosen else ""
    tasks = f"{units.some(problem.tasks, 'task')} of {units.some(len(problem.operators), 'operator')}"
    workers = f"{units.some(problem.workers, 'worker')} of {units.some(problem.slots, 'slot')}"
    rated = placed is not None and placed.rate is not None
    return "CALCULATED", (
        *filter(None, (chosen, tasks, workers)),
        *(("rates by the loads given, not by running a placement",) if rated else ()),
    )


def _costs(cost: CostVector) -> str:
    return ", ".join(f"{name} {units.number(value)}" for name, value in zip(DIMENSIONS, cost, strict=True))


def _limit(placed: Placed) -> str:
    """Name what limits a plan; empty where its rate is not known."""
    if placed.rate is None:
        return ""
    full = placed.rate.resource
    return "Nothing limits it." if full is None else _FULL[full].format(placed.rate.worker)


def _proof(placed: Placed) -> str:
    return f"{placed.note[0].upper()}{placed.note[1:]}." if placed.note else ""


def _gain(plan: Placed, found: Comparison, given: PlacementInput) -> str:
    """Describe what a plan gains over Flink's default scheduler, in the median of its draws."""
    default = found.default
    usual = "by Flink's default scheduler"
    name, drawn = ("", "") if default is None else (default.placed.method, units.some(default.draws, "draw"))
    if plan.rate is None or math.isinf(plan.rate.rate):
        said = f"Placed by {plan.method}, the costs are {_costs(plan.cost)} ({_SCALE})"
        if default is None:
            return f"{said}."
        return f"{said}; {usual} ({name}) they are {_costs(default.costs)} in the median of {drawn}."
    own = plan.rate.rate
    missed = f" It misses the {units.rate(given.rate)} asked for." if _misses(own, given.rate) else ""
    said = f"Placed by {plan.method}, the query sustains {units.rate(own)}"
    if default is None or not default.median:
        return f"{said}.{missed}"
    gain = own / default.median - 1
    more = "as much as" if abs(gain) <= _SAME else f"{units.percent(abs(gain))} {'more' if gain > 0 else 'less'} than"
    return f"{said}: {more} {usual} ({name}, {units.rate(default.median)} in the median of {drawn}).{missed}"


def _doubts(given: PlacementInput, found: Comparison) -> Iterable[str]:
    """Name the methods whose figures are medians, and those that answer another question."""
    drawn = max(row.draws for row in found.rows)
    if drawn > 1:
        yield f"Where chance has a part, {drawn} plans are drawn, and figures are medians."
    for row in found.rows:
        own, asked = row.placed.problem, given.problem
        if own.parallelism != asked.parallelism:
            yield (
                f"{row.placed.method}, reconstructed from CAPSys's account of it, chose its own number of tasks, "
                f"{units.count(own.tasks)} instead of {units.count(asked.tasks)}."
            )


def _misses(sustained: float, asked: float | None) -> bool:
    """Whether the sustained rate is below the requested one, by more than rounding."""
    return asked is not None and sustained < asked * (1 - _EQUAL)


def _cautions(given: PlacementInput, plan: Placed, best: Placed | None, again: Again) -> dict[str, Advice]:
    """Return what to mind about a plan; `best` is one with the highest rate, None where rates are not known."""
    reasons: dict[str, Advice] = {}
    target = given.rate
    if plan.rate is None:
        reasons["The input names no rate of its loads, so only costs are known."] = Advice(
            "Add 'rate' and 'worker' to the input."
        )
    elif math.isinf(plan.rate.rate):
        reasons["Nothing limits the rate."] = Advice("Add what a worker can give ('worker') to the input.")
    elif best is not None and best.rate is not None and _misses(best.rate.rate, target):
        most = f"{best.method} sustains most, {units.scaled(best.rate.rate, '')}"
        reasons[f"No placement carries the {units.rate(target)} asked for; {most}."] = _carry(given, best, again)
    elif _misses(plan.rate.rate, target):
        better = "Another may" if best is None else f"That of {best.method} does"
        reasons[f"The plan of {plan.method} does not carry the {units.rate(target)} asked for."] = Advice(
            f"{better}. Run", again(method=None)
        )
    if given.basis:
        reasons[given.basis] = _VERIFY
    return reasons


def _carry(given: PlacementInput, best: Placed, again: Again) -> Advice:
    """Advise what helps where no placement carries the rate."""
    tasks = more_tasks(given)
    more = f"Give the query more tasks: {tasks}." if tasks else ""
    if best.rate is not None and best.rate.resource == "task":
        return Advice(more or "Give the query more tasks.")
    speeds = {"speeds": list(given.speeds_with_one_more)} if given.sized else {}
    problem = given.problem  # workers, slots and speeds can be set for any input
    return Advice(
        f"{more} Add a worker. Run".lstrip(), again(workers=problem.workers + 1, slots=problem.slots, **speeds)
    )


def more_tasks(given: PlacementInput) -> str:
    """Name the operators whose tasks are too few for their load, with how many they need; empty if there are none."""
    problem = given.problem
    needed = ", ".join(
        f"at least {units.count(math.ceil(tasks * cpu - _EQUAL))} of {name}, which has {units.count(tasks)}"
        for name, tasks, cpu in zip(problem.operators, problem.parallelism, problem.cpu, strict=True)
        if cpu > 1
    )
    larger = f"; or larger slots, which have {given.unit_cpus:g} core now" if given.unit_cpus < 1 else ""
    return f"{needed}{larger}" if needed else ""


def _document(placed: Placed) -> dict[str, Any]:
    problem, rate = placed.problem, placed.rate
    return {
        "method": placed.method,
        "workers": problem.workers,
        "slots": problem.slots,
        "counts": dict(zip(problem.operators, placed.counts.tolist(), strict=True)),
        "cost": dict(zip(DIMENSIONS, placed.cost, strict=True)),
        "rate": None if rate is None else _finite(rate.rate),
        "bound": placed.bound,
        "limited_by": None if rate is None else rate.resource,
        "limited_at": None if rate is None else rate.worker,
        "seconds": round(placed.seconds, 6),
        "note": placed.note,
        "tasks": [subtask._asdict() for subtask in problem.subtasks(placed.counts)],
    }


def _finite(value: float | None) -> float | str | None:
    return "inf" if value is not None and math.isinf(value) else value


def _tasks(placed: Placed) -> tuple[tuple[Fact, ...], ...]:
    """Make a row for each operator; among many workers, equal ones share a row named by the first."""
    problem = placed.problem
    if problem.workers <= _MOST_COLUMNS:
        return tuple(
            (
                Fact(name, name="Operator"),
                *(Fact(count, name=f"w{worker}", unit=_TASKS) for worker, count in enumerate(row)),
            )
            for name, row in zip(problem.operators, placed.counts.tolist(), strict=True)
        )
    alike: dict[tuple[int, ...], list[int]] = {}
    for worker, counts in enumerate(placed.counts.T.tolist()):
        alike.setdefault(tuple(counts), []).append(worker)
    rows = []
    for counts, workers in alike.items():
        tasks = (f"{name} {count:,}" for name, count in zip(problem.operators, counts, strict=True) if count)
        more = f" and {len(workers) - 1:,} more" if len(workers) > 1 else ""
        rows.append((Fact(f"w{workers[0]}{more}", name="Workers"), Fact(", ".join(tasks) or "none", name="Tasks")))
    return tuple(rows)


def _method(row: MethodRow, best: MethodRow, given: PlacementInput) -> tuple[Fact, ...]:
    known = _document(row.placed) | {"lowest": _finite(row.lowest), "highest": _finite(row.highest)}
    usual, most = row.median, best.median
    gain = usual / most - 1 if usual and most and math.isfinite(most) else None
    rates: tuple[Fact, ...] = ()
    if given.rate is not None:
        rates = (
            Fact(_finite(usual), "median", "Records/s, median", _RATE._replace(label="")),
            Fact(gain, "", "Against the best", _CHANGE, "wide"),
            Fact(known.pop("lowest"), "lowest", "Lowest", _RATE, "wide"),
            Fact(known.pop("highest"), "highest", "Highest", _RATE, "data"),
        )
    return (
        Fact(known.pop("method"), "method", "Method"),
        *rates,
        *(
            Fact(cost, "", figures.COST_NAMES[name], NUMBER, "wide" if rates else "always")
            for name, cost in zip(DIMENSIONS, row.costs, strict=True)
        ),
        Fact(row.placed.problem.tasks, "", "Tasks", COUNT, "data"),
        Fact(row.draws, "draws", "Draws", COUNT, "wide"),
        Fact(known.pop("seconds"), "seconds", "Decided in", SECONDS, "wide"),
        *(Fact(value, key) for key, value in known.items()),
    )


def _shape(one: Spread) -> tuple[Fact, ...]:
    shown = {0.1: "Nine of ten sustain", 0.5: "Median", 0.0: "Lowest", 0.9: "", 1.0: "Highest drawn"}
    return (
        Fact(one.workers, "workers", "Workers", COUNT),
        Fact(one.slots, "slots", "Slots of each", COUNT),
        *(
            Fact(
                _finite(one.quantile(share)), f"p{100 * share:g}", name, _RATE, "data" if share > _MEDIAN else "always"
            )
            for share, name in shown.items()
        ),
        Fact(_finite(one.best), "best", "Best plan", _RATE),
        Fact(one.proven, "best_is_proven"),
    )


def _methods(made: Answer) -> list[Card]:
    """Show all methods; the first screen has the best and those that ignore loads."""
    finding = f"{units.some(len(made.rows), 'method')}, the best first."
    return [Card("methods", "What would others do?", finding, table=page.table(made))]


def _plan(found: PlacementStudy) -> list[Card]:
    """Show each operator's tasks on each worker; the answer has the map."""
    plan = found.shown
    note = f" ({plan.note})" if plan.note else ""
    finding = f"{_map(plan).finding}; its costs are {_costs(plan.cost)}{note}."
    table = page.table(answer(plan, found.given, of_a_report()))
    return [Card("plan", "Which worker has which tasks?", finding, table=table)]


def _shapes(found: PlacementStudy) -> list[Card]:
    if found.shapes:
        return [replace(card, html="") for card in page.cards(shapes(found.shapes))]
    text = "The input names no rate and no worker's capacities; add 'rate' and 'worker' to have shapes compared."
    return [Card("shapes", _SHAPE, text, kind="no-data")]


def _front(found: PlacementStudy) -> list[Card]:
    front = found.front
    title = "Which plans are worth choosing between?"
    if not front.pareto:
        return [Card("front", title, "The search found no plan within its time; give it more.", kind="no-data")]
    plans, shown = tuple(front.pareto), found.best  # followed by the best if none has its costs
    same = (
        number
        for number, plan in enumerate(plans)
        if all(math.isclose(one, other, abs_tol=_EQUAL) for one, other in zip(plan.cost, shown.cost, strict=True))
    )
    best = next(same, len(plans))
    plans += (Plan(shown.counts, shown.cost),) * (best == len(plans))
    data = figures.cost_vectors(plans, chosen=best, thresholds=found.within)
    least = min(range(len(plans)), key=lambda number: plans[number].cost.worst)
    also = ", and" if least == best else f"; plan {least} has"
    finding = (
        f"{data.finding}. The chosen one, plan {best}, has the costs of the best plan, by {found.best.method}{also} "
        f"the least worst cost, {units.number(plans[least].cost.worst)}."
    )
    finding += "" if front.exhausted else " The search ran out of time, so there may be better ones."
    rows = tuple((number, *plan.cost) for number, plan in enumerate(plans))
    listed = "Plans that no other dominates" + ", and the plan above" * (len(plans) > len(front.pareto))
    table = Table(listed, (Column("Plan"), *_COSTS), rows)
    made = [Card("front", title, finding, figures.draw_cost_vectors(data), table)]
    if len(plans) > 1:
        asked = "How do the two costs trade against each other?"
        made.append(Card("pareto", asked, f"{data.trade}.", figures.draw_pareto(data)))
    return made


def _thresholds(found: PlacementStudy) -> list[Card]:
    tuning = found.tuning
    pruned, drawn = figures.pruning(found.searches), figures.draw_pruning(found.searches)
    late = "" if tuning.minimal else "; one ran out of time, so they may be loose"
    finding = (
        f"{pruned}. CAPS's tuning (section 5.2) ends with the thresholds {_costs(tuning.thresholds)}, after "
        f"{units.some(tuning.probes, 'probe')}{late}."
        + ("" if found.admitted is None else f" They admit {units.some(found.admitted, 'plan')}.")
    )
    table = tabulate(
        "Searches under tightening thresholds",
        found.searches,
        {
            "CPU cost at most (0 even, 1 worst)": lambda one: one[0].cpu,
            "Plans": lambda one: one[1].count,
            "Nodes": lambda one: one[1].nodes,
            "Whole space searched": lambda one: "yes" if one[1].exhausted else "no",
        },
    )
    return [Card("thresholds", "How tight can the thresholds be?", finding, drawn, table)]


def _problem(found: PlacementStudy) -> list[Card]:
    problem = found.given.problem
    finding = (
        f"{units.some(problem.tasks, 'task')} of {units.some(len(problem.operators), 'operator')} on "
        f"{units.some(problem.workers, 'worker')} with {units.some(problem.slots, 'slot')} each"
        + (f"; there are {units.count(found.possible)} ways to place them." if found.possible else ".")
    )
    columns = headings(
        ("Operator", "Tasks", "CPU (cores per task)", "State access (bytes/s per task)", "Network (bytes/s per task)")
    )
    rows = tuple(zip(problem.operators, problem.parallelism, problem.cpu, problem.io, problem.net, strict=True))
    table = Table("Operators and loads", columns, rows, opened=True)
    return [Card("problem", "What was placed?", finding, table=table)]
