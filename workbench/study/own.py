"""What users name as ``module:name``: modules are looked for in the current folder first, and read again there."""

import ast
import importlib
import inspect
import sys
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stdout
from difflib import get_close_matches
from pathlib import Path

from workbench.errors import WorkbenchError
from workbench.reading import is_there
from workbench.workload import Unread

_LONGEST = 500  # characters of a message
_NOT_HERE = "Run the command in the folder of its file, or install it."


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
    own = inspect.getmembers(loaded, lambda one: inspect.isfunction(one) or inspect.isclass(one))
    known = [
        key
        for key, value in own
        if not key.startswith("_") and (inspect.isfunction(value) or value.__module__ == module)
    ]
    return _lacks(module, attribute, known)


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
