"""How documents are written and read: strict JSON.

Reading is strict: unknown keys and wrong types are refused, not guessed at. JSON has no inf, so inf is the text
``"inf"``; NaN is never a result and is refused.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from cattrs import Converter, transform_error
from cattrs.gen import make_dict_structure_fn
from cattrs.v import format_exception

from workbench.errors import WorkbenchError
from workbench.metrics import OperatorMetrics
from workbench.records.machine import Machine, machine_of_facts

Setting = str | int | float | bool | None
_Kind = TypeVar("_Kind")


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
