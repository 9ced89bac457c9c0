"""A budget as a judged plan: its capacity with the interval, what is doubtful about it, and the verdict.

`plan` and `ask` choose budgets, each in its way; what becomes of one is decided here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from workbench.capacity.explore import Exploration
from workbench.capacity.model import FEWEST_RUNS, FEWEST_SLOT_COUNTS, MARGIN, Model, alike, check_model
from workbench.capacity.planning.at_interval import capacity_at, risks_at
from workbench.capacity.planning.cores import check_other_cores
from workbench.capacity.planning.intervals import IntervalSpeedup
from workbench.capacity.planning.verdict import falls_short, fill, judge
from workbench.dataflow import Budget
from workbench.records import CapacityPlan, CountedCores, ModelFinding, Outage


@dataclass(frozen=True)
class Place:
    """Cores and trigger interval of a budget, and how the capacity there follows from the model."""

    exploration: Exploration  # runs, and the model of the explored interval on the cores measured
    model: Model  # the model on the cores that count
    gain: IntervalSpeedup  # capacity there, relative to that of `model`
    cores: CountedCores | None  # whose cores count; None where nobody timed those measured

    @property
    def most_measured(self) -> int:
        """Most slots measured."""
        return int(self.exploration.points[:, 1].max())

    def at_explored(self, rate: float, risk: float | None) -> float:
        """Give the rate that `model` must carry so that `rate` is carried, with a `risk` where one is accepted."""
        return rate / (self.gain.ratio if risk is None else self.gain.quantile(risk))

    def least(self, rate: float, memory_mb: int, margin: float, risk: float | None, executor_slots: int | None) -> int:
        """Give the fewest slots that carry `rate`, not fewer than were measured; see `Model.slots_for`."""
        fewest = min(run.budget.slots for run in self.exploration.runs)
        load, step = self.at_explored(rate, risk), executor_slots or 1
        return self.model.slots_for(load, memory_mb, margin, min_slots=fewest, risk=risk, step=step)

    def filled(self, rate: float, budget: Budget, paid: int, executor_slots: int | None) -> int:
        """Give as many of the `paid` slots as make the deployment safer."""
        memory = budget.profile.memory_mb
        return fill(
            budget.slots,
            paid,
            self.most_measured,
            lambda counts: risks_at(self.model, rate, self.gain, memory, counts),
            executor_slots,
        )


def margin_of(margin: float | None, risk: float | None, outage: Outage | None) -> float:
    """Give the margin to plan with: without one, 1.1, or 1 where a risk takes its place; an outage may take more."""
    if margin is None:
        margin = MARGIN if risk is None else 1.0
    return margin if outage is None else max(margin, outage.margin)


def judged_plan(
    place: Place,
    budget: Budget,
    rate: float,
    *,
    margin: float,
    least_slots: int,
    executors: int,
    findings: Sequence[ModelFinding],
    attains: Callable[[], bool],
    worse: float = 1.0,
) -> CapacityPlan:
    """Make the plan of a budget, with the verdict on it.

    `findings` are what is doubtful in addition to the model and the runs. `attains` says whether some number of slots
    carries the rate with as little risk as advice asks for. A record counts `worse` times, because keys are more skewed
    than measured.
    """
    exploration, slots, memory = place.exploration, budget.slots, budget.profile.memory_mb
    sample, load = exploration.fitted_runs[-1], rate * worse
    low, expected, high = capacity_at(replace(exploration, model=place.model), budget, place.gain)
    at = (exploration.model, exploration.points, exploration.rates, slots, memory)
    answers = alike(*at)
    found = (
        *check_model(*at, answers=answers, fewest_runs=_enough(exploration), asked=exploration.asked),
        *findings,
        *filter(None, [check_other_cores(place.cores)]),
        *exploration.findings,
    )
    (risk,) = risks_at(place.model, load, place.gain, memory, [slots])
    (as_explored,) = exploration.model.predict([[memory, slots]])
    attainable = not falls_short(risk) or attains()
    plan = CapacityPlan(
        query=sample.query,
        rate=rate,
        margin=margin,
        budget=budget,
        expected_rate=expected / worse,
        low=low / worse,
        high=high / worse,
        form=exploration.model.form,
        testbed=sample.testbed,
        testbed_kind=sample.testbed_kind,
        runs=len(exploration.fitted),
        extrapolation=slots / place.most_measured,
        executors=executors,
        cards=found,
        least_slots=least_slots,
        cores=place.cores,
    )
    explored = load * float(as_explored) / expected  # the forms are of the explored interval and the cores measured
    verdict = judge(plan, risk, load=explored, alike=answers, asked=exploration.asked, attainable=attainable)
    return replace(plan, verdict=verdict)


def _enough(exploration: Exploration) -> int:
    """Give the number of runs that is enough for a model: where the parts of a batch explain them, fewer are."""
    read = all(run.estimate.from_readings for run in exploration.fitted_runs)
    return FEWEST_SLOT_COUNTS if read or exploration.model.batch is not None else FEWEST_RUNS
