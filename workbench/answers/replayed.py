"""What a replay says: which policy or paradigm to choose, the figures of each, cautions, and reasons."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from workbench import units
from workbench.advice import Advice
from workbench.answers.answer import COUNT, NUMBER, RECORDS, SECONDS, SIZE, Answer, Fact, Unit
from workbench.scaling import Timeline
from workbench.simulation import RateTrace
from workbench.spelling import spelled_report
from workbench.study import KEEPS_UP, KEYED, Policies, Replayed, ReplayedParadigms, compare_policies
from workbench.views import figures
from workbench.views.cards import Card, Table, headings, tabulate, times
from workbench.views.findings import QUIET, decided

_MOSTLY = 0.95  # share of the time at the target
_AS_IT_IS = ("static", "flink")  # no setting changes these policies
_SLOWLY = {"scale_down_interval_s": 3600.0}
_PRICES = Path(__file__).resolve().parents[2] / "data" / "instances.csv"  # in this package
_ALL_POINTS = 3 * figures.POINTS  # points of all timelines of a page together, so that it is small enough to send
_SIMULATED = "The load was replayed in a simulation; nothing was measured on a cluster."
_LATENCY = "Latency is over all records: half of them, or 99 %, waited at most that long."
_WAITING = 'No record is lost: late records wait at the source; "left waiting" counts those still there at the end.'
_KEPT = Unit(lambda share: units.share(round(share, 3)), "%", 100.0)
_MOVED = Unit(lambda value: f"{units.size(value)}/s", "bytes/s")

Parameters = Mapping[str, object]
"""Parameters of a report that differ from its defaults, which the commands of advice repeat; unknown ones get a
placeholder."""


def answer(found: Replayed | ReplayedParadigms, asked: Parameters | None = None) -> Answer:
    """Answer which policy, or paradigm, to choose for the replayed load; without `asked`, advice has no commands."""
    return _of_paradigms(found, asked) if isinstance(found, ReplayedParadigms) else _of_policies(found, asked)


def over_restarts(restarts: Mapping[float, Replayed]) -> Answer:
    """Answer what longer restarts cost, from the same replay by restart time in seconds; see `replay_restarts`."""
    first, last = (restarts[seconds] for seconds in (min(restarts), max(restarts)))
    kept = "; ".join(
        f"{name} keeps up {_KEPT.write(first.rows[name]['at_target'])} of the time with restarts of "
        f"{units.seconds(min(restarts))} and {_KEPT.write(last.rows[name]['at_target'])} with "
        f"{units.seconds(max(restarts))}"
        for name, line in last.timelines.items()
        if line.reconfigurations
    )
    return Answer(
        "restarts",
        "What does a longer restart cost?",
        f"{kept or 'No policy changes anything, so restarts take no time'}.",
        "SIMULATED",
        (last.query,),
        rows=tuple(
            (Fact(seconds, "restart_s", "Restart", SECONDS), *_policy(name, found, data))
            for seconds, found in restarts.items()
            for data in (compare_policies(found.timelines),)
            for name in found.timelines
        ),
        caption="By restart time",
        listed=False,
    )


def held_back(found: Replayed) -> dict[str, Advice]:
    """Return the caution that the state's partitions keep every policy below the peak; empty if they do not."""
    if not found.held:
        return {}
    partitions = units.some(found.partitions or 0, "partition")
    reason = f"The state has {partitions}, fixed by its checkpoint, so more slots carry no more and no policy adds any."
    peak = units.rate(found.trace.peak_per_s)
    return {reason: Advice(f"Plan for the peak of {peak}, then replay that plan.")}


def cautions(data: Policies, held: Mapping[str, Advice], asked: Parameters | None, slots: int) -> dict[str, Advice]:
    """Return what to mind, with remedies; what holds all policies back comes first and rules out more slots."""
    reasons, rows = dict(held), data.rows
    if data.leading is not None and data.best is None and not held:
        kept = units.share(rows[data.leading]["at_target"])
        reasons[f"No policy keeps up all the time; {data.leading} does {kept} of it."] = _keep_up(data, asked, slots)
    dearest = math.inf if data.leading is None else rows[data.leading][data.money]
    falling = [name for name, row in rows.items() if row["at_target"] < _MOSTLY and row[data.money] < dearest]
    if falling:
        verb = "falls" if len(falling) == 1 else "fall"
        listed = " and ".join(", ".join(falling).rsplit(", ", 1))
        reasons[f"{listed} {verb} behind more than 5 % of the time."] = Advice(
            "See what each does before you choose it for its price."
        )
    if not data.price_unit:
        own = {"prices": asked["prices"], "instance": "TYPE"} if asked and "prices" in asked else {}
        priced = {"prices": str(_PRICES), "instance": "c6i.xlarge"} | own
        reasons["No worker is priced, so cost is in core-hours."] = _run(
            "Choose a type from a price list (--prices, --instance).", asked, **priced
        )
    return reasons | {_SIMULATED: Advice("Try the policy on the real job before you rely on it.")}


def _run(words: str, asked: Parameters | None, **changes: object) -> Advice:
    """Advise what `words` say, and if a report was asked for, to run it with `changes` to its parameters."""
    if asked is None:
        return Advice(words)
    return Advice(f"{words} Run", spelled_report("scaling", {"rates": "LOAD.csv", **asked, **changes}))


def _keep_up(data: Policies, asked: Parameters | None, slots: int) -> Advice:
    """Advise more slots: at the beginning they help only static, as the other policies soon change their number."""
    given = asked or {}
    if "static" in data.rows:
        if str(given.get("query", "")).endswith(".json"):
            return Advice("Plan for a higher rate, then replay that plan; or compare other policies.")
        return _run("Begin with more slots, or compare other policies.", asked, slots=2 * slots)
    static = _run("Compare with static, which keeps all slots.", asked, policies=[*data.rows, "static"])
    if all(name in _AS_IT_IS or ":" in name for name in data.rows):
        return static
    settings = given.get("settings", {})
    slowed = {**settings, **_SLOWLY} if isinstance(settings, Mapping) else _SLOWLY
    return replace(static, otherwise=_run("Or slow the scale-down.", asked, settings=slowed))


def _of_policies(found: Replayed, asked: Parameters | None) -> Answer:
    data, trace = compare_policies(found.timelines, found.price_unit), found.trace
    slots = sum(found.tasks.values())
    known = None if asked is None else {"query": found.query, **asked}
    return Answer(
        "policies",
        f"Which policy keeps up with the load of {found.query}, and at what cost?",
        f"{data.finding}.",
        "SIMULATED",
        (found.query, f"mean load {_load_words(trace)}", f"from {units.some(slots, 'slot')}"),
        (_LATENCY, _WAITING),
        rows=tuple(_policy(name, found, data) for name in data.rows),
        caption="Policies on the same load",
        chosen=0 if data.best is not None else None,
        cautions={**found.doubts, **cautions(data, held_back(found), known, slots)},
        draw=partial(figures.draw_policies, data),
        evidence=(partial(_timelines, found, data), partial(_load, found)),
    )


def _load_words(trace: RateTrace) -> str:
    return f"{units.rate(trace.mean_per_s)}, peak {units.rate(trace.peak_per_s)} over {units.seconds(trace.duration_s)}"


def _policy(name: str, found: Replayed, data: Policies) -> tuple[Fact, ...]:
    row = dict(found.rows[name])
    kept = row.pop("at_target")
    style = "safe" if kept >= KEEPS_UP else "risky" if kept >= _MOSTLY else "unsure"
    priced = bool(data.price_unit)
    cost, hours, gb_hours = "cost_with_driver", "core_hours_with_driver", "gb_hours_with_driver"
    paid = (Fact(row.pop(cost), cost, f"{data.price_unit}, driver included", NUMBER),) if priced else ()
    shown = (
        Fact(name, name="Policy"),
        Fact(kept, "at_target", "Keeps up", _KEPT, verdict=style),
        *paid,
        Fact(row.pop(hours), hours, "Core-hours, driver included", NUMBER, "data" if priced else "always"),
        Fact(row.pop(gb_hours), gb_hours, "GB-hours, driver included", NUMBER, "data" if priced else "wide"),
        Fact(row.pop("latency_p50_s"), "latency_p50_s", "Latency, median", SECONDS, "wide"),
        Fact(row.pop("latency_p99_s"), "latency_p99_s", "Latency, 99 %", SECONDS),
        Fact(row.pop("latency_mean_s"), "latency_mean_s", "Latency, mean", SECONDS, "data"),
        Fact(float(found.timelines[name].backlog[-1]), "", "Left waiting", RECORDS),
        Fact(row.pop("reconfigurations"), "reconfigurations", "Changes", COUNT, "wide"),
        Fact(row.pop("moved_bytes"), "moved_bytes", "State moved", SIZE, "data"),
    )
    return (*shown, *(Fact(value, key) for key, value in row.items()))


def _timelines(found: Replayed, data: Policies) -> Iterable[Card]:
    for name in data.rows:
        line = found.timelines[name]
        drawn = figures.timeline(line, name, points=min(figures.POINTS, _ALL_POINTS // len(found.timelines)))
        table = tabulate(
            f"Reconfigurations by {name}",
            line.reconfigurations,
            {
                "At (s)": lambda change: change.at_s,
                "Downtime (s)": lambda change: change.downtime_s,
                "State moved (MiB)": lambda change: change.moved_bytes * SIZE.factor,
                "Tasks after it": lambda change: ", ".join(f"{one} {count}" for one, count in change.tasks.items()),
            },
        )
        shown = table if table.rows else None
        figure = figures.draw_timeline(drawn)
        yield Card(f"timeline-{name}", f"What does {name} do?", f"{drawn.finding}.", figure, shown)
        yield from _reasons(name, line)


def _reasons(policy: str, line: Timeline) -> Iterable[Card]:
    """Explain Justin's decisions on operators with state; yields nothing where a policy gave no reasons."""
    found = [
        (change.at_s, operator, one)
        for change in line.reconfigurations
        for operator, one in change.reasons.items()
        if one.case not in QUIET
    ]
    if not found:
        return
    raised = sum(one.state.scaled_up for _, _, one in found)
    at_s, operator, last = found[-1]
    finding = (
        f"{units.some(len(found), 'decision')} on operators with state: {units.count(raised)} for more memory, "
        f"{units.count(len(found) - raised)} for other tasks. The last, at {units.seconds(at_s)}, gives {operator} "
        f"{decided(last)}: {last.reason}."
    )
    table = tabulate(
        "Decisions",
        found,
        {
            "At (s)": lambda one: one[0],
            "Operator": lambda one: one[1],
            "Tasks": lambda one: one[2].previous.tasks,
            "Cache hit rate (%)": lambda one: times(100, one[2].seen.hit_rate if one[2].seen else None),
            "State latency (ms)": lambda one: times(1e3, one[2].seen.latency_s if one[2].seen else None),
            "DS2 proposes (tasks)": lambda one: one[2].proposed,
            "Justin decides": lambda one: decided(one[2]),
            "Because": lambda one: "; ".join((*one[2].tests, one[2].reason)),
        },
    )
    yield Card(f"reasons-{policy}", f"Why does {policy} add memory or tasks?", finding, table=table)


def _load(found: Replayed) -> Iterable[Card]:
    table = Table("Tasks at the beginning", headings(("Operator", "Tasks")), tuple(found.tasks.items()), opened=True)
    trace = found.trace
    finding = (
        f"The load has a mean of {units.rate(trace.mean_per_s)} and a peak of {units.rate(trace.peak_per_s)} over "
        f"{units.seconds(trace.duration_s)}. {found.query} was simulated, beginning with "
        f"{units.some(sum(found.tasks.values()), 'slot')}; nothing was measured on a cluster."
    )
    yield Card("load", "What was replayed?", finding, table=table)


def _of_paradigms(found: ReplayedParadigms, asked: Parameters | None) -> Answer:
    best, trace, cluster = figures.best_paradigm(found.runs), found.trace, found.cluster
    executors, shards = units.some(found.advice.executors, "executor"), units.some(found.advice.shards, "shard")
    ranked = sorted(found.runs, key=lambda run: (run is not best, -run.throughput_per_s))
    reasons: dict[str, Advice] = {}
    if best.waiting > trace.mean_per_s:  # a second's records and more
        waiting = units.scaled(best.waiting, "records")
        known = None if asked is None else {"query": KEYED, **asked}
        node = _run("Add a node.", known, workers=cluster.nodes + 1)
        reasons[f"No paradigm keeps up: with {best.paradigm} {waiting} wait at the end."] = node
    return Answer(
        "paradigms",
        "Which paradigm copes with changing keys?",
        f"{figures.paradigms(found.runs)}.",
        "SIMULATED",
        (
            f"a {KEYED} operator of {units.seconds(found.operator.cpu_s)} per record",
            f"mean load {_load_words(trace)}",
            f"{units.some(cluster.nodes, 'node')} of {units.some(cluster.node_cores, 'core')}",
            f"Elasticutor's {executors} with {shards} each, because {'; '.join(found.advice.reasons)}",
        ),
        rows=tuple(_paradigm(run.paradigm, found.rows[run.paradigm]) for run in ranked),
        caption="Paradigms on the same load",
        chosen=0,
        cautions=reasons | {_SIMULATED: Advice("Try the paradigm on the real job before you rely on it.")},
        draw=partial(figures.draw_paradigms, found.runs),
    )


def _paradigm(name: str, row: Mapping[str, float]) -> tuple[Fact, ...]:
    padded = Unit(lambda value: units.padded(value, ""))
    moved = (("shard_moves", "Shards moved"), ("core_moves", "Cores moved"), ("repartitions", "Repartitions"))
    return (
        Fact(name, name="Paradigm"),
        Fact(row["throughput_per_s"], "throughput_per_s", "Records/s", padded),
        Fact(row["mean_latency_s"], "mean_latency_s", "Latency, mean", SECONDS, "wide"),
        Fact(row["p99_latency_s"], "p99_latency_s", "Latency, 99 %", SECONDS),
        Fact(row["waiting"], "waiting", "Left waiting", RECORDS),
        Fact(row["migrated_bytes_per_s"], "migrated_bytes_per_s", "State moved", _MOVED, "wide"),
        Fact(row["cores"], "cores", "Cores", NUMBER),
        *(Fact(row[key], key, what, COUNT, "wide") for key, what in moved),
        Fact(row["remote_bytes_per_s"], "remote_bytes_per_s", "Records to remote cores", _MOVED, "data"),
    )
