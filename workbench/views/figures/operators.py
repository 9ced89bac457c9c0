"""The operators at the maximum rate: how busy each is, and what it could do alone."""

from collections.abc import Sequence

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench import units
from workbench.metrics import Observation, OperatorMetrics
from workbench.views import theme
from workbench.views.figures import traces


def _own(observation: Observation) -> list[OperatorMetrics]:
    return [one for one in observation.operators if one.kind != "source"]  # the source, which is shown apart


def _slot_time(one: OperatorMetrics) -> float:
    return one.busyness * one.tasks


def busiest_operator(observation: Observation) -> OperatorMetrics | None:
    """Find the operator with the most slot time; None where only the source was observed."""
    return max(_own(observation), key=_slot_time, default=None)


def operators(query: str, observation: Observation) -> str:
    """Name the operator that takes most of the slot time at the maximum."""
    busiest = busiest_operator(observation)
    if busiest is None:
        return f"{query} has no operators apart from its source"
    total = sum(map(_slot_time, _own(observation)))
    part = units.share(_slot_time(busiest) / total) if total else "none"
    return f"Operator '{busiest.operator}' takes {part} of the slot time that {query} uses at its maximum rate"


def draw_operators(observation: Observation, finding: str) -> go.Figure:
    """Draw three bars per operator, most upstream first: busyness, true processing rate, CPU."""
    own, elapsed = _own(observation), observation.elapsed_s
    shows = "Bars per operator: busyness, true processing rate, CPU used."
    figure = theme.figure(finding, 170 + 42 * len(own), shows)
    if not own:
        return theme.not_enough(figure, "no operator was observed.")
    panels = make_subplots(cols=3, shared_yaxes=True, horizontal_spacing=0.045, figure=figure)
    rates = [metrics.true_processing_rate for metrics in own]
    words = ["no records" if rate is None else units.scaled(rate, "") for rate in rates]
    busy = [100 * metrics.busyness for metrics in own]
    cores = [metrics.cpu_s / elapsed if elapsed > 0 else 0.0 for metrics in own]  # CPU seconds per second
    columns: tuple[tuple[str, str, Sequence[float | None], list[str]], ...] = (
        ("Busyness of its tasks (%)", ".3~f", busy, [units.share(metrics.busyness) for metrics in own]),
        ("True rate (records/s per task)", "~s", rates, words),
        ("CPU used (cores)", ".3~f", cores, [units.number(one, 2) for one in cores]),
    )
    labels = [theme.plain(f"{metrics.operator} ({units.some(metrics.tasks, 'task')})") for metrics in own]
    for column, (title, ticks, values, texts) in enumerate(columns, start=1):
        look = {"marker": {"color": theme.BLUE}, "hover": "%{y}: %{x:.4~s}", "row": 1, "col": column}
        traces.bars(panels, f"operators-{column}", title, values, texts, y=labels, **look)
        top = max((value for value in values if value is not None), default=1.0) or 1.0
        axis = {"title_text": title, "range": [0, 1.28 * top], "tickformat": ticks, "nticks": 5}
        panels.update_xaxes(**axis, row=1, col=column)
    panels.update_yaxes(autorange="reversed", ticks="", showgrid=False)
    panels.update_layout(bargap=0.35, margin_t=50)
    return panels
