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
import random
import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from contextvars import ContextVar
from inspect import getattr_static
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
_MODULES = (dt, decimal, functools, json, logging, math, random, re, time, uuid)
_HARMLESS = {
    *(one.__name__ for one in _MODULES),
    *("builtins", "collections", "configparser", "itertools", "pyspark", "typing"),
}
_REFUSED = {
    *("__import__", "breakpoint", "compile", "eval", "exec", "input", "open"),
    *("delattr", "getattr", "globals", "locals", "setattr", "vars"),  # with which a text hides what it uses
}
_OUT_OF_SIGHT = {
    *("foreach", "foreachPartition", "rdd", "sparkContext", "sql", "writeTo", "writeStream", "mergeInto"),
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
    own = None
    if isinstance(value, MethodType) and _is_own(value.__self__):
        own, value = value.__self__, value.__func__
    if (key := hash((id(value), id(own)))) in known:
        return
    known.add(key)
    if isinstance(value, functools.partial):
        for one in (value.func, *value.args, *value.keywords.values()):
            yield from _beyond(one, by, known)
    elif isinstance(value, dict | list | tuple | set | frozenset):
        for one in (*value, *value.values()) if isinstance(value, dict) else value:
            yield from _beyond(one, by, known)
    elif isinstance(value, FunctionType) and _home(value) not in _HARMLESS:
        yield from _beyond_function(value, own, by, known)
    elif _home(value) not in _HARMLESS:
        yield f"{by} uses {getattr(value, '__name__', None) or type(value).__name__}"


def _beyond_function(function: FunctionType, own: object, by: str, known: set[int]) -> Iterator[str]:
    """Yield what a function reaches; as a method, of the object that is its `own`."""
    file = Path(function.__code__.co_filename)
    if not file.is_file() or {"site-packages", "dist-packages"} & {*file.parts}:
        yield f"{by} calls {function.__name__} of {_home(function)}"
        return
    code = function.__code__
    cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
    there = [(name, cell.cell_contents) for name, cell in cells if cell != CellType()]
    held = {name: one for name, one in (*there, *zip(code.co_varnames[:1], [own], strict=False)) if _is_own(one)}
    yield from _beyond_code(code, function.__globals__, held, known)
    others = (one for name, one in there if name not in held)
    for one in (*others, *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
        yield from _beyond(one, function.__name__, known)


def _beyond_code(code: CodeType, names: dict[str, Any], held: Mapping[str, Any], known: set[int]) -> Iterator[str]:
    """Yield what a code reaches; the variables that are `held` are objects of the script's own classes."""
    last, top, closed = "", None, {*code.co_cellvars, *code.co_freevars}
    for one in dis.get_instructions(code):
        two = "_FAST_" in one.opname and isinstance(one.argval, tuple)  # variables in one instruction
        name = str(one.argval[-1] if two else one.argval)
        by = f"{code.co_name} (line {one.positions and one.positions.lineno})"
        attribute = one.opname in {"LOAD_ATTR", "LOAD_METHOD"}
        reached: list[Any] = [] if top is None else _attribute(top, name) if attribute else [top]
        top = next((value for value in reached if attribute and _is_own(value)), None)
        for value in reached if top is None else ():
            yield from _beyond(value, by, known)
        if one.opname in {"LOAD_GLOBAL", "LOAD_NAME"} and name in _REFUSED:
            yield f"{by} calls {name}"
        elif one.opname in {"LOAD_GLOBAL", "LOAD_NAME"}:
            yield from _beyond(names.get(name, getattr(builtins, name, None)), by, known)
        elif one.opname == "IMPORT_NAME" and name.partition(".")[0] not in _HARMLESS:
            yield f"{by} imports {name}"
        elif attribute and not reached and name not in _in_sight():
            yield f"{by} uses {name}"
        elif one.opname == "LOAD_CONST" and last == "format" and _KIND.fullmatch(name) and name.lower() not in _KINDS:
            yield f"{by} writes to {name}"
        elif isinstance(one.argval, CodeType):
            inner = {free: held[free] for free in one.argval.co_freevars if free in held}
            yield from _beyond_code(one.argval, names, inner, known)
        elif "LOAD_DEREF" in one.opname or ("LOAD_FAST" in one.opname and name not in closed):
            top = held.get(name)
        last = name


def _is_own(value: object) -> bool:
    """Report whether a value is an object of the script's classes, or of an unknown library's."""
    return _home(type(value)) not in _HARMLESS


def _attribute(own: object, name: str) -> list[Any]:
    """Return an attribute, or the method of a property; nothing if there is none."""
    with suppress(Exception):  # whatever a script's class does
        found: Any = getattr_static(own, name)
        is_made = isinstance(found, property | functools.cached_property)
        return [MethodType(getattr(found, "fget", None) or found.func, own) if is_made else getattr(own, name)]
    return []


@functools.cache
def _in_sight() -> frozenset[str]:
    """Names that a function may use of its values: all that neither write nor are unknown."""
    names = (name for one in _SEEN for name in dir(one))
    seen = (name for name in names if not name.startswith("_"))
    return frozenset({"tableExists", "databaseExists", *seen}) - _OUT_OF_SIGHT


def _home(value: object) -> str:
    """Return the package that a value comes from."""
    if isinstance(value, ModuleType):
        module = value.__name__
    elif isinstance(value, FunctionType):
        module = value.__globals__.get("__name__", "")  # from a wrapper
    elif isinstance(value, BuiltinFunctionType):
        module = value.__module__ or _home(type(value.__self__))
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
