"""What-if sliders: move the circumstances, and the model answers at once."""

import math
from collections.abc import Sequence
from dataclasses import replace

import ipywidgets
import plotly.graph_objects as go

from workbench.capacity.executor import slots_per_worker
from workbench.capacity.explorer import Exploration
from workbench.capacity.model import MARGIN
from workbench.capacity.prices import InstanceType
from workbench.dataflow import SlotProfile
from workbench.errors import WorkbenchError
from workbench.study.planning import Planned
from workbench.study.what_if import Answer, Question, ask, common_range
from workbench.views import theme, units
from workbench.views.cards import STYLE, Card, Column, Table
from workbench.views.figures.capacity import Capacity, aimed_at, capacity_of, draw_capacity
from workbench.views.widgets.alarm import Alarm
from workbench.views.widgets.controls import choice, choice_slider, slider, tick, whole_slider
from workbench.views.widgets.full_width import FullWidth
from workbench.views.widgets.live_chart import LiveChart

_RISKS = (("by the margin alone", 0.0), ("20 %", 0.2), ("10 %", 0.1), ("5 %", 0.05), ("1 %", 0.01))
_MOST_SHAPE = 64
_MOST_PRICE = 5.0


def answer_card(answer: Answer, currency: str = "") -> Card:
    """Put an answer into words and rows."""
    question, plan, budget = answer.question, answer.plan, answer.plan.budget
    lost = (
        f"With one worker lost {units.rate(answer.lost_rate)} are left, "
        + ("which still carries it" if answer.survives else "too little to carry it")
        if answer.lost_rate
        else "With one worker lost nothing that was modelled is left"
    )
    beyond = (
        f" That is {plan.extrapolation:.1f} times the most slots measured: measure larger before you rely on it."
        if plan.extrapolation > 1
        else ""
    )
    on = f"{_workers(answer.workers)}{_money(answer, currency)}"
    finding = f"{units.rate(plan.rate)} take {budget.slots} slots on {on}. {lost}.{beyond}"
    rows: list[tuple[str, str]] = [
        ("Slots", f"{budget.slots} of {budget.profile.cpus:g} core and {budget.profile.memory_mb} MB"),
        ("Workers", f"{answer.workers} of {question.worker_slots} slots" + (", one spare" * question.one_lost)),
        ("Capacity", f"{units.rate(plan.expected_rate)} (90 %: {units.rate(plan.low)} to {units.rate(plan.high)})"),
        ("With one worker lost", units.rate(answer.lost_rate)),
    ]
    if question.worker_price:
        money = f"{units.number(answer.per_hour)} {currency} per hour, {units.number(answer.per_month)} per month"
        rows.append(("Cost", money))
    return Card(
        "what-if",
        f"What does {plan.query} take?",
        finding,
        table=Table("The least deployment", (Column("What"), Column("Value")), tuple(rows), opened=True),
    )


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
        A planned study, or an exploration.
    instances
        Price list; its types can be chosen, which sets the worker's shape and price.
    """

    def __init__(self, explored: Planned | Exploration, instances: Sequence[InstanceType] = ()) -> None:
        self.exploration = explored.exploration if isinstance(explored, Planned) else explored
        targets = explored.study.targets if isinstance(explored, Planned) else ()
        self.alarm = Alarm()
        self._instances = {instance.name: instance for instance in instances}
        low, high = common_range(self.exploration, targets)
        memories = [int(memory) for memory in self.exploration.model.memory_]
        self.rate = ipywidgets.FloatLogSlider(
            description="Target rate (records/s)",
            value=float(targets[0] if targets else max(self.exploration.rates)),
            min=math.log10(low),
            max=math.log10(high),
            step=0.01,
            readout_format=",.0f",
            continuous_update=False,
            style={"description_width": "17rem"},
            layout={"width": "100%", "max_width": "46rem"},
        )
        self.memory = choice_slider(
            "Memory per slot", [(f"{memory} MB", memory) for memory in memories], memories[len(memories) // 2]
        )
        self.margin = slider("Margin (capacity / rate)", MARGIN, 1.0, 2.0, 0.05)
        self.risk = choice_slider("Risk of falling short", _RISKS, 0.0)
        self.instance = choice("Worker type", [("my own", ""), *((name, name) for name in self._instances)], "")
        self.shape = whole_slider("Slots per worker", 4, 1, _MOST_SHAPE)
        self.price = slider("Price per worker and hour", 0.2, 0.0, _MOST_PRICE, 0.005, form=".3f")
        self.lost = tick("must carry the rate with one worker lost")
        self.skew = slider("More skew (% on the fullest task)", 0.0, 0.0, 100.0, 5.0, form=".0f")
        self.text = ipywidgets.HTML()
        self.answer = self._first_answer()
        self._curves: dict[tuple[int, int], Capacity] = {}
        self.chart = LiveChart(self._figure(self.answer))
        self.controls = (self.rate, self.memory, self.margin, self.risk, self.shape, self.price, self.lost, self.skew)
        for control in (self.instance, self.memory):  # how many slots fit on a worker depends on their memory
            control.observe(self.alarm.guard(lambda _: self._choose()), names=["value"])
        for control in self.controls:
            if control is not self.memory:
                control.observe(self.alarm.guard(lambda _: self.refresh()), names=["value"])
        super().__init__(
            [
                self.rate, self.memory, self.margin, self.risk, self.instance, self.shape, self.price, self.skew,
                self.lost, self.alarm.widget, self.text, self.chart.widget, FullWidth(),
            ]
        )  # fmt: skip
        if self.answer is not None:
            self._tell(self.answer)

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
        )

    def refresh(self) -> None:
        """Answer what the controls ask."""
        self.answer = None
        self.text.value = ""
        self.margin.disabled = bool(self.risk.value)
        self.answer = ask(self.exploration, self.question())
        self._tell(self.answer)
        self.chart.show(self._figure(self.answer))

    def _first_answer(self) -> Answer | None:
        """Answer what the controls ask at first; what cannot be answered shows as a card, as it does later."""
        try:
            return ask(self.exploration, self.question())
        except WorkbenchError as error:
            self.alarm.ring(type(error).__name__, str(error))
            return None

    def _capacity(self, memory: int, slots: int) -> Capacity:
        """Give the model's curves with room for so many slots; they are kept, since only they take long."""
        model = self.exploration.model
        measured = (int(model.slots_[0]), int(model.slots_[-1]))
        room = max(measured[1], 2 ** math.ceil(math.log2(slots)))
        if (memory, room) not in self._curves:
            runs = [
                (run.budget.profile.memory_mb, run.budget.slots, run.estimate.rate, row in self.exploration.fitted)
                for row, run in enumerate(self.exploration.measurements)
                if run.estimate.rate
            ]
            finding = f"Capacity of {self.exploration.measurements[0].query} by the model, as far as it was measured"
            found = capacity_of(model, runs, (), [memory], finding, reach=room)
            kept = tuple(curve for curve in found.memory_curves if curve.slots in measured)
            self._curves[memory, room] = replace(found, memory_curves=kept)
        return self._curves[memory, room]

    def _figure(self, answer: Answer | None) -> go.Figure:
        """Draw the capacity, what it must be, and what is left of it when one worker is lost."""
        if answer is None:
            return draw_capacity(self._capacity(self.memory.value, 1))
        question, plan = answer.question, answer.plan
        beyond = f", {plan.extrapolation:.1f} times the most that was measured" if plan.extrapolation > 1 else ""
        finding = (
            f"{units.rate(plan.rate)} of {plan.query} take {plan.budget.slots} slots of {question.memory_mb} MB on "
            f"{_workers(answer.workers)}{_money(answer, self._currency)}{beyond}"
        )
        targets = ((plan.budget.slots, plan.rate, question.memory_mb),)
        data = aimed_at(self._capacity(question.memory_mb, plan.budget.slots), targets, finding)
        figure = draw_capacity(data)
        needed = question.rate * question.margin * (1 + question.more_skew)
        last = max(curve.slots[-1] for curve in data.curves)
        figure.add_scatter(
            uid="what-if-needed",
            name="capacity it must have",
            x=[0, last],
            y=[needed, needed],
            mode="lines",
            line={"color": theme.BLACK, "width": 1, "dash": "dot"},
            hovertemplate="rate, margin and skew ask for %{y:.4~s} records/s<extra></extra>",
        )
        figure.add_scatter(
            uid="what-if-lost",
            name="with one worker lost",
            x=[(answer.workers - 1) * question.worker_slots],
            y=[answer.lost_rate],
            mode="markers",
            marker={"color": theme.PURPLE, "symbol": "square-open", "size": 12, "line": {"width": 2}},
            hovertemplate="%{x} slots are left: %{y:.4~s} records/s<extra></extra>",
        )
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
        """Take shape and price of the chosen worker type, and answer anew."""
        instance = self._instances.get(self.instance.value)
        if instance is not None:
            profile = SlotProfile(self.exploration.measurements[0].budget.profile.cpus, self.memory.value)
            slots = slots_per_worker(instance.vcpus, instance.memory_mb, profile)
            if slots < 1:
                self.answer, self.text.value = None, ""
                raise WorkbenchError(
                    f"A worker {instance.name} ({instance.vcpus:g} cores, {instance.memory_mb:,} MB) holds no slot of "
                    f"{profile.cpus:g} core and {profile.memory_mb} MB besides what its system keeps. Choose a larger "
                    "one."
                )
            self.shape.max, self.shape.value = max(_MOST_SHAPE, slots), slots
            self.price.max, self.price.value = max(_MOST_PRICE, instance.price_per_hour), instance.price_per_hour
        self.refresh()
