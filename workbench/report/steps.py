"""The steps of the report notebooks, so that their cells stay thin: do the work, show its cards."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from workbench.errors import WorkbenchError
from workbench.placement import PlacementInput, read_placement_input
from workbench.records import Measurement
from workbench.simulation import RateTrace, Worker
from workbench.study import (
    Planned,
    Pool,
    Replayed,
    Study,
    StudyHistory,
    check_draws,
    planned_start,
    read_planned,
    read_study,
    refuse_failures,
    refuse_loss,
    replay_start,
    simulated_start,
    study_drift,
    study_placement,
)
from workbench.views import drift_cards, measurement_cards, placement_cards, plan_cards, run_cards, scaling_cards
from workbench.views.cards import Card, fold, show
from workbench.views.study_cards import asked_card, so_far_card

_MOMENT_S = 1.0  # of a load, to try what to replay


def ask(study: str) -> Study:
    """Read the study file and show what it asks.

    Raises
    ------
    WorkbenchError
        When no file is named, or it is no study.
    """
    _require_named(study, "No study is named", "study")
    asked = read_study(study)
    show([asked_card(asked)])
    return asked


def measure_study(asked: Study, study: str, history: str) -> tuple[Planned, Path | None]:
    """Carry out the study; if it stops half-way, show how far it came and let the error pass.

    Parameters
    ----------
    study
        Path of its file, which distinguishes its runs in `history` from others.

    Returns
    -------
    The plans, and the file of the previous run's.
    """
    runs = StudyHistory.of(Path(study), Path(history))
    try:
        return runs.run(asked)
    except Exception:
        show([so_far_card(runs.measured)])
        raise


def show_capacity(planned: Planned, previous: Path | None) -> None:
    """Show what to deploy, what changed since the previous run, and what the answer rests on."""
    answer, *rest = plan_cards.cards(planned)
    show([answer])
    drift_cards.show_plans_drift(str(previous or ""), planned)
    show([*rest, *map(fold, run_cards.cards(planned))])


def check_capacity(planned: Planned, previous: Path | None, alarm: bool) -> None:
    """End the report with an error if a measurement failed, or `alarm` is set and the capacity fell beyond the noise.

    Raises
    ------
    CapacityFellError, MeasurementFailedError
        When it did.
    """
    if alarm and previous is not None:
        refuse_loss(study_drift(read_planned(previous), planned))
    refuse_failures(planned)


def show_measurement(measurement: str, previous: str | None = None) -> None:
    """Show a measurement, and what changed since the one in the file `previous` if one is named.

    Raises
    ------
    WorkbenchError
        When no measurement is named, or the file is none.
    """
    _require_named(measurement, "No measurement is named", "measurement")
    now = Measurement.from_json(measurement)
    answer, *rest = measurement_cards.cards(now)
    show([answer, *drift_cards.previous_measurement(previous, now), *rest])


def show_planned(planned: str, previous: str | None = None) -> None:
    """Show the plans in a file, and what changed since those in the file `previous` if one is named.

    Raises
    ------
    WorkbenchError
        When no plans are named, the file holds none, or, after all is shown, a measurement that they lack failed.
    """
    _require_named(planned, "No plans are named", "planned")
    now = read_planned(Path(planned))
    answer, *rest = plan_cards.cards(now)
    show([answer, *drift_cards.previous_plans(previous, now), *rest, *map(fold, run_cards.cards(now))])
    refuse_failures(now)


def ask_placement(
    placement: str, *, workers: int, slots: int, rate: float, seed: int, samples: int, timeout_s: float
) -> PlacementInput:
    """Read what to place, and check how to place it; 0 workers, slots or rate: as the file says.

    Raises
    ------
    WorkbenchError
        When no file is named, it cannot be placed, or a number is out of its range.
    """
    _require_named(placement, "No placement is named", "placement")
    check_draws(seed, samples, timeout_s)
    return read_placement_input(placement, workers=workers or None, slots=slots or None, rate=rate or None)


def show_placement(placement: str, *, seed: int, samples: int, timeout_s: float, **cluster: Any) -> None:  # noqa: ANN401
    """Place what the file describes and show the result; see `ask_placement`."""
    with _advised():
        given = ask_placement(placement, seed=seed, samples=samples, timeout_s=timeout_s, **cluster)
        show(placement_cards.cards(study_placement(given, seed=seed, samples=samples, timeout_s=timeout_s)))


def ask_scaling(
    query: str,
    rates: str,
    *,
    slots: int,
    memory_mb: float,
    policies: list[str],
    restart_s: float,
    workers: int,
    worker_slots: int,
) -> tuple[RateTrace, Callable[[RateTrace], Replayed]]:
    """Read the load, and prepare what replays one.

    Parameters
    ----------
    query
        A simulated query, or the path of plans, of which the last is the beginning.
    workers, worker_slots
        For policies that place tasks; 0 workers: there are none.

    Raises
    ------
    WorkbenchError
        When no load is named, it cannot be read, there is no such query, or a number is out of its range.
    """
    _require_named(rates, "No load is named", "rates")
    for name, value, least in (("workers", workers, 0), ("worker_slots", worker_slots, 1)):
        if value < least:
            raise WorkbenchError(f"{name} is {value!r}; it must be a whole number of at least {least}.")
    trace = RateTrace.from_csv(rates)
    start = planned_start(Path(query)) if query.endswith(".json") else simulated_start(query, slots, memory_mb)
    pool = Pool(workers, worker_slots, Worker(cpus=worker_slots * start.slot_cpus)) if workers else None
    return trace, partial(replay_start, start, policies=policies, restart_s=restart_s, pool=pool)


def try_scaling(query: str, rates: str, **given: Any) -> None:  # noqa: ANN401
    """Replay the first moment of the load, which refuses at once what the whole of it would; see `ask_scaling`."""
    trace, replayed = ask_scaling(query, rates, **given)
    replayed(RateTrace.constant(trace.rate_at(0.0), _MOMENT_S))


def show_scaling(query: str, rates: str, **given: Any) -> None:  # noqa: ANN401
    """Replay the load under the policies and show what happened; see `ask_scaling`."""
    trace, replayed = ask_scaling(query, rates, **given)
    show(scaling_cards.cards(replayed(trace)))


def _require_named(path: str, lack: str, parameter: str) -> None:
    """Refuse a parameter that was left out."""
    if not path:
        raise WorkbenchError(f"{lack}; set the parameter {parameter!r} to the path of its file.")


@contextmanager
def _advised() -> Iterator[None]:
    """Show the warnings of what is done inside as advice after it; printed, they would name files and lines of ours."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    told = dict.fromkeys(str(one.message) for one in caught if issubclass(one.category, UserWarning))
    show(Card(f"note-{number}", "What to know", text, kind="health") for number, text in enumerate(told, start=1))
