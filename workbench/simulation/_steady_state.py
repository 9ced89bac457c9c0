"""The steady state in closed form: the highest source rate a deployment sustains, and its busyness then.

With no buffers to speak of, a wave moves at the pace of its slowest member, and the waves of one window follow each
other (`waves`). So the seconds that one source record takes add up over the waves:

    pace(wave) = max over its tasks of records x seconds, over its heads of results x seconds, over its workers of use
    rate       = 1 / sum of pace(wave)

Without windows there is one wave, and this is DS2's and BIDS2's bound (StreamBed, Equation 3), taken task by task
instead of on average: the fullest task decides. Windows add what those bounds miss: while results run on, no input is
taken, so an operator that works on bursts is idle for the rest of the time and cannot become fully busy.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from workbench.simulation.deployment import Deployment
from workbench.simulation.model import input_ratios


@dataclass(frozen=True)
class SteadyState:
    """The rate and the work that a warm, undisturbed deployment sustains."""

    rate: float  # highest sustainable rate of all sources together, records/s; inf if nothing costs time
    work_s: Mapping[str, float]  # by operator: seconds that all its tasks together work per source record
    tasks: Mapping[str, int]  # tasks by operator

    def busyness(self, rate: float | None = None) -> dict[str, float]:
        """Share of their time that the tasks of each operator work at `rate`, by default the highest sustainable."""
        rate = self.rate if rate is None else rate
        return {name: rate * work / self.tasks[name] if work > 0 else 0.0 for name, work in self.work_s.items()}


def steady_state(deployment: Deployment) -> SteadyState:
    """Solve the steady state of `deployment`: exact for ``buffer_s=0``, a lower bound of the rate otherwise."""
    model = deployment.model
    ratios = input_ratios(model)
    costs = deployment.steady_costs
    contention = deployment.contention
    work = np.zeros(deployment.size)
    seconds = 0.0
    for wave, flow in deployment.flows:
        emitted = {  # records per source record, in the long run
            head: model.source_shares[head]
            if head in model.dataflow.sources
            else ratios[head] * model.operators[head].profile.selectivity
            for head in wave.heads
        }
        records = np.array(list(emitted.values())) @ flow
        results = np.zeros(deployment.size)
        for head, volume in emitted.items():
            if head not in model.dataflow.sources:
                where = deployment.slices[head]
                results[where] = volume * deployment.shares[where]
        received, sent = records * costs.record_s, results * costs.result_s
        pace = max(received.max(initial=0.0), sent.max(initial=0.0))
        if contention is not None:
            pace = max(pace, contention.seconds(records, results).max())
        seconds += float(pace)
        work += received + sent
    return SteadyState(
        1.0 / seconds if seconds > 0 else math.inf,
        {name: float(work[where].sum()) for name, where in deployment.slices.items()},
        deployment.tasks,
    )
