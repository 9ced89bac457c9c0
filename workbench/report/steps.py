"""The steps of the report notebooks: do the work, show its cards. Bad files are a `WorkbenchError`."""

import ast
import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench import units
from workbench.answers import drifted, measured, observed, page, placed, replayed
from workbench.answers import planned as of_a_plan
from workbench.answers.planned_evidence import START
from workbench.errors import WorkbenchError
from workbench.placement import Setting, check_methods, placed_together, shapes_of, thresholds_of
from workbench.reading import is_there
from workbench.records import Measurement
from workbench.simulation import RateTrace
from workbench.study import (
    KEYED,
    Observed,
    PlacementStudy,
    Planned,
    Scenario,
    Study,
    StudyHistory,
    observe,
    read_planned,
    read_study,
    refuse_failures,
    study_drift,
    study_placement,
)
from workbench.views.cards import Card, Cell, facts_table, finite, fold, show, tabulate
from workbench.views.parts import part, template_folder

if TYPE_CHECKING:
    from workbench.papers import Paper

ALL, ANY = "all", "any"  # papers; queries of them
_LEFT_OUT = frozenset({"slots", "workers", "response", "hot_key", "shuffle_keys", "keys", "policies", "settings"})
_MOMENT_S = 1.0  # of a load, to try what to replay
_WHERE = {
    "spark": "on this machine",
    "fluid": "simulated",
    "recorded": "measured elsewhere",
    "observed": "seen in its log",
}


def find_template(name: str | Path) -> Path:
    """Find a report notebook: a path, or the name of one of ours with or without ``.ipynb``."""
    path = Path(name)
    if is_there(path) and path.is_file():
        return path
    ours = template_folder()
    for candidate in [ours / path.name, ours / f"{path.name}.ipynb"] if len(path.parts) == 1 else []:
        if is_there(candidate) and candidate.is_file():
            return candidate
    known = ", ".join(sorted(notebook.stem for notebook in ours.glob("*.ipynb")))
    raise WorkbenchError(f"There is no report notebook {str(name)!r}; give the path of one, or one of: {known}.")


def ask(study: str) -> Study:
    """Read the study file and show its questions."""
    _require_named(study, "No study is named", "study")
    asked = read_study(study)
    show([fold(asked_card(asked))])
    return asked


def asked_card(study: Study) -> Card:
    """Describe what the study asks."""
    rates = " and ".join(units.rate(rate) for rate in study.targets)
    where = f"on a {study.cluster.kind} cluster" if study.cluster else _WHERE[study.testbed]
    finding = (
        f"How much must be deployed for {study.query} to sustain {rates}, found from runs on {study.slots[0]:,} to "
        f"{units.some(study.slots[-1], 'slot')} ({where})?"
    )
    facts: dict[str, Cell | bool] = {
        "Query": study.query,
        "Data": ", ".join(Path(one).name for one in study.datasets) or None,
        "Testbed": study.testbed,
        "Table": Path(study.table).name if study.table else None,
        "Slots measured": ", ".join(map(units.count, study.slots)),
        "Memory per slot (MB)": ", ".join(map(units.count, study.memory_mb)),
        "Cores per slot": study.slot_cpus,
        "Trigger interval (s)": None if study.testbed in {"fluid", "recorded"} else study.interval_s,
        "Margin": study.margin,
        "Accepted risk": study.risk,
        "Settings of the job": study.job_settings.listed or None,
        "Sink": study.job_settings.writes.words if study.testbed == "spark" else None,
        "Form of the model": study.form,
        "Seed": study.seed,
    }
    return Card("asked", "What was asked?", finding, table=replace(facts_table("The study", facts), opened=False))


def measure_study(asked: Study, study: str, history: str) -> tuple[Planned, Path | None]:
    """Carry out the study of a file, and return its plans and the file of the previous ones in `history`, if any.

    If the study stops half-way, show the finished runs and raise the error.
    """
    runs = StudyHistory.of(Path(study), Path(history))
    try:
        return runs.run(asked)
    except Exception:
        show([so_far_card(runs.measured)])
        raise


def so_far_card(measured: Sequence[Measurement]) -> Card:
    """Describe which runs were finished before the study stopped."""
    title = "How much was measured?"
    if not measured:
        return Card("so-far", title, "No run was finished.", kind="not-yet")
    table = tabulate(
        "Finished runs",
        enumerate(measured, start=1),
        {
            "Run": lambda one: one[0],
            "Slots": lambda one: one[1].budget.slots,
            "Memory per slot (MB)": lambda one: one[1].budget.profile.memory_mb,
            "MST (records/s)": lambda one: one[1].estimate.middle or None,
            "Low (records/s)": lambda one: one[1].estimate.low,
            "High (records/s)": lambda one: finite(one[1].estimate.high),
        },
        opened=True,
    )
    finding = (
        f"{units.some(len(measured), 'run')} had been finished and "
        f"{'is' if len(measured) == 1 else 'are'} kept: the next try goes on from there."
    )
    return Card("so-far", title, finding, table=table, kind="not-yet")


def show_capacity(planned: Planned, previous: Path | None) -> None:
    """Show what changed since the previous run, what to deploy, and what the answer rests on."""
    changed, *details = drifted.changes(str(previous or ""), planned)
    evidence = [*map(fold, details), *map(fold, measured.run_cards(planned))]
    if changed.kind == "not-yet":  # nothing to compare with: the answer leads
        show([*of_a_plan.cards(planned), fold(changed), *evidence])
        return
    said = of_a_plan.answer(planned)
    answer, *rest = page.cards(said, source=False)
    rest = [fold(card) if card.name == START else card for card in rest]  # what changed is asked every week
    show([replace(changed, html=part("origin", said)), answer, *rest, *evidence])


def check_capacity(planned: Planned, previous: Path | None, alarm: bool) -> None:
    """End the report with an error if a measurement failed, or with `alarm` if the capacity fell beyond the noise."""
    if alarm and previous is not None:
        drifted.refuse_loss(study_drift(read_planned(previous), planned))
    refuse_failures(planned)


def show_measurement(measurement: str, previous: str | None = None) -> None:
    """Show a measurement, and what changed since the one in the file `previous` if one is named."""
    _require_named(measurement, "No measurement is named", "measurement")
    now = Measurement.from_json(measurement)
    answer, *rest = measured.cards(now)
    show([answer, *drifted.since(previous, now), *rest])


def show_planned(planned: str, previous: str | None = None) -> None:
    """Show the plans in a file, and what changed since those in `previous`; end with an error if a run failed."""
    _require_named(planned, "No plans are named", "planned")
    now = read_planned(Path(planned))
    answer, *rest = of_a_plan.cards(now)
    show([answer, *drifted.since(previous, now), *rest, *map(fold, measured.run_cards(now))])
    refuse_failures(now)


def show_observed(log: str, *, targets: Sequence[float] = (), outage_min: float = 10.0, **asked: Any) -> Observed:  # noqa: ANN401
    """Show what a running query sustains, from its event log, and plans from it; see `observe`. None: its default."""
    _require_named(log, "No event log is named", "log")
    given = {name: value for name, value in asked.items() if value is not None}
    found = observe(log, targets=targets or (), outage_min=outage_min, **given)
    show(observed.cards(found, 60 * outage_min))
    return found


def ask_placement(
    placement: str,
    *,
    more: Sequence[str] = (),
    method: str | None = None,
    seed: int,
    samples: int,
    timeout_s: float,
    thresholds: Sequence[float] = (),
    odrp: Setting = "default",
    shapes: Sequence[str] = (),
    **cluster: Any,  # noqa: ANN401
) -> Callable[[], PlacementStudy]:
    """Read what to place, and prepare to: see `study_placement` and `placed_together`. 0 or None: as the file says."""
    _require_named(placement, "No placement is named", "placement")
    check_methods([method] if method else [], seed=seed, draws=samples, timeout_s=timeout_s, weights=odrp)
    chosen = shapes_of(shapes)
    wanted = {name: value or None for name, value in cluster.items() if name != "calibrate"}
    given = placed_together([placement, *more], calibrate=bool(cluster.get("calibrate")), shapes=chosen, **wanted)
    limits = thresholds_of(thresholds)
    how: dict[str, Any] = {"method": method, "seed": seed, "samples": samples, "timeout_s": timeout_s, "odrp": odrp}
    return partial(study_placement, given, thresholds=limits, shapes=chosen, **how)


def show_placement(placement: str, **asked: Any) -> None:  # noqa: ANN401
    """Place what the file describes and show the result; see `ask_placement`.

    Warnings are shown as advice after it; printed, they would name files and lines of ours.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        studied = ask_placement(placement, **asked)
        given = _given("placement", {"placement": placement, **asked})
        page.show(placed.studied(studied(), placed.of_a_report(**given)))
    told = dict.fromkeys(str(one.message) for one in caught if issubclass(one.category, UserWarning))
    show(Card(f"note-{number}", "What to know", text, kind="health") for number, text in enumerate(told, start=1))


def ask_scaling(query: str, rates: str, **asked: Any) -> Scenario:  # noqa: ANN401
    """Describe what to replay; see `Scenario`, where 0 and what is empty are left out."""
    _require_named(rates, "No load is named", "rates")
    if query == KEYED or query.endswith(".json"):
        asked.pop("slots", None)  # it has its own
    kept = {name: value for name, value in asked.items() if value or name not in _LEFT_OUT}
    return Scenario(query, rates, **kept)


def try_scaling(query: str, rates: str, **asked: Any) -> None:  # noqa: ANN401
    """Replay the first moment of the load, which refuses at once what the whole of it would; see `ask_scaling`."""
    scenario = ask_scaling(query, rates, **asked)
    scenario.replay(RateTrace.constant(scenario.trace().rate_at(0.0), _MOMENT_S))


def show_scaling(query: str, rates: str, **asked: Any) -> None:  # noqa: ANN401
    """Replay the load under the policies and show what happened; see `ask_scaling`."""
    scenario = ask_scaling(query, rates, **asked)
    found = scenario.replay(scenario.trace())
    given = _given("scaling", {"query": query, "rates": rates, **asked})
    page.show(replayed.answer(found, given))


def ask_papers(paper: str = ALL, query: str = ANY) -> "tuple[Paper, ...]":
    """Find the papers whose figures to show: the named one or all, and with a query those that have it."""
    from workbench.papers import PAPERS, find_paper  # noqa: PLC0415 - the other steps need no simulators of papers

    chosen = tuple(PAPERS.values()) if paper == ALL else (find_paper(paper),)
    known = tuple(dict.fromkeys(name for one in chosen for name in one.inputs))
    if query not in {ANY, *known}:
        raise WorkbenchError(
            f"No figure can be made for the query {query!r}; use one of {', '.join(known)}, or {ANY}.",
            settings=("query",),
        )
    return tuple(one for one in chosen if query == ANY or query in one.inputs)


def show_papers(paper: str = ALL, query: str = ANY) -> None:
    """Show the figures of a paper, or of all, next to ours; see `ask_papers`."""
    from workbench.views import paper_cards  # noqa: PLC0415 - as above

    for one in ask_papers(paper, query):
        show(paper_cards.cards(one, None if query == ANY else query))


def _given(report: str, values: Mapping[str, object]) -> dict[str, object]:
    """Return the parameters of one of our reports that differ from its notebook's own, for commands to repeat.

    Its cell is parsed here, because papermill takes seconds to load in the kernel.
    """
    cells = json.loads(find_template(report).read_text(encoding="utf-8"))["cells"]
    source = "".join(
        line for cell in cells if "parameters" in cell["metadata"].get("tags", ()) for line in cell["source"]
    )
    own = {
        line.target.id: ast.literal_eval(line.value)
        for line in ast.parse(source).body
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and line.value is not None
    }
    return {name: value for name, value in values.items() if name in own and value != own[name]}


def _require_named(path: str, lack: str, parameter: str) -> None:
    if not path:
        raise WorkbenchError(f"{lack}; set the parameter {parameter!r} to the path of its file.")
