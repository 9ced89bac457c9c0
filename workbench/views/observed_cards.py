"""The cards of a running query: its head-room, its load, its operators, and the plans from it."""

from dataclasses import replace

from workbench import units
from workbench.escaping import for_html as escape
from workbench.study import Observed
from workbench.views import plan_cards
from workbench.views.cards import Card, Column, Table, fold, gather
from workbench.views.figures import draw_head_room, head_room
from workbench.views.front import header
from workbench.views.observed_front import comparison, facts, front_html, limit, outage, sentence, slots_twice

_MOST_ROWS = 2000  # of a page, so that it is small enough to send


def cards(found: Observed, outage_s: float) -> list[Card]:
    """Make all cards; a card that cannot be made becomes an error card and does not hide the others."""
    first = gather((lambda one: _headroom(one, outage_s), _plans), found)
    return [*first, *map(fold, gather((_facts, _operators), found))]


def _headroom(found: Observed, outage_s: float) -> list[Card]:
    said = " ".join(filter(None, (sentence(found), limit(found), outage(found, outage_s), *comparison(found))))
    data = head_room(found, sentence(found).removesuffix("."))
    every = -(-len(found.running.batches) // _MOST_ROWS)
    rows = tuple(
        (round(batch.start_s - found.running.batches[0].start_s, 3), batch.rows, batch.batch_s, batch.slots)
        for batch in found.running.batches[::every]
    )
    table = Table(
        "Batches" if every == 1 else f"One in {every} batches",
        (Column("Begun after", "s"), Column("Rows"), Column("Batch time", "s"), Column("Slots")),
        rows,
    )
    title = f"How much head-room does {found.running.name} have?"
    return [Card("head-room", title, said, draw_head_room(data), table, html=front_html(found, outage_s))]


def _plans(found: Observed) -> list[Card]:
    if found.planned is not None and found.planned.plans:
        answer, *rest = plan_cards.cards(found.planned)
        note = slots_twice(found)
        said_once = answer.html.removeprefix(header(found.planned))  # where figures come from: the first card says it
        return [replace(answer, html=said_once + f"<p>{escape(note)}</p>" * bool(note)), *map(fold, rest)]
    reasons = [found.unplanned] if found.unplanned else []
    reasons += (
        [] if found.planned is None else [f"{units.rate(one.rate)}: {one.reason}" for one in found.planned.refused]
    )
    return [Card("plans", "What do other rates take?", " ".join(reasons), kind="no-data")] if reasons else []


def _facts(found: Observed) -> list[Card]:
    table = Table("The query", (Column("What"), Column("Seen")), tuple(facts(found).items()), opened=True)
    return [Card("what-it-is", "What is it, and what was read?", "As its event log shows it.", table=table)]


def _operators(found: Observed) -> list[Card]:
    if not found.running.blocks:
        return []
    busiest = max(found.running.blocks, key=lambda block: block.rows)
    seen = busiest.observation.operators
    columns = (
        Column("Operator"),
        Column("Tasks"),
        Column("Rows in"),
        Column("Busy", "%"),
        Column("Rows/s of a task"),
        Column("Fullest task", "times the mean"),
    )
    rows = tuple(
        (
            one.operator,
            one.tasks,
            one.records_in,
            round(100 * one.busyness, 1),
            None if one.true_processing_rate is None else round(one.true_processing_rate),
            None if one.key_skew is None else round(one.key_skew, 2),
        )
        for one in seen
    )
    worst = max(seen, key=lambda one: one.busyness, default=None)
    said = (
        "No operator was seen."
        if worst is None
        else f"In its busiest {units.seconds(busiest.observation.elapsed_s)} {worst.operator} keeps its tasks busy "
        f"{units.share(round(worst.busyness, 2))} of the time."
    )
    return [
        Card("operators", "Which operator does the work?", said, table=Table("Operators", columns, rows, opened=True))
    ]
