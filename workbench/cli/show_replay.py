"""What is printed of a replay: one sentence, then a row for each policy or paradigm."""

from collections.abc import Mapping

from rich.table import Table

from workbench import units
from workbench.cli import look
from workbench.study import Replayed, ReplayedParadigms
from workbench.views.figures import Policies, paradigms, policies
from workbench.views.scaling_front import held_back


def show_replay(found: Replayed | ReplayedParadigms) -> None:
    """Print the answer and the table of what was replayed."""
    out = look.console()
    if isinstance(found, ReplayedParadigms):
        look.answer(out, f"{paradigms(found.runs).finding}.")
        out.print(_paradigms(found.rows))
        executors, shards = units.some(found.advice.executors, "executor"), units.some(found.advice.shards, "shard")
        look.line(out, f"Elasticutor: {executors} with {shards} each, because {'; '.join(found.advice.reasons)}.")
    else:
        data = policies(found.timelines, found.price_unit)
        look.answer(out, f"{data.finding}.")
        out.print(_policies(found, data))
        for reason, advice in held_back(found).items():
            look.advice(out, reason, advice)
        look.line(
            out,
            'Simulated. No record is lost: late records wait at the source; "left waiting" counts those still there '
            "when the load ends.",
        )


def _policies(found: Replayed, data: Policies) -> Table:
    rows = dict(zip(data.names, data.rows, strict=True))
    paid = [data.price_unit] if data.price_unit else ["core-hours", "GB-hours"]
    table = look.table(
        {
            "policy": "left",
            **dict.fromkeys(
                ("keeps\nup", "p99\nlatency", "left\nwaiting", "changes", *(f"{name},\nwith driver" for name in paid)),
                "right",
            ),
        },
        spare=("changes", *(f"{name},\nwith driver" for name in paid[1:])),
    )
    for name, row in rows.items():
        table.add_row(
            name,
            units.share(row["at_target"]),
            units.seconds(row["latency_p99_s"]),
            units.scaled(float(found.timelines[name].backlog[-1]), "", 2),
            units.count(row["reconfigurations"]),
            *(units.number(row[key]) for key in (["cost"] if data.price_unit else ["core_hours", "gb_hours"])),
        )
    return table


def _paradigms(rows: Mapping[str, Mapping[str, float]]) -> Table:
    figures = (
        "records\n/s",
        "p99\nlatency",
        "left\nwaiting",
        "cores",
        "shard\nmoves",
        "core\nmoves",
        "reparti-\ntions",
    )
    table = look.table({"paradigm": "left", **dict.fromkeys(figures, "right")})
    for name, row in rows.items():
        table.add_row(
            name,
            units.scaled(row["throughput_per_s"], ""),
            units.seconds(row["p99_latency_s"]),
            units.scaled(row["waiting"], "", 2),
            units.number(row["cores"]),
            units.count(row["shard_moves"]),
            units.count(row["core_moves"]),
            units.count(row["repartitions"]),
        )
    return table
