"""What users name as ``module:name``: modules are looked for in the current folder first, and read again there.

Whether a query can be planned, and its keys, is also read from the text of its module, before any of it runs. The text
is parsed, not executed. What it does not show, such as a function that another module makes, passes.
"""

import ast
import builtins
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, redirect_stdout, suppress
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import Any

from workbench.checks import meant
from workbench.errors import WorkbenchError
from workbench.reading import is_there
from workbench.workload import Unread

_LONGEST = 500  # characters of a message
_NEAR = 0.8  # of a name to one that it was probably meant to be
_NOT_HERE = "Run the command in the folder of its file, or install it."
_WAITS = {"awaitTermination", "awaitAnyTermination"}
_DEFINED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_BY_KEY = {"groupBy", "groupby", "rollup", "cube", "dropDuplicates", "drop_duplicates", "dropDuplicatesWithinWatermark"}
_HIDING = {"distinct", "sql", "transform"}  # methods of Spark's whose state goes by columns that they do not name
_WINDOWS = {"window", "session_window", "window_time"}
_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*")


def load_own(name: str, kind: str) -> object:
    """Load the object called `name`, ``module:name`` or ``file.py:name``, from a user's module."""
    text, _, attribute = name.partition(":")
    module = module_of(text)
    here = str(Path.cwd())
    if sys.path[0] != here:
        sys.path.insert(0, here)
    _forget(module)
    remedy = "Fix it; what it does as a script belongs under if __name__ == '__main__'."
    what = f"The module {module!r} of {kind} {name!r} cannot be imported"
    with users_code(what, remedy, _NOT_HERE), chdir(here), redirect_stdout(sys.stderr):  # what it prints is no result
        loaded = importlib.import_module(module)
    with users_code(f"The module {module!r} cannot provide {attribute!r}", "Fix it."):
        found: object = getattr(loaded, attribute, None)
    if found is None:
        raise missing(module, attribute, loaded)
    return found


def read_own(name: str, kind: str) -> Unread:
    """Find the object called `name` in the text of a user's module; see `load_own`. Nothing of it is executed."""
    text, _, attribute = name.partition(":")
    module = module_of(text)
    file = file_of(module)
    if file is None:
        raise WorkbenchError(
            f"The module {module!r} of {kind} {name!r} is not found without importing anything. {_NOT_HERE}"
        )
    with users_code(f"The module {module!r} of {kind} {name!r} cannot be read", "Fix it."):
        tree = ast.parse(file.read_bytes())
    functions = [one.name for one in tree.body if isinstance(one, ast.FunctionDef | ast.ClassDef)]
    if attribute not in functions and not _may_bind(tree, attribute):
        raise _lacks(module, attribute, [one for one in functions if not one.startswith("_")])
    check_module(f"{module}:{attribute}", file)
    return Unread(module, file, is_function=attribute in functions)


def file_of(module: str) -> Path | None:
    """Find the file of a module without importing anything; None if there is none."""
    places = [Path(place, *module.split(".")) for place in (str(Path.cwd()), *filter(None, sys.path))]
    files = (file for place in places for file in (place.with_name(f"{place.name}.py"), place / "__init__.py"))
    return next((file for file in files if is_there(file) and file.is_file()), None)


def _may_bind(tree: ast.Module, name: str) -> bool:
    """Whether a module may bind this name in another way than by a definition."""
    return any(
        (isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store))
        or (isinstance(node, ast.alias) and (node.asname or node.name) in {name, "*"})
        or (isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in {name, "__getattr__"})
        for node in ast.walk(tree)
    )


@contextmanager
def users_code(what: str, remedy: str, to_import: str = "") -> Iterator[None]:
    """Report an error in a user's code, which may do anything, such as sys.exit; `to_import` is for what is missing."""
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if to_import and isinstance(error, ImportError):
            remedy = to_import
        raise WorkbenchError(f"{what}: {described(error)}. {remedy}") from error


def described(error: BaseException) -> str:
    """Describe what a user's code raised: kind and message, cut if it is long."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - of a user's class
        text = "its message cannot be shown"
    return f"{type(error).__name__}: {text[:_LONGEST]}{'...' * (len(text) > _LONGEST)}"


def missing(module: str, attribute: str, loaded: object) -> WorkbenchError:
    """Make the error that `loaded`, a user's module, has nothing of this name to call."""
    own = inspect.getmembers(
        loaded, lambda one: inspect.isfunction(one) or (inspect.isclass(one) and one.__module__ == module)
    )
    return _lacks(module, attribute, [key for key, _ in own if not key.startswith("_")])


def _lacks(module: str, attribute: str, known: list[str]) -> WorkbenchError:
    near = get_close_matches(attribute, known, n=1)
    hint = f"Did you mean {module}:{near[0]}? " if near else ""
    return WorkbenchError(
        f"The module {module!r} has no function {attribute!r}. {hint}Its functions are {', '.join(known) or 'none'}."
    )


def module_of(text: str) -> str:
    """Return the module's name, from a name or the path of a file in this folder."""
    if not text.endswith(".py"):
        return text
    try:
        inside = Path(text).resolve().relative_to(Path.cwd())
    except ValueError:
        raise WorkbenchError(
            f"The file {text!r} is not in this folder, so it cannot be imported. Run the command in its folder."
        ) from None
    return ".".join(inside.with_suffix("").parts)


def _forget(module: str) -> None:
    """Have a module of the user's folder imported again: in a notebook, the module or the folder may have changed."""
    importlib.invalidate_caches()
    file = file_of(module)
    if file and Path.cwd() in file.parents and "site-packages" not in file.parts:
        sys.modules.pop(module, None)


def check_module(name: str, file: Path) -> None:
    """Refuse a query whose module would not finish, or would start a stream, when imported."""
    for statement in _parsed(file).body:
        if isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test):
            continue
        if word := _started_by([statement], within=False):
            raise WorkbenchError(
                f"The module of the query {name!r} runs {word} in line {statement.lineno} of {file.name} as soon as it "
                "is imported. Put what runs it as a script under if __name__ == '__main__', and the query into a "
                "function of a streaming DataFrame that returns one."
            )


def check_function(name: str, file: Path, function: str, inputs: Sequence[str] = ()) -> None:
    """Refuse a function that is not a query, by its text in `file`; accept one that the text does not define.

    `inputs` are the names of its inputs; none: it has one, of any name.
    """
    tree = _parsed(file)
    found = _functions(tree).get(function)
    if found is None:
        return
    if not found.decorator_list:  # a decorator may change them
        _check_arguments(name, _signature(found.args), inputs)
    _check_sink(name, found, tree)
    own = list(_own(found.body))
    for loop in (one for one in own if isinstance(one, ast.While)):
        ends = any(isinstance(one, ast.Break | ast.Return | ast.Raise) for one in _own(loop.body))
        if isinstance(loop.test, ast.Constant) and loop.test.value and not ends:
            raise WorkbenchError(
                f"The query {name!r} never returns: the loop in line {loop.lineno} has no end. Return the streaming "
                "DataFrame; the workbench starts the query, and ends it."
            )
    gives = (ast.Return, ast.Yield, ast.YieldFrom, ast.Raise)
    if not any(isinstance(one, gives) and (isinstance(one, ast.Raise) or one.value is not None) for one in own):
        raise WorkbenchError(f"The query {name!r} returns nothing. Return the streaming DataFrame that it makes.")


def check_loaded(name: str, build: Callable[..., Any], inputs: Sequence[str] = ()) -> None:
    """Refuse a loaded object that is not a query, by its signature and its text, if available."""
    if (asked := signature_of(build)) is not None:
        _check_arguments(name, asked, inputs)
    while isinstance(build, partial):
        build = build.func
    written = inspect.unwrap(build)
    if isinstance(written, FunctionType) and (file := Path(written.__code__.co_filename)).is_file():
        check_function(name, file, written.__name__ if build is written else "", inputs)
        if build is not written:  # its decorator may pass anything on, but not return another object
            tree = _parsed(file)
            if found := _functions(tree).get(written.__name__):
                _check_sink(name, found, tree)


def signature_of(called: Callable[..., Any]) -> inspect.Signature | None:
    """Return the signature of a loaded object; None if it is not written in Python."""
    with suppress(TypeError, ValueError):
        return inspect.signature(called, follow_wrapped=False)
    return None


def written_signature(file: Path, function: str) -> inspect.Signature | None:
    """Return the signature of a function from its text; None if a decorator may change it, or it is missing."""
    found = _functions(_parsed(file)).get(function)
    return None if found is None or found.decorator_list else _signature(found.args)


def check_batch_function(name: str, signature: inspect.Signature | None, *, placed: bool) -> None:
    """Refuse a sink that ``foreachBatch`` cannot call, by its signature; accept one without a signature.

    It is called with a batch and its number, and with `place` where it is `placed`.
    """
    if signature is None:
        return
    given = {"place": ""} if placed else {}
    try:
        signature.bind(None, 0, **given)
    except TypeError:
        takes = ", ".join(str(one.replace(annotation=one.empty)) for one in signature.parameters.values())
        also = " and, as the study names a place, the argument 'place': def write(batch, number, place='YOUR TABLE')"
        raise WorkbenchError(
            f"The sink {name!r} takes ({takes}); foreachBatch calls it with two arguments, a DataFrame and the number "
            f"of its batch{also * placed}. Correct its arguments.",
            settings=("sink",),
        ) from None


def state_keys(file: Path, function: str) -> dict[str, frozenset[str]] | None:
    """Names of the columns that a function's ``state`` and ``join`` go by, without what it has not.

    None where its text does not show them. A text such as ``expr("a.id = b.id")`` gives all names in it. Windows of
    event time are not keys.
    """
    tree = _parsed(file)
    found = _functions(tree).get(function)
    if found is None:
        return None
    known = {
        target.id: one.value
        for one in ast.walk(tree)
        if isinstance(one, ast.Assign)
        for target in one.targets
        if isinstance(target, ast.Name)
    }
    keys = dict[str, frozenset[str]]()
    calls = [one for body in _reached(found, tree) for one in ast.walk(body) if isinstance(one, ast.Call)]
    for call in calls:
        what, each = _keys_given(call)
        for given in each:
            columns = _columns(given, known)
            if columns is None:
                return None
            if columns:
                keys[what] = keys.get(what, frozenset()) | columns
    return keys if keys or not any(_may_hide_keys(call, tree) for call in calls) else None


def mistyped_keys(file: Path, keys: Iterable[str], columns: Sequence[str]) -> dict[str, str]:
    """Return, of `state_keys`, those that no data has and that occur once in a module's text, each with a near column.

    A column that the module makes occurs where it is made, too.
    """
    text, there = file.read_text(errors="replace"), {one.lower() for one in columns}
    once = (
        one
        for one in sorted(keys)
        if one.lower() not in there and len(re.findall(rf"(?<!\w){re.escape(one)}(?!\w)", text)) == 1
    )
    near = ((one, get_close_matches(one, columns, n=1, cutoff=_NEAR)) for one in once)
    return {one: found[0] for one, found in near if found}


def check_watermarks(name: str, file: Path, function: str, columns: Mapping[str, Sequence[str]]) -> None:
    """Refuse a watermark on an argument of a function, by its text, if the data lacks the column.

    `columns` are those of the data, by the arguments in their order; the name of a single one may be "".
    """
    found = _functions(_parsed(file)).get(function)
    if found is None or found.decorator_list:
        return
    parts = list(ast.walk(found))
    given = [one.arg for one in parts if isinstance(one, ast.arg)]  # also of functions inside
    stored = {one.id for one in parts if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    fed = dict(zip(_signature(found.args).parameters, columns.values(), strict=False))
    for call in parts:
        match call:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=argument), attr="withWatermark"),
                args=[ast.Constant(value=str(column)), *_],
            ) if argument in fed and argument not in stored and given.count(argument) == 1:
                there = fed[argument]
                if _PLAIN_NAME.fullmatch(column) and column.lower() not in {one.lower() for one in there}:
                    raise WorkbenchError(
                        f"The query {name!r} has a watermark on the column {column!r} of {argument}, whose data has "
                        f"only {', '.join(there)}.{meant(column, there)} Correct the column in line {call.lineno} of "
                        f"{file.name}, or name other data."
                    )


def _may_hide_keys(call: ast.Call, tree: ast.Module) -> bool:
    """Whether a call may make state or a join that the module's text does not show: not by a function of Spark's."""
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if method in _HIDING or (method in _BY_KEY and not (call.args or call.keywords)):
        return True
    base = call.func
    while isinstance(base, ast.Attribute):
        base = base.value
    if not isinstance(base, ast.Name):
        return isinstance(base, ast.Subscript) and base is call.func
    bound = (to for one in tree.body if isinstance(one, ast.Assign) for to in one.targets)
    if method and any(isinstance(to, ast.Name) and to.id == base.id for to in bound):
        return True
    for one in ast.walk(tree):
        for name in one.names if isinstance(one, ast.Import | ast.ImportFrom) else ():
            if base.id == (name.asname or name.name.partition(".")[0]):
                origin = one.module if isinstance(one, ast.ImportFrom) else name.name
                return not str(origin).startswith("pyspark")
    return not method and base.id not in {*_functions(tree), *dir(builtins)}


def static_tables(file: Path, function: str) -> tuple[str, ...]:
    """Paths and names of the tables that a function reads itself, as far as its text has them."""
    tree = _parsed(file)
    found = _functions(tree).get(function)
    reads = (one for body in (_reached(found, tree) if found else ()) for one in ast.walk(body))
    return tuple(
        one.args[0].value
        for one in reads
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.args
        if isinstance(one.args[0], ast.Constant) and isinstance(one.args[0].value, str)
        if re.search(r"\.(read\b.*\.(csv|json|load|orc|parquet|table|text)|table)$", ast.unparse(one.func))
    )


def _keys_given(call: ast.Call) -> tuple[str, list[ast.expr]]:
    """Return what a call makes, state or a join, and the expressions of its keys; none where it makes neither."""
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if method in _BY_KEY:
        return "state", [*call.args, *(one.value for one in call.keywords)]
    if method == "join" and not isinstance(getattr(call.func, "value", None), ast.Constant):  # ", ".join(...)
        return "join", [*call.args[1:2], *(one.value for one in call.keywords if one.arg == "on")]
    return "", []


def _columns(given: ast.expr, known: dict[str, ast.expr]) -> set[str] | None:
    """Collect the columns that an expression names, of texts all words; None where the module does not show them."""
    if isinstance(given, ast.Call) and ast.unparse(given.func).rpartition(".")[2] in _WINDOWS:
        return set()
    parts = list(ast.walk(given))
    bases = [one.func if isinstance(one, ast.Call) else getattr(one, "value", None) for one in parts]
    named: set[str] = set()
    for one in parts:
        if any(one is base for base in bases) and not isinstance(one, ast.Constant):
            continue  # rows of rows.shop, f.col of f.col("shop")
        if isinstance(one, ast.Constant) and isinstance(one.value, str):
            named.update(_PLAIN_NAME.findall(one.value))
        elif isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name):
            named.add(one.attr)
        elif isinstance(one, ast.Name):
            if one.id not in known:
                return None
            named |= _columns(known[one.id], {}) or set()
    return named or None


def needed(signature: inspect.Signature) -> tuple[str, ...] | None:
    """Names of the arguments that a query must be given; None if it takes any."""
    asked = signature.parameters.values()
    if any(one.kind is one.VAR_POSITIONAL for one in asked):
        return None
    return tuple(one.name for one in asked if one.default is one.empty and one.kind is not one.VAR_KEYWORD)


def _check_arguments(name: str, signature: inspect.Signature, inputs: Sequence[str]) -> None:
    asked = [str(one.replace(annotation=one.empty)) for one in signature.parameters.values()]
    listed = ", ".join(asked)
    try:
        signature.bind(*(inputs or [""]))
    except TypeError:
        if inputs:
            raise WorkbenchError(
                f"The query {name!r} takes ({listed}), and its inputs are {', '.join(inputs)}. Name an input for each "
                "streaming DataFrame that it takes, and give other arguments defaults.",
                settings=("inputs",),
            ) from None
        if len(asked) > 1:
            raise WorkbenchError(
                f"The query {name!r} takes {len(asked)} arguments ({listed}), and one data set is named. If each is a "
                "streaming DataFrame, give workbench init a file for each, or name inputs in the study. If not, read "
                "static tables inside the function, and give other arguments defaults."
            ) from None
        raise WorkbenchError(
            f"The query {name!r} takes no argument{' that it can be given' * len(asked)}; it must take one: the "
            "streaming DataFrame of its rows, which the workbench feeds."
        ) from None
    named = needed(signature)
    if inputs and named is not None and (own := tuple(signature.parameters)[: len(inputs)]) != tuple(inputs):
        raise WorkbenchError(
            f"The inputs of the query {name!r} are called {', '.join(inputs)}, and the arguments of its function "
            f"{', '.join(own)}. Call the inputs as the arguments, in their order.",
            settings=("inputs",),
        )


def _check_sink(name: str, found: ast.FunctionDef, tree: ast.Module) -> None:
    typed = "" if found.returns is None else ast.unparse(found.returns)
    word = _started_by(_reached(found, tree), within=True)
    if not word and "StreamingQuery" not in typed:
        return
    does = f"calls {word}" if word else "returns a StreamingQuery"
    raise WorkbenchError(
        f"The query {name!r} {does}, so it starts itself, with a sink of its own. Drop the sink: return the "
        "streaming DataFrame, which the workbench starts; the study names its sink (sink: parquet PLACE, for example)."
    )


def _started_by(bodies: list[ast.stmt], *, within: bool) -> str:
    """Find what in `bodies` starts a stream or awaits its end; "" if nothing. Functions inside count if `within`."""
    for one in (part for body in bodies for part in (ast.walk(body) if within else _own([body]))):
        if isinstance(one, ast.Attribute) and (one.attr == "writeStream" or one.attr in _WAITS):
            return one.attr
    return ""


def _reached(found: ast.FunctionDef, tree: ast.Module) -> list[ast.stmt]:
    """Return a function, and those of its module that it calls by name, directly or through others."""
    functions = _functions(tree)
    reached, waiting = list[ast.stmt](), [found.name]
    while waiting:
        if one := functions.pop(waiting.pop(), None):
            reached.append(one)
            calls = (part.func for part in ast.walk(one) if isinstance(part, ast.Call))
            waiting += [func.id for func in calls if isinstance(func, ast.Name)]
    return reached


def _own(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Yield the nodes of statements, without those of functions and classes that they define."""
    waiting: list[ast.AST] = [*body]
    while waiting:
        one = waiting.pop()
        if not isinstance(one, _DEFINED):
            yield one
            waiting += ast.iter_child_nodes(one)


def _signature(asked: ast.arguments) -> inspect.Signature:
    kind = inspect.Parameter
    placed = [*asked.posonlyargs, *asked.args]
    kinds = [kind.POSITIONAL_ONLY] * len(asked.posonlyargs) + [kind.POSITIONAL_OR_KEYWORD] * len(asked.args)
    defaults = [kind.empty] * (len(placed) - len(asked.defaults)) + [None] * len(asked.defaults)
    made = [kind(one.arg, how, default=default) for one, how, default in zip(placed, kinds, defaults, strict=True)]
    if asked.vararg:
        made.append(kind(asked.vararg.arg, kind.VAR_POSITIONAL))
    for one, default in zip(asked.kwonlyargs, asked.kw_defaults, strict=True):
        made.append(kind(one.arg, kind.KEYWORD_ONLY, default=kind.empty if default is None else None))
    if asked.kwarg:
        made.append(kind(asked.kwarg.arg, kind.VAR_KEYWORD))
    return inspect.Signature(made)


def _functions(tree: ast.Module) -> dict[str, ast.FunctionDef]:
    return {one.name: one for one in tree.body if isinstance(one, ast.FunctionDef)}


def _parsed(file: Path) -> ast.Module:
    """Parse the module of a file; return an empty one if that fails, as importing it gives a better error."""
    with suppress(OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.parse(file.read_bytes())
    return ast.Module([], [])
