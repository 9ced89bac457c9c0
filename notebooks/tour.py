"""What the notebooks measure with, and the steps of the tour that are more than one call."""

from pathlib import Path

from workbench.capacity import CapacityEstimator
from workbench.dataflow import Budget, SlotProfile
from workbench.doctor import quota_permitted
from workbench.placement import read_placement_input
from workbench.report import render
from workbench.simulation import RateTrace
from workbench.study.placing import study_placement
from workbench.study.planning import Planned, write_planned
from workbench.study.scaling import planned_start, replay_start
from workbench.study.spec import Study
from workbench.testbed.spark import SparkTestbed
from workbench.views import placement_cards
from workbench.views.cards import Card
from workbench.views.widgets import ReplayPlayer

FOLDER = Path(".workbench")
JOURNAL = FOLDER / "journal.jsonl"
PLANNED = FOLDER / "tour.json"


def spark_testbed(*, quick: bool) -> SparkTestbed:
    """Spark on this machine; code warms up for half a minute, for a tenth of that if it is to be quick."""
    return SparkTestbed(slot_cpus="auto" if quota_permitted() else "cores", warmup_cap_s=10.0 if quick else 30.0)


def estimator(*, quick: bool) -> CapacityEstimator:
    """Bracket the maximum within 5 %; if it is to be quick, as well as three short probes can."""
    if quick:
        return CapacityEstimator(0.2, max_probes=3, warmup_min_s=5.0, warmup_cap_s=10.0, settle_s=2.0, window_s=6.0)
    return CapacityEstimator(0.05, warmup_min_s=20.0, warmup_cap_s=45.0)


def slot_cpus() -> float:
    """Two fifths of a core where this machine permits quotas, else a whole one."""
    return 0.4 if quota_permitted() else 1.0


def small_budget() -> Budget:
    """One slot of 1024 MB for what fits any machine, two where quotas are permitted."""
    return Budget(2 if quota_permitted() else 1, SlotProfile(slot_cpus(), 1024))


def own_study() -> Study:
    """Plan three rates for the query in jobs.py from three budgets."""
    return Study(
        "jobs:revenue_per_shop",
        targets=(20_000.0, 60_000.0, 200_000.0),
        slots=(1, 2, 3),
        memory_mb=(1024,),
        dataset="../data/orders.csv",
        event_time="time",
        slot_cpus=slot_cpus(),
        tolerance=0.05,
        most_runs=3,
        prices="../data/instances.csv",
    )


def place_planned(planned: Planned) -> list[Card]:
    """Place the tasks of the largest plan on workers of four slots."""
    write_planned(planned, PLANNED)
    largest = max(planned.plans, key=lambda plan: plan.rate)
    workers = -(-largest.budget.slots // 4) + 1
    given = read_placement_input(PLANNED, workers=workers, slots=4, rate=largest.rate)
    return placement_cards.cards(study_placement(given, samples=20, timeout_s=1.0))


def replay_planned(planned: Planned) -> ReplayPlayer:
    """Replay a day whose peak is the largest planned rate against the plan, under every policy."""
    write_planned(planned, PLANNED)
    peak = max(plan.rate for plan in planned.plans)
    day = RateTrace.diurnal(0.2 * peak, peak, step_s=300.0)
    return ReplayPlayer(replay_start(planned_start(PLANNED, peak), day).timelines)


def report_planned(planned: Planned) -> list[Card]:
    """Write the plans as one HTML file that opens without a network, and say where it is."""
    write_planned(planned, PLANNED)
    made = render("plan", {"planned": str(PLANNED.resolve())}, FOLDER / "tour.html")
    size = made.path.stat().st_size / 2**20
    finding = f"{made.path} ({size:.1f} MiB) opens in any browser, without a network and without this workbench."
    return [Card("report", "A page to send round", finding)]
