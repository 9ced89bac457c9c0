"""A measurement: the estimate of one query on one budget, with all that is needed to read it later.

It is stored as one versioned JSON file. Reading is strict: unknown keys and wrong types are refused, not guessed
at. JSON has no inf, so inf is the text ``"inf"``; NaN is never a result and is refused.
"""

import json
import math
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from cattrs import Converter, transform_error
from cattrs.v import format_exception

from workbench import __version__
from workbench.capacity.costs import OperatorCost
from workbench.capacity.probes import MstEstimate, Probe
from workbench.capacity.repeatability import MstInterval
from workbench.dataflow import Budget
from workbench.errors import WorkbenchError
from workbench.metrics import Observation, SourceProfile, TaskSample

VERSION = 1
MAX_SAMPLES = 1000
_GROUPS = 100
_STREAMS = (Path("/dev"), Path("/dev/fd"), Path("/proc/self/fd"))  # where open files have other names

Setting = str | int | float | bool | None
_Kind = TypeVar("_Kind")


@dataclass(frozen=True)
class Measurement:
    """What was measured.

    Parameters
    ----------
    query
        Name of the query.
    budget
        Slots, their profile and the trigger interval.
    estimate
        The bracketed MST with its probes.
    costs
        Fixed and per-record costs per operator.
    source
        The source's own profile; None if it was not profiled.
    testbed
        Name of the testbed.
    started_at
        ISO 8601 date and time.
    machine
        Description of the machine.
    settings
        Settings of the estimator and the testbed.
    load_curve
        Observations at lower rates, which the costs rest on besides the probes.
    workbench_version
        Version that measured.
    tasks
        Tasks by operator, where an optimizer set them.
    predicted_rate
        Records/s that the optimizer expected of them.
    interval
        Where the maximum of a next deployment lies; None without a bracket of the query's own.
    failure
        Why nothing was measured; None for a measurement.
    unbounded_state
        Whether the query's state grows with every record, so that the rate is one at a size of the state and no MST.
    """

    query: str
    budget: Budget
    estimate: MstEstimate
    costs: tuple[OperatorCost, ...]
    source: SourceProfile | None
    testbed: str
    started_at: str
    machine: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Setting] = field(default_factory=dict)
    load_curve: tuple[Probe, ...] = ()
    workbench_version: str = __version__
    tasks: Mapping[str, int] | None = None
    predicted_rate: float | None = None
    interval: MstInterval | None = None
    failure: str | None = None
    unbounded_state: bool = False

    def __post_init__(self) -> None:
        try:
            datetime.fromisoformat(self.started_at)
        except ValueError as error:
            raise WorkbenchError(
                f"started_at is {self.started_at!r}; it must be an ISO 8601 date and time such as "
                "2026-01-31T12:00:00+00:00."
            ) from error

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write the measurement to `path`, all of it or nothing.

        Raises
        ------
        WorkbenchError
            When a number is NaN.
        """
        document = {"version": VERSION, **measurement_to_dict(self)}
        write_whole(path, json.dumps(document, allow_nan=False, ensure_ascii=False, indent=1) + "\n")

    @classmethod
    def from_json(cls, path: str | os.PathLike[str]) -> "Measurement":
        """Read a measurement.

        Raises
        ------
        WorkbenchError
            When the file is missing, not JSON, of another version, or has unknown keys or wrong types.
        """
        try:
            document = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise WorkbenchError(f"The measurement {path} cannot be read: {error.strerror}. Check the path.") from error
        except ValueError as error:
            raise WorkbenchError(f"The measurement {path} is not JSON: {error}. Measure again.") from error
        if not isinstance(document, dict):
            raise WorkbenchError(f"The measurement {path} is a JSON {type(document).__name__}; it must be an object.")
        version = document.pop("version", None)
        if version != VERSION:
            raise WorkbenchError(
                f"The measurement {path} has version {version!r}; this workbench reads version {VERSION}. Read it "
                "with the workbench that wrote it, or measure again."
            )
        return measurement_from_dict(document, f"The measurement {path}")


def write_whole(path: str | os.PathLike[str], text: str) -> None:
    """Write `text` to `path`, all of it or nothing; folders are made.

    A symbolic link stays, and what it points to is written. What is no regular file, such as a pipe, or another name
    of an open file, such as ``/dev/stdout``, is written straight, at its end.

    Raises
    ------
    WorkbenchError
        When the file cannot be written, or the text has half a character.
    """
    try:
        data = text.encode("utf-8")
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
    handle, name = tempfile.mkstemp(prefix=f".{target.name[:40]}.", suffix=".tmp", dir=target.parent)
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


def measurement_to_dict(measurement: Measurement) -> dict[str, Any]:
    """Plain JSON values of `measurement`."""
    estimate = measurement.estimate
    compact = replace(
        estimate,
        probes=tuple(replace(probe, observation=_compact(probe.observation)) for probe in estimate.probes),
        observation=None if estimate.observation is None else _compact(estimate.observation),
    )
    curve = tuple(replace(probe, observation=_compact(probe.observation)) for probe in measurement.load_curve)
    return _unstructure(replace(measurement, estimate=compact, load_curve=curve))


def measurement_from_dict(data: Mapping[str, Any], what: str = "The measurement") -> Measurement:
    """Build a measurement from plain JSON values; `what` names it in errors."""
    return _structure(data, Measurement, what)


def probe_to_dict(probe: Probe) -> dict[str, Any]:
    """Plain JSON values of `probe`, for a journal."""
    return _unstructure(replace(probe, observation=_compact(probe.observation)))


def probe_from_dict(data: Mapping[str, Any]) -> Probe:
    """Build a probe from plain JSON values.

    Raises
    ------
    WorkbenchError
        When a key is unknown or missing, or a value has a wrong type.
    """
    return _structure(data, Probe, "The recorded probe")


def _compact(observation: Observation) -> Observation:
    """Aggregate many samples: per operator, means of groups of similar size, which keep the line through them."""
    if len(observation.samples) <= MAX_SAMPLES:
        return observation
    grouped: dict[str, list[TaskSample]] = {}
    for sample in observation.samples:
        grouped.setdefault(sample.operator, []).append(sample)
    means: list[TaskSample] = []
    for operator, samples in grouped.items():
        samples.sort(key=lambda sample: sample.records)
        size = math.ceil(len(samples) / _GROUPS)
        means.extend(_mean(operator, samples[start : start + size]) for start in range(0, len(samples), size))
    return replace(observation, samples=tuple(means))


def _mean(operator: str, samples: Sequence[TaskSample]) -> TaskSample:
    count = len(samples)
    return TaskSample(
        operator, sum(sample.records for sample in samples) / count, sum(sample.seconds for sample in samples) / count
    )


def _unstructure(value: object) -> dict[str, Any]:
    result: dict[str, Any] = _CONVERTER.unstructure(value)
    return result


def _structure(data: object, kind: type[_Kind], what: str) -> _Kind:
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


def _make_converter() -> Converter:
    converter = Converter(forbid_extra_keys=True)
    converter.register_structure_hook(float, _read_float)
    converter.register_unstructure_hook(float, _write_float)
    converter.register_unstructure_hook(int, int)  # NumPy integers are no JSON
    converter.register_unstructure_hook(bool, bool)
    for kind in (int, str, bool):
        converter.register_structure_hook(kind, _read_exactly(kind))
    converter.register_structure_hook_func(lambda kind: kind == Setting, _read_setting)
    return converter


_CONVERTER = _make_converter()
