"""What a script's ``foreachBatch`` function writes, put into a folder of the run's own.

The writers of its DataFrames are redirected. That is done only for a function whose code reaches nothing else that
could write: clients of other systems, files, SQL, tables of catalogs and functions of partitions are out of sight.
"""

import builtins
import datetime as dt
import decimal
import dis
import functools
import json
import logging
import math
import re
import time
import uuid
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from pyspark.sql import functions, types
from pyspark.sql.classic.column import Column
from pyspark.sql.classic.dataframe import DataFrame
from pyspark.sql.classic.window import Window
from pyspark.sql.conf import RuntimeConfig
from pyspark.sql.dataframe import DataFrameNaFunctions, DataFrameStatFunctions
from pyspark.sql.group import GroupedData
from pyspark.sql.readwriter import DataFrameReader, DataFrameWriter
from pyspark.sql.session import SparkSession

from workbench.errors import QueryError
from workbench.workload.script import FILES, ScriptBatches

_KINDS = (*FILES, "avro", "delta", "noop")
_KIND = re.compile(r"[\w.]+")
_MODULES = (dt, decimal, functools, json, logging, math, re, time, uuid)
_HARMLESS = {*(one.__name__ for one in _MODULES), "builtins", "collections", "itertools", "pyspark", "typing"}
_REFUSED = {
    *("__import__", "breakpoint", "compile", "eval", "exec", "input", "open"),
    *("delattr", "getattr", "globals", "locals", "setattr", "vars"),  # with which a text hides what it uses
}
_OUT_OF_SIGHT = {
    *("foreach", "foreachPartition", "rdd", "sparkContext", "sql", "catalog", "writeTo", "writeStream", "mergeInto"),
    *("jdbc", "insertInto", "FileHandler", "exec", "dump"),
}
_SPARKS = (
    *(DataFrame, Column, Window, RuntimeConfig, DataFrameNaFunctions, DataFrameStatFunctions, GroupedData),
    *(DataFrameReader, DataFrameWriter, SparkSession, types.Row, functions, types),
)
_PYTHONS = (str, bytes, dict, list, set, tuple, int, float, Exception)
_SEEN = (*(*_SPARKS, *_PYTHONS, *_MODULES, dt.datetime, dt.timedelta, decimal.Decimal), *(logging.Logger, uuid.UUID))

_handed: dict[str, tuple[Callable[..., Any], str]] = {}
_place: ContextVar[str] = ContextVar("_place", default="")
_writer_of: Any = DataFrame.__dict__["write"].fget


def hand_over(name: str, function: Callable[..., Any] | None) -> None:
    """Keep what the script's query called `name` passes to ``foreachBatch``, for `call`."""
    if function is not None:
        _handed[name] = function, beyond(function)  # only once: batches are measured


def call(batches: ScriptBatches, batch: object, number: int, place: str) -> None:
    """Call the function that the script passed; with a `place`, everything it writes goes there."""
    given, reason = _handed.get(batches.script.name, (None, ""))
    if given is None or name_of(given) != batches.function:
        gives = "nothing" if given is None else name_of(given)
        raise QueryError(
            f"The sink is {batches.function}, and the query {batches.script.name} gives {gives} to foreachBatch. "
            f"Write its study again: workbench init {batches.script.call!r}"
        )
    if place and reason:
        raise QueryError(
            f"What {batches.function} writes cannot be put into {place}: {reason}. Name no place after it, and it "
            "writes where it always does; or leave the sink out."
        )
    _redirect()
    token = _place.set(place)
    try:
        given(batch, number)
    finally:
        _place.reset(token)


def name_of(function: Callable[..., Any]) -> str:
    """Return the name for what is passed to ``foreachBatch`` in a study; "foreachBatch" if it has none."""
    name = getattr(function, "__name__", "")
    return name if name.isidentifier() else "foreachBatch"


def beyond(function: object) -> str:
    """Describe what a function reaches whose writing cannot be redirected; "" if there is nothing of that kind."""
    return next(_beyond(function, "it", set()), "")


def _beyond(value: object, by: str, known: set[int]) -> Iterator[str]:
    """Yield what a value that is used `by` a function reaches."""
    if id(value) in known:
        return
    known.add(id(value))
    if isinstance(value, MethodType) and _home(type(value.__self__)) not in _HARMLESS:
        value = value.__func__
    if isinstance(value, functools.partial):
        for one in (value.func, *value.args, *value.keywords.values()):
            yield from _beyond(one, by, known)
    elif isinstance(value, dict | list | tuple | set | frozenset):
        for one in (*value, *value.values()) if isinstance(value, dict) else value:
            yield from _beyond(one, by, known)
    elif isinstance(value, FunctionType) and _home(value) not in _HARMLESS:
        yield from _beyond_function(value, by, known)
    elif _home(value) not in _HARMLESS:
        yield f"{by} uses {getattr(value, '__name__', None) or type(value).__name__}"


def _beyond_function(function: FunctionType, by: str, known: set[int]) -> Iterator[str]:
    file = Path(function.__code__.co_filename)
    if not file.is_file() or {"site-packages", "dist-packages"} & {*file.parts}:
        yield f"{by} calls {function.__name__} of {_home(function)}"
        return
    yield from _beyond_code(function.__code__, function.__globals__, known)
    cells = [cell.cell_contents for cell in function.__closure__ or () if cell != CellType()]
    for one in (*cells, *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
        yield from _beyond(one, function.__name__, known)


def _beyond_code(code: CodeType, names: dict[str, Any], known: set[int]) -> Iterator[str]:
    last = ""
    for one in dis.get_instructions(code):
        name, by = str(one.argval), f"{code.co_name} (line {one.positions and one.positions.lineno})"
        if one.opname in {"LOAD_GLOBAL", "LOAD_NAME"} and name in _REFUSED:
            yield f"{by} calls {name}"
        elif one.opname in {"LOAD_GLOBAL", "LOAD_NAME"}:
            yield from _beyond(names.get(name, getattr(builtins, name, None)), by, known)
        elif one.opname == "IMPORT_NAME" and name.partition(".")[0] not in _HARMLESS:
            yield f"{by} imports {name}"
        elif one.opname in {"LOAD_ATTR", "LOAD_METHOD"} and name not in _in_sight():
            yield f"{by} uses {name}"
        elif one.opname == "LOAD_CONST" and last == "format" and _KIND.fullmatch(name) and name.lower() not in _KINDS:
            yield f"{by} writes to {name}"
        elif isinstance(one.argval, CodeType):
            yield from _beyond_code(one.argval, names, known)
        last = name


@functools.cache
def _in_sight() -> frozenset[str]:
    """Names that a function may use of its values: all that neither write nor are unknown."""
    names = (name for one in _SEEN for name in dir(one))
    return frozenset(name for name in names if not name.startswith("_")) - _OUT_OF_SIGHT


def _home(value: object) -> str:
    """Return the package that a value comes from."""
    if isinstance(value, ModuleType):
        module = value.__name__
    elif isinstance(value, FunctionType):
        module = value.__globals__.get("__name__", "")  # from a wrapper
    elif isinstance(value, BuiltinFunctionType):
        module = value.__module__ or "builtins"
    else:
        module = value.__module__ if isinstance(value, type) else type(value).__module__
    return str(module).partition(".")[0]


@functools.cache
def _redirect() -> None:
    """Make the writers of static DataFrames obey `_place`, in this process for good: batches may overlap."""
    DataFrame.write = property(  # type: ignore[method-assign,assignment]
        lambda frame: _Elsewhere(_writer_of(frame), _place.get()) if _place.get() else _writer_of(frame)
    )


class _Elsewhere:
    """Replaces a batch's writer: what would go to a path or a table goes below `place`."""

    def __init__(self, writer: DataFrameWriter, place: str) -> None:
        self._writer, self._place, self._path, self._kind = writer, place, "", "parquet"

    def __getattr__(self, method: str) -> Callable[..., Any]:
        return functools.partial(self._called, method)

    def _called(self, method: str, *values: Any, **named: Any) -> Any:  # noqa: ANN401 - Spark's
        if method in {"option", "options"}:
            given = dict([(values or tuple(named.values()))]) if method == "option" else named
            self._path = next((str(value) for name, value in given.items() if name.lower() == "path"), self._path)
            self._writer.options(**{name: value for name, value in given.items() if name.lower() != "path"})
            return self
        if method in {"save", "saveAsTable", *FILES}:
            return self._end(method, *values, **named)
        if method == "format":
            self._kind = str((values or tuple(named.values()))[0])
        elif method not in {"mode", "partitionBy", "bucketBy", "sortBy", "clusterBy"}:
            raise QueryError(f"The sink's function writes by {method}(), which cannot be put elsewhere. Leave it out.")
        getattr(self._writer, method)(*values, **named)
        return self

    def _end(self, method: str, *values: Any, **named: Any) -> None:  # noqa: ANN401
        kind = str(named.get("format") or self._kind).lower()
        if method in {"save", "saveAsTable"} and kind == "noop":
            self._writer.mode("overwrite").save()
            return
        where = next(
            (str(one) for one in (*values[:1], named.pop("path", ""), named.pop("name", "")) if one), self._path
        )
        if not where or (method not in FILES and kind not in _KINDS):
            raise QueryError(
                f"The sink's function writes to {kind}{'' if where else ' without a path'}, which cannot be put "
                "elsewhere. Name no place in the study's sink, and it writes where it always does; or leave it out."
            )
        name = "".join(one if one.isalnum() else "_" for one in where)[-60:].strip("_") or "written"
        getattr(self._writer, "save" if method == "saveAsTable" else method)(
            f"{self._place}/{name}", *values[1:], **named
        )
