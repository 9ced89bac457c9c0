"""Paths and options of advised commands, as a shell reads them: pages are passed on, and folders name people."""

import math
import os
import shlex
from collections.abc import Mapping
from pathlib import Path

import yaml

_PATHS = frozenset({"environment", "journal", "measured", "prices", "progress"})  # of this machine


def short(path: str | Path) -> str:
    """Shorten a path, so that it names no folder above this one or home; a short path does not change.

    Below this folder it begins there, below home it begins with ``~/``. Of an absolute path elsewhere only the name is
    left.
    """
    path = str(path)
    if path.startswith("~/"):
        return path
    try:
        here = os.getcwd()  # noqa: PTH109 - as `os.path` below, whose paths may be of no file
    except OSError:  # it was deleted
        here = "/"
        if not Path(path).is_absolute():
            return os.path.normpath(path)
    whole = os.path.join(here, path)  # noqa: PTH118
    real, plain = os.path.realpath(whole), os.path.normpath(whole)
    if os.path.realpath(plain) != real:  # ".." after a link leads elsewhere
        plain = real
    home = os.path.expanduser("~")  # noqa: PTH111 - Path.expanduser raises where there is none
    for base, begin in ((here, ""), (home, "~/")):
        for place, folder in ((plain, os.path.normpath(base)), (real, os.path.realpath(base))):
            if Path(base).is_absolute() and folder != "/" and Path(place).is_relative_to(folder):
                return begin + os.path.relpath(place, folder)
    return Path(path).name if Path(path).is_absolute() else os.path.relpath(plain, here)


def spelled(path: str | Path) -> str:
    """Spell a path for a shell, shortened; one that begins with a dash is not an option."""
    known = short(path)
    if known.startswith("~/"):
        return f"~/{shlex.quote(known.removeprefix('~/'))}"
    return shlex.quote(f"./{known}" if known.startswith("-") else known)


def spelled_options(options: Mapping[str, object]) -> str:
    """Spell options by their names for a shell; paths are shortened."""
    return " ".join(_option(name, value) for name, value in options.items())


def spelled_report(report: str, parameters: Mapping[str, object]) -> str:
    """Spell the command that writes a report with these parameters; a text with a folder in it is a path."""
    given = (f"-p {shlex.quote(name)} {_parameter(value)}" for name, value in parameters.items())
    return " ".join(("workbench report", shlex.quote(report), spelled(f"{report}.html"), *given))


def short_options(options: Mapping[str, object]) -> dict[str, object]:
    """Shorten the paths among options, to keep them."""
    return {name: short(str(value)) if name in _PATHS else value for name, value in options.items()}


def _option(name: str, value: object) -> str:
    text = f"{value:.12g}" if isinstance(value, float) else str(value)
    between = "=" if text.startswith("-") and name not in _PATHS else " "
    return f"{shlex.quote(f'--{name}')}{between}{spelled(text) if name in _PATHS else shlex.quote(text)}"


def _parameter(value: object) -> str:
    if isinstance(value, str):
        return spelled(value) if os.sep in value or value.startswith("-") else shlex.quote(value)
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.12g}"
    text = yaml.safe_dump(_short_within(value), default_flow_style=True, width=math.inf, sort_keys=False)
    return shlex.quote(text.removesuffix("...\n").strip())


def _short_within(value: object) -> object:
    """Shorten the paths in a list or mapping to their names where they are in home: no shell expands a home there."""
    if isinstance(value, Mapping):
        return {name: _short_within(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_short_within(one) for one in value]
    if isinstance(value, str) and os.sep in value:
        known = short(value)
        return Path(known).name if known.startswith("~/") else known
    return value
