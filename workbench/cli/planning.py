"""``workbench plan``: from a study to a deployment."""

import argparse
import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from workbench import units
from workbench.answers import planned as of_a_plan
from workbench.capacity.model import Asked
from workbench.cli import look
from workbench.cli.console import DONE, JOURNAL, NOT_SUSTAINED, check_files, check_name, print_error
from workbench.cli.progress import progress
from workbench.cli.reporting import write_report
from workbench.errors import WorkbenchError
from workbench.journal import Journal
from workbench.measuring import Event, Reused
from workbench.records import PlannedStudy, alert_rules, core_speed_of, planned_to_dict, unnamed, write_whole
from workbench.speed import measure_speed, relative_speed
from workbench.study import (
    DryRun,
    Planned,
    Prepared,
    Study,
    asked_of,
    cluster_changes,
    cluster_given,
    dry_run,
    planned_document,
    planned_so_far,
    plans_path,
    prepare,
    read_study,
    run_study,
    write_planned,
)

UNLISTED = "not listed: one task per operator, for the rates by which BIDS2 assigns the listed slots"
RECORDED = ".recorded.json"  # ending of the plans that ship with a study
_TIMED_S = 3.0
_IN_SECONDS = 120  # a shorter time is printed in seconds


def run_plan(options: argparse.Namespace) -> int:
    """Carry the study out, and plan each target."""
    output = Path(options.output or plans_path(Path(options.study)))
    written = (None if options.dry_run else str(output), options.report, options.journal, options.alerts)
    check_files(written, (options.study,))
    check_name(options.study)
    check_name(options.journal)
    study = read_study(options.study, cluster_changes(vars(options)))
    check_files(written, (*study.datasets, study.table, study.log, study.day, study.keys, study.prices))
    if options.dry_run:
        return _show_dry_run(dry_run(study, Journal(options.journal)), study, as_json=options.json)
    journal = Journal(options.journal)
    journal.check()
    if not options.json:
        _show_recorded(Path(options.study).with_suffix(RECORDED), here=study.testbed == "spark" and not study.cluster)
    taken = list[str]()
    ready = prepare(study, journal)
    would = dry_run(ready, journal)
    with progress(would.seconds[1], runs=would.runs, timed=study.testbed == "spark") as say:

        def listen(event: Event) -> None:
            say.show_event(event)
            if isinstance(event, Reused):
                taken.append(event.measurement.started_at)

        unlisted = dict.fromkeys(one.slots for one in would.first if one.slots not in study.slots)
        also = (f"also measuring {units.some(slots, 'slot')}, {UNLISTED}" for slots in unlisted)
        for said in filter(None, (would.smaller, would.short, *also)):
            say.keep(said)
        given = {name.replace("_", "-"): value for name, value in cluster_given(vars(options)).items()}
        at = {} if options.journal == JOURNAL else {"journal": options.journal}
        asked = asked_of(study, given | at)  # with these the same command finds its measurements again
        try:
            planned = run_study(ready, journal, progress=say, listen=listen, asked=asked)
        except KeyboardInterrupt:
            _show_so_far(ready, asked, as_json=options.json)
            raise
    runs = (*planned.exploration.runs, *planned.sweep)
    write_planned(planned, output)
    if options.json:
        look.document(planned_to_dict(planned_document(planned)) | {"taken_from_journal": taken})
    else:
        look.show(of_a_plan.answer(planned))
        if taken:
            look.line(_taken(taken, len(runs), options.journal))
        what = "plans, with Spark's settings" if planned.plans else "runs, without a plan"
        look.whole(f"{what}: {output}")
    _write_alerts(planned, options.alerts, quiet=options.json)
    for rate, reason in planned.refused:
        print_error(f"no plan for {units.rate(rate)}: {reason}")
    from_plans = {"planned": str(output.resolve())}
    complete = options.report is None or write_report("plan", from_plans, options.report, quiet=options.json)
    return DONE if complete and planned.plans and not planned.refused else NOT_SUSTAINED


def _show_so_far(ready: Prepared, asked: Asked, *, as_json: bool) -> None:
    """Show what an interrupted study allows to say; where no run was finished, or a log is read, nothing."""
    if ready.explored is not None:
        return
    with suppress(WorkbenchError):
        planned = planned_so_far(ready, asked)
        if as_json:
            look.document(planned_to_dict(planned_document(planned)))
        else:
            look.show(of_a_plan.answer(planned))


def _show_recorded(path: Path, *, here: bool) -> None:
    """Show the plans that ship with a study, if there are any: a first true result, made on another machine.

    Where the study is measured `here`, the cores of the two machines are compared.
    """
    with suppress(WorkbenchError):
        stored = PlannedStudy.from_json(path)
        runs = stored.measurements
        if stored.plans and runs:
            look.put(
                f"{stored.plans[0].query}: RECORDED on {runs[-1].started_at[:10]}, on {runs[-1].machine.processor}; "
                "this machine's figures follow when it has been measured."
            )
            look.put(look.rows(of_a_plan.rows(stored.plans)))
            recorded = core_speed_of(runs) if here else None
            relative = None if recorded is None else relative_speed(measure_speed(_TIMED_S), recorded)
            if relative is not None:
                look.line(f"This machine's cores are {relative.words('those of the recorded run')}.")


def _taken(times: Sequence[str], runs: int, journal: str) -> str:
    """Describe which runs were reused; `times` are when they were made."""
    dates = " to ".join(dict.fromkeys(time[:10] for time in (min(times), max(times))))
    return (
        f"{len(times):,} of {units.some(runs, 'run')} {'is' if len(times) == 1 else 'are'} taken from {journal}, "
        f"measured {dates}; to measure {'it' if len(times) == 1 else 'them'} again, name another --journal."
    )


def _write_alerts(planned: Planned, target: str | None, *, quiet: bool) -> None:
    if target is None or not planned.plans:
        return
    write_whole(target, alert_rules(planned.plans), 0o644)  # Prometheus runs as another user
    if not quiet:
        look.whole(f"alerting rules: {target}")
        for one in unnamed(planned.plans):
            look.line(f"note: {one}")


def _show_dry_run(would: DryRun, study: Study, *, as_json: bool) -> int:
    if as_json:
        look.document(asdict(would))
        return DONE
    if would.recorded:
        verb = "is" if would.recorded == 1 else "are"
        print(f"{units.some(would.recorded, 'run')} {verb} recorded and {verb} not repeated")
    for budget in would.first:
        why = "" if budget.slots in study.slots else f" ({UNLISTED})"
        print(f"measure {units.some(budget.slots, 'slot')} of {budget.profile.memory_mb:,} MB{why}")
    for budget in would.sweep:
        shape = f"{units.some(budget.slots, 'slot')} of {budget.profile.memory_mb:,} MB"
        print(f"measure {shape} at a trigger interval of {budget.interval_s:g} s")
    least, most = would.runs
    open_ = most - would.recorded - len(would.first) - len(would.sweep)
    chosen = f", {open_} of them by what the others show" if open_ > 0 else ""
    in_all = f"{units.some(most, 'run')} in all{chosen}"
    print(in_all if least == most else f"then up to {most} runs in all, {least} at least")
    scale, unit = (1, "seconds") if would.seconds[1] < _IN_SECONDS else (60, "minutes")
    ends = dict.fromkeys(f"{math.ceil(end / scale)}" for end in would.seconds)
    print(f"about {' to '.join(ends)} {unit}")
    warned = (would.refused, would.short, would.smaller, would.doubt, would.read, study.job_settings.writes.warning)
    for said in filter(None, warned):
        look.line(said)
    return DONE
