"""Digests of what a measurement depends on: the code that observes, the query's code, and the data.

Measurements with equal digests may be mixed. After any of them changes, the workbench measures again.
"""

import ast
import functools
import hashlib
import inspect
from collections.abc import Iterable, Iterator
from dataclasses import is_dataclass
from pathlib import Path
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import workbench
from workbench.errors import WorkbenchError
from workbench.workload import Dataset, Query, Script, Unread

PROTOCOL = 3  # version of what a probe and a measurement mean: raise it when old and new probes must not be mixed
_OBSERVING = ("testbed", "workload", "simulation")
_APART = "kafka"  # samples of topics are made before anything is observed
_INSTALLED = {"site-packages", "dist-packages"}
_LONGEST = 1000  # longest text that is kept unchanged, in characters
_HOME = Path(workbench.__file__).resolve().parent


@functools.cache
def observing_code() -> str:
    """Digest of the code that deploys and observes; comments, docstrings and layout are not part of it."""
    files = (
        file
        for room in _OBSERVING
        for file in sorted((_HOME / room).rglob("*.py"))
        if _APART not in {*file.parts, file.stem}
    )
    return _digest(*(_without_prose(file.read_bytes()) for file in files))


def _without_prose(source: bytes) -> bytes:
    """Return the code of a module without what only its readers see."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            kept = [one for one in body if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))]
            node.body = kept or [ast.Pass()]  # type: ignore[attr-defined]
    return ast.dump(tree).encode()


class Nothing:
    """The definition of a simulated or recorded query, which is only a name."""

    build = dataset = event_time = output_mode = topic = sink = None
    unbounded_state = False


def definition_of(query: object) -> Query | Nothing:
    """Return what defines `query`."""
    return query if isinstance(query, Query) else Nothing()


def code_of(query: Query) -> str:
    """Digest of the code of the query, and of what ``foreachBatch`` calls.

    It is the module that a function is in, with what that imports from the user's folder, or the function alone where
    it was typed into a notebook or a shell; and what a ``functools.partial``, a closure or an object that is called
    holds.
    """
    made = definition_of(query)
    built = _code(made.build, query)
    return built if made.sink is None else _digest(built.encode(), _code(made.sink, query).encode())


def _code(build: Any, query: Query) -> str:  # noqa: ANN401 - whatever is called
    bound: list[str] = []
    while isinstance(build, functools.partial):
        bound += [_bound(value) for value in (*build.args, *build.keywords.items())]
        build = build.func
    if isinstance(build, Script):
        texts = (text for file in build.files for text in _sources(file.stem, file))
        return _digest(*texts, repr((build.arguments, build.number)).encode())
    if isinstance(build, Unread):
        return _digest(*_sources(build.module, build.file))
    module = inspect.getmodule(build)
    file = Path(getattr(module, "__file__", None) or "")
    if not isinstance(build, FunctionType):
        bound += [_bound(build)] if build is not None else []
    elif not file.is_file() or getattr(module, build.__qualname__, None) is not build:  # the module lacks some of it
        bound += map(_bound, _held(build))
    if module is not None and file.is_file():
        return _digest(*_sources(module.__name__, file), *(text.encode() for text in bound))
    try:
        source = inspect.getsource(build)
    except (OSError, TypeError):  # a model, a callable object, or code without a text
        called = type(build).__call__ if callable(build) and not hasattr(build, "__code__") else build
        code = getattr(called, "__code__", None)
        source = repr(query) if code is None else _compiled(code)
    return _digest(*(text.encode() for text in (source, *bound)))


def data_of(query: Query) -> str:
    """Return what identifies the data: the settings of a generator, or the files of a data set with sizes and times."""
    dataset = definition_of(query).dataset
    if isinstance(dataset, tuple):
        return repr([(one, _files_of(one.dataset)) for one in dataset])
    if not isinstance(dataset, Dataset):
        return repr(dataset) if is_dataclass(dataset) else type(dataset).__qualname__
    topic = definition_of(query).topic
    return repr((dataset.format, dataset.event_time, _files_of(dataset), *([topic] if topic else [])))


def _files_of(dataset: Dataset) -> list[tuple[str, int, int]]:
    """Paths of a data set's files, with their sizes and times."""
    place = Path(dataset.path)
    if not place.exists():
        raise WorkbenchError(f"The dataset {dataset.path!r} does not exist; check the path.")
    files = sorted(path for path in place.rglob("*") if path.is_file()) if place.is_dir() else [place]
    return [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files]


def _sources(name: str, file: Path) -> Iterator[bytes]:
    """Yield the text of a module and, if it is the user's, of the modules that it imports from the same folder tree."""
    file = file.resolve()
    depth = name.count(".") + (file.name == "__init__.py")
    folder = file.parents[min(depth, len(file.parents) - 1)]
    texts: dict[Path, bytes] = {}
    waiting = [file]
    while waiting:
        file = waiting.pop()
        if file not in texts:
            texts[file] = file.read_bytes()
            if _HOME not in file.parents and not _INSTALLED & {*file.parts}:
                waiting.extend(_imported(texts[file], file, folder))
    return (texts[file] for file in sorted(texts))


def _imported(text: bytes, file: Path, folder: Path) -> Iterator[Path]:
    """Yield the files below `folder` that the module with this `text` imports, also inside functions."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):  # half edited, or not Python
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [(folder, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = file.parents[node.level - 1] if node.level else folder
            module = f"{node.module}." if node.module else ""
            names = [(start, f"{module}{alias.name}") for alias in node.names]
        else:
            continue
        for start, name in names:
            place = start
            for part in name.split("."):  # the last part may be a module or a name in one
                place /= part
                yield from (path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file())


def _bound(value: object, known: dict[int, tuple[int, object]] | None = None) -> str:
    """Describe a bound value by its parts; `known` are numbered, since values may contain each other."""
    if value is None or isinstance(value, str | bytes | int | float | complex | type):
        return repr(value)
    if isinstance(value, ModuleType):
        return value.__name__
    known = {} if known is None else known
    if id(value) in known:
        return f"no. {known[id(value)][0]}"
    known[id(value)] = len(known), value
    if isinstance(value, set | frozenset):
        return _short(repr(sorted(_bound(one) for one in value)))
    return _short(repr([_bound(one, known) for one in _parts(value)]))


def _short(text: str) -> str:
    """Replace a long text by its digest: each level of nesting would quote it again and double its backslashes."""
    return text if len(text) <= _LONGEST else hashlib.sha256(text.encode()).hexdigest()


def _parts(value: object) -> Iterable[object]:
    """Return the parts of a value: for a function its code and what it holds, otherwise what a copy is made from."""
    if isinstance(value, tuple | list):
        return value
    if isinstance(value, dict):
        return value.items()
    if isinstance(value, FunctionType):
        return (value.__module__, value.__qualname__, _compiled(value.__code__), *_held(value))
    try:
        made = value.__reduce_ex__(2)
    except Exception:  # noqa: BLE001 - what has no copies, such as a lock or a session, may refuse in any way
        return (type(value),)
    if isinstance(made, str):  # the name of something that exists once
        return (made,)
    return [list(part) if isinstance(part, Iterator) else part for part in made]


def _held(function: FunctionType) -> Iterator[object]:
    """Yield what a function holds in addition to its code: its defaults, and what it closes over."""
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).items()
    yield from (cell.cell_contents for cell in function.__closure__ or () if cell != CellType())


def _compiled(code: CodeType) -> str:
    """Describe what `code` does: its instructions, their names and constants, and those of inner functions."""
    # a set prints in another order in each process
    constants = (sorted(map(repr, one)) if isinstance(one, frozenset) else one for one in code.co_consts)
    texts = [_compiled(one) if isinstance(one, CodeType) else repr(one) for one in constants]
    return repr((code.co_code, code.co_names, texts))


def _digest(*parts: bytes) -> str:
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]
