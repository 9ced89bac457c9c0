"""Numbers of options, as the answers show them: with commas; rates also with a prefix."""

import argparse
import re
from collections.abc import Callable
from typing import TypeVar

from workbench import bounds, units
from workbench.errors import WorkbenchError

_COMMAS = re.compile(r"[-+]?\d{1,3}(,\d{3})+(\.\d*)?")

N = TypeVar("N", int, float)


def whole(text: str) -> int:
    """Read a whole number: ``"1,024"`` or ``"1024"``."""
    return _read(int, text, "whole number")


def number(text: str) -> float:
    """Read a number: ``"1,500.5"`` or ``"1500.5"``."""
    return _read(float, text, "number")


def rate(text: str) -> float:
    """Read records per second: a number, or one with a prefix such as ``"1.5M"``."""
    try:
        value = number(text)
    except argparse.ArgumentTypeError:
        try:
            value = units.read_rate(text)
        except WorkbenchError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
    if value > bounds.RATE:
        raise argparse.ArgumentTypeError(f"{text!r} is too high; give at most {bounds.RATE:g} records/s")
    return value


def port(text: str) -> int:
    """Read the number of a port: 0 to 65535."""
    value = whole(text)
    if not 0 <= value < 1 << 16:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port; give 0 to 65535")
    return value


def _read(kind: Callable[[str], N], text: str, what: str) -> N:
    try:
        return kind(text.replace(",", "") if _COMMAS.fullmatch(text) else text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a {what}; write it such as 1024 or 1,024") from None
