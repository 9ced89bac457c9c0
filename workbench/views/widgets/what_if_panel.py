"""What-if sliders: move the circumstances, and the model answers at once."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import ipywidgets
import plotly.graph_objects as go

from workbench.capacity import Exploration
from workbench.capacity.model import MARGIN
from workbench.capacity.planning import Answer, InstanceType, Question, ask, common_range, slots_per_worker
from workbench.dataflow import SlotProfile
from workbench.errors import WorkbenchError
from workbench.records import CapacityPlan, Outage
from workbench.study import Planned
from workbench.views import theme, units
from workbench.views.cards import STYLE, Card, Column, Table
from workbench.views.figures import Capacity, aimed_at, capacity_of, draw_capacity, measured_runs
from workbench.views.widgets.alarm import Alarm
from workbench.views.widgets.controls import choice, choice_slider, slider, tick, whole_slider
from workbench.views.widgets.full_width import FullWidth
from workbench.views.widgets.live_chart import LiveChart
from workbench.views.widgets.while_dragged import WhileDragged

_RISKS = (("by the margin alone", 0.0), ("20 %", 0.2), ("10 %", 0.1), ("5 %", 0.05), ("1 %", 0.01))
_LONGEST_INTERVAL_S = 20.0
_LONGEST = 120.0  # minutes
_MOST_SHAPE, _MOST_PRICE = 64, 5.0  # ends of sliders, if the price list has nothing larger
_STEPS = 1000  # of the slider of prices


def answer_card(answer: Answer, currency: str = "") -> Card:
    """Put an answer into words and rows."""
    question, plan, budget = answer.question, answer.plan, answer.plan.budget
    paid = answer.workers * question.worker_slots
    beyond = (
        f" That is {plan.extrapolation:.1f} times the most slots measured: measure larger before you rely on it."
        if plan.extrapolation > 1
        else ""
    )
    on = f"{_workers(answer.workers)}{_money(answer, currency)}"
    finding = (
        f"{units.rate(plan.rate)} take {budget.slots} slots on {on}.{beyond} All {paid} slots of these carry "
        f"{units.rate(answer.paid_rate)}; with one worker lost {_left(answer)}."
    )
    rows: list[tuple[str, str]] = [
        ("Least slots", f"{budget.slots} of {budget.profile.cpus:g} core and {budget.profile.memory_mb} MB"),
        (
            "Their capacity",
            f"{units.rate(plan.expected_rate)} (90 %: {units.rate(plan.low)} to {units.rate(plan.high)})",
        ),
        ("Workers", f"{answer.workers} of {question.worker_slots} slots" + (", one spare" * question.one_lost)),
        (f"Capacity of their {paid} slots", units.rate(answer.paid_rate)),
        ("With one worker lost", units.rate(answer.lost_rate)),
    ]
    if question.outage is not None:
        outage_s = question.outage.outage_s
        rows.append((f"After an outage of {units.seconds(outage_s)}", f"caught up in {_duration(plan, outage_s)}"))
    if question.worker_price:
        money = f"{units.number(answer.per_hour)} {currency} per hour, {units.number(answer.per_month)} per month"
        rows.append(("Cost", money))
    return Card(
        "what-if",
        f"What does {plan.query} take?",
        finding,
        table=Table("The least deployment", (Column("What"), Column("Value")), tuple(rows), opened=True),
    )


def _duration(plan: CapacityPlan, outage_s: float) -> str:
    return units.seconds(plan.catch_up_s(outage_s))


def _left(answer: Answer) -> str:
    if answer.lost_rate is None:
        return "fewer slots are left than were measured, so what they carry is not known"
    if not answer.lost_rate:
        return "nothing is left"
    enough = "which still carries it" if answer.survives else "too little to carry it"
    return f"{units.rate(answer.lost_rate)} are left, {enough}"


def _workers(count: int) -> str:
    return "1 worker" if count == 1 else f"{count} workers"


def _money(answer: Answer, currency: str) -> str:
    if not answer.question.worker_price:
        return ""
    return f" for {units.number(answer.per_hour)} {currency}".rstrip() + " per hour"


class WhatIf(ipywidgets.VBox):  # type: ignore[misc]
    """Sliders over the circumstances of a deployment, answered from the capacity model without measuring.

    Parameters
    ----------
    explored
        A planned study, or an exploration. The sliders begin where the first plan is.
    instances
        Price list; its types can be chosen, which sets the worker's shape and price.
    """

    def __init__(self, explored: Planned | Exploration, instances: Sequence[InstanceType] = ()) -> None:
        self.exploration = explored.exploration if isinstance(explored, Planned) else explored
        targets = explored.study.targets if isinstance(explored, Planned) else ()
        first = next(iter(explored.plans), None) if isinstance(explored, Planned) else None
        self.alarm = Alarm()
        self._instances = {instance.name: instance for instance in instances}
        self._taking = False
        low, high = common_range(self.exploration, targets)
        memories = [int(memory) for memory in self.exploration.model.memory_]
        planned_memory = None if first is None else first.budget.profile.memory_mb
        self.rate = ipywidgets.FloatLogSlider(
            description="Target rate (records/s)",
            value=float(max(self.exploration.rates) if first is None else first.rate),
            min=math.log10(low),
            max=math.log10(high),
            step=0.01,
            readout_format=",.0f",
            continuous_update=False,
            style={"description_width": "17rem"},
            layout={"width": "100%", "max_width": "46rem"},
        )
        self.memory = choice_slider(
            "Memory per slot",
            [(f"{memory} MB", memory) for memory in memories],
            planned_memory if planned_memory in memories else memories[len(memories) // 2],
        )
        asked = None if first is None else first.outage
        margin = MARGIN if first is None or asked is not None else first.margin
        self.margin = slider("Margin (capacity / rate)", margin, 1.0, max(2.0, margin), 0.05)
        self.risk = choice_slider("Risk of falling short", _RISKS, 0.0)
        self.instance = choice("Worker type", [("my own", ""), *((name, name) for name in self._instances)], "")
        self.shape = whole_slider("Slots per worker", 4, 1, _MOST_SHAPE)
        dearest = max([_MOST_PRICE, *(instance.price_per_hour for instance in instances)])
        self.price = slider("Price per worker and hour", 0.0, 0.0, dearest, dearest / _STEPS, form=".3f")
        self.lost = tick("must carry the rate with one worker lost")
        self.skew = slider("More skew (% on the fullest task)", 0.0, 0.0, 100.0, 5.0, form=".0f")
        outage, catch_up = (asked.outage_s / 60, asked.catch_up_s / 60) if asked else (0.0, 30.0)
        self.outage = slider("Outage (minutes)", outage, 0.0, max(_LONGEST, outage), 1.0, form=".0f")
        latest = max(4 * _LONGEST, catch_up)
        self.catch_up = slider("Caught up within (minutes)", catch_up, min(1.0, catch_up), latest, 1.0, form=".0f")
        explored_s = self.exploration.fitted_runs[-1].budget.interval_s
        longest = max(_LONGEST_INTERVAL_S, 2 * explored_s)
        self.interval = slider("Trigger interval (s)", explored_s, min(0.5, explored_s), longest, 0.5, form=".1f")
        self.interval.disabled = self.exploration.model.batch is None
        self.text = ipywidgets.HTML()
        self.answer: Answer | None = None
        self._curves: dict[tuple[int, int, float], Capacity] = {}
        self.chart = LiveChart(_unanswered())
        self.instance.observe(self.alarm.guard(lambda _: self._choose()), names=["value"])
        self.controls = (
            self.rate, self.memory, self.margin, self.risk, self.shape, self.price, self.lost, self.skew, self.outage,
            self.catch_up, self.interval,
        )  # fmt: skip
        for control in self.controls:
            moved = self.refresh
            if control in (self.shape, self.price):
                moved = self._move_worker
            elif control is self.memory:  # how many slots fit on a worker depends on their memory
                moved = self._choose
            control.observe(self.alarm.guard(lambda _, moved=moved: moved()), names=["value"])
        super().__init__(
            [
                self.rate, self.memory, self.margin, self.risk, self.instance, self.shape, self.price, self.skew,
                self.lost, self.outage, self.catch_up, self.interval,
                self.alarm.widget, self.text, *self.chart.parts, WhileDragged(self.controls), FullWidth(),
            ]
        )  # fmt: skip
        if first is not None and first.price is not None and first.price.instance.name in self._instances:
            self.instance.value = first.price.instance.name
        else:
            self.alarm.guard(self.refresh)()

    def question(self) -> Question:
        """Say what the controls ask; a risk covers what the margin is a rule of thumb for, so it replaces it."""
        risk = self.risk.value or None
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
        )

    def refresh(self) -> None:
        """Answer what the controls ask."""
        self.margin.disabled = bool(self.risk.value)
        self.catch_up.disabled = not self.outage.value
        with self._nothing_on_error():
            self.answer = answer = ask(self.exploration, self.question())
            self._tell(answer)
            self.chart.show(self._figure(answer))

    @contextmanager
    def _nothing_on_error(self) -> Iterator[None]:
        """Leave no earlier answer next to the message of an error."""
        try:
            yield
        except Exception:
            self.answer = None
            self.text.value = ""
            self.chart.show(_unanswered())
            raise

    def _capacity(self, answer: Answer) -> Capacity:
        """Give what the figure shows; its curves are kept, since only they take long."""
        model, plan, memory = self.exploration.model, answer.plan, answer.question.memory_mb
        interval_s = plan.budget.interval_s
        if model.batch is not None:
            model = model.at_interval(interval_s)
        measured = (int(model.slots_[0]), int(model.slots_[-1]))
        room = max(measured[1], 2 ** math.ceil(math.log2(answer.workers * answer.question.worker_slots)))
        if (memory, room, interval_s) not in self._curves:
            found = capacity_of(model, measured_runs(self.exploration), (), [memory], "", reach=room)
            kept = tuple(curve for curve in found.memory_curves if curve.slots in measured)
            self._curves[memory, room, interval_s] = replace(found, memory_curves=kept)
        beyond = f", {plan.extrapolation:.1f} times the most that was measured" if plan.extrapolation > 1 else ""
        finding = (
            f"{units.rate(plan.rate)} of {plan.query} take {plan.budget.slots} slots of {memory} MB on "
            f"{_workers(answer.workers)}{_money(answer, self._currency)}{beyond}"
        )
        targets = ((plan.budget.slots, plan.rate, memory),)
        return aimed_at(self._curves[memory, room, interval_s], targets, finding)

    def _figure(self, answer: Answer) -> go.Figure:
        """Draw the capacity, what it must be, that of the workers, and what is left of it when one of them is lost.

        All on one scale, the capacity at the skew that was measured: more skew takes more of that.
        """
        question = answer.question
        data = self._capacity(answer)
        figure = draw_capacity(data)
        worse = 1 + question.more_skew
        needed = question.rate * answer.plan.margin * worse
        figure.add_scatter(
            uid="what-if-needed",
            name="capacity it must have",
            x=[data.curves[0].slots[0] if data.far else 0, data.last],
            y=[needed, needed],
            mode="lines",
            line={"color": theme.BLACK, "width": 1, "dash": "dot"},
            hovertemplate="rate, margin and skew ask for %{y:.4~s} records/s<extra></extra>",
        )
        marks = (
            ("what-if-paid", "all slots of the workers", answer.workers, answer.paid_rate, theme.GREEN, "circle-open"),
            ("what-if-lost", "with one worker lost", answer.workers - 1, answer.lost_rate, theme.PURPLE, "square-open"),
        )
        for uid, name, workers, rate, colour, symbol in marks:
            figure.add_scatter(
                uid=uid,
                name=name,
                x=[workers * question.worker_slots] if rate else [],
                y=[rate * worse] if rate else [],
                mode="markers",
                marker={"color": colour, "symbol": symbol, "size": 13, "line": {"width": 2}},
                hovertemplate=f"{name}, %{{x}}: %{{y:.4~s}} records/s<extra></extra>",
            )
        if question.more_skew:
            figure.update_layout(yaxis_title_text="Capacity at the skew measured (records/s)")
        theme.room_for_legend(figure)
        return figure

    @property
    def _currency(self) -> str:
        chosen = self._instances.get(self.instance.value)
        return chosen.currency if chosen else ""

    def _tell(self, answer: Answer) -> None:
        card = answer_card(answer, self._currency)
        self.text.value = STYLE + card.heading_html() + card.table_html(download=False)

    def _choose(self) -> None:
        """Take shape and price of a worker type."""
        instance = self._instances.get(self.instance.value)
        if instance is not None:
            with self._nothing_on_error():
                self._take(instance)
        self.refresh()

    def _take(self, instance: InstanceType) -> None:
        """Set the sliders to a worker type, which raises their ends where it is larger."""
        profile = SlotProfile(self.exploration.runs[0].budget.profile.cpus, self.memory.value)
        slots = slots_per_worker(instance.vcpus, instance.memory_mb, profile)
        if slots < 1:
            raise WorkbenchError(
                f"A worker {instance.name} ({instance.vcpus:g} cores, {instance.memory_mb:,} MB) holds no slot of "
                f"{profile.cpus:g} core and {profile.memory_mb} MB apart from what its system keeps. Choose a "
                "larger type."
            )
        self._taking = True
        try:
            self.shape.max = max(self.shape.max, slots)
            self.shape.value, self.price.value = slots, instance.price_per_hour
        finally:
            self._taking = False

    def _move_worker(self) -> None:
        """Answer for a worker whose shape or price was moved by hand: it is none of the list any more."""
        if self._taking:
            return
        if self.instance.value:
            self.instance.value = ""  # which answers
        else:
            self.refresh()


def _unanswered() -> go.Figure:
    """Make a figure that states nothing, for a question without an answer."""
    return theme.blank(theme.figure("No answer"), "The message above says why.")
