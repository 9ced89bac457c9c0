"""``workbench report``: a report notebook, its parameters, one offline HTML file."""

import argparse
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from workbench import bounds, report
from workbench.cli.console import DONE, NOT_SUSTAINED, check_files, print_partial, show
from workbench.cli.progress import progress
from workbench.errors import WorkbenchError
from workbench.reading import parse_json, parse_yaml, read_text


def run_report(options: argparse.Namespace) -> int:
    """Render the report."""
    if options.executed:
        if options.parameter or options.file:
            raise WorkbenchError(
                "--executed writes a notebook that has run already, so parameters (-p, -f) would have no effect; leave "
                "them out."
            )
        made = report.export_executed(options.name, _output(options), options.title)
        return _written(made, as_json=options.json)
    name, given = _named(options.name)
    output = "" if options.parameters else _output(options)
    declared = {one.name: one for one in report.parameters_of(report.find_template(name))}
    if options.parameters:
        if options.json:
            print(json.dumps([vars(one) for one in declared.values()], indent=1))
        else:
            for one in declared.values():
                show(f"{one.name} ({one.kind}, {one.default!r}): {one.help}")
        return DONE
    if "history" in declared:
        options.kept = "what the study had measured is in its history, and the same command goes on from there"
    asked = {**given, **_from_file(options.file), **_from_options(declared, options.parameter)}
    for key, value in asked.items():
        if key in declared and declared[key].kind == "int" and isinstance(value, float) and value.is_integer():
            asked[key] = int(value)  # written as 2e3
    return _written(report.render(name, asked, output, options.title, options.timeout_s), as_json=options.json)


def write_report(name: str, parameters: Mapping[str, object], target: str, *, quiet: bool) -> bool:
    """Write a report to `target`, once the answer is out; return whether it is complete."""
    with progress() as say:
        say(f"running the notebook of the report {target}")
        made = report.render(name, parameters, target)
    if not quiet:
        show(f"report: {Path(target).resolve()}")
    print_partial(made.error)
    return made.complete


def _output(options: argparse.Namespace) -> str:
    if options.output is None:
        raise WorkbenchError("No file is named to write the report to; give one, such as report.html.")
    given = (options.name if Path(options.name).suffix else None, options.file)
    check_files((options.output,), (*given, *(value for _, value in options.parameter)))
    return str(options.output)


def _written(made: "report.Report", *, as_json: bool) -> int:
    if as_json:
        print(json.dumps({"report": str(made.path), "complete": made.complete, "error": made.error}))
    else:
        show(f"report: {made.path}")
    print_partial(made.error)
    return DONE if made.complete else NOT_SUSTAINED


def _named(name: str) -> tuple[str, dict[str, str]]:
    """Return the report for the file of a result, with its parameters; any other name is a report's own."""
    path = Path(name)
    if path.suffix != ".json":
        return name, {}
    text = read_text(path, f"The result {name}")
    try:
        content = parse_json(text)
    except ValueError as error:
        raise WorkbenchError(
            f"{name} cannot be read as a result ({error}); give a file that measure or plan wrote."
        ) from error
    keys = content if isinstance(content, Mapping) else {}
    for key, template, parameter in (("runs", "plan", "planned"), ("estimate", "measure", "measurement")):
        if key in keys:
            return template, {parameter: str(path.resolve())}
    raise WorkbenchError(f"{name} is not a result of the workbench; give a file that measure or plan wrote.")


def _from_file(path: str | None) -> dict[str, Any]:
    if path is None:
        return {}
    text = read_text(path, f"The parameters {path}", bounds.YAML_BYTES)
    try:
        content = parse_yaml(text)
    except ValueError as error:
        raise WorkbenchError(f"The parameters {path} cannot be read: {error}. Correct them.") from error
    if not isinstance(content, dict):
        raise WorkbenchError(f"The parameters {path} are not a mapping of names to values; write lines 'name: value'.")
    return {str(name): value for name, value in content.items()}


def _from_options(declared: Mapping[str, "report.Parameter"], pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Read values as YAML, but keep those of texts and files as they were typed."""
    texts = {name for name, one in declared.items() if one.kind == "str" or one.is_file}
    found: dict[str, Any] = dict(pairs)
    for name in found.keys() - texts:
        with suppress(ValueError):
            found[name] = parse_yaml(found[name])
    return found
