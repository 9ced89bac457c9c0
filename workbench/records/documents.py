"""How documents are written and read: whole files, strict JSON.

Reading is strict: unknown keys and wrong types are refused, not guessed at. JSON has no inf, so inf is the text
``"inf"``; NaN is never a result and is refused.
"""

import glob
import math
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import psutil
from cattrs import Converter, transform_error
from cattrs.gen import make_dict_structure_fn
from cattrs.v import format_exception

from workbench.errors import WorkbenchError
from workbench.metrics import OperatorMetrics
from workbench.records.machine import Machine, machine_of_facts

Setting = str | int | float | bool | None
_Kind = TypeVar("_Kind")
_STREAMS = (Path("/dev"), Path("/dev/fd"), Path("/proc/self/fd"))  # where open files have other names


def write_whole(path: str | os.PathLike[str], text: str | bytes) -> None:
    """Write `text`, or bytes as they are, to `path`, all of it or nothing; folders are made.

    A symbolic link stays, and what it points to is written. What is no regular file, such as a pipe, or another name
    of an open file, such as ``/dev/stdout``, is written straight, at its end.

    Raises
    ------
    WorkbenchError
        When the file cannot be written, or the text has half a character.
    """
    try:
        data = text.encode("utf-8") if isinstance(text, str) else text
        if Path(path).absolute().parent in _STREAMS or (Path(path).exists() and not Path(path).is_file()):
            with Path(path).open("ab") as stream:
                stream.write(data)
        else:
            _replace(Path(os.path.realpath(path)), data)
    except UnicodeEncodeError as error:
        half = error.object[error.start : error.end]
        raise WorkbenchError(
            f"{os.fspath(path)!r} cannot hold {half!r}, which is half a character; rename it."
        ) from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise WorkbenchError(f"{os.fspath(path)!r} cannot be written: {reason}. Choose another place.") from error


def _replace(target: Path, data: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    prefix = f".{target.name[:40]}."
    _remove_torn(target.parent, prefix)
    handle, name = tempfile.mkstemp(prefix=f"{prefix}{os.getpid()}-", suffix=".tmp", dir=target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _remove_torn(folder: Path, prefix: str) -> None:
    """Remove what writers of the same file left that were killed while they wrote: their process is gone."""
    for left in folder.glob(f"{glob.escape(prefix)}*-*.tmp"):
        writer = left.name.removeprefix(prefix).partition("-")[0]
        if writer.isdigit() and not psutil.pid_exists(int(writer)):
            left.unlink(missing_ok=True)


def unstructure(value: object) -> dict[str, Any]:
    """Plain JSON values of a dataclass."""
    result: dict[str, Any] = _CONVERTER.unstructure(value)
    return result


def structure(data: object, kind: type[_Kind], what: str) -> _Kind:
    """Build a `kind` from plain JSON values; `what` names the document in errors.

    Raises
    ------
    WorkbenchError
        When a key is unknown or missing, or a value has a wrong type.
    """
    try:
        return _CONVERTER.structure(data, kind)
    except Exception as error:
        problems = "; ".join(transform_error(error, path="$", format_exception=_describe))
        raise WorkbenchError(f"{what} cannot be read: {problems}. Correct these keys, or measure again.") from error


def _describe(error: BaseException, kind: type | None) -> str:
    if isinstance(error, AttributeError):
        return "expected a mapping"
    if type(error) is Exception or isinstance(error, WorkbenchError | TypeError):  # a Literal's error is a bare one
        return str(error)
    return format_exception(error, kind)


def _write_float(value: float) -> float | str:
    number = float(value)
    if math.isnan(number):
        raise WorkbenchError("A number of the result is NaN, which is never a result; report this as a defect.")
    return str(number) if math.isinf(number) else number


def _read_float(value: object, _kind: object) -> float:
    if isinstance(value, str) and value in {"inf", "-inf"}:
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError(f"{value!r} is not a number")
    return float(value)


def _read_exactly(kind: type) -> Callable[[object, object], Any]:
    def read(value: object, _kind: object) -> object:
        if type(value) is not kind:
            raise TypeError(f"{value!r} is not of type {kind.__name__}")
        return value

    return read


def _read_setting(value: object, _kind: object) -> Setting:
    if value in ("inf", "-inf"):
        return float(str(value))
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise TypeError(f"{value!r} is not a text, a number, true, false or null")


def _read_counts(value: Mapping[str, object], _kind: object) -> dict[int, float]:
    """Read a table by whole numbers, which are texts as keys of JSON."""
    return {int(key): _read_float(one, float) for key, one in value.items()}


def _operator_reader(converter: Converter) -> Callable[[Any, Any], OperatorMetrics]:
    read = make_dict_structure_fn(OperatorMetrics, converter, _cattrs_forbid_extra_keys=True)

    def read_any(data: Any, kind: Any) -> OperatorMetrics:  # noqa: ANN401 - JSON
        if isinstance(data, Mapping) and "scans" not in data:  # earlier versions had it in the name alone
            words = str(data.get("operator")).split()
            data = {**data, "scans": "scan" in words, "runs_python": "python" in words}
        return read(data, kind)

    return read_any


def _machine_reader(converter: Converter) -> Callable[[Any, Any], Machine]:
    read = make_dict_structure_fn(Machine, converter, _cattrs_forbid_extra_keys=True)

    def read_any(data: Any, kind: Any) -> Machine:  # noqa: ANN401 - JSON
        earlier = isinstance(data, Mapping) and "virtual" not in data
        return machine_of_facts(data) if earlier else read(data, kind)

    return read_any


def _make_converter() -> Converter:
    converter = Converter(forbid_extra_keys=True)
    converter.register_structure_hook(float, _read_float)
    converter.register_unstructure_hook(float, _write_float)
    converter.register_unstructure_hook(int, int)  # NumPy integers are no JSON
    converter.register_unstructure_hook(bool, bool)
    for kind in (int, str, bool):
        converter.register_structure_hook(kind, _read_exactly(kind))
    converter.register_structure_hook_func(lambda kind: kind == Setting, _read_setting)
    converter.register_structure_hook_func(lambda kind: kind == Mapping[int, float], _read_counts)
    converter.register_structure_hook(OperatorMetrics, _operator_reader(converter))
    converter.register_structure_hook(Machine, _machine_reader(converter))
    return converter


_CONVERTER = _make_converter()
