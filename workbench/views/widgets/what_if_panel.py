"""What-if sliders: move the circumstances, and the model answers at once, in tiles, words and rows."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import ipywidgets
import plotly.graph_objects as go

from workbench import units
from workbench.capacity.model import MARGIN
from workbench.capacity.planning import Answer, InstanceType, Question, ask, common_range, falls_short, room_for
from workbench.dataflow import SlotProfile
from workbench.errors import WorkbenchError
from workbench.escaping import for_html as escape
from workbench.records import CapacityPlan, Outage
from workbench.study import Planned
from workbench.views import findings, theme
from workbench.views.cards import Card, Column, Table
from workbench.views.figures import Curves, draw_what_if
from workbench.views.parts import cards_style, part
from workbench.views.widgets import panel
from workbench.views.widgets.panel import LiveChart, Throttled


class _Tile(NamedTuple):
    """A figure in writing, its note, and its number for the difference; None: it has none."""

    name: str
    value: str
    notes: tuple[str, ...]
    number: float | None
    written: Callable[[float], str] = units.count
    kind: str = ""

    def against(self, pinned: "_Tile | None") -> str:
        """Describe how it differs from the pinned one; empty where that is unknown."""
        if pinned is None or self.number is None or pinned.number is None:
            return ""
        difference = self.number - pinned.number
        shown = self.written(abs(difference))
        if shown == self.written(0):
            return "same as pinned"
        return f"{'+' if difference > 0 else '-'}{shown} against pinned"


def _tiles(answer: Answer) -> tuple[_Tile, ...]:
    plan, question = answer.plan, answer.question
    profile, verdict = plan.budget.profile, plan.verdict
    slots = (f"of {profile.cpus:g} core and {profile.memory_mb:,} MB", f"carry {findings.expected(plan)}")
    spare = ", one spare" * question.one_lost
    workers = (f"of {units.some(question.worker_slots, 'slot')}{spare}",)
    money = _Tile("Money per month", "no price", ("Choose a worker type, or a price.",), None)
    if question.worker_price:
        paid, hourly = f"{units.number(answer.per_month)} {question.currency}".rstrip(), units.number(answer.per_hour)
        money = _Tile(money.name, paid, (f"{hourly} per hour",), answer.per_month, units.number)
    risk = _Tile("Risk of falling short", "unknown", (), None)
    if verdict is not None:
        kind = "short" if falls_short(answer.risk) else "safe" if verdict.level == "safe" else "risky"
        low = f"The low end of the interval, {units.ends(plan.low, plan.rate)[0]}, is under the rate."
        reason = low if kind == "short" else "" if verdict.level == "safe" else verdict.reason
        said, points = (verdict.level, reason), lambda value: f"{units.number(value, 2)} points"
        risk = _Tile(risk.name, units.chance(answer.risk), said, 100 * answer.risk, points, kind)
    return (
        _Tile("Slots", units.count(plan.budget.slots), slots, plan.budget.slots),
        _Tile("Workers", units.count(answer.workers), workers, answer.workers),
        money,
        risk,
    )


def tiles_html(now: Answer, pinned: Answer | None = None) -> str:
    """Write the tiles: slots, workers, money per month, risk; each with the difference from a pinned scenario."""
    comparable: list[_Tile | None] = [None] * 4 if pinned is None else [*_tiles(pinned)]
    if pinned is not None and pinned.question.currency != now.question.currency:
        comparable[2] = None
    return part("tiles", [(tile, tile.against(other)) for tile, other in zip(_tiles(now), comparable, strict=True)])


def needed(answer: Answer) -> str:
    """Describe what the rate takes, and its cost if a worker has a price."""
    plan = answer.plan
    price = f" for {units.number(answer.per_hour)} {answer.question.currency}".rstrip() + " per hour"
    return (
        f"{plan.query} at {units.rate(plan.rate)} needs {units.some(plan.budget.slots, 'slot')} of "
        f"{plan.budget.profile.memory_mb:,} MB on {units.some(answer.workers, 'worker')}"
        f"{price if answer.question.worker_price else ''}"
    )


def answer_card(answer: Answer) -> Card:
    """Show an answer in words and rows."""
    question, plan = answer.question, answer.plan
    paid = answer.workers * question.worker_slots
    beyond = f" That is {findings.beyond(plan)}: measure a larger one before you rely on it."
    finding = (
        f"{needed(answer)}.{beyond * (plan.extrapolation > 1)} All {paid} slots of these carry "
        f"{units.rate(answer.paid_rate)}; with one worker lost {_left(answer)}."
    )
    slots, workers, money, _ = ((tile.name, f"{tile.value} {', '.join(tile.notes)}") for tile in _tiles(answer))
    rows = [slots, ("Fewest that carry the rate", f"{plan.least_slots:,}"), workers]
    rows += [(f"Capacity of their {paid} slots", units.rate(answer.paid_rate))]
    rows += [("With one worker lost", units.rate(answer.lost_rate))]
    if plan.on_other_cores:
        rows.append(("Cores", findings.whose_cores(plan)))
    if plan.verdict is not None and plan.verdict.remedy:
        rows.append(("What to do", str(plan.verdict.advised)))
    if question.outage is not None:
        outage_s = question.outage.outage_s
        caught_up = f"caught up in {units.seconds(plan.catch_up_s(outage_s))}"
        rows.append((f"After an outage of {units.seconds(outage_s)}", caught_up))
    if question.worker_price:
        rows.append(money)
    table = Table("The deployment", (Column("What"), Column("Value")), tuple(rows), opened=True)
    return Card("what-if", f"What does {plan.query} take?", finding, table=table)


def _left(answer: Answer) -> str:
    if answer.lost_rate is None:
        return "fewer slots are left than were measured, so what they carry is not known"
    if not answer.lost_rate:
        return "nothing is left"
    enough = "still above the rate on average" if answer.lost_rate >= answer.question.rate else "below the rate"
    return f"{units.rate(answer.lost_rate)} are left, {enough}"


_RISKS = (("use the margin instead", 0.0), ("20 %", 0.2), ("10 %", 0.1), ("5 %", 0.05), ("1 %", 0.01))
_LONGEST_INTERVAL_S = 20.0
_LONGEST = 120.0  # minutes
_MOST_SHAPE, _MOST_PRICE = 64, 5.0  # ends of sliders, unless the price list has larger values
_PAGE, _HEIGHT = 700, 400  # pixels: of a narrow page, of the figure
_STEPS = 1000  # of the slider of prices
_OF_THE_QUERY = frozenset({"hot key", "late batches"})  # findings of a plan that do not depend on the question


class WhatIf(panel.Panel):
    """Sliders over the circumstances of a deployment, answered from the capacity model without measuring.

    A type of the price list `instances` sets the worker's shape and price.
    """

    def __init__(self, planned: Planned, instances: Sequence[InstanceType] = ()) -> None:
        self.exploration, cluster = planned.exploration, planned.study.cluster
        first = next(iter(planned.plans), None)
        self.alarm = panel.ErrorArea()
        self._instances = {instance.name: instance for instance in instances}
        self._executor_slots = None if cluster is None else cluster.executor_slots
        self._taking = False
        self._drawing = Throttled()
        self._make_controls(first, planned.study.targets)
        self.tiles, self.text, self.pinned_text = ipywidgets.HTML(), ipywidgets.HTML(), ipywidgets.HTML()
        self.pin = panel.button("Pin this scenario", "Keep it, and see how others differ from it", "thumb-tack")
        self.unpin = panel.button("Unpin", "Compare with nothing", "times")
        self.answer: Answer | None = None  # to what the controls ask; None if there cannot be one
        self.pinned: Answer | None = None
        self._curves = Curves(self.exploration)
        self._doubts = () if first is None else tuple(one for one in first.cards if one.concern in _OF_THE_QUERY)
        self.chart = LiveChart(_unanswered())
        self.alarm.on(self._type, self.typed)
        self.alarm.on(lambda: self._pin(self.answer), self.pin)
        self.alarm.on(lambda: self._pin(None), self.unpin)
        self.alarm.on(self._move_worker, self.shape, self.price)
        self.alarm.on(self.refresh, self.instance, *{*self.controls} - {self.shape, self.price})
        super().__init__(self._laid_out(), dragged=self.controls)
        self._pin(None)
        if first is not None and first.price is not None and first.price.instance.name in self._instances:
            self.instance.value = first.price.instance.name
        else:
            self.alarm.guard(self.refresh)()

    def _make_controls(self, first: CapacityPlan | None, targets: Sequence[float]) -> None:
        low, high = common_range(self.exploration, targets)
        memories = [int(memory) for memory in self.exploration.model.memory_]
        planned_memory = None if first is None else first.budget.profile.memory_mb
        self.rate = ipywidgets.FloatLogSlider(
            description="Target rate (records/s)",
            value=float(max(self.exploration.rates) if first is None else first.rate),
            min=math.log10(low),
            max=math.log10(high),
            step=0.01,
            readout=False,
            continuous_update=False,
        )
        self.typed = panel.text_field("Target rate, typed (e.g. 1.5 M)", units.count(self.rate.value))
        self.memory = panel.choice_slider(
            "Memory per slot",
            [(f"{memory:,} MB", memory) for memory in memories],
            planned_memory if planned_memory in memories else memories[len(memories) // 2],
        )
        asked = None if first is None else first.outage
        margin = MARGIN if first is None or asked is not None else first.margin
        self.margin = panel.slider("Margin (capacity / rate)", margin, 1.0, max(2.0, margin), 0.05)
        self.risk = panel.choice_slider("Risk of falling short", _RISKS, 0.0)
        self.instance = panel.choice("Worker type", [("my own", ""), *((name, name) for name in self._instances)], "")
        whole = self._executor_slots or 1  # a worker holds whole executors
        usual = whole * math.ceil(4 / whole)
        most = max(_MOST_SHAPE // whole * whole, usual)
        self.shape = panel.whole_slider("Slots per worker", usual, whole, most, step=whole)
        dearest = max([_MOST_PRICE, *(instance.price_per_hour for instance in self._instances.values())])
        self.price = panel.slider("Price per worker and hour", 0.0, 0.0, dearest, dearest / _STEPS, form=".3f")
        self.lost = panel.tick("must carry the rate with one worker lost")
        self.skew = panel.slider("Extra load on the fullest task (%)", 0.0, 0.0, 100.0, 5.0, form=".0f")
        outage, catch_up = (asked.outage_s / 60, asked.catch_up_s / 60) if asked else (0.0, 30.0)
        self.outage = panel.slider("Outage (minutes)", outage, 0.0, max(_LONGEST, outage), 1.0, form=".0f")
        latest = max(4 * _LONGEST, catch_up)
        self.catch_up = panel.slider(
            "Caught up within (minutes)", catch_up, min(1.0, catch_up), latest, 1.0, form=".0f"
        )
        explored_s = self.exploration.fitted_runs[-1].budget.interval_s
        longest = max(_LONGEST_INTERVAL_S, 2 * explored_s)
        self.interval = panel.slider("Trigger interval (s)", explored_s, min(0.5, explored_s), longest, 0.5, form=".1f")
        self.wait = panel.slider("Wait per batch, more than measured (s)", 0.0, 0.0, longest, 0.1, form=".1f")
        self.interval.disabled = self.wait.disabled = self.exploration.model.batch is None
        self.controls = (
            self.rate, self.memory, self.margin, self.risk, self.shape, self.price, self.lost, self.skew, self.outage,
            self.catch_up, self.interval, self.wait,
        )  # fmt: skip

    def _laid_out(self) -> ipywidgets.Box:
        """Put the controls on one side, the less used ones folded, and the results on the other."""
        rarely = (self.margin, self.price, self.skew, self.outage, self.catch_up, self.interval, self.wait)
        often = (self.rate, self.typed, self.memory, self.risk, self.instance, self.shape, self.lost)
        asked_for = ipywidgets.VBox([*often, panel.folded("Margin, price, skew, outage, interval, wait", *rarely)])
        answered = ipywidgets.VBox(
            [
                self.alarm.widget,
                self.tiles,
                ipywidgets.HBox([self.pin, self.unpin, self.pinned_text]),
                *self.chart.parts,
                panel.folded("The answer in words and rows", self.text),
            ]
        )
        return panel.grid(panel.SIDES, asked_for.add_class(panel.CONTROLS), answered)

    def question(self) -> Question:
        """Return what the controls ask; a risk replaces the margin, which is a rule of thumb for the same thing."""
        risk, chosen = self.risk.value or None, self._instances.get(self.instance.value)
        return Question(
            self.rate.value,
            self.memory.value,
            self.margin.value if risk is None else 1.0,
            risk,
            self.shape.value,
            self.price.value,
            one_lost=self.lost.value,
            more_skew=self.skew.value / 100,
            outage=Outage(60 * self.outage.value, 60 * self.catch_up.value) if self.outage.value else None,
            interval_s=None if self.interval.disabled else self.interval.value,
            executor_slots=self._executor_slots,
            more_s=self.wait.value,
            core_speed=chosen.core_speed if chosen else None,
            currency=chosen.currency if chosen else "",
        )

    def refresh(self) -> None:
        """Answer what the controls ask; how many slots fit on a worker of a type depends on their memory."""
        self.margin.disabled = bool(self.risk.value)
        self.catch_up.disabled = not self.outage.value
        self.typed.value = units.count(self.rate.value)
        with self._nothing_on_error():
            if chosen := self._instances.get(self.instance.value):
                self._take(chosen)
            self.answer = ask(self.exploration, self.question(), self._doubts)
            self._show(self.answer)

    @contextmanager
    def _nothing_on_error(self) -> Iterator[None]:
        """Clear the last answer next to the message of an error."""
        try:
            yield
        except Exception:
            self._drawing.drop()
            self.answer = None
            self.tiles.value = self.text.value = ""
            self.chart.show(_unanswered())
            raise

    def _show(self, answer: Answer) -> None:
        """Show an answer in tiles, and in figure, words and rows as often as the page can draw."""
        pinned = self.pinned
        self.tiles.value = tiles_html(answer, pinned)
        self._drawing.do(self.alarm.guard(lambda: self._draw(answer, pinned)))

    def _draw(self, answer: Answer, pinned: Answer | None) -> None:
        card = answer_card(answer)
        with self._nothing_on_error():
            self.text.value = cards_style() + card.heading_html() + card.table_html(download=False)
            drawn = draw_what_if(self._curves.at(answer, needed(answer)), answer, pinned)
            self.chart.show(theme.fit(drawn, _PAGE, _HEIGHT))

    def _pin(self, answer: Answer | None) -> None:
        """Compare with `answer` from now on; None: with nothing."""
        self.pinned = answer
        self.unpin.disabled = answer is None
        self.pinned_text.value = ""
        if answer is not None:
            asked = f"{units.rate(answer.plan.rate)} at a risk of {units.chance(answer.risk)}"
            takes = f"{findings.deployment(answer.plan)}, {units.some(answer.workers, 'worker')}"
            self.pinned_text.value = escape(f"Pinned: {asked}: {takes}.")
        if self.answer is not None:
            self._show(self.answer)

    def _type(self) -> None:
        """Ask about a typed rate, which may be beyond the slider's ends."""
        if self.typed.value == units.count(self.rate.value):
            return
        rate = units.read_rate(self.typed.value)
        self.rate.min = min(self.rate.min, math.log10(rate))
        self.rate.max = max(self.rate.max, math.log10(rate))
        self.rate.value = rate
        self.typed.value = units.count(rate)

    def _take(self, instance: InstanceType) -> None:
        """Set the sliders to a worker type, and raise their ends if it is larger."""
        profile = SlotProfile(self.exploration.runs[0].budget.profile.cpus, self.memory.value)
        slots = room_for(instance, profile, executor_slots=self._executor_slots)
        if slots < 1:
            of = f"executor of {self._executor_slots} slots" if (self._executor_slots or 1) > 1 else "slot"
            raise WorkbenchError(
                f"A worker {instance.name} ({instance.vcpus:g} cores, {instance.memory_mb:,} MB) holds no {of} of "
                f"{profile.cpus:g} core and {profile.memory_mb:,} MB apart from what its system keeps. Choose a "
                "larger type."
            )
        self._taking = True
        try:
            self.shape.max = max(self.shape.max, slots)
            self.shape.value, self.price.value = slots, instance.price_per_hour
        finally:
            self._taking = False

    def _move_worker(self) -> None:
        """Answer for a worker whose shape or price was moved by hand, which is no longer a type of the list."""
        if self._taking:
            return
        if self.instance.value:
            self.instance.value = ""  # which answers
        else:
            self.refresh()


def _unanswered() -> go.Figure:
    return theme.blank(theme.figure("No answer"), "The message above says why.")
