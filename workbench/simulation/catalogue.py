"""The queries that can be simulated by name: StreamBed's five, Nexmark's q3, and CAPSys's six."""

from functools import lru_cache

from workbench.errors import WorkbenchError
from workbench.simulation.capsys import CAPSYS_QUERIES, capsys_query
from workbench.simulation.model import OperatorModel, QueryModel, StateModel
from workbench.simulation.presets import AUCTIONS, FILTER_S, PERSONS, PRESETS, SINK, costed, preset, query_of

SIMULATED: tuple[str, ...] = (*PRESETS, "q3", *CAPSYS_QUERIES)
"""Names that `simulated_query` knows."""

_STATE_MB = 8.0


def simulated_query(name: str) -> QueryModel:
    """Return the model of a query by its name, one of `SIMULATED`."""
    if name in PRESETS:
        return preset(name)
    if name in CAPSYS_QUERIES:
        return capsys_query(name).model
    if name == "q3":
        return _q3()
    raise WorkbenchError(f"There is no simulated query {name!r}; use one of {', '.join(SIMULATED)}.")


@lru_cache(maxsize=1)
def _q3() -> QueryModel:
    """Return Nexmark's q3, an incremental join of persons and auctions.

    The cost of a joined record is the one that CAPSys profiled for the same join (Q4-join). The state of q3 grows
    without bound, so every rate belongs to a state size: here 8 MB, which fits memory, as in Justin's experiments.
    """
    join = capsys_query("Q4-join").profiles["incremental join"]
    return query_of(
        "q3",
        ("source, filter persons", "source, filter auctions", "filter persons, join", "filter auctions, join, sink"),
        {
            "filter persons": costed("filter", FILTER_S, PERSONS),
            "filter auctions": costed("filter", FILTER_S, AUCTIONS),
            "join": ("join", OperatorModel(join, state=StateModel(_STATE_MB))),
            "sink": SINK,
        },
    )
