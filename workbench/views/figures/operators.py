"""The operators at the maximum rate: how busy each is, and what it could do alone."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench import units
from workbench.metrics import Observation, OperatorMetrics
from workbench.views import theme
from workbench.views.figures import traces


@dataclass(frozen=True)
class Operators:
    """What the figure shows, most upstream operator first; `cores` is each one's CPU seconds per second."""

    finding: str
    metrics: tuple[OperatorMetrics, ...]
    cores: tuple[float, ...]

    @property
    def busiest(self) -> OperatorMetrics | None:
        """The operator with the most slot time."""
        return max(self.metrics, key=lambda operator: operator.busyness * operator.tasks, default=None)

    @property
    def labels(self) -> tuple[str, ...]:
        """Operator names with their task counts."""
        return tuple(f"{m.operator} ({units.some(m.tasks, 'task')})" for m in self.metrics)


def operators(query: str, observation: Observation) -> Operators:
    """Collect the operators of the observation at the maximum; the source is shown apart."""
    metrics = tuple(operator for operator in observation.operators if operator.kind != "source")
    elapsed = observation.elapsed_s
    cores = tuple(operator.cpu_s / elapsed if elapsed > 0 else 0.0 for operator in metrics)
    data = Operators(f"{query} has no operators apart from its source", metrics, cores)
    busiest = data.busiest
    if busiest is None:
        return data
    total = sum(operator.busyness * operator.tasks for operator in metrics)
    part = units.share(busiest.busyness * busiest.tasks / total) if total else "none"
    finding = f"Operator '{busiest.operator}' takes {part} of the slot time that {query} uses at its maximum rate"
    return replace(data, finding=finding)


def draw_operators(data: Operators) -> go.Figure:
    """Draw three bars per operator: busyness, true processing rate, CPU."""
    shows = "Bars per operator: busyness, true processing rate, CPU used."
    figure = theme.figure(data.finding, 170 + 42 * len(data.metrics), shows)
    if not data.metrics:
        return theme.not_enough(figure, "no operator was observed.")
    panels = make_subplots(cols=3, shared_yaxes=True, horizontal_spacing=0.045, figure=figure)
    rates = [metrics.true_processing_rate for metrics in data.metrics]
    words = ["no records" if rate is None else units.scaled(rate, "") for rate in rates]
    busy, cores = [100 * metrics.busyness for metrics in data.metrics], [units.number(one, 2) for one in data.cores]
    columns: tuple[tuple[str, str, Sequence[float | None], list[str]], ...] = (
        ("Busyness of its tasks (%)", ".3~f", busy, [units.share(metrics.busyness) for metrics in data.metrics]),
        ("True rate (records/s per task)", "~s", rates, words),
        ("CPU used (cores)", ".3~f", data.cores, cores),
    )
    labels = [theme.plain(label) for label in data.labels]
    for column, (title, ticks, values, texts) in enumerate(columns, start=1):
        look = {"marker": {"color": theme.BLUE}, "hover": "%{y}: %{x:.4~s}", "row": 1, "col": column}
        traces.bars(panels, f"operators-{column}", title, values, texts, y=labels, **look)
        top = max((value for value in values if value is not None), default=1.0) or 1.0
        axis = {"title_text": title, "range": [0, 1.28 * top], "tickformat": ticks, "nticks": 5}
        panels.update_xaxes(**axis, row=1, col=column)
    panels.update_yaxes(autorange="reversed", ticks="", showgrid=False)
    panels.update_layout(bargap=0.35, margin_t=50)
    return panels
