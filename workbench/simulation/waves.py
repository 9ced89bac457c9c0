"""Waves: which records flow at the same time.

Records that a source emits run through the operators until they reach a windowed one, which holds its results back.
When the window ends, the windowed operators emit, and their results run on to the next windowed ones. All records that
flow at the same time form a *wave*. A windowed operator takes no input while it emits, and it cannot emit while the
next ones take none; so the waves of one window follow each other, downstream first, the sources last. Windowed
operators that have the same number of windowed operators behind them emit in one wave.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from workbench.simulation.model import QueryModel


@dataclass(frozen=True)
class Wave:
    """Records that flow at the same time: `inflow[head][operator]` enter an operator per record a head emits.

    The heads are windowed operators, or the sources.
    """

    heads: tuple[str, ...]
    inflow: Mapping[str, Mapping[str, float]]


def input_ratios(model: QueryModel) -> dict[str, float]:
    """Count the records into each operator per source record, in the long run: `r` of StreamBed's Equation 3."""
    return _spread(model, model.source_shares, stop_at_windows=False)


def waves(model: QueryModel) -> tuple[Wave, ...]:
    """All waves of a query, downstream first, the sources' last."""
    windowed = [name for name in model.modelled if model.operators[name].windowed]
    inflow = {name: _spread(model, {name: 1.0}) for name in (*windowed, *model.dataflow.sources)}
    height: dict[str, int] = {}
    for name in reversed(windowed):
        behind = [height[other] for other in windowed if other in height and inflow[name].get(other, 0.0) > 0]
        height[name] = 1 + max(behind, default=-1)
    levels = [
        [name for name in windowed if height[name] == level] for level in range(max(height.values(), default=-1) + 1)
    ]
    return tuple(
        Wave(tuple(heads), {head: inflow[head] for head in heads}) for heads in (*levels, model.dataflow.sources)
    )


def _spread(model: QueryModel, emitted: Mapping[str, float], *, stop_at_windows: bool = True) -> dict[str, float]:
    """Count the records into each operator when those in `emitted` emit as given; edges carry all of an output."""
    inputs: dict[str, float] = {}
    outputs: dict[str, float] = {}
    sources = model.dataflow.sources
    for name in model.dataflow.topological_order():
        behaviour = model.operators.get(name)
        received = sum(outputs.get(edge.upstream, 0.0) for edge in model.dataflow.feeding.get(name, ()))
        if name in emitted and name in sources:  # a modelled source works on what it emits
            received = emitted[name]
        if name in emitted and name not in sources:
            outputs[name] = emitted[name]
            continue
        if behaviour is None:
            outputs[name] = received
            continue
        inputs[name] = received
        held_back = stop_at_windows and behaviour.windowed
        outputs[name] = 0.0 if held_back else received * behaviour.profile.selectivity
    return inputs
