"""``workbench keys``: how often each key of a column occurs, how skewed that is, and what follows from it."""

import argparse
import dataclasses
import json
import math
from typing import Any

from workbench import units
from workbench.cli import look
from workbench.cli.console import DONE
from workbench.cli.progress import progress
from workbench.scaling import ExecutorAdvice, advise_executors
from workbench.testbed.spark import batch_session
from workbench.workload import Dataset, KeyFrequencies, count_keys

_SHOWN = 10


def run_keys(options: argparse.Namespace) -> int:
    """Count the keys, and say what follows."""
    data = Dataset.at(options.data)
    with progress() as say:
        say("starting Spark")
        with batch_session() as spark:
            say(f"counting {options.column}")
            found = count_keys(
                spark,
                data,
                options.column,
                method=options.method,
                top=options.top,
                tracked=options.tracked,
                partitions=options.partitions,
            )
    advice = advise_executors(
        options.nodes,
        options.node_cores,
        data_intensity=options.bytes_per_core,
        shuffles_per_minute=options.shuffles,
        key_counts=found.counts,
        untracked_keys=found.untracked_keys,
        untracked_records=found.untracked_records,
    )
    if options.json:
        print(json.dumps(_as_json(found, advice), indent=1))
    else:
        _show(found, advice)
    return DONE


def _show(found: KeyFrequencies, advice: ExecutorAdvice) -> None:
    """Print how skewed the keys are, the hot ones, how partitions fill, the advice."""
    out = look.console()
    slope = "" if math.isnan(found.zipf_exponent) else f" (Zipf exponent about {found.zipf_exponent:.2f})"
    most = math.ceil(found.useful_tasks)
    does = "does" if most == 1 else "do"
    look.answer(
        out,
        f"More than {units.some(most, 'task')} {does} not raise the rate: the most frequent key has "
        f"{units.share(found.hottest_share)} of the rows{slope}.",
    )
    about = (
        ""
        if found.distinct_deviation == 0
        else f" (within {units.percent(2 * found.distinct_deviation)}, nearly always)"
    )
    empty = f", {found.missing:,} without a key" if found.missing else ""
    how = "counted exactly" if found.method == "exact" else "estimated by a sketch"
    look.line(
        out,
        f"{found.column}: {units.some(found.records, 'row')}{empty}, {units.some(found.distinct, 'key')}{about}, {how}",
    )
    keys = look.table({"key": "left", "rows": "right", "share": "right"})
    for key, count in zip(found.keys[:_SHOWN], found.counts, strict=False):
        keys.add_row(key, units.count(count), units.share(count / found.records))
    out.print(keys)
    partitions = look.table(
        {"shuffle\npartitions": "right", "fullest,\ntimes the mean": "right", "rate allowed": "right"}
    )
    for number in sorted(found.partition_shares):
        factor = found.imbalance(number)
        partitions.add_row(units.count(number), units.number(factor), units.share(round(1 / factor, 2)))
    out.print()
    out.print(partitions)
    look.line(
        out,
        f"Elastic executors: {advice.executors:,} with {units.some(advice.shards, 'shard')}"
        f"{' each' * (advice.executors > 1)}; {'; '.join(advice.reasons)}.",
    )
    if found.count_error:
        rows, share = units.some(found.count_error, "row"), units.share(found.count_error / found.records)
        look.line(out, f"note: counts may be too high by up to {rows} ({share})")
    look.line(out, "note: rows aggregated before the shuffle are spread by key, not by row: there the skew is less")


def _as_json(found: KeyFrequencies, advice: ExecutorAdvice) -> dict[str, Any]:
    return {
        **dataclasses.asdict(found),
        "hottest_share": found.hottest_share,
        "useful_tasks": found.useful_tasks,
        "zipf_exponent": None if math.isnan(found.zipf_exponent) else found.zipf_exponent,
        "imbalance": {partitions: found.imbalance(partitions) for partitions in found.partition_shares},
        "advice": dataclasses.asdict(advice),
    }
