"""The first screen of a placement: what it gains over the default scheduler, the methods in one table, what to mind."""

import math
from collections.abc import Mapping, Sequence
from statistics import median
from types import MappingProxyType

from workbench import bounds, units
from workbench.advice import Advice
from workbench.placement import DIMENSIONS, Compared, CostVector, Placed, PlacementInput
from workbench.spelling import spelled_report
from workbench.study import TIMEOUT_S, PlacementStudy
from workbench.views.first_screen import cares_html, header_html, table_html

DEFAULT = "flink-default"
"""The scheduler that gains are given against."""
UNKNOWN: Mapping[str, object] = MappingProxyType({})
"""How a report was asked for, where that is not known: commands of advice then have a placeholder for its file."""

_SHOWN = ("flink-default", "flink-evenly", "round-robin", "random")
_SAME = 0.005
_SCALE = "0 is perfectly even, 1 the most uneven there is"
_COST = f"Costs: how unevenly a load is spread over the workers; {_SCALE}."
_ROUNDING = 1e-9
_MORE_TIME = 6.0  # times what a search had


def sentence(study: PlacementStudy) -> str:
    """Say what the plan shown gains over the default scheduler, in the median of its draws."""
    best, default = study.shown, study.methods.get(DEFAULT, ())
    own, usual = rate(best), median_rate(default)
    if own is not None and usual:
        gain = own / usual - 1
        more = (
            "as much as" if abs(gain) <= _SAME else f"{units.percent(abs(gain))} {'more' if gain > 0 else 'less'} than"
        )
        asked = study.given.rate
        missed = f" It misses the {units.rate(asked)} asked for." if misses(own, asked) else ""
        return (
            f"Placed by {best.method}, the query sustains {units.rate(own)}: {more} by the default scheduler "
            f"({DEFAULT}, {units.rate(usual)} in the median of {units.some(len(default), 'draw')}).{missed}"
        )
    cost = f"Placed by {best.method}, the costs are {costs(best.cost)} ({_SCALE})"
    if not default:
        return f"{cost}."
    drawn = costs(Compared(default).costs)
    return (
        f"{cost}; by the default scheduler ({DEFAULT}) they are {drawn} in the median of "
        f"{units.some(len(default), 'draw')}."
    )


def costs(cost: CostVector) -> str:
    """Write the three costs of a plan."""
    return ", ".join(f"{name} {units.number(value)}" for name, value in zip(DIMENSIONS, cost, strict=True))


def misses(sustained: float, asked: float | None) -> bool:
    """Whether the rate that is sustained (records/s) is below the one asked for, by more than rounding."""
    return asked is not None and sustained < asked * (1 - _ROUNDING)


def front_html(study: PlacementStudy, asked: Mapping[str, object] = UNKNOWN) -> str:
    """Write the first screen; every text of the user's is escaped."""
    problem = study.given.problem
    facts = (
        *((f"the plan {study.given.chosen}",) if study.given.chosen else ()),
        f"{units.some(problem.tasks, 'task')} of {units.some(len(problem.operators), 'operator')}",
        f"{units.some(problem.workers, 'worker')} of {units.some(problem.slots, 'slot')}",
        *(("rates by the loads given, not by running a placement",) if _rated(study) else ()),
    )
    return header_html("CALCULATED", facts) + _methods(study) + cares_html(cares(study, asked))


def cares(study: PlacementStudy, asked: Mapping[str, object] = UNKNOWN) -> dict[str, Advice]:
    """Give what to mind, with what to do; `asked` are the report's parameters, which commands repeat."""
    reasons: dict[str, Advice] = {}
    best = study.best
    if best.rate is None:
        reasons["The input names no rate of its loads, so that only costs are compared."] = Advice(
            "Add 'rate' and 'worker' to the input."
        )
    elif math.isinf(best.rate.rate):
        reasons["Nothing limits the rate."] = Advice("Add what a worker can give ('worker') to the input.")
    elif misses(best.rate.rate, study.given.rate):
        reasons[
            f"No placement carries the {units.rate(study.given.rate)} asked for; {best.method} sustains most, "
            f"{units.scaled(best.rate.rate, '')}."
        ] = _carry(study, asked)
    own, target = study.shown.rate, study.given.rate
    if best.rate and own and misses(own.rate, target) and not misses(best.rate.rate, target):
        reasons[f"The plan of {study.shown.method} does not carry the {units.rate(target)} asked for."] = Advice(
            f"That of {best.method} does. Run", _again(asked, method=None)
        )
    if study.given.basis:
        reasons[study.given.basis] = Advice("Verify the placement under load before you rely on a rate.")
    if study.refused:
        listed = ", ".join(study.refused)
        reasons[f"Found no plan: {listed}."] = Advice("The reasons are under 'What would others do?'.")
    if not study.front.exhausted:
        had_s = asked.get("timeout_s", TIMEOUT_S)
        more_s = min(_MORE_TIME * had_s if isinstance(had_s, int | float) else math.inf, bounds.SECONDS)
        reasons["The search for plans to choose between ran out of time."] = Advice(
            "Give it more. Run", _again(asked, timeout_s=more_s)
        )
    return reasons


def _again(asked: Mapping[str, object], **changes: object) -> str:
    """Give the command of this report with `changes` of its parameters; those that are None are left out."""
    given = {"placement": "PLACEMENT.yaml", **asked, **changes}
    return spelled_report("placement", {name: value for name, value in given.items() if value is not None})


def _carry(study: PlacementStudy, asked: Mapping[str, object]) -> Advice:
    """Say what helps where no placement carries the rate."""
    tasks = more_tasks(study.given)
    more = f"Give the query more tasks: {tasks}." if tasks else ""
    if study.best.rate is not None and study.best.rate.resource == "task":
        return Advice(more or "Give the query more tasks.")
    return Advice(f"{more} Add a worker. Run".lstrip(), _again(asked, **_with_a_worker(study.given)))


def _with_a_worker(given: PlacementInput) -> dict[str, object]:
    """Give the parameters of one more worker: whatever the input is, it takes all of them."""
    speeds = {"speeds": list(given.speeds_with_one_more)} if given.sized else {}
    return {"workers": given.problem.workers + 1, "slots": given.problem.slots, **speeds}


def more_tasks(given: PlacementInput) -> str:
    """Say how many tasks the operators need whose tasks are too few; one has a slot at most, wherever it is.

    Empty where none has too few.
    """
    problem = given.problem
    needed = ", ".join(
        f"at least {units.count(math.ceil(tasks * cpu - _ROUNDING))} of {name}, which has {units.count(tasks)}"
        for name, tasks, cpu in zip(problem.operators, problem.parallelism, problem.cpu, strict=True)
        if cpu > 1
    )
    larger = f"; or larger slots, which have {given.unit_cpus:g} core now" if given.unit_cpus < 1 else ""
    return f"{needed}{larger}" if needed else ""


def _methods(study: PlacementStudy) -> str:
    best, asked = study.best.method, study.shown.method
    shown = dict.fromkeys((best, asked, *(name for name in _SHOWN if name in study.methods)))
    rated = _rated(study)
    rows = []
    for name in shown:
        plans = (study.best,) if name == best else study.methods.get(name, (study.shown,))
        first = f" ◀\N{NO-BREAK SPACE}{'most' if rated else 'least'}"
        mark = first if name == best else " ◀\N{NO-BREAK SPACE}shown" if name == asked else ""
        rows.append(
            (
                f"{name}{mark}",
                *(_speed(plans, rate(study.best)) if rated else ()),
                *(f"{cost:.3f}" for cost in Compared(tuple(plans)).costs),
                units.count(len(plans)),
            )
        )
    speeds = ("Records/s, median", "Against the most", "Records/s, worst draw") if rated else ()
    titles = ("Method", *speeds, "CPU cost, median", "State access cost", "Network cost", "Draws")
    return table_html(titles, rows, chosen=0, caption=_COST * rated)


def _rated(study: PlacementStudy) -> bool:
    """Whether any rate is known and limited."""
    return any(rates(plans) for plans in study.methods.values())


def _speed(plans: Sequence[Placed], own: float | None) -> tuple[str, str, str]:
    """Write the rates of plans, also against the best; empty where they are not known."""
    usual = median_rate(plans)
    if usual is None:
        return "", "", ""
    return units.padded(usual, ""), "" if own is None else _against(usual, own), units.padded(min(rates(plans)), "")


def _against(usual: float, own: float) -> str:
    change = usual / own - 1
    return "the same" if abs(change) < _SAME else f"{'+' if change > 0 else '-'}{units.percent(abs(change))}"


def rate(placed: Placed) -> float | None:
    """Give what a plan sustains, records/s; None where that is not known or nothing limits it."""
    return None if placed.rate is None or not math.isfinite(placed.rate.rate) else placed.rate.rate


def median_rate(plans: Sequence[Placed]) -> float | None:
    """Give the median of what plans sustain, records/s; None where that is not known."""
    known = rates(plans)
    return median(known) if known else None


def rates(plans: Sequence[Placed]) -> list[float]:
    """Give what each plan sustains, records/s, as far as it is known."""
    return [one for one in map(rate, plans) if one is not None]
