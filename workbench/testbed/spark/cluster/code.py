"""The code that executors need: the workbench's and the user's own modules, in one zip file."""

import sys
import sysconfig
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

import workbench

NAME = "workbench-code.zip"
_HOME = Path(workbench.__file__).resolve().parent
_INSTALLED = {"site-packages", "dist-packages"}


def pack(folder: Path, modules: Iterable[ModuleType] | None = None) -> Path:
    """Write the workbench and those of `modules` (default: all loaded) that are the user's into a zip file in `folder`.

    A module of the user is one that is neither Python's nor installed. Of a package, all modules are packed; a
    module that is imported for the first time inside a task is packed only then.
    """
    target = folder / NAME
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as archive:
        for file in sorted(_HOME.rglob("*.py")):
            archive.write(file, f"{_HOME.name}/{file.relative_to(_HOME).as_posix()}")
        for name, file in sorted(set(_own(list(sys.modules.values()) if modules is None else modules))):
            archive.write(file, name)
    return target


def _own(modules: Iterable[ModuleType]) -> Iterator[tuple[str, Path]]:
    """Name in the archive and file of every module of the user."""
    for module in modules:
        file = Path(getattr(module, "__file__", None) or "")
        name = getattr(module, "__name__", "")
        if file.suffix != ".py" or name == "__main__" or not _users(file.resolve()):
            continue
        place = name.replace(".", "/")
        if file.name != "__init__.py":
            yield f"{place}.py", file
            continue
        for part in file.parent.rglob("*.py"):
            yield f"{place}/{part.relative_to(file.parent).as_posix()}", part


def _users(file: Path) -> bool:
    python = {Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")}
    return file.is_file() and not (_INSTALLED & {*file.parts} or _HOME in file.parents or python & {*file.parents})
