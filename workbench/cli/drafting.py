"""``workbench init``: a first study for your query and your data, or for each query that a script starts."""

import argparse
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from workbench import units
from workbench.cli.console import BAD_INPUT, DONE, check_file, show
from workbench.cli.progress import progress
from workbench.errors import WorkbenchError
from workbench.records import write_whole
from workbench.study import Draft, ScriptDraft, draft, draft_script
from workbench.workload import Script


def run_init(options: argparse.Namespace) -> int:
    """Write the first study, or those of a script."""
    script = Script.named(options.query)
    _check_place(options.output)
    places = {key: value for key in ("sink", "checkpoint") if (value := getattr(options, key))}
    if script is not None:
        return _run_script(script, options, places)
    if not options.data:
        raise WorkbenchError(
            f"No data is given for the query {options.query}. Name a file with its rows, one for each streaming "
            "DataFrame that it takes."
        )
    _write(draft(options.query, options.data, options.event_time, places), options.output)
    _say_next(options.output)
    return DONE


def _run_script(script: Script, options: argparse.Namespace, places: Mapping[str, str]) -> int:
    with progress() as say:
        say(f"running {script.call} with its streams recorded; Spark starts if it does")
        made = draft_script(script, options.data, options.event_time, places)
    for line in _found(made):
        show(line)
    output = Path(options.output)
    for at, (number, study) in enumerate(made.studies.items()):
        place = str(output.with_stem(f"{output.stem}-{number}") if at else output)
        _check_place(place)
        _write(study, place)
    if made.studies:
        _say_next(str(output))
    return DONE if made.studies else BAD_INPUT


def _found(made: ScriptDraft) -> Iterator[str]:
    """Yield sentences on what a script was found to do."""
    found = made.recorded
    yield f"{made.script.call} was run with its streams recorded, not carried out."
    for source in found.sources:
        options = "".join(f", {name}={value}" for name, value in source.options.items())
        yield f"source {source.name} (line {source.line}): {source.format}{options}"
    for number, one in enumerate(found.queries, 1):
        watermarks = "".join(f", watermark {watermark}" for watermark in one.watermarks)
        named = f" {one.name}" * bool(one.name)
        at = f"{one.file}, line {one.line}" if one.file else f"line {one.line}"
        yield (
            f"query {number}{named} ({at}): reads {', '.join(one.sources) or 'no source'}, writes to "
            f"{one.sink}; {one.output_mode} mode, trigger {one.trigger or 'not set'}{watermarks}"
        )
    if found.settings:
        yield f"settings: {', '.join(f'{name}={value}' for name, value in found.settings.items())}"
    if not (found.queries or found.failure):
        yield "no streaming query was started: a query begins with spark.readStream and ends with writeStream...start()"
    for note in found.notes:
        yield f"not recorded: {note}"
    if found.failure:
        yield f"the script ended early: {found.failure}"
    if found.lacking:
        yield (
            f"the script was run up to source {found.lacking}, whose columns nothing shows: add a sample, "
            f"{found.lacking}=FILE"
        )
    for number, reason in made.left.items():
        yield f"query {number} gets no study: {reason}"


def _check_place(output: str) -> None:
    check_file(output)
    if Path(output).exists():
        raise WorkbenchError(f"{output} exists already; name another --output, or remove it.")


def _write(made: Draft, output: str) -> None:
    write_whole(output, made.text_of(output))
    show(f"{output} is written for {made.query}.")
    none = "none was found; name it with --event-time if the query has a watermark"
    for one in made.found:
        of = f"{one.name}: " if one.name else ""
        show(f"{of}event time: {none if one.event_time is None else f'column {one.event_time!r}'}")
        for what, keys in one.by.items():
            if keys:
                show(f"{of}{what}: by {', '.join(map(repr, keys))}")
        for kind in dict.fromkeys(one.renew.values()):
            columns = ", ".join(repr(column) for column, its in one.renew.items() if its == kind)
            show(f"{of}{kind}: {columns}, so other values in each pass over the data")
        for column, share in one.hot.items():
            show(f"{of}column {column!r} has {units.percent(share)} of its rows with one value")
    for note in made.notes:
        show(note)
    if made.tables:
        show(f"static tables, read by the function itself: {', '.join(made.tables)}")


def _say_next(output: str) -> None:
    show(f"Next: put your rates into it, then run: workbench plan {shlex.quote(output)} --dry-run")
