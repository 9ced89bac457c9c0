"""DS2: the parallelism every operator needs, in one pass over the dataflow.

V. Kalavri et al., "Three steps is all you need: fast, accurate, automatic scaling decisions for distributed streaming
dataflows", OSDI 2018; the scaling controller of CAPSys and the basis of Justin.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from workbench.checks import SLACK, not_negative, require
from workbench.dataflow import Dataflow
from workbench.errors import WorkbenchError

Counters = tuple[float, float, float]  # records processed, records pushed, useful seconds of one instance


@dataclass(frozen=True)
class Ds2Decision:
    """What DS2 derives from the counters, and what it proposes, by operator."""

    # what the instances together would process and push if they were useful all the time, records/s; without sources
    true_rates: Mapping[str, tuple[float, float]]
    optimal_output: Mapping[str, float]  # records/s if all keep up, with sources
    parallelism: Mapping[str, int]  # tasks, without sources, which keep theirs
    selectivity: Mapping[str, float] = field(default_factory=dict)  # records out per record in
    uninformed: tuple[str, ...] = ()  # without informative counters: they keep their tasks and last selectivity


def ds2(
    dataflow: Dataflow,
    counters: Mapping[str, Sequence[Counters]],
    source_rates: Mapping[str, float],
    *,
    last_selectivity: Mapping[str, float] = MappingProxyType({}),
) -> Ds2Decision:
    """Propose the least parallelism at which every operator keeps up with the source rates.

    An operator that does not keep up hides the load of those after it, so the pass follows the rates that operators
    push when they keep up. Sources send their full output to every consumer. An instance without useful seconds or
    input has no true rate; the other instances stand for it. If none has, the operator keeps its tasks, passes records
    on with `last_selectivity`, that of an earlier decision (1 if unknown), and is listed in ``Ds2Decision.uninformed``.

    The `counters` are those of one window and each instance, without sources; `source_rates` are targets, records/s.
    """
    _check(dataflow, counters, source_rates)
    true_rates: dict[str, tuple[float, float]] = {}
    output: dict[str, float] = {}
    parallelism: dict[str, int] = {}
    selectivity: dict[str, float] = {}
    uninformed = []
    for name in dataflow.topological_order():
        if name in source_rates:
            output[name] = source_rates[name]
            continue
        need = sum(output[edge.upstream] for edge in dataflow.feeding.get(name, ()))
        informative = [instance for instance in counters[name] if instance[0] > 0 and instance[2] > 0]
        processing = sum(processed / useful for processed, _, useful in informative)
        pushing = sum(pushed / useful for _, pushed, useful in informative)
        true_rates[name] = (processing, pushing)
        if informative:
            selectivity[name] = pushing / processing
            tasks = need * len(informative) / processing
            parallelism[name] = max(1, math.ceil(tasks - SLACK * max(1.0, tasks)))  # but for errors of rounding
        else:
            selectivity[name] = last_selectivity.get(name, 1.0)
            parallelism[name] = len(counters[name])
            uninformed.append(name)
        output[name] = need * selectivity[name]
    return Ds2Decision(true_rates, output, parallelism, selectivity, tuple(uninformed))


def _check(dataflow: Dataflow, counters: Mapping[str, Sequence[Counters]], source_rates: Mapping[str, float]) -> None:
    scaled = [operator.name for operator in dataflow.operators if operator.kind != "source"]
    _same_names("source_rates", source_rates, dataflow.sources, "source", dataflow.name)
    _same_names("counters", counters, scaled, "operator that is not a source", dataflow.name)
    for source, rate in source_rates.items():
        not_negative(f"The rate of source {source!r}", rate)
    for name in scaled:
        require(
            name in dataflow.feeding,
            f"Operator {name!r} has no upstream and is not of kind 'source', so its rate is unknown; "
            "add the edge that feeds it, or make it a source.",
        )
        require(len(counters[name]) > 0, f"Operator {name!r} has no counters; give those of each of its instances.")
        for index, instance in enumerate(counters[name]):
            if len(instance) != 3 or not all(0 <= value < math.inf for value in instance):
                raise WorkbenchError(
                    f"The counters of instance {index} of operator {name!r} are {tuple(instance)!r}; they must be "
                    "(processed, pushed, useful seconds), finite and at least 0."
                )


def _same_names(what: str, got: Mapping[str, object], wanted: Sequence[str], kind: str, dataflow: str) -> None:
    known = set(wanted)
    missing = [name for name in wanted if name not in got]
    unknown = [name for name in got if name not in known]
    require(
        not missing,
        f"{what} lacks {', '.join(map(repr, missing))} of dataflow {dataflow!r}; give one entry for every {kind}.",
    )
    require(
        not unknown,
        f"{what} names {', '.join(map(repr, unknown))}, no {kind} of dataflow {dataflow!r}; "
        f"there {'is' if len(wanted) == 1 else 'are'} {', '.join(wanted) or 'none'}.",
    )
