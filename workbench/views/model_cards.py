"""Cards on what a plan's model leaves open: what its other forms say, and what it costs to be safe."""

import math

from workbench import units
from workbench.capacity import CapacityPlan, Exploration
from workbench.capacity.model import IN_PROPORTION, MARGIN, SHARED_CORES, SHARING_IN_PROPORTION
from workbench.checks import SLACK
from workbench.records import FormComparison
from workbench.study import Planned
from workbench.views import findings
from workbench.views.cards import Card, Column, Table
from workbench.views.figures import RiskPoint, cost_risk, draw_cost_risk, draw_model_forms, model_forms


def forms(planned: Planned) -> list[Card]:
    """Compare the paper's forms and the law: what each asks for every target, and how far it is off."""
    title = "Would another model give another answer?"
    found = planned.forms
    finding = f"{findings.forms(found)}{_assumed(planned.exploration)}"
    if found.chosen is None:
        return [Card("forms", title, finding, kind="no-data")]
    figure = draw_model_forms(model_forms(planned.exploration, found))
    return [Card("forms", title, finding, figure, _table(found))]


def _table(found: FormComparison) -> Table:
    columns = (
        Column("Form"),
        Column("Coefficients"),
        Column("Error on a run left out", "records/s"),
        Column("Error on a run left out", "%"),
        Column("Error on the upper half", "records/s"),
        Column("Error on the upper half", "%"),
        *(Column(f"Slots at {units.rate(one.rate)}") for one in found.targets),
        *(Column(f"Capacity of {units.some(slots, 'slot')}", "records/s") for slots in _planned(found)),
    )
    rows = tuple(
        (
            f"{fit.form}, the paper's choice" if fit.form == found.chosen else fit.form,
            ", ".join(units.scaled(one, "") for one in fit.coefficients),
            fit.left_out,
            _percent(fit.left_out_share),
            fit.upper_half,
            _percent(fit.upper_half_share),
            *fit.slots,
            *(rate for rate in fit.predicted if rate is not None),
        )
        for fit in found.fits
    )
    slots, rates = ([getattr(one, name) for one in found.targets] for name in ("slots", "expected_rate"))
    plan = ("the plan", found.used, None, None, None, None, *slots, *(rate for rate in rates if rate is not None))
    by = {"halves": "by halves", "leave-one-out": "by runs left out", "first": "as the first: no error is defined"}
    caption = f"Forms and the slots by each with a margin of {MARGIN:g}; the paper chooses {by[found.rule]}"
    return Table(caption, columns, (*rows, plan) if found.targets else rows, opened=True)


def _planned(found: FormComparison) -> list[int]:
    return [one.slots for one in found.targets if one.slots is not None]


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _assumed(exploration: Exploration) -> str:
    """Say what the scaling law assumes of more slots, after a space; empty where it is the usual."""
    slots = math.floor(exploration.model.sharing_slots + SLACK)
    if slots <= max(run.budget.slots for run in exploration.runs):
        return ""
    return (
        " Before any run, the scaling law assumes growth in proportion with a probability of "
        f"{units.percent(SHARING_IN_PROPORTION)} up to {slots:,} slots, which share at most {SHARED_CORES:g} cores of "
        f"one machine, and of {units.percent(IN_PROPORTION)} beyond; otherwise slots lose what those of published "
        "systems lost."
    )


def safety(planned: Planned) -> list[Card]:
    """Set the risk of falling short of the largest target against the price of workers of the planned type.

    A plan at another trigger interval than the explored one, or for other cores, has none: the risk is the model's,
    which knows one interval and the cores measured.
    """
    plan = _largest(planned)
    if plan is None or plan.on_other_cores or plan.budget.interval_s != planned.exploration.runs[0].budget.interval_s:
        return []
    instances = () if plan.price is None else (plan.price.instance,)
    data = cost_risk(
        planned.exploration.model,
        plan.rate,
        plan.budget.profile,
        instances,
        planned=_own(plan),
        executor_slots=plan.executor_slots,
    )
    columns = (Column("Slots"), Column("Cost", f"{data.currency} a month" if data.currency else "slots"))
    rows = tuple((point.slots, point.cost, 100 * point.risk) for point in data.points)
    table = Table("Deployments and their risk", (*columns, Column("Risk of falling short", "%")), rows)
    return [Card("safety", "What does safety cost?", f"{data.finding}.", draw_cost_risk(data), table)]


def _own(plan: CapacityPlan) -> RiskPoint | None:
    """Give the plan's own deployment, with the risk that its verdict states; None where that is not known."""
    if plan.verdict is None or plan.verdict.risk is None:
        return None
    slots = plan.budget.slots
    return RiskPoint(slots, float(slots) if plan.price is None else plan.price.per_month, plan.verdict.risk)


def _largest(planned: Planned) -> CapacityPlan | None:
    return max(planned.plans, key=lambda plan: plan.rate, default=None)
