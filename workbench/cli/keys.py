"""``workbench keys``: how often each key of a column occurs, how skewed that is, and what follows from it."""

import argparse
import dataclasses
import json
import math
from collections.abc import Iterator
from typing import Any

from workbench.cli.console import DONE
from workbench.cli.progress import progress
from workbench.scaling import ExecutorAdvice, advise_executors
from workbench.testbed.spark import batch_session
from workbench.views import units
from workbench.workload import TRACKED, Dataset, KeyFrequencies, count_keys

_SHOWN = 10
_EVEN = 1.2  # Elasticutor's theta: an imbalance that is left alone


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the parser."""
    keys = commands.add_parser(
        "keys",
        description="Count the keys of a column with Spark: the hottest of them, how unevenly they fill shuffle "
        "partitions, how many tasks are of use, and how many elastic executors and shards to have.",
    )
    keys.add_argument("data", metavar="DATA", help="Parquet, CSV or JSON: a file or a folder")
    keys.add_argument("column", metavar="COLUMN", help="the key")
    keys.add_argument(
        "--method", default="auto", choices=("auto", "exact", "sketch"), help="how to count (%(default)s)"
    )
    keys.add_argument("--tracked", type=int, default=TRACKED, help="items of the sketch (%(default)s)")
    keys.add_argument("--top", type=int, default=1000, help="keys listed by --json (%(default)s)")
    keys.add_argument(
        "--partitions", type=int, nargs="+", default=[8, 32, 200], metavar="N", help="shuffle partitions to spread over"
    )
    keys.add_argument("--nodes", type=int, default=1, help="nodes of the cluster, for the advice (%(default)s)")
    keys.add_argument("--node-cores", type=int, default=8, help="cores of each (%(default)s)")
    keys.add_argument("--bytes-per-core", type=float, default=0.0, help="bytes/s in and out of a core (%(default)s)")
    keys.add_argument("--shuffles", type=float, default=0.0, help="abrupt changes of the keys a minute (%(default)s)")
    keys.add_argument("--json", action="store_true", help="print JSON")
    keys.set_defaults(command=_keys)


def _keys(options: argparse.Namespace) -> int:
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
    print(json.dumps(_as_json(found, advice), indent=1) if options.json else "\n".join(_lines(found, advice)))
    return DONE


def _lines(found: KeyFrequencies, advice: ExecutorAdvice) -> Iterator[str]:
    """Report what was counted, the hot keys, how partitions fill, the advice."""
    about = "" if found.distinct_deviation == 0 else f" (within {2 * found.distinct_deviation:.0%}, nearly always)"
    empty = f", {found.missing:,} without a key" if found.missing else ""
    yield f"{found.column}: {found.records:,} rows{empty}, {found.distinct:,} keys{about}, counted by {found.method}"
    if found.count_error:
        yield f"counts may be too high by up to {found.count_error:,} rows ({found.count_error / found.records:.3%})"
    width = max(len(key) for key in found.keys[:_SHOWN])
    for key, count in zip(found.keys[:_SHOWN], found.counts, strict=False):
        yield f"  {key:{width}}  {count:>12,}  {units.share(count / found.records):>8}"
    slope = "" if math.isnan(found.zipf_exponent) else f", Zipf exponent about {found.zipf_exponent:.2f}"
    yield (
        f"The most frequent key has {units.share(found.hottest_share)} of the rows{slope}: "
        f"more than {found.useful_tasks:.3g} tasks do not raise the rate."
    )
    for partitions in sorted(found.partition_shares):
        factor = found.imbalance(partitions)
        uneven = "" if factor <= _EVEN else f", which allows {1 / factor:.0%} of an even spread's rate"
        yield f"  {partitions:>5} shuffle partitions: the fullest has {factor:.2f} times the mean{uneven}"
    yield "  (rows aggregated before the shuffle are spread by key, not by row: there the skew is less)"
    yield f"Elastic executors: {advice.executors} with {advice.shards} shards each"
    for reason in advice.reasons:
        yield f"  {reason}"


def _as_json(found: KeyFrequencies, advice: ExecutorAdvice) -> dict[str, Any]:
    return {
        **dataclasses.asdict(found),
        "hottest_share": found.hottest_share,
        "useful_tasks": found.useful_tasks,
        "zipf_exponent": None if math.isnan(found.zipf_exponent) else found.zipf_exponent,
        "imbalance": {partitions: found.imbalance(partitions) for partitions in found.partition_shares},
        "advice": dataclasses.asdict(advice),
    }
