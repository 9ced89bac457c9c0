"""What if: the least deployment for a rate under changed circumstances, by the capacity model alone.

Nothing is measured, so an answer takes milliseconds. More skew and a lost worker are not in the model; they are taken
at their worst, as said at `Question`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from workbench import units
from workbench.capacity.explore import Exploration
from workbench.capacity.planning.judged import Place, counted, judged_plan, margin_of, on_cores
from workbench.capacity.planning.workers import executor_size
from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.records import HOURS_PER_MONTH, CapacityPlan, ModelFinding, Outage


@dataclass(frozen=True)
class Question:
    """The question: `rate` records/s on slots of `memory_mb` MiB; `worker_price` is per hour."""

    rate: float
    memory_mb: int
    margin: float | None = None
    risk: float | None = None
    worker_slots: int = 1  # slots of one worker
    worker_price: float = 0.0
    one_lost: bool = False  # whether the rate must still be carried after a worker is lost
    # by how much more the fullest task of every operator has to do than it had when measured: 0.2 is 20 % more. The
    # capacity is then that many times lower, as if every operator were the one that limits
    more_skew: float = 0.0
    outage: Outage | None = None  # an outage to catch up after in time; it may take a larger margin
    # trigger interval, seconds; None: the explored one. Another one needs the parts of a batch, see `Model.at_interval`
    interval_s: float | None = None
    executor_slots: int | None = None  # slots of each executor, as `plan` takes them
    # how many times as fast as the reference machine's the cores of a worker are, as in a price list; None: as those
    # measured
    core_speed: float | None = None
    # seconds for which a batch waits longer than those measured, as on a checkpoint store that answers more slowly. The
    # slots do nothing meanwhile. It needs the parts of a batch, as `interval_s` does
    more_s: float = 0.0
    currency: str = ""  # of the price; empty if unknown

    def __post_init__(self) -> None:
        if self.worker_slots < 1:
            raise WorkbenchError(f"A worker has {self.worker_slots!r} slots; it must have at least 1.")
        size = executor_size(self.executor_slots)
        object.__setattr__(self, "executor_slots", size)
        if size is not None and self.worker_slots % size:
            raise WorkbenchError(
                f"The slots of a worker are {self.worker_slots}; they must fill whole executors of {size}, as measured."
                f" Use {max(size, self.worker_slots // size * size)}, or another multiple of {size}."
            )
        for name, value in (
            ("price of a worker", self.worker_price),
            ("additional skew", self.more_skew),
            ("additional wait of a batch", self.more_s),
        ):
            if not (math.isfinite(value) and value >= 0):
                raise WorkbenchError(f"The {name} is {value!r}; it must be a finite number of at least 0.")


@dataclass(frozen=True)
class Answer:
    """The least deployment that carries the rate."""

    question: Question
    # slots to deploy, their capacity, and the verdict on them. Where a worker has a price, they include as many of the
    # slots that are paid for anyway as a plan would take
    plan: CapacityPlan
    workers: int  # whole workers, including the spare one if it was asked for
    per_hour: float
    paid_rate: float  # capacity of all slots of the workers, records/s
    # capacity after a worker is lost; 0 if none is left, None if fewer slots are left than were measured
    lost_rate: float | None

    @property
    def per_month(self) -> float:
        """Price of 730 hours."""
        return self.per_hour * HOURS_PER_MONTH

    @property
    def risk(self) -> float:
        """Probability of falling short."""
        verdict = self.plan.verdict
        return 1.0 if verdict is None or verdict.risk is None else verdict.risk


def ask(exploration: Exploration, question: Question, doubts: Sequence[ModelFinding] = ()) -> Answer:
    """Answer `question` from the model of `exploration`.

    `doubts`: what else the verdict must weigh, such as a plan's findings about keys; those about the model are found
    here. Raises `WorkbenchError` when no number of slots is enough.
    """
    explored = exploration.fitted_runs[-1].budget
    interval_s = explored.interval_s if question.interval_s is None else question.interval_s
    cores = counted(exploration, question.core_speed)
    model, gain = on_cores(exploration, cores, interval_s, question.more_s)
    place, rate, memory = Place(exploration, model, gain, cores), question.rate, question.memory_mb
    worse, shape, size = 1 + question.more_skew, question.worker_slots, question.executor_slots
    margin = margin_of(question.margin, question.risk, question.outage)
    try:
        fewest = place.least(rate * worse, memory, margin, question.risk, size)
    except WorkbenchError as error:
        skewed = f"With {units.percent(question.more_skew)} more skew every record counts {worse:g} times. "
        raise WorkbenchError(f"{skewed if question.more_skew else ''}{error}") from error
    needed = math.ceil(fewest / shape)
    workers = needed + question.one_lost
    budget = Budget(fewest, SlotProfile(explored.profile.cpus, memory), interval_s)
    if question.worker_price:
        budget = replace(budget, slots=place.filled(rate * worse, budget, needed * shape, size))

    def attains() -> bool:
        less = exploration.asked.less_risk
        return model.attains(place.at_explored(rate * worse, less), memory, margin, risk=less)

    plan = judged_plan(
        place,
        budget,
        rate,
        margin=margin,
        least_slots=fewest,
        executors=math.ceil(budget.slots / (size or shape)),
        findings=doubts,
        attains=attains,
        worse=worse,
    )
    plan = replace(plan, executor_slots=size, outage=question.outage)
    least, left = min(run.budget.slots for run in exploration.runs), (workers - 1) * shape
    counts = [[memory, held] for held in (workers * shape, max(left, least))]
    paid_rate, left_rate = (gain.ratio * float(one) / worse for one in model.predict(counts))
    unknown = None if left else 0.0
    lost = max(0.0, left_rate) if left >= least else unknown
    return Answer(question, plan, workers, workers * question.worker_price, paid_rate, lost)


def common_range(exploration: Exploration, targets: Sequence[float] = ()) -> tuple[float, float]:
    """Return the rates worth asking about: half the lowest measured to four times the highest, and all `targets`."""
    rates = [float(rate) for rate in exploration.rates]
    return min([min(rates) / 2, *targets]), max([4 * max(rates), *(2 * rate for rate in targets)])
