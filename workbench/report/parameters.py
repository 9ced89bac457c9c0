"""Parameters of a report notebook, checked before anything runs: names, types, files, and their combination."""

import ast
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import nbformat
from papermill import inspect_notebook

from workbench.checks import shown
from workbench.errors import WorkbenchError
from workbench.observing import read_events
from workbench.records import Measurement
from workbench.report import steps
from workbench.simulation import RateTrace
from workbench.study import StudyHistory, read_planned, read_study
from workbench.views.parts import FOLDER

UNREADABLE = (OSError, ValueError, TypeError, AttributeError, KeyError, nbformat.ValidationError)
"""Errors of reading a file that is not a notebook: the readers do not check its form."""

_TYPES: Mapping[str, tuple[type, ...]] = {one.__name__: (one,) for one in (str, int, bool, list, dict)} | {
    "float": (float, int)
}
_FILE = " file"
_NO_TEXT = re.compile(r"[\0\ud800-\udfff]")  # the end of a path, and half a letter


_READERS: Mapping[str, Callable[[Path], object]] = {
    "study file": read_study,
    "plans file": read_planned,
    "measurement file": Measurement.from_json,
    "rates file": RateTrace.from_csv,
    "log file": lambda path: next(read_events(path)),
}
_TOGETHER: Mapping[str, Callable[..., object]] = {
    "capacity": lambda study, history, **_: StudyHistory.of(Path(study), Path(history)),
    "papers": steps.ask_papers,
    "placement": steps.ask_placement,
    "scaling": steps.try_scaling,
}


@dataclass(frozen=True)
class Parameter:
    """A parameter that a report notebook declares."""

    name: str  # of the variable
    kind: str  # "int", "list[str]"; "study file" and the like for a path whose file must be readable
    default: object  # an empty text is no default: such a parameter must be given
    help: str  # meaning

    @property
    def is_file(self) -> bool:
        """Whether it names a file."""
        return self.kind.endswith(_FILE)


def parameters_of(notebook: Path) -> tuple[Parameter, ...]:
    """List the parameters that `notebook` declares, lines ``name: type = value  # meaning`` of the cell ``parameters``.

    A type of two words, such as ``"study file"``, is quoted.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of the file's name: the problem follows
            declared = inspect_notebook(str(notebook))
    except UNREADABLE as error:
        reason = str(error).partition("\n")[0]
        remedy = (
            "open it in JupyterLab, choose a Python kernel and save it"
            if notebook.suffix == ".ipynb"
            else "name a report, such as placement, and give the file as one of its parameters"
        )
        raise WorkbenchError(f"{notebook} cannot be read as a report notebook ({reason}); {remedy}.") from error
    made = []
    for name, entry in declared.items():
        default, kind = _literal(entry["default"]), entry["inferred_type_name"]
        kind = type(default).__name__ if kind in (None, "None") else kind
        made.append(Parameter(name, kind, default, entry["help"] or ""))
    return tuple(made)


def check(notebook: Path, parameters: Mapping[str, object]) -> dict[str, object]:
    """Check `parameters` against those that the notebook declares, and return all values, defaults included."""
    declared = {one.name: one for one in parameters_of(notebook)}
    for name, value in parameters.items():
        if name not in declared:
            raise WorkbenchError(_unknown(notebook, name, list(declared)))
        expected = declared[name]
        may_miss = expected.default is None
        if not _fits(value, expected.kind) and not (value is None and may_miss):
            wanted = f"the path of a {expected.kind}" if expected.is_file else f"of type {expected.kind}"
            raise WorkbenchError(
                f"Parameter {name!r} of {notebook.name} is {shown(value)} ({type(value).__name__}); "
                f"it must be {wanted}{' or None' if may_miss else ''}{_help(expected.help)}."
            )
        for text in value if isinstance(value, list) else (value,):  # no file can contain it, and no path may be it
            if isinstance(text, str) and (odd := _NO_TEXT.search(text)):
                of = f"Parameter {name!r} of {notebook.name} is {shown(value)}"
                raise WorkbenchError(f"{of}, of which {odd[0]!r} is not text. Leave it out.")
    values = {name: parameters.get(name, one.default) for name, one in declared.items()}
    for name, value in values.items():
        expected = declared[name]
        if value == "" and expected.default == "":
            raise WorkbenchError(f"Parameter {name!r} of {notebook.name} must be given{_help(expected.help)}.")
        if expected.is_file and value is not None:
            _READERS.get(expected.kind, _open)(Path(str(value)))
    if notebook.stem in _TOGETHER and notebook.resolve().parent == FOLDER:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the report repeats them
            _TOGETHER[notebook.stem](**values)
    return values


def _open(path: Path) -> None:
    try:
        path.open("rb").close()
    except OSError as error:
        raise WorkbenchError(f"The file {path} cannot be read: {error.strerror}. Check the path.") from error


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
    if annotation.endswith(_FILE):
        return isinstance(value, str)
    name, _, inner = annotation.removesuffix("]").partition("[")
    if name not in _TYPES:
        return True
    if isinstance(value, bool):
        return name == "bool"
    if name == "list" and inner and isinstance(value, list):
        return all(_fits(one, inner) for one in value)
    return isinstance(value, _TYPES[name])


def _literal(text: object) -> object:
    try:
        return ast.literal_eval(str(text))
    except (SyntaxError, ValueError):
        return text
