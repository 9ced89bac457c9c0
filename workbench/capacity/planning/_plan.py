"""The capacity plan: what to deploy for a rate, how sure, at what cost; and what if circumstances changed.

StreamBed, section VI: the least slots whose predicted capacity is 110 % of the rate, for each memory profile, and
BIDS2's configuration at that size. Here the cheapest profile is chosen by the workers it takes.

Deviation: the paper's final configuration goes by the rates seen with the most slots at that memory, here by those of
the minimal configuration; on the fluid presets both miss the capacity alike (``benchmarks/planning.py``).

For a `Question` nothing is measured or laid out, so an answer takes milliseconds. More skew and a lost worker are not
in the model; they are taken at their worst, as said there.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from workbench import units
from workbench.capacity.allocation import allocate
from workbench.capacity.explore import Exploration, keeps_state, overstatement
from workbench.capacity.model import MicroBatch, carries
from workbench.capacity.planning import checks
from workbench.capacity.planning.intervals import IntervalSpeedup
from workbench.capacity.planning.judged import Place, counted, fill, judged_plan, margin_of, offers, on_cores
from workbench.capacity.planning.stages import batch_of, lay_out, least_slots, source_share
from workbench.capacity.planning.workers import UNPRICED, cheapest, executor_size, in_executors, slots_per_worker
from workbench.checks import not_negative
from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.records import HOURS_PER_MONTH, CapacityPlan, EndingRun, InstanceType, ModelFinding, Outage, Price
from workbench.workload import KeyFrequencies


def plan(
    exploration: Exploration,
    rate: float,
    *,
    memory_mb: Sequence[int],
    margin: float | None = None,
    risk: float | None = None,
    instances: Sequence[InstanceType] = (),
    interval_speedups: Mapping[float, IntervalSpeedup] | None = None,
    low_rate: float | None = None,
    outage: Outage | None = None,
    run: EndingRun | None = None,
    keys: KeyFrequencies | None = None,
    executor_slots: int | None = None,
) -> CapacityPlan:
    """Plan the cheapest budget that carries `rate` (records/s).

    Parameters
    ----------
    memory_mb
        Memory profiles to choose from, MiB per slot.
    margin, risk
        See `Model.slots_for`. By default the margin is 1.1, and 1 where there is a risk.
    instances
        Price list. Where it says how fast the cores of a type are, and those measured were timed, the slots on that
        type are those that its cores take. Without a list, the least memory x slots counts as cheapest, and without
        `executor_slots` executors are made for workers of 16 cores and 64 GiB.
    interval_speedups
        Capacity at each trigger interval to choose from, relative to that at the explored one; None: that one.
    low_rate
        Lowest load, records/s, if the deployment is to shrink: the state keeps the partitions of the planned slots.
    outage, run
        An outage to catch up after in time, which may take a larger margin; the run that ends in time at `rate`.
    keys
        Counted frequencies of the key that the query's state or join goes by.
    executor_slots
        Slots of each executor that was measured, which those of the plan have, too, because rows between executors
        cross the network. None: the plan has one executor for each worker.

    Raises
    ------
    WorkbenchError
        When no number of slots carries the rate at any memory, no instance type holds an executor, `low_rate` is not
        between 0 and `rate`, or `executor_slots` is not a whole number of at least 1.
    """
    if low_rate is not None and not 0 < low_rate <= rate:
        raise WorkbenchError(
            f"low_rate is {low_rate:g} records/s; it must be above 0 and at most the rate planned for, {rate:g}. Lower "
            "it, or leave it out."
        )
    executor_slots = executor_size(executor_slots)
    safe_margin = margin_of(margin, exploration.asked.less_risk, outage)
    margin = margin_of(margin, risk, outage)
    runs, model = exploration.measurements, exploration.model
    sample = exploration.fitted_runs[-1]
    gains = interval_speedups or {sample.budget.interval_s: IntervalSpeedup()}
    fewest, price, place, transfer = _cheapest(
        exploration, rate, memory_mb, gains, instances, margin, risk, executor_slots
    )
    budget, interval, memory = fewest, fewest.interval_s, fewest.profile.memory_mb
    times = 1.0 if place.cores is None else place.cores.times
    if price is not None:  # slots that are paid for anyway make the deployment safer
        paid = price.workers * price.slots_per_worker
        risks = partial(place.risks, rate, memory)
        budget = replace(budget, slots=fill(fewest.slots, paid, place.most_measured, risks, executor_slots))
        price = replace(price, idle_slots=paid - budget.slots)
    parts = batch_of(runs, model.batch)
    parts = None if parts is None else parts.on_cores(times)
    layout = lay_out(parts, budget.slots, interval, rate)
    frozen = None if layout is None else layout.stateful_partitions
    low_slots = low_layout = None
    if low_rate is not None:
        load, least = place.at_explored(low_rate, risk), min(run.budget.slots for run in exploration.runs)
        low_slots = in_executors(
            least_slots(place.model, parts, budget, load, margin, least, risk, frozen), executor_slots
        )
        low_layout = lay_out(parts, low_slots, interval, low_rate, frozen)
    # one task per operator, at the nearest memory; none where tasks were not set
    minimal = [one for one in runs if one.tasks and one.estimate.rate and set(one.tasks.values()) == {1}]
    nearest = min(minimal, key=lambda one: abs(one.budget.profile.memory_mb - memory), default=None)
    allocation = None if nearest is None else allocate(nearest, budget.slots)
    share = source_share(exploration.fitted_runs)
    partitions = frozen or budget.slots
    most = slots_per_worker(*UNPRICED, budget.profile) if price is None else price.slots_per_worker
    executors = math.ceil(budget.slots / (executor_slots or max(1, most)))
    stateful = keeps_state(runs)
    findings = (
        checks.check_interval(budget, sample.budget.interval_s, gains[interval]),
        checks.check_fixed_time(exploration.fitted_runs, interval, model.batch),
        checks.check_layouts(layout, low_layout),
        checks.check_allocation(allocation),
        checks.check_source(share, budget.slots),
        checks.check_source_partitions(exploration.fitted_runs, parts, budget),
        checks.check_python(runs, executor_slots or math.ceil(budget.slots / executors)),
        checks.check_keys(runs, partitions),
        checks.check_counted_keys(runs, keys, partitions, rate, times),
        checks.check_cores(runs),
        checks.check_executors(runs),
        checks.check_filled(runs),
        checks.check_state(known=stateful is not None),
    )

    def attains() -> bool:
        less = exploration.asked.less_risk
        return any(
            place.model.attains(rate / one.together(transfer).quantile(less), memory, safe_margin, risk=less)
            for memory, one in itertools.product(memory_mb, gains.values())
        )

    made = judged_plan(
        place,
        budget,
        rate,
        margin=margin,
        least_slots=fewest.slots,
        executors=executors,
        findings=tuple(filter(None, findings)),
        attains=attains,
    )
    return replace(
        made,
        executor_slots=executor_slots,
        allocation=allocation,
        layout=layout,
        price=price,
        overstatement=overstatement(exploration.runs),
        source_share=share,
        low_slots=low_slots,
        low_layout=low_layout,
        stateful=bool(stateful),
        batch_parts=_parts(None if model.batch is None else parts, rate / made.expected_rate, budget),
        outage=outage,
        run=run,
    )


def _cheapest(  # noqa: PLR0917 - private, called once
    exploration: Exploration,
    rate: float,
    memory_mb: Sequence[int],
    gains: Mapping[float, IntervalSpeedup],
    instances: Sequence[InstanceType],
    margin: float,
    risk: float | None,
    executor_slots: int | None,
) -> tuple[Budget, Price | None, Place, IntervalSpeedup]:
    """Choose among the memory profiles, trigger intervals and available cores, each with its fewest slots.

    Return these with their price and what their capacity rests on, of which the last is due to the cores.
    """
    cpus = exploration.fitted_runs[-1].budget.profile.cpus
    found, refused = list[tuple[float, Budget, Price | None, Place, IntervalSpeedup]](), None
    for memory, (interval, own), (cores, alike_cores) in itertools.product(
        memory_mb, gains.items(), offers(exploration, instances)
    ):
        profile = SlotProfile(cpus, memory)
        try:
            model, transfer = on_cores(exploration, cores)
            place = Place(exploration, model, own.together(transfer), cores)
            slots = place.least(rate, memory, margin, risk, executor_slots)
            price = cheapest(alike_cores, slots, profile, executor_slots) if alike_cores else None
        except WorkbenchError as error:
            refused = error
            continue
        cost = price.per_hour if price else float(slots * memory)
        found.append((cost, Budget(slots, profile, interval), price, place, transfer))
    if not found:
        raise refused or WorkbenchError("No memory profile was given to plan with; give at least one.")
    return min(found, key=lambda one: (one[0], one[1].interval_s, one[1].profile.memory_mb))[1:]


def _parts(parts: MicroBatch | None, load: float, budget: Budget) -> dict[str, float] | None:
    """Seconds of a batch by cause, at a `load` that is a share of the capacity; None where unknown."""
    slots, interval = budget.slots, budget.interval_s
    if parts is None or not load <= 1 or not carries(parts, np.array([float(slots)]), interval):
        return None
    rate = load * parts.rate(slots, slots, interval)
    return parts.parts_s(rate * interval, slots, slots, rate=rate)


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
            not_negative(f"The {name}", value)


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
        risks = partial(place.risks, rate * worse, memory)
        budget = replace(budget, slots=fill(fewest, needed * shape, place.most_measured, risks, size))

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
