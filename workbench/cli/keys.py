"""``workbench keys``: how often each key of a column occurs, how skewed that is, and what follows from it."""

import argparse
import dataclasses
import json
import math
from pathlib import Path
from typing import Any

from workbench import units
from workbench.cli import look
from workbench.cli.console import DONE
from workbench.cli.progress import progress
from workbench.errors import WorkbenchError
from workbench.testbed.spark import batch_session
from workbench.workload import Dataset, KeyFrequencies, count_keys, count_keys_here, schema_of

_SHOWN = 10


def run_keys(options: argparse.Namespace) -> int:
    """Count the keys, and say what follows."""
    data = _data_of(options)
    asked = {name: getattr(options, name) for name in ("method", "top", "tracked", "partitions")}
    if options.rate is not None and options.plan is None:
        raise WorkbenchError("--rate is given without --plan, which says what a record costs. Add it, or leave it out.")
    with progress() as say:
        say(f"counting {options.column}")
        found = count_keys_here(data, options.column, **asked)
        if found is None:
            say("starting Spark, which counts what is large, nested or sketched")
            with batch_session() as spark:
                say(f"counting {options.column}")
                found = count_keys(spark, data, options.column, **asked)
    answer = None
    if options.plan is not None:
        from workbench.study import what_the_hottest_takes  # noqa: PLC0415 - what plans takes a second to load

        answer = what_the_hottest_takes(options.plan, found, options.rate)
    if options.json:
        print(json.dumps(_as_json(found) | ({} if answer is None else {"answer": answer}), indent=1))
    else:
        _show(found, answer)
    return DONE


def _data_of(options: argparse.Namespace) -> Dataset:
    """Give the data set that is named, or the one of a study's that has the column."""
    if Path(options.data).suffix not in {".yaml", ".yml"}:
        return Dataset.at(options.data)
    from workbench.study import read_study  # noqa: PLC0415 - as above

    sets = [Dataset.at(path) for path in read_study(options.data).datasets]
    having = [one for one in sets if options.column in schema_of(one, None).names]
    if len(having) != 1:
        named = " and ".join(one.path for one in having or sets) or "no data set"
        raise WorkbenchError(
            f"{options.data} has {named}, of which {'each' if having else 'none'} has the column {options.column!r}. "
            "Name a data set instead of the study."
        )
    return having[0]


def _show(found: KeyFrequencies, answer: str | None = None) -> None:
    """Print what the most frequent key does, how skewed the keys are, the hot ones, and how partitions fill."""
    out = look.console()
    slope = "" if math.isnan(found.zipf_exponent) else f" (Zipf exponent about {found.zipf_exponent:.2f})"
    most = math.ceil(found.useful_tasks)
    does = "does" if most == 1 else "do"
    look.answer(
        out,
        answer
        or f"More than {units.some(most, 'task')} {does} not raise the rate: the most frequent key, "
        f"{found.keys[0]!r}, has {units.share(found.hottest_share)} of the rows{slope}.",
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
    if found.count_error:
        rows, share = units.some(found.count_error, "row"), units.share(found.count_error / found.records)
        look.line(out, f"note: counts may be too high by up to {rows} ({share})")
    look.line(out, "note: rows aggregated before the shuffle are spread by key, not by row: there the skew is less")


def _as_json(found: KeyFrequencies) -> dict[str, Any]:
    return {
        **dataclasses.asdict(found),
        "hottest_share": found.hottest_share,
        "useful_tasks": found.useful_tasks,
        "zipf_exponent": None if math.isnan(found.zipf_exponent) else found.zipf_exponent,
        "imbalance": {partitions: found.imbalance(partitions) for partitions in found.partition_shares},
    }
