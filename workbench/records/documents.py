"""How documents are written and read: strict JSON.

Reading is strict: unknown keys and wrong types are refused, not guessed at. JSON has no inf, so inf is the text
``"inf"``; NaN is never a result and is refused.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import partial
from typing import Any, TypeVar, get_args

from cattrs import Converter, transform_error
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn
from cattrs.v import format_exception

from workbench import bounds
from workbench.checks import shown
from workbench.errors import WorkbenchError
from workbench.metrics import Observation, TaskSample

Setting = str | int | float | bool | None
_Kind = TypeVar("_Kind")
_SIGNED = frozenset(
    {"backlog_slope", "backlog", "start_s", "started_s", "fixed_s", "per_record_s", "value", "extrapolation"}
    | {"useful_s", "cpu_s", "busyness", "seconds", "rate_limit", "slowdown", "CapacityPlan.low", "MstInterval.low"}
)
"""Fields whose numbers may be below 0: differences, such as work without the source's; fitted lines; ends of intervals.

A number that was measured must be readable, whatever noise made of it.
"""
_ABOVE_0 = frozenset(
    {"executors", "executor_slots", "expected_rate", "margin", "key_skew", "OperatorMetrics.tasks"}
    | {"core_speed", "CountedCores.times", "CountedCores.low", "jobs_at_once"}
)
"""Fields whose numbers cannot be 0."""
_FINITE = frozenset(
    {"start_s", "duration_s", "elapsed_s", "interval_s", "records", "due", "backlog", "seconds", "useful_s", "cpu_s"}
    | {"busyness", "cpus", "expected_rate", "margin", "low", "key_skew", "cache_hit_rate", "jobs_s", "jobs_at_once"}
)
"""Fields whose numbers are measured or chosen, and so finite; others may be inf."""
_NO_LONGER_READ = {"CoreSpeed": {"batch_s"}}
"""Keys of earlier documents that are left out, by kind: the time of a Spark batch whose code was not compiled yet."""
_SHOWN, _LONGEST = 5, 400  # most problems of a document in a message, and characters of each
MAX_SAMPLES = 1000
_GROUPS = 100


def unstructure(value: object) -> dict[str, Any]:
    """Plain JSON values of a dataclass; many samples of an observation are aggregated."""
    result: dict[str, Any] = _CONVERTER.unstructure(value)
    return result


def structure(data: object, kind: type[_Kind], what: str) -> _Kind:
    """Build a `kind` from plain JSON values; `what` names the document in errors."""
    if not isinstance(data, Mapping):
        raise WorkbenchError(f"{what} is {shown(data)}; it must be an object. Correct it, or measure again.")
    try:
        return _CONVERTER.structure(data, kind)
    except Exception as error:
        found = transform_error(error, path="$", format_exception=_describe)
        problems = "; ".join(one[:_LONGEST] for one in found[:_SHOWN])
        more = f"; and {len(found) - _SHOWN:,} more" if len(found) > _SHOWN else ""
        raise WorkbenchError(
            f"{what} cannot be read: {problems}{more}. Correct these keys, or measure again."
        ) from error


def check_version(version: object, wanted: int, subject: str, advice: str) -> None:
    """Refuse another version than `wanted`; `subject`, with its verb, and `advice` are parts of the error."""
    if version != wanted:
        raise WorkbenchError(f"{subject} version {shown(version)}; this workbench reads version {wanted}. {advice}")


def _describe(error: BaseException, kind: type | None) -> str:
    if isinstance(error, AttributeError):
        return "expected a mapping"
    if type(error) is Exception or isinstance(error, WorkbenchError | TypeError):  # a Literal's error has no text
        return str(error)
    return format_exception(error, kind)


def _write_float(value: float) -> float | str:
    number = float(value)
    if math.isnan(number):
        raise WorkbenchError("A number of the result is NaN, which is never a result; report this as a defect.")
    # Measurements must stay readable: a rate over a very short time is as large as a number may be.
    return str(number) if math.isinf(number) else max(-float(bounds.NUMBER), min(float(bounds.NUMBER), number))


def _read_float(value: object, _kind: object) -> float:
    if isinstance(value, str) and value in {"inf", "-inf"}:
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:  # noqa: PLR0124 - NaN
        raise TypeError(f"{shown(value)} is not a number")
    if not -bounds.NUMBER <= value <= bounds.NUMBER:
        raise TypeError(f"{shown(value)} is beyond {bounds.NUMBER:g}")
    return float(value) if abs(value) >= bounds.LEAST_NUMBER else 0.0


def _read_exactly(kind: type) -> Callable[[object, object], Any]:
    def read(value: object, _kind: object) -> object:
        if type(value) is not kind:
            raise TypeError(f"{shown(value)} is not of type {kind.__name__}")
        if isinstance(value, int) and not -bounds.NUMBER <= value <= bounds.NUMBER:
            raise TypeError(f"{shown(value)} is beyond {bounds.NUMBER:g}")
        return value

    return read


def _read_setting(value: object, _kind: object) -> Setting:
    if value in ("inf", "-inf") or isinstance(value, float):
        return _read_float(value, float)
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        whole: int = _read_exactly(int)(value, int)
        return whole
    raise TypeError(f"{shown(value)} is not a text, a number, true, false or null")


def _dataclass_reader(converter: Converter, kind: type) -> Callable[[Any, Any], Any]:
    """Read a dataclass strictly, and check the ranges of its numbers; see `_SIGNED`, `_ABOVE_0` and `_FINITE`."""
    read: Callable[[Any, Any], Any] = make_dict_structure_fn(kind, converter, _cattrs_forbid_extra_keys=True)
    names, left_out = [one.name for one in fields(kind)], _NO_LONGER_READ.get(kind.__name__, set())

    def read_checked(data: Any, asked: Any) -> Any:  # noqa: ANN401 - JSON
        if left_out and isinstance(data, Mapping):
            data = {key: value for key, value in data.items() if key not in left_out}
        made = read(data, asked)
        for name in names:
            value = getattr(made, name)
            if not isinstance(value, int | float):
                continue
            if value < 0 and not _SIGNED & {name, f"{kind.__name__}.{name}"}:
                raise TypeError(f"{name} is {shown(value)}; it must be at least 0")
            if value == 0 and _ABOVE_0 & {name, f"{kind.__name__}.{name}"}:
                raise TypeError(f"{name} is 0; it must be above 0")
            if math.isinf(value) and name in _FINITE:
                raise TypeError(f"{name} is {value}; it must be finite")
        return made

    return read_checked


def _compact(seen: Observation) -> Observation:
    """Aggregate many samples: per operator, means of groups of similar size, which keep the line through them."""
    if len(seen.samples) <= MAX_SAMPLES:
        return seen
    grouped: dict[str, list[TaskSample]] = {}
    for sample in seen.samples:
        grouped.setdefault(sample.operator, []).append(sample)
    means: list[TaskSample] = []
    for operator, samples in grouped.items():
        samples.sort(key=lambda sample: sample.records)
        size = math.ceil(len(samples) / _GROUPS)
        for start in range(0, len(samples), size):
            group = samples[start : start + size]
            records, seconds = sum(one.records for one in group), sum(one.seconds for one in group)
            means.append(TaskSample(operator, records / len(group), seconds / len(group)))
    return replace(seen, samples=tuple(means))


def _make_converter() -> Converter:
    converter = Converter(forbid_extra_keys=True)
    converter.register_structure_hook(float, _read_float)
    converter.register_unstructure_hook(float, _write_float)
    converter.register_unstructure_hook(int, int)  # NumPy integers are not JSON
    converter.register_unstructure_hook(bool, bool)
    for kind in (int, str, bool):
        converter.register_structure_hook(kind, _read_exactly(kind))
    converter.register_structure_hook_func(lambda kind: kind == Setting, _read_setting)
    converter.register_structure_hook_func(  # JSON has whole numbers as keys in text form
        lambda kind: getattr(kind, "__origin__", None) is Mapping and get_args(kind)[0] is int,
        lambda value, kind: {int(key): converter.structure(one, get_args(kind)[1]) for key, one in value.items()},
    )
    converter.register_structure_hook_factory(is_dataclass, partial(_dataclass_reader, converter))
    write: Callable[[Observation], dict[str, Any]] = make_dict_unstructure_fn(Observation, converter)
    converter.register_unstructure_hook(Observation, lambda seen: write(_compact(seen)))
    return converter


_CONVERTER = _make_converter()
