"""Rates that reach the operators of a dataflow."""

import math
from collections.abc import Mapping

from workbench.dataflow import Dataflow, OperatorProfile
from workbench.errors import WorkbenchError


def source_rates(dataflow: Dataflow, rate: float | Mapping[str, float]) -> Mapping[str, float]:
    """Records/s of every source by name, where one number may stand for that of the only source."""
    sources = dataflow.sources
    if not isinstance(rate, Mapping):
        if len(sources) != 1:
            raise WorkbenchError(
                f"Dataflow {dataflow.name!r} has {len(sources)} sources ({', '.join(sources)}), but the rate is one "
                "number; give the rate of every source by name."
            )
        rate = {sources[0]: rate}
    if set(rate) != set(sources):
        raise WorkbenchError(f"Rates are given for {', '.join(rate)}; the sources are {', '.join(sources)}.")
    for name, value in rate.items():
        if not (math.isfinite(value) and value >= 0):
            raise WorkbenchError(f"The rate of source {name!r} is {value!r}; give finite records/s from 0 on.")
    return rate


def arriving_rates(
    dataflow: Dataflow, profiles: Mapping[str, OperatorProfile], rates: Mapping[str, float]
) -> dict[str, float]:
    """Input rate of every operator; a consumer gets the full output of every operator that feeds it."""
    arriving = {operator.name: rates.get(operator.name, 0.0) for operator in dataflow.operators}
    for name in dataflow.topological_order():
        for edge in dataflow.feeding.get(name, ()):
            selectivity = profiles[edge.upstream].selectivity if edge.upstream in profiles else 1.0
            arriving[name] += arriving[edge.upstream] * selectivity
    return arriving
