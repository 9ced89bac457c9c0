"""Cards on what a plan's model leaves open: what its other forms say, and what it costs to be safe."""

import math

from workbench import units
from workbench.capacity import CapacityPlan, Exploration
from workbench.capacity.model import IN_PROPORTION, SHARED_CORES, SHARING_IN_PROPORTION
from workbench.checks import SLACK
from workbench.study import Planned
from workbench.views.cards import Card, Column, Table
from workbench.views.figures import RiskPoint, cost_risk, draw_cost_risk, draw_model_forms, model_forms

_BEYOND = 3.0  # times the most slots measured to which forms are compared, at least


def forms(planned: Planned) -> list[Card]:
    """Compare the forms of the model up to the largest plan."""
    title = "Would another model give another answer?"
    largest = _largest(planned)
    memory = None if largest is None else largest.budget.profile.memory_mb
    beyond = max(_BEYOND, 1.0 if largest is None else largest.extrapolation)
    data = model_forms(planned.exploration, memory, beyond=beyond)
    finding = f"{data.finding}.{_assumed(planned.exploration)}"
    if not data.curves:
        return [Card("forms", title, finding, kind="no-data")]
    columns = (
        Column("Form"),
        Column("Error on a run left out", "records/s"),
        Column(f"Capacity of {units.some(round(data.slots[-1]), 'slot')}", "records/s"),
    )
    rows = tuple((curve.form, curve.error, curve.rates[-1]) for curve in data.curves)
    table = Table(f"Forms of the model at {data.memory_mb:,g} MB per slot, the one in use first", columns, rows)
    return [Card("forms", title, finding, draw_model_forms(data), table)]


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
