"""Parameters of a report notebook, checked before anything runs.

Papermill injects unknown names with a warning and checks no types; here both are errors.
"""

import ast
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path

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


def check(notebook: Path, parameters: Mapping[str, object]) -> dict[str, object]:
    """Compare `parameters` with those that the notebook declares; return all values, defaults included.

    Raises
    ------
    WorkbenchError
        For a name that the notebook does not declare and for a value of another type.
    """
    declared = inspect_notebook(str(notebook))  # type of a parameter: one word, as in "x: float = 1.0"
    values = {name: _literal(entry["default"]) for name, entry in declared.items()}
    for name, value in parameters.items():
        if name not in declared:
            raise WorkbenchError(_unknown(notebook, name, list(declared)))
        annotation = declared[name]["inferred_type_name"]
        if annotation in (None, "None"):
            annotation = type(values[name]).__name__
        if not _fits(value, annotation) and not (value is None and _literal(declared[name]["default"]) is None):
            none = " or None" if _literal(declared[name]["default"]) is None else ""
            raise WorkbenchError(
                f"Parameter {name!r} of {notebook.name} is {value!r} ({type(value).__name__}); "
                f"it must be of type {annotation}{none}{_help(declared[name]['help'])}."
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
