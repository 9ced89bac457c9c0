"""Parameters of a report notebook, checked before anything runs.

Papermill injects unknown names with a warning and checks no types; here both are errors.
"""

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from nbformat import ValidationError
from nbformat.reader import NotJSONError
from papermill import inspect_notebook

from workbench.errors import WorkbenchError

_TYPES: Mapping[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (float, int),
    "bool": (bool,),
    "list": (list,),
    "dict": (dict,),
}


@dataclass(frozen=True)
class Parameter:
    """A parameter that a report notebook declares: its name, type, default value and what it means."""

    name: str
    kind: str
    default: object
    help: str


def parameters_of(notebook: Path) -> tuple[Parameter, ...]:
    """List the parameters that `notebook` declares, in order.

    A parameter is a line ``name: type = value  # meaning`` of the cell tagged ``parameters``.

    Raises
    ------
    WorkbenchError
        When the file is no notebook, or names no kernel.
    """
    try:
        declared = inspect_notebook(str(notebook))
    except (ValueError, NotJSONError, ValidationError) as error:
        raise WorkbenchError(
            f"{notebook} cannot be read as a report notebook ({str(error).splitlines()[0]}); open it in JupyterLab, "
            "choose a Python kernel and save it."
        ) from error
    return tuple(_parameter(name, entry) for name, entry in declared.items())


def _parameter(name: str, entry: Mapping[str, str]) -> Parameter:
    default, kind = _literal(entry["default"]), entry["inferred_type_name"]
    return Parameter(name, type(default).__name__ if kind in (None, "None") else kind, default, entry["help"] or "")


def check(notebook: Path, parameters: Mapping[str, object]) -> dict[str, object]:
    """Compare `parameters` with those that the notebook declares; return all values, defaults included.

    Raises
    ------
    WorkbenchError
        For a name that the notebook does not declare and for a value of another type.
    """
    declared = {one.name: one for one in parameters_of(notebook)}
    values = {name: one.default for name, one in declared.items()}
    for name, value in parameters.items():
        if name not in declared:
            raise WorkbenchError(_unknown(notebook, name, list(declared)))
        expected = declared[name]
        may_miss = expected.default is None
        if not _fits(value, expected.kind) and not (value is None and may_miss):
            raise WorkbenchError(
                f"Parameter {name!r} of {notebook.name} is {value!r} ({type(value).__name__}); "
                f"it must be of type {expected.kind}{' or None' if may_miss else ''}{_help(expected.help)}."
            )
        values[name] = value
    return values


def _unknown(notebook: Path, name: str, names: list[str]) -> str:
    if not names:
        return f"{notebook.name} takes no parameters, but {name!r} was given; leave it out."
    near = get_close_matches(name, names, n=1, cutoff=0.5)
    advice = f"did you mean {near[0]!r}? It takes" if near else "it takes"
    return f"{notebook.name} has no parameter {name!r}; {advice} {', '.join(names)}."


def _help(text: str) -> str:
    return f": {text}" if text else ""


def _fits(value: object, annotation: str) -> bool:
    """Whether `value` is of the annotated type; an unknown annotation such as ``NoneType`` fits all."""
    name = annotation.split("[", maxsplit=1)[0].strip()
    if name not in _TYPES:
        return True
    if isinstance(value, bool):
        return name == "bool"
    return isinstance(value, _TYPES[name])


def _literal(text: object) -> object:
    try:
        return ast.literal_eval(str(text))
    except (SyntaxError, ValueError):
        return text
