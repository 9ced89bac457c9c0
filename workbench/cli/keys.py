"""``workbench keys``: how often each key of a column occurs, how skewed that is, and what follows from it."""

import argparse
import dataclasses
import math
from pathlib import Path
from typing import Any

from workbench import units
from workbench.cli import look
from workbench.cli.console import DONE
from workbench.cli.progress import progress
from workbench.errors import WorkbenchError
from workbench.testbed.spark import batch_session
from workbench.workload import (
    Dataset,
    JoinedKeys,
    KeyFrequencies,
    count_keys,
    count_keys_here,
    joined_shares,
    schema_of,
)

_SHOWN = 10
_STUDIES = {".yaml", ".yml"}
_EVEN = 0.005  # Zipf exponent of keys that differ too little to state it
_MANY = 1000  # tasks; a key that would fill one of more limits no join


def run_keys(options: argparse.Namespace) -> int:
    """Count the keys, and print what follows."""
    sets = _data_of(options)
    if options.rate is not None and options.plan is None:
        raise WorkbenchError("--rate is given without --plan, which says what a record costs. Add it, or leave it out.")
    if options.plan is not None and len(sets) > 1:
        raise WorkbenchError(
            f"--plan takes the key of one data set, and {options.column!r} is in {' and '.join(sets)}. Name one of "
            "their files instead of the study, or leave out --plan."
        )
    asked = {name: getattr(options, name) for name in ("column", "method", "top", "tracked", "partitions")}
    asked["every"] = len(sets) > 1  # the pairs of all keys add up to the join
    counted = {name: dataclasses.replace(_counted(data, asked), input=name) for name, data in sets.items()}
    found = next(iter(counted.values()))
    answer, within = "", True
    if options.plan is not None or Path(options.data).suffix in _STUDIES:
        from workbench.study import what_the_hottest_takes, where_it_goes  # noqa: PLC0415 - they take a second to load

        if options.plan is None:
            answer, within = where_it_goes(options.data, found)
        else:
            answer, within = what_the_hottest_takes(options.plan, found, options.rate)
    if len(counted) > 1:
        _join(counted, options, answer)
    elif options.json:
        look.document(_as_json(found) | ({"answer": answer} if answer else {}))
    else:
        _show(found, answer, within=within)
    return DONE


def _counted(data: Dataset, asked: dict[str, Any]) -> KeyFrequencies:
    with progress() as say:
        say(f"counting {asked['column']}")
        found = count_keys_here(data, **asked)
        if found is None:
            say("starting Spark, which counts what is large, nested or sketched")
            with batch_session() as spark:
                say(f"counting {asked['column']}")
                found = count_keys(spark, data, **asked)
    return found


def _data_of(options: argparse.Namespace) -> dict[str, Dataset]:
    """Return the named data set, or those of a study that have the column, by the names of its inputs."""
    if Path(options.data).suffix not in _STUDIES:
        return {"": Dataset.at(options.data)}
    from workbench.study import read_study  # noqa: PLC0415 - as above

    study = read_study(options.data)
    sets = dict(zip(study.inputs or [""], map(Dataset.at, study.datasets), strict=False))
    columns = {name: schema_of(one, None).names for name, one in sets.items()}
    having = {name: one for name, one in sets.items() if options.column in columns[name]}
    if not having:
        has = "; ".join(f"{sets[name].path} has {', '.join(own)}" for name, own in columns.items())
        raise WorkbenchError(
            f"No data set of {options.data} has the column {options.column!r}: {has or 'it names no data'}. Name one "
            "of these, or a data set instead of the study."
        )
    return having


def _join(counted: dict[str, KeyFrequencies], options: argparse.Namespace, elsewhere: str) -> None:
    joined = joined_shares(list(counted.values()))
    if options.json:
        top = options.top
        found = {
            name: _as_json(dataclasses.replace(one, keys=one.keys[:top], counts=one.counts[:top]))
            for name, one in counted.items()
        }
        most, least = (dict(list(each.items())[:top]) for each in (joined.most, joined.least))
        rest: dict[str, Any] = {"answer": elsewhere} if elsewhere else {"joined": most, "joined_at_least": least}
        look.document({"inputs": found} | rest)
        return
    own = {name: dict(zip(one.keys, one.counts, strict=True)) for name, one in counted.items()}
    look.answer(elsewhere or _joined(counted, own, joined))
    keys = look.Columns("key", *(f">{name}" for name in counted), *([] if elsewhere else [">joined"]))
    for key in list(joined.most)[:_SHOWN]:
        shares = {name: own[name].get(key, one.unlisted_most) / one.records for name, one in counted.items()}
        each = (f"{'' if key in own[name] else 'up to '}{units.share(share)}" for name, share in shares.items())
        keys.add_row(key, *each, *([] if elsewhere else [_between(joined, key)]))
    look.put(keys)
    if not (joined.exact or elsewhere):
        look.line("note: keys that are not tracked have pairs, too, so a key's share of the join is within bounds")


def _joined(counted: dict[str, KeyFrequencies], own: dict[str, dict[str, int]], joined: JoinedKeys) -> str:
    """Say which key limits the join, or with how many tasks none does."""
    hot, least = next(iter(joined.least.items()))
    if least * _MANY >= 1:
        of = (f"{units.share(own[name][hot] / one.records)} of the rows of {name}" for name, one in counted.items())
        most = math.ceil(1 / least)
        return (
            f"The key {hot!r} has {' and '.join(of)}, and {_between(joined, hot)} of the rows of their join. One task "
            f"joins them, so more than {units.some(most, 'task')} {'does' if most == 1 else 'do'} not raise its rate."
        )
    column = repr(next(iter(counted.values())).column)
    most_of_one = max(joined.unlisted, *joined.most.values())
    none = units.some(math.floor(1 / most_of_one), "task")
    if most_of_one * _MANY < 1:
        has = f"the most frequent, {hot!r}, has" if joined.exact else "none has more than"
        return f"No key of {column} limits the join with up to {none}: {has} {units.share(most_of_one)} of its rows."
    sketched = any(one.method == "sketch" for one in counted.values())
    return (
        f"The counts do not show which key of {column} limits the join: one that is not tracked may have up to "
        f"{units.share(most_of_one)} of its rows.{f' With up to {none} none does.' if most_of_one <= 1 / 2 else ''}"
        f"{' Count exactly (--method exact), or track more (--tracked).' if sketched else ''}"
    )


def _between(joined: JoinedKeys, key: str) -> str:
    least, most = units.share(joined.least[key]), units.share(joined.most[key])
    return most if least == most else f"{least} to {most}"


def _show(found: KeyFrequencies, answer: str = "", *, within: bool = True) -> None:
    slope = f" (Zipf exponent about {found.zipf_exponent:.2f})" if found.zipf_exponent >= _EVEN else ""
    most = math.ceil(found.useful_tasks)
    do_not = "does not" if most == 1 else "do not"
    more = f"Where a row goes to the task of its key, more than {units.some(most, 'task')} {do_not} raise the rate"
    has = f"the most frequent key, {found.keys[0]!r}, has {units.share(found.hottest_share)} of the rows{slope}"
    look.answer(answer or f"{more}: {has}.")
    deviation = 2 * found.distinct_deviation
    about = f" (within {units.percent(deviation)}, nearly always)" if deviation else ""
    empty = f", {found.missing:,} without a key" if found.missing else ""
    how = "counted exactly" if found.method == "exact" else "estimated by a sketch"
    rows, distinct = units.some(found.records, "row"), units.some(found.distinct, "key")
    look.line(f"{found.column}: {rows}{empty}, {distinct}{about}, {how}")
    keys = look.Columns("key", ">rows", ">share")
    for key, count in zip(found.keys[:_SHOWN], found.counts, strict=False):
        keys.add_row(key, units.count(count), units.share(count / found.records))
    look.put(keys)
    if found.count_error:
        rows, share = units.some(found.count_error, "row"), units.share(found.count_error / found.records)
        look.line(f"note: counts may be too high by up to {rows} ({share})")
    if not within:  # no rows are divided by it
        return
    partitions = look.Columns(
        ">shuffle\npartitions", ">fullest,\ntimes the mean", ">with a slot each,\nof the slots' rate"
    )
    for number in sorted(found.partition_shares):
        factor = found.imbalance(number)
        partitions.add_row(units.count(number), units.number(factor), units.share(round(1 / factor, 2)))
    look.put("", partitions)
    look.line("note: rows aggregated before the shuffle are spread by key, not by row: there the skew is less")


def _as_json(found: KeyFrequencies) -> dict[str, Any]:
    return {
        **dataclasses.asdict(found),
        "hottest_share": found.hottest_share,
        "useful_tasks": found.useful_tasks,
        "zipf_exponent": None if math.isnan(found.zipf_exponent) else found.zipf_exponent,
        "imbalance": {partitions: found.imbalance(partitions) for partitions in found.partition_shares},
    }
