"""The tour: the steps of the first notebook, from a first cell to a page."""

import inspect
from collections.abc import Callable
from pathlib import Path

import pyarrow.dataset as pads
from IPython.display import Code, display

from workbench import units
from workbench.answers import page, placed
from workbench.answers import planned as of_a_plan
from workbench.capacity import CapacityPlan
from workbench.errors import WorkbenchError
from workbench.placement import read_placement_input
from workbench.report._render import render
from workbench.report.steps import asked_card
from workbench.simulation import RateTrace
from workbench.study import (
    Planned,
    Study,
    find_query,
    first_study,
    planned_start,
    replay_start,
    study_placement,
    write_planned,
)
from workbench.views.cards import Card, Column, Table, error_card, show
from workbench.views.widgets import ReplayPlayer
from workbench.workload import Dataset

FOLDER = Path(".workbench")
JOURNAL = FOLDER / "journal.jsonl"
PLANNED = FOLDER / "tour.json"
PAGE = Path("reports/tour.html")

_ROWS = 3  # of the data that are shown


class RefusedError(WorkbenchError):
    """The input of the first cell is not available. A card has the reason, so a notebook shows no traceback."""

    def _render_traceback_(self) -> list[str]:
        return ["Nothing was measured. Correct the first cell, or what it names, and run all cells again."]


def ask(query: str, dataset: str, event_time: str, targets: list[float], *, quick: bool) -> Study:
    """Turn the first cell into a study, and show what it asks: the question, the data, the query's code, read again.

    A `quick` tour simulates. A card says what is wrong before a `RefusedError` ends the notebook.
    """
    try:
        study = first_study(query, dataset, event_time, targets, prices="../data/instances.csv", simulated=quick)
        found = find_query(study.query, study.dataset, study.event_time)
    except WorkbenchError as error:
        show([error_card("WorkbenchError", str(error))])
        raise RefusedError(str(error)) from None
    show([asked_card(study), *([data_card(found.dataset)] if isinstance(found.dataset, Dataset) else [])])
    display(Code(_source(found.build), language="python"))  # type: ignore[no-untyped-call]
    return study


def _source(build: Callable[..., object]) -> str:
    try:
        return inspect.getsource(build)
    except (OSError, TypeError):  # no plain function
        return repr(build)


def data_card(data: Dataset) -> Card:
    """Show the first rows of the data."""
    rows = pads.dataset(data.path, format=data.format).head(_ROWS)
    origin = (
        f"its column {data.event_time} becomes the time at which a row is due, less the row's own lateness"
        if data.event_time
        else "the query has no event time"
    )
    table = Table(
        f"The first {len(rows)} rows",
        tuple(Column(field.name, str(field.type)) for field in rows.schema),
        tuple(tuple(map(str, row.values())) for row in rows.to_pylist()),
        opened=True,
    )
    finding = f"{Path(data.path).name} is replayed over and over at the rates that are tried; {origin}."
    return Card("data", "Which data does it read?", finding, table=table)


def planned_cards(planned: Planned) -> list[Card]:
    """Show what to deploy, with what certainty, and what this rests on."""
    answer, *rest = of_a_plan.cards(planned)
    return [answer, *([certainty(planned)] if planned.plans else []), *rest]


def certainty(planned: Planned) -> Card:
    """Show how well the capacity of each plan is known, and how to know it better."""
    runs = len(planned.exploration.fitted)
    most = max(run.budget.slots for run in planned.exploration.measurements)
    known = "; ".join(
        f"for {units.rate(plan.rate)} between {units.share(plan.low / plan.expected_rate - 1)} and "
        f"+{units.share(plan.high / plan.expected_rate - 1)}"
        for plan in planned.plans
    )
    finding = (
        f"{runs} short runs on up to {most:,} slots give a first idea. Relative to the prediction, the capacity of a "
        f"plan is, nine times in ten, {known}. To be surer, measure more and larger budgets (workbench plan), or "
        "deploy in steps and measure each."
    )
    return Card("sureness", "How sure is that?", finding, kind="health")


def place_planned(planned: Planned) -> list[Card]:
    """Place the tasks of the largest plan on workers of four slots."""
    largest = _largest(planned)
    write_planned(planned, PLANNED)
    workers = -(-largest.budget.slots // 4) + 1
    given = read_placement_input(PLANNED, workers=workers, slots=4, rate=largest.rate)
    return page.cards(placed.studied(study_placement(given, samples=20)))


def replay_planned(planned: Planned) -> ReplayPlayer:
    """Replay a day whose peak is the largest planned rate against the plan, under every policy."""
    peak = _largest(planned).rate
    write_planned(planned, PLANNED)
    day = RateTrace.diurnal(0.2 * peak, peak, step_s=300.0)
    replayed = replay_start(planned_start(PLANNED, peak), day)
    return ReplayPlayer(replayed.timelines, replayed.price_unit)


def report_planned(planned: Planned) -> list[Card]:
    """Write the plans as one HTML file that opens without a network, and say where it is."""
    write_planned(planned, PLANNED)
    made = render("plan", {"planned": str(PLANNED.resolve())}, PAGE)
    if made.error:
        raise WorkbenchError(f"The page {PAGE} is partial: {made.error}")
    size = made.path.stat().st_size / 2**20
    finding = (
        f"{PAGE}, next to this notebook ({size:.1f} MiB), opens in any browser, without a network and without this "
        "workbench. In the file browser on the left: right-click it, then Open in New Browser Tab, or Download."
    )
    return [Card("report", "A page to share", finding)]


def _largest(planned: Planned) -> CapacityPlan:
    if not planned.plans:
        reasons = " ".join(reason for _, reason in planned.refused)
        raise WorkbenchError(f"There is no plan to go on with. {reasons}")
    return max(planned.plans, key=lambda plan: plan.rate)
