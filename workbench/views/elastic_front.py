"""The first screen of a replay on a keyed operator: which paradigm to choose, every paradigm, and what to mind."""

from collections.abc import Mapping

from workbench import units
from workbench.advice import Advice
from workbench.study import KEYED, ReplayedParadigms
from workbench.views.figures import Paradigms
from workbench.views.first_screen import cares_html, header_html, table_html
from workbench.views.scaling_front import UNKNOWN, again


def front_html(replayed: ReplayedParadigms, data: Paradigms, asked: Mapping[str, object] = UNKNOWN) -> str:
    """Write the first screen."""
    trace, cluster = replayed.trace, replayed.cluster
    load = f"load of {units.rate(trace.mean_per_s)} in the mean and {units.rate(trace.peak_per_s)} at the peak"
    facts = (
        f"a {KEYED} operator of {units.seconds(replayed.operator.cpu_s)} per record",
        f"{load} over {units.seconds(trace.duration_s)}",
        f"{units.some(cluster.nodes, 'node')} of {units.some(cluster.node_cores, 'core')}",
    )
    return header_html("SIMULATED", facts) + _table(data) + cares_html(cares(replayed, data, asked))


def cares(replayed: ReplayedParadigms, data: Paradigms, asked: Mapping[str, object] = UNKNOWN) -> dict[str, Advice]:
    """Give what to mind, with what to do; `asked` are the report's parameters, which commands repeat."""
    reasons: dict[str, Advice] = {}
    best = data.best
    if best is not None and best.waiting > replayed.trace.mean_per_s:  # a second's records and more
        waiting = units.scaled(best.waiting, "records")
        reasons[f"No paradigm keeps up: with {best.paradigm} {waiting} wait at the end."] = Advice(
            "Add a node. Run", again({"query": KEYED, **asked}, workers=replayed.cluster.nodes + 1)
        )
    reasons["The load was replayed in a simulation; nothing was measured on a cluster."] = Advice(
        "Try the paradigm on the real job before you rely on it."
    )
    return reasons


def _table(data: Paradigms) -> str:
    ranked = sorted(data.runs, key=lambda run: (run is not data.best, -run.throughput_per_s))
    rows = [
        (
            f"{run.paradigm} ◀\N{NO-BREAK SPACE}best" if run is data.best else run.paradigm,
            units.padded(run.throughput_per_s, ""),
            units.seconds(run.mean_latency_s),
            units.seconds(run.p99_latency_s),
            units.scaled(run.waiting, ""),
            f"{units.size(run.migrated_bytes_per_s)}/s",
        )
        for run in ranked
    ]
    columns = ("Paradigm", "Records/s", "Latency, mean", "Latency, 99 %", "Records waiting at the end", "State moved")
    return table_html(columns, rows, chosen=0 if data.best is not None else None)
