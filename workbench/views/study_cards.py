"""The card of a study's questions, and of its progress when it stopped half-way."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from workbench import units
from workbench.records import Measurement
from workbench.study import Study
from workbench.views.cards import Card, Cell, facts_table, tabulate

_WHERE = {
    "spark": "on this machine",
    "fluid": "simulated",
    "recorded": "measured elsewhere",
    "observed": "seen in its log",
}


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
            "High (records/s)": lambda one: one[1].estimate.high if one[1].estimate.high != float("inf") else None,
        },
        opened=True,
    )
    finding = (
        f"{units.some(len(measured), 'run')} had been finished and "
        f"{'is' if len(measured) == 1 else 'are'} kept: the next try goes on from there."
    )
    return Card("so-far", title, finding, table=table, kind="not-yet")
