"""The card of what a study asks, and of how far it came when it stopped half-way."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from workbench import units
from workbench.records import Measurement
from workbench.study import Study
from workbench.views.cards import Card, Cell, Column, Table
from workbench.views.tables import facts_table

_WHERE = {
    "spark": "on this machine",
    "fluid": "simulated",
    "recorded": "measured elsewhere",
    "observed": "seen in its log",
}


def asked_card(study: Study) -> Card:
    """Say what the study asks."""
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


def so_far_card(measured: Sequence[Measurement]) -> Card:
    """Say which runs were finished before the study stopped."""
    title = "How far did it come?"
    if not measured:
        return Card("so-far", title, "No run was finished.", kind="not-yet")
    columns = (
        Column("Run"),
        Column("Slots"),
        Column("Memory per slot", "MB"),
        Column("MST", "records/s"),
        Column("Low", "records/s"),
        Column("High", "records/s"),
    )
    rows = tuple(
        (
            number,
            run.budget.slots,
            run.budget.profile.memory_mb,
            run.estimate.middle or None,
            run.estimate.low,
            run.estimate.high if run.estimate.high != float("inf") else None,
        )
        for number, run in enumerate(measured, start=1)
    )
    finding = (
        f"{units.some(len(rows), 'run')} had been finished and "
        f"{'is' if len(rows) == 1 else 'are'} kept: the next try goes on from there."
    )
    return Card("so-far", title, finding, table=Table("Finished runs", columns, rows, opened=True), kind="not-yet")
